//! Memory and threads that the system refuses: a line that says so and the exit code 1, where Rust would abort.
//!
//! What starts a thread here looks whether it could. The bus library does not: it panics, and so does the runtime that both of
//! us use.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};

const NO_MEMORY: &[u8] =
    b"pilotlight: the system refuses more memory; end some programs, or raise the limit (`ulimit -v`)\n";
const NO_THREAD: &[u8] =
    b"pilotlight: the system refuses another thread; end some programs, or raise the limit (`ulimit -u`)\n";

/// From now on a panic over a thread that cannot be had is told as what it is. Any other one is a mistake of ours, and told as
/// such.
pub(crate) fn tell_of_threads() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // The words of tokio and of the standard library.
        let about = |words: &str| words.contains("can't spawn") || words.contains("failed to spawn thread");
        if panic.payload_as_str().is_some_and(about) {
            end(NO_THREAD);
        }
        // A thread that has just begun, and finds no memory for what the standard library wants for it.
        if panic.payload_as_str().is_some_and(|words| words.contains("failed to allocate an alternative stack")) {
            end(NO_MEMORY);
        }
        usual(panic);
    }));
}

/// The system's memory.
struct Memory;

#[global_allocator]
static MEMORY: Memory = Memory;

// SAFETY: all is the system's allocator's, which is asked exactly what we are asked.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as we were asked.
        given(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as we were asked.
        given(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as we were asked.
        given(unsafe { System.realloc(memory, layout, size) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as we were asked.
        unsafe { System.dealloc(memory, layout) }
    }
}

fn given(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        end(NO_MEMORY);
    }
    memory
}

/// Nothing can be done any more, not even to return an error.
#[cold]
#[cfg(unix)]
fn end(line: &[u8]) -> ! {
    unsafe extern "C" {
        /// POSIX: ends the process, and runs nothing of it any more.
        fn _exit(status: std::ffi::c_int) -> !;
    }
    // Straight to the descriptor: whoever was refused may be writing there.
    let _ = rustix::io::write(rustix::stdio::stderr(), line);
    // What `exit` would run takes locks, and one that another thread holds which was refused as well is never given back.
    // SAFETY: it takes any number, and does not return.
    unsafe { _exit(1) }
}

/// The same.
#[cold]
#[cfg(not(unix))]
#[expect(clippy::disallowed_methods, reason = "nothing can be done any more, not even to return an error")]
fn end(line: &[u8]) -> ! {
    let _ = std::io::Write::write_all(&mut std::io::stderr(), line);
    std::process::exit(1)
}
