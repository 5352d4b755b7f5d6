//! Functions in which threads wait for something that is no lock: as an option, a
//! critical thread is out of the fast region while it does, and others go on.
//!
//! Without that option, a load comes before the C library's function.

use core::ffi::{c_int, c_uint, c_void};

use libc::{
    clockid_t, epoll_event, fd_set, msghdr, nfds_t, pollfd, pthread_cond_t, pthread_mutex_t, sem_t,
    sigset_t, size_t, sockaddr, socklen_t, ssize_t, timespec, timeval, useconds_t,
};
use milieu_threads::kernel;

use crate::{real, state};

/// Waits, out of the fast region if this thread is in it.
#[cold]
#[inline(never)]
fn out<T>(wait: impl FnOnce() -> T) -> T {
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

macro_rules! waiting {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(
            /// As the C library has it.
            ///
            /// # Safety
            /// As there.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
                // SAFETY: the caller's.
                let wait = || unsafe { real::$name($($argument),*) };
                if state::leaving().is_none() { wait() } else { out(wait) }
            }
        )*
    };
}

waiting! {
    pthread_cond_wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int;
    pthread_cond_timedwait(
        cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, until: *const timespec
    ) -> c_int;
    pthread_cond_clockwait(
        cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, clock: clockid_t,
        until: *const timespec
    ) -> c_int;
    sem_wait(semaphore: *mut sem_t) -> c_int;
    sem_timedwait(semaphore: *mut sem_t, until: *const timespec) -> c_int;
    poll(files: *mut pollfd, count: nfds_t, milliseconds: c_int) -> c_int;
    ppoll(
        files: *mut pollfd, count: nfds_t, span: *const timespec, mask: *const sigset_t
    ) -> c_int;
    select(
        count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set,
        span: *mut timeval
    ) -> c_int;
    pselect(
        count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set,
        span: *const timespec, mask: *const sigset_t
    ) -> c_int;
    epoll_wait(
        epoll: c_int, events: *mut epoll_event, room: c_int, milliseconds: c_int
    ) -> c_int;
    epoll_pwait(
        epoll: c_int, events: *mut epoll_event, room: c_int, milliseconds: c_int,
        mask: *const sigset_t
    ) -> c_int;
    read(file: c_int, into: *mut c_void, bytes: size_t) -> ssize_t;
    recv(socket: c_int, into: *mut c_void, bytes: size_t, flags: c_int) -> ssize_t;
    recvfrom(
        socket: c_int, into: *mut c_void, bytes: size_t, flags: c_int, from: *mut sockaddr,
        length: *mut socklen_t
    ) -> ssize_t;
    recvmsg(socket: c_int, message: *mut msghdr, flags: c_int) -> ssize_t;
    accept(socket: c_int, from: *mut sockaddr, length: *mut socklen_t) -> c_int;
    accept4(socket: c_int, from: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int;
    nanosleep(span: *const timespec, rest: *mut timespec) -> c_int;
    clock_nanosleep(
        clock: clockid_t, flags: c_int, span: *const timespec, rest: *mut timespec
    ) -> c_int;
    sleep(seconds: c_uint) -> c_uint;
    usleep(microseconds: useconds_t) -> c_int;
    pause() -> c_int;
    sigwait(set: *const sigset_t, signal: *mut c_int) -> c_int;
}
