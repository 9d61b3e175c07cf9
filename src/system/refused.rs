//! Exits with code 1 and a clear message when the system refuses memory or a thread, where Rust would abort.
//!
//! Our own code handles a thread that cannot be started. The bus library does not: it panics, and so does the runtime
//! that we share with it.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};

const NO_MEMORY: &[u8] =
    b"pilotlight: the system refuses more memory; end some programs, or raise the limit (`ulimit -v`)\n";
const NO_THREAD: &[u8] =
    b"pilotlight: the system refuses another thread; end some programs, or raise the limit (`ulimit -u`)\n";

/// Installs a panic hook that exits with a clear message if a thread was refused. Other panics are bugs, and are
/// reported as before.
pub(crate) fn install_panic_hook() {
    let default_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // The messages of tokio and of the standard library.
        let is_refused_thread =
            |message: &str| message.contains("can't spawn") || message.contains("failed to spawn thread");
        if panic.payload_as_str().is_some_and(is_refused_thread) {
            exit(NO_THREAD);
        }
        // The standard library allocates a signal stack for each new thread.
        if panic.payload_as_str().is_some_and(|message| message.contains("failed to allocate an alternative stack")) {
            exit(NO_MEMORY);
        }
        default_hook(panic);
    }));
}

/// The system's allocator, which exits when memory is refused.
struct Memory;

#[global_allocator]
static MEMORY: Memory = Memory;

// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract.
        or_exit(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract.
        or_exit(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller upholds the contract.
        or_exit(unsafe { System.realloc(memory, layout, size) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract.
        unsafe { System.dealloc(memory, layout) }
    }
}

fn or_exit(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        exit(NO_MEMORY);
    }
    memory
}

/// Writes a line to standard error and exits. Anything else, such as returning an error, might need memory.
#[cold]
#[cfg(unix)]
fn exit(line: &[u8]) -> ! {
    unsafe extern "C" {
        /// POSIX: ends the process without running exit handlers.
        fn _exit(status: std::ffi::c_int) -> !;
    }
    // Written to the descriptor without the lock of `stderr`, which the caller may hold.
    let _ = rustix::io::write(rustix::stdio::stderr(), line);
    // Exit handlers take locks. A lock held by another thread that was refused memory as well would never be released.
    // SAFETY: it accepts any number, and does not return.
    unsafe { _exit(1) }
}

/// Writes a line to standard error and exits. Anything else, such as returning an error, might need memory.
#[cold]
#[cfg(not(unix))]
#[expect(clippy::disallowed_methods, reason = "returning an error might need memory")]
fn exit(line: &[u8]) -> ! {
    let _ = std::io::Write::write_all(&mut std::io::stderr(), line);
    std::process::exit(1)
}
