//! Returns memory to the system.
//!
//! The allocator keeps freed memory for the next peak, such as a startup or a storm of events, which may be days away.
//! So it is asked to return it after much was read, and with each rescan.
#![cfg_attr(all(target_os = "linux", target_env = "gnu"), allow(unsafe_code))]

/// Returns unused memory to the system, as far as the platform allows.
pub fn release() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        unsafe extern "C" {
            /// malloc_trim(3).
            fn malloc_trim(pad: usize) -> std::ffi::c_int;
        }
        // SAFETY: it accepts any number, may be called on any thread, and leaves memory that is in use alone.
        unsafe { malloc_trim(0) };
    }
}
