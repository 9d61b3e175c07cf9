//! The framing of what the kernel says over netlink: messages with a header, and attributes in them; netlink(7). All of it
//! is aligned to four bytes, and in native byte order.

/// Length of a message's header: length, type, flags, sequence number, sender.
pub(super) const HEADER: usize = 16;

/// The first message: its type, its body, and what follows it.
pub(super) fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = u32::from_ne_bytes(take(bytes, 0)?) as usize;
    let body = bytes.get(HEADER..length)?;
    Some((u16::from_ne_bytes(take(bytes, 4)?), body, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

/// The value of the first attribute of this kind. Each begins with its length, including these four bytes, and its kind.
pub(super) fn attribute(mut bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16::from_ne_bytes(take(bytes, 0)?));
        let kind = u16::from_ne_bytes(take(bytes, 2)?);
        let value = bytes.get(4..length)?;
        if kind == wanted {
            return Some(value);
        }
        bytes = bytes.get(length.next_multiple_of(4)..)?;
    }
}

/// The bytes at this place.
pub(super) fn take<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}
