//! The memory for what waits: bounded for all hooks together, of every agent. What it has no room for is left to its terminal.

use pilotlight_core::session::LetGo;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How much is kept of all that waits, in bytes. A request has some hundred; one that writes a large file, a megabyte.
const MOST: usize = 8 << 20;
/// From this size on, the memory that made a request known is given back to the system at once.
const LARGE: usize = 128 << 10;
/// The most values that the input of a hook may have. A request that a person can read has a hundred; each value takes a hundred times
/// its length while it is read.
const PARTS_MAX: usize = 20_000;

/// The memory for what waits, shared by the bridges of all agents.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<AtomicUsize>);

/// A part of it, until it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    memory: Memory,
    size: usize,
}

impl Memory {
    /// Takes this much. `None` if there is not as much left.
    pub(crate) fn take(&self, size: usize) -> Option<Share> {
        let with = |taken: usize| taken.checked_add(size).filter(|sum| *sum <= MOST);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with).ok()?;
        release(size);
        Some(Share { memory: self.clone(), size })
    }

    /// Why there is no room, once what was to be kept is dropped.
    pub(crate) fn refused(size: usize) -> LetGo {
        release(size);
        LetGo::Full
    }
}

/// Gives the memory back to the system that something of this size took.
fn release(size: usize) {
    if size >= LARGE {
        pilotlight_system::heap::release();
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.memory.0.fetch_sub(self.size, Ordering::Relaxed);
        release(self.size);
    }
}

/// Whether this JSON has more values than are read. Broken JSON may be said to have any number.
pub(crate) fn has_many_parts(json: &[u8]) -> bool {
    let (mut parts, mut is_text, mut is_escaped) = (0, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b',' | b':' | b'[' | b'{' if !is_text => parts += 1,
            _ => {}
        }
    }
    parts > PARTS_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn case_862_what_waits_is_bounded_and_its_memory_is_free_again() {
        let memory = Memory::default();
        let shares: Vec<_> = (0..20).map_while(|_| memory.clone().take(900_000)).collect();
        assert_eq!(shares.len(), MOST / 900_000);
        assert!(memory.take(900_000).is_none() && memory.take(usize::MAX).is_none());
        assert!(memory.take(100).is_some(), "a small one has room");
        drop(shares);
        assert!(memory.take(MOST).is_some());
    }

    #[test]
    fn case_862_values_are_counted_and_not_what_texts_look_like() {
        let text = json!({"command": "[{\"a\",:\\\\".repeat(100_000), "more": [1, {"a": "b\\"}]});
        assert!(!has_many_parts(text.to_string().as_bytes()));
        for many in [json!(vec![0; 50_000]), json!(vec![json!({"a": [1]}); 10_000])] {
            assert!(has_many_parts(many.to_string().as_bytes()));
        }
    }
}
