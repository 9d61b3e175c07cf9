//! Exits on Windows: the system's thread pool waits on each process's handle (one thread for 63 of them).
//!
//! An open handle keeps its process's id from being reused, so the end of the wrong process is never reported. A wait's
//! callback gets a plain pointer. It points into an `Arc` that the [`Watch`] owns, and a `Watch` is dropped either by
//! that callback itself, or after waiting until no callback runs.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ffi::c_void;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::mpsc::UnboundedSender;
use windows_sys::Win32::Foundation::{ERROR_INVALID_PARAMETER, HANDLE, INVALID_HANDLE_VALUE, WAIT_OBJECT_0};
use windows_sys::Win32::System::Threading::{
    GetProcessId, INFINITE, OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE,
    RegisterWaitForSingleObject, UnregisterWaitEx, WT_EXECUTEONLYONCE, WaitForSingleObject,
};

/// The watched processes.
pub(super) struct Waits(Arc<Shared>);

struct Shared {
    watched: Mutex<HashMap<u32, Watch>>,
    ended: UnboundedSender<u32>,
}

/// The argument of a callback.
struct Context {
    shared: Weak<Shared>,
    pid: u32,
}

/// A registered wait, which its drop unregisters.
struct Watch {
    /// Kept open as long as the wait is registered.
    _process: OwnedHandle,
    wait: HANDLE,
    context: Arc<Context>,
    /// Whether the callback drops this: then the drop must not wait for the callback.
    in_callback: bool,
}

// SAFETY: a wait's handle may be used on any thread.
unsafe impl Send for Watch {}

impl Waits {
    /// Never fails here: every process has a thread pool.
    pub(super) fn new(ended: UnboundedSender<u32>) -> io::Result<Self> {
        Ok(Self(Arc::new(Shared { watched: Mutex::default(), ended })))
    }

    pub(super) fn watch(&self, pid: u32) -> io::Result<bool> {
        // Locked while the wait is registered, so that the callback of a process that ends at once finds it in the map.
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
        // SAFETY: the wait was registered once and is unregistered once, here. The fields, including the context that
        // the callback points to, are dropped after this: by then no callback runs, or it is the one that drops this
        // and it has its own reference to the context.
        let _ = unsafe { UnregisterWaitEx(self.wait, until_done) };
    }
}

/// The wait's callback: a process has ended.
///
/// # Safety
/// `context` is what [`Waits::watch`] registered.
unsafe extern "system" fn ended(context: *mut c_void, _timed_out: bool) {
    let context: *const Context = context.cast_const().cast();
    // SAFETY: the watch keeps the context until this callback returns or drops the watch itself, below; the reference
    // taken here keeps it beyond that.
    let context = unsafe {
        Arc::increment_strong_count(context);
        Arc::from_raw(context)
    };
    let Some(shared) = context.shared.upgrade() else { return };
    let mut watched = shared.watched();
    // Otherwise the watch was just removed (its drop waits for us to return), and the id may be watched again.
    let current = watched.get(&context.pid).is_some_and(|watch| Arc::ptr_eq(&watch.context, &context));
    let ended = if current { watched.remove(&context.pid) } else { None };
    drop(watched);
    if let Some(mut watch) = ended {
        watch.in_callback = true;
        drop(watch);
        let _ = shared.ended.send(context.pid); // fails only if nobody waits any more
    }
}

/// Whether there is provably no process `pid`, or it has ended and only handles to it are left.
pub(crate) fn has_ended(pid: u32) -> bool {
    matches!(open(pid), Ok(None))
}

/// The process's handle; `None` if no process has the id, or it has ended.
fn open(pid: u32) -> io::Result<Option<OwnedHandle>> {
    // SAFETY: takes and returns plain values.
    let handle = unsafe { OpenProcess(PROCESS_SYNCHRONIZE | PROCESS_QUERY_LIMITED_INFORMATION, 0, pid) };
    if handle.is_null() {
        let error = io::Error::last_os_error();
        let none = error.raw_os_error().map(i32::unsigned_abs) == Some(ERROR_INVALID_PARAMETER);
        return if none { Ok(None) } else { Err(error) };
    }
    // SAFETY: just opened, and owned by nothing else.
    let process = unsafe { OwnedHandle::from_raw_handle(handle) };
    // SAFETY: the handle is open and has the rights that both calls need.
    let (id, ended) = unsafe {
        (GetProcessId(process.as_raw_handle()), WaitForSingleObject(process.as_raw_handle(), 0) == WAIT_OBJECT_0)
    };
    // Windows ignores the lowest two bits of the id that it is asked to open.
    Ok(Some(process).filter(|_| id == pid && !ended))
}
