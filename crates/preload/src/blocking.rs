//! Functions in which threads wait for something that is no lock: as an option, a
//! critical thread is out of the fast region while it does, and others go on.
//!
//! Without that option, nothing but a jump comes before the C library's function.

use core::ffi::{c_char, c_int, c_long, c_uint, c_void};

use libc::{
    clockid_t, epoll_event, fd_set, id_t, idtype_t, iovec, mmsghdr, mqd_t, msghdr, nfds_t, pid_t,
    pollfd, pthread_barrier_t, pthread_cond_t, pthread_mutex_t, rusage, sem_t, siginfo_t, sigset_t,
    size_t, sockaddr, socklen_t, ssize_t, timespec, timeval, useconds_t,
};
use milieu_threads::kernel;

use crate::passage::passages;
use crate::{real, state};

/// Waits, out of the fast region if this thread is in it.
///
/// # Safety
/// Nothing is asked of the caller; functions around others have this form.
pub unsafe fn around<T, A>(wait: impl FnOnce() -> T, _: A) -> T {
    let Some(served) = state::leaving() else {
        return wait();
    };
    let identity = kernel::identity();
    let attributes = served.program.get(identity);
    if !attributes.is_ok_and(|it| it.is_time_critical()) {
        return wait();
    }
    served.program.set_blocked(identity, true);
    let result = wait();
    served.program.set_blocked(identity, false);
    result
}

real::waiting!(passages);
