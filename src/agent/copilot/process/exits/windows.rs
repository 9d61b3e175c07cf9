//! Exits on Windows: a wait on each process's handle, by the system's thread pool (one thread for 63 of them).
//!
//! An open handle keeps its process's id from being handed out anew, so no end is told of the wrong process. A wait's
//! callback gets a plain pointer. It points into an `Arc` that the [`Watch`] keeps, and a `Watch` is dropped only by
//! that callback itself, or after waiting until no callback runs.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ffi::c_void;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use windows_sys::Win32::Foundation::{ERROR_INVALID_PARAMETER, HANDLE, INVALID_HANDLE_VALUE, WAIT_OBJECT_0};
use windows_sys::Win32::System::Threading::{
    GetProcessId, INFINITE, OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE,
    RegisterWaitForSingleObject, UnregisterWaitEx, WT_EXECUTEONLYONCE, WaitForSingleObject,
};

use super::Tell;

/// All that is watched.
pub(super) struct Waits(Arc<Shared>);

struct Shared {
    watched: Mutex<HashMap<u32, Watch>>,
    tell: Tell,
}

/// What a callback is given.
struct Context {
    shared: Weak<Shared>,
    pid: u32,
}

/// A registered wait; its drop ends it.
struct Watch {
    /// Open for as long as the wait is.
    _process: OwnedHandle,
    wait: HANDLE,
    context: Arc<Context>,
    /// Whether the callback drops it: then the drop must not wait for the callback.
    in_callback: bool,
}

// SAFETY: a wait's handle may be used by any thread.
unsafe impl Send for Watch {}

impl Waits {
    /// Cannot fail: the thread pool is there.
    pub(super) fn new(tell: Tell) -> io::Result<Self> {
        Ok(Self(Arc::new(Shared { watched: Mutex::default(), tell })))
    }

    pub(super) fn watch(&self, pid: u32) -> io::Result<bool> {
        // Held while the wait is registered: a process that ends at once is told of after it is in the map.
        let mut watched = self.0.watched();
        if watched.contains_key(&pid) {
            return Ok(true);
        }
        let Some(process) = open(pid)? else { return Ok(false) };
        let context = Arc::new(Context { shared: Arc::downgrade(&self.0), pid });
        let mut wait = null_mut();
        // SAFETY: the handle is open, and the `Watch` keeps it and the context until the wait is unregistered.
        let registered = unsafe {
            RegisterWaitForSingleObject(
                &raw mut wait,
                process.as_raw_handle(),
                Some(ended),
                Arc::as_ptr(&context).cast(),
                INFINITE,
                WT_EXECUTEONLYONCE,
            )
        };
        if registered == 0 {
            return Err(io::Error::last_os_error());
        }
        watched.insert(pid, Watch { _process: process, wait, context, in_callback: false });
        Ok(true)
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        let watches = std::mem::take(&mut *self.0.watched());
        drop(watches);
    }
}

impl Shared {
    fn watched(&self) -> MutexGuard<'_, HashMap<u32, Watch>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let until_done = if self.in_callback { null_mut() } else { INVALID_HANDLE_VALUE };
        // SAFETY: registered once, unregistered once, here. The fields, and with them what the callback points to, are
        // dropped after this: no callback runs then, or it is the one that drops this and has a context of its own.
        let _ = unsafe { UnregisterWaitEx(self.wait, until_done) };
    }
}

/// The wait's callback: a process has ended.
///
/// # Safety
/// `context` is what [`Waits::watch`] registered.
unsafe extern "system" fn ended(context: *mut c_void, _timed_out: bool) {
    let context: *const Context = context.cast_const().cast();
    // SAFETY: the watch keeps the context until this callback is over or has dropped the watch itself, further down; the
    // count taken here keeps it beyond that.
    let context = unsafe {
        Arc::increment_strong_count(context);
        Arc::from_raw(context)
    };
    let Some(shared) = context.shared.upgrade() else { return };
    let mut watched = shared.watched();
    // Not ours: forgotten this moment (that drop waits for us to return), and perhaps watched again.
    let current = watched.get(&context.pid).is_some_and(|watch| Arc::ptr_eq(&watch.context, &context));
    let ended = if current { watched.remove(&context.pid) } else { None };
    drop(watched);
    if let Some(mut watch) = ended {
        watch.in_callback = true;
        drop(watch);
        (shared.tell)(context.pid);
    }
}

/// Whether there is provably no process `pid`, or it ended and only handles to it are left.
pub(in super::super) fn has_ended(pid: u32) -> bool {
    matches!(open(pid), Ok(None))
}

/// The process's handle; `None` if there is none of that id, or it ended.
fn open(pid: u32) -> io::Result<Option<OwnedHandle>> {
    // SAFETY: takes and gives plain values.
    let handle = unsafe { OpenProcess(PROCESS_SYNCHRONIZE | PROCESS_QUERY_LIMITED_INFORMATION, 0, pid) };
    if handle.is_null() {
        let error = io::Error::last_os_error();
        let none = error.raw_os_error().map(i32::unsigned_abs) == Some(ERROR_INVALID_PARAMETER);
        return if none { Ok(None) } else { Err(error) };
    }
    // SAFETY: just opened, and owned by nobody else.
    let process = unsafe { OwnedHandle::from_raw_handle(handle) };
    // SAFETY: the handle is open and has the rights that both calls ask for.
    let (id, ended) = unsafe {
        (GetProcessId(process.as_raw_handle()), WaitForSingleObject(process.as_raw_handle(), 0) == WAIT_OBJECT_0)
    };
    // Windows ignores the lowest two bits of the id that it is asked to open.
    Ok(Some(process).filter(|_| id == pid && !ended))
}
