//! The beginning of a line whose end has not been read yet.

/// The longest line that is kept whole, in bytes; of a longer one, only the beginning and the end are kept. The longest
/// seen in a real log was 430 KB.
pub(super) const LINE_MAX: usize = 1024 * 1024;
/// How much of the end of such a line is kept, in bytes: enough for the fields after `data`.
pub(super) const LINE_END: usize = 1024;
/// The capacity of the carry that is kept from one line to the next.
const CARRY_KEPT: usize = 512;

/// A line whose end has not been read yet.
#[derive(Debug, Default)]
pub(super) struct Carry {
    pub(super) head: Vec<u8>,
    /// The last bytes read of a line that is too long to be kept.
    pub(super) end: Vec<u8>,
}

impl Carry {
    pub(super) const fn is_empty(&self) -> bool {
        self.head.is_empty()
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let room = LINE_MAX.saturating_sub(self.head.len()).min(bytes.len());
        let (head, rest) = bytes.split_at(room);
        self.head.extend_from_slice(head);
        if !rest.is_empty() {
            self.end.extend_from_slice(&rest[rest.len().saturating_sub(LINE_END)..]);
            self.end.drain(..self.end.len().saturating_sub(LINE_END));
        }
    }

    pub(super) fn clear(&mut self) {
        // A long line's memory is freed: hundreds of logs may be followed.
        if self.head.capacity() > CARRY_KEPT {
            *self = Self::default();
        }
        self.head.clear();
        self.end.clear();
    }
}
