//! What the heap has to spare goes back to the system.
//!
//! The allocator keeps what a start or a storm needed, for the next one, which may be days away. It is asked to let go of it when
//! much was looked at, and with the rescan: that takes it some 100 us, and wakes nobody.
#![cfg_attr(all(target_os = "linux", target_env = "gnu"), allow(unsafe_code))]

/// Gives whole pages that nothing stands on back to the system, where the allocator can be asked to.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn give_back() {
    unsafe extern "C" {
        /// malloc_trim(3).
        fn malloc_trim(pad: usize) -> std::ffi::c_int;
    }
    // SAFETY: it takes any number, may be called by any thread, and touches nothing that is in use.
    unsafe { malloc_trim(0) };
}

/// There is no asking.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) const fn give_back() {}
