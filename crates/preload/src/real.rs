//! The functions of the C library, or of whoever stands between it and us.
//!
//! A thread that is cancelled in one of them unwinds through the function of ours that
//! has called it, as through one in C: that has nothing to clean up, and being `extern
//! "C"` no landing pad. With `extern "C-unwind"` it would have one, which aborts.

use core::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use libc::{
    clockid_t, epoll_event, fd_set, id_t, idtype_t, iovec, mmsghdr, mqd_t, msghdr, nfds_t, pid_t,
    pollfd, posix_spawn_file_actions_t, posix_spawnattr_t, pthread_attr_t, pthread_barrier_t,
    pthread_cond_t, pthread_key_t, pthread_mutex_t, pthread_t, rlimit, rlimit64, rusage,
    sched_param, sem_t, sigaction as action, siginfo_t, sigset_t, size_t, sockaddr, socklen_t,
    ssize_t, timespec, timeval, uid_t, useconds_t,
};

/// A function that is looked for when it is called for the first time.
pub struct Real {
    name: &'static CStr,
    at: AtomicPtr<c_void>,
}

impl Real {
    const fn new(name: &'static CStr) -> Real {
        Real {
            name,
            at: AtomicPtr::new(null_mut()),
        }
    }

    /// Where it is; null where this C library does not have it.
    #[inline]
    pub fn get(&self) -> *mut c_void {
        let at = self.at.load(Ordering::Relaxed);
        if at.is_null() { self.find() } else { at }
    }

    #[cold]
    fn find(&self) -> *mut c_void {
        // SAFETY: the name ends with a zero; the loader knows this library by the
        // place of the call.
        let at = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.at.store(at, Ordering::Relaxed);
        at
    }
}

macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(
            /// Where it is.
            pub mod $name {
                const NAME: &core::ffi::CStr = match core::ffi::CStr::from_bytes_with_nul(
                    concat!(stringify!($name), "\0").as_bytes(),
                ) {
                    Ok(name) => name,
                    Err(_) => c"",
                };
                pub static REAL: super::Real = super::Real::new(NAME);
            }

            /// As the C library's.
            ///
            /// # Safety
            /// As there.
            #[inline]
            pub unsafe fn $name($($argument: $type),*) -> $result {
                let at = $name::REAL.get();
                if at.is_null() {
                    return missing();
                }
                // SAFETY: the C library's function of this name has this type.
                unsafe {
                    let real: unsafe extern "C" fn($($type),*) -> $result =
                        core::mem::transmute(at);
                    real($($argument),*)
                }
            }
        )*
    };
}

/// What a function answers that this C library does not have; programs that call it
/// could not have been linked.
#[cold]
fn missing<T>() -> T {
    // SAFETY: ends the process.
    unsafe { libc::abort() }
}

pub type Start = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
pub type End = unsafe extern "C" fn(*mut c_void);
pub type Strings = *const *mut c_char;

functions! {
    pthread_create(
        thread: *mut pthread_t, attr: *const pthread_attr_t, start: Start, argument: *mut c_void
    ) -> c_int;
    pthread_join(thread: pthread_t, result: *mut *mut c_void) -> c_int;
    pthread_tryjoin_np(thread: pthread_t, result: *mut *mut c_void) -> c_int;
    pthread_timedjoin_np(
        thread: pthread_t, result: *mut *mut c_void, until: *const timespec
    ) -> c_int;
    pthread_clockjoin_np(
        thread: pthread_t, result: *mut *mut c_void, clock: clockid_t, until: *const timespec
    ) -> c_int;
    pthread_detach(thread: pthread_t) -> c_int;
    pthread_getattr_np(thread: pthread_t, attr: *mut pthread_attr_t) -> c_int;
    pthread_attr_init(attr: *mut pthread_attr_t) -> c_int;
    pthread_setattr_default_np(attr: *const pthread_attr_t) -> c_int;
    pthread_attr_destroy(attr: *mut pthread_attr_t) -> c_int;
    pthread_attr_setschedpolicy(attr: *mut pthread_attr_t, policy: c_int) -> c_int;
    pthread_attr_setschedparam(attr: *mut pthread_attr_t, param: *const sched_param) -> c_int;
    pthread_attr_getschedpolicy(attr: *const pthread_attr_t, policy: *mut c_int) -> c_int;
    pthread_attr_getschedparam(attr: *const pthread_attr_t, param: *mut sched_param) -> c_int;
    pthread_setschedparam(thread: pthread_t, policy: c_int, param: *const sched_param) -> c_int;
    pthread_getschedparam(thread: pthread_t, policy: *mut c_int, param: *mut sched_param) -> c_int;
    pthread_setschedprio(thread: pthread_t, priority: c_int) -> c_int;
    pthread_setname_np(thread: pthread_t, name: *const c_char) -> c_int;
    prctl(option: c_int, a: usize, b: usize, c: usize, d: usize) -> c_int;
    pthread_mutex_trylock(mutex: *mut pthread_mutex_t) -> c_int;
    pthread_key_create(key: *mut pthread_key_t, end: Option<End>) -> c_int;
    tss_create(key: *mut pthread_key_t, end: Option<End>) -> c_int;
    nice(by: c_int) -> c_int;
    setpriority(which: c_uint, who: id_t, nice: c_int) -> c_int;
    getpriority(which: c_uint, who: id_t) -> c_int;
    sched_setscheduler(thread: pid_t, policy: c_int, param: *const sched_param) -> c_int;
    sched_getscheduler(thread: pid_t) -> c_int;
    sched_setparam(thread: pid_t, param: *const sched_param) -> c_int;
    sched_getparam(thread: pid_t, param: *mut sched_param) -> c_int;
    sigaction(signal: c_int, new: *const action, old: *mut action) -> c_int;
    signal(signal: c_int, handler: usize) -> usize;
    getrlimit(resource: c_int, into: *mut rlimit) -> c_int;
    getrlimit64(resource: c_int, into: *mut rlimit64) -> c_int;
    setrlimit(resource: c_int, limit: *const rlimit) -> c_int;
    setrlimit64(resource: c_int, limit: *const rlimit64) -> c_int;
    prlimit(process: pid_t, resource: c_int, new: *const rlimit, old: *mut rlimit) -> c_int;
    prlimit64(process: pid_t, resource: c_int, new: *const rlimit64, old: *mut rlimit64) -> c_int;
    execve(path: *const c_char, arguments: Strings, variables: Strings) -> c_int;
    execvpe(path: *const c_char, arguments: Strings, variables: Strings) -> c_int;
    fexecve(file: c_int, arguments: Strings, variables: Strings) -> c_int;
    posix_spawn(
        process: *mut pid_t, path: *const c_char, actions: *const posix_spawn_file_actions_t,
        attr: *const posix_spawnattr_t, arguments: Strings, variables: Strings
    ) -> c_int;
    posix_spawnp(
        process: *mut pid_t, path: *const c_char, actions: *const posix_spawn_file_actions_t,
        attr: *const posix_spawnattr_t, arguments: Strings, variables: Strings
    ) -> c_int;
    setuid(user: uid_t) -> c_int;
    seteuid(user: uid_t) -> c_int;
    setreuid(user: uid_t, effective: uid_t) -> c_int;
    setresuid(user: uid_t, effective: uid_t, saved: uid_t) -> c_int;
    capset(head: *mut c_void, rights: *const c_void) -> c_int;
    chroot(path: *const c_char) -> c_int;
    system(command: *const c_char) -> c_int;
    popen(command: *const c_char, mode: *const c_char) -> *mut libc::FILE;
}

#[cfg(target_pointer_width = "32")]
functions! {
    __pthread_timedjoin_np64(
        thread: pthread_t, result: *mut *mut c_void, until: *const c_void
    ) -> c_int;
    __pthread_clockjoin_np64(
        thread: pthread_t, result: *mut *mut c_void, clock: clockid_t, until: *const c_void
    ) -> c_int;
}

/// Hands to a macro the functions in which threads wait for a lock.
macro_rules! locking {
    ($then:ident) => {
        $then! {
            pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int;
            pthread_mutex_timedlock(mutex: *mut pthread_mutex_t, until: *const timespec) -> c_int;
            pthread_mutex_clocklock(
                mutex: *mut pthread_mutex_t, clock: c_int, until: *const timespec
            ) -> c_int;
            mtx_lock(mutex: *mut pthread_mutex_t) -> c_int;
            mtx_timedlock(mutex: *mut pthread_mutex_t, until: *const timespec) -> c_int;
        }
    };
}

pub(crate) use locking;

locking!(functions);

/// Hands to a macro the functions in which threads wait for something that is no lock.
macro_rules! waiting {
    ($then:ident) => {
        $then! {
            pthread_cond_wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int;
            pthread_cond_timedwait(
                cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, until: *const timespec
            ) -> c_int;
            pthread_cond_clockwait(
                cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, clock: clockid_t,
                until: *const timespec
            ) -> c_int;
            cnd_wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int;
            cnd_timedwait(
                cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, until: *const timespec
            ) -> c_int;
            pthread_barrier_wait(barrier: *mut pthread_barrier_t) -> c_int;
            wait(status: *mut c_int) -> pid_t;
            wait3(status: *mut c_int, options: c_int, used: *mut rusage) -> pid_t;
            wait4(
                process: pid_t, status: *mut c_int, options: c_int, used: *mut rusage
            ) -> pid_t;
            waitid(kind: idtype_t, id: id_t, into: *mut siginfo_t, options: c_int) -> c_int;
            waitpid(process: pid_t, status: *mut c_int, options: c_int) -> pid_t;
            sem_wait(semaphore: *mut sem_t) -> c_int;
            sem_timedwait(semaphore: *mut sem_t, until: *const timespec) -> c_int;
            sem_clockwait(
                semaphore: *mut sem_t, clock: clockid_t, until: *const timespec
            ) -> c_int;
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
            epoll_pwait2(
                epoll: c_int, events: *mut epoll_event, room: c_int, span: *const timespec,
                mask: *const sigset_t
            ) -> c_int;
            read(file: c_int, into: *mut c_void, bytes: size_t) -> ssize_t;
            readv(file: c_int, parts: *const iovec, count: c_int) -> ssize_t;
            recv(socket: c_int, into: *mut c_void, bytes: size_t, flags: c_int) -> ssize_t;
            recvfrom(
                socket: c_int, into: *mut c_void, bytes: size_t, flags: c_int, from: *mut sockaddr,
                length: *mut socklen_t
            ) -> ssize_t;
            recvmsg(socket: c_int, message: *mut msghdr, flags: c_int) -> ssize_t;
            recvmmsg(
                socket: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int,
                span: *mut timespec
            ) -> c_int;
            connect(socket: c_int, to: *const sockaddr, length: socklen_t) -> c_int;
            accept(socket: c_int, from: *mut sockaddr, length: *mut socklen_t) -> c_int;
            accept4(socket: c_int, from: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int;
            nanosleep(span: *const timespec, rest: *mut timespec) -> c_int;
            clock_nanosleep(
                clock: clockid_t, flags: c_int, span: *const timespec, rest: *mut timespec
            ) -> c_int;
            sleep(seconds: c_uint) -> c_uint;
            usleep(microseconds: useconds_t) -> c_int;
            pause() -> c_int;
            thrd_sleep(span: *const timespec, rest: *mut timespec) -> c_int;
            sigwait(set: *const sigset_t, signal: *mut c_int) -> c_int;
            sigwaitinfo(set: *const sigset_t, into: *mut siginfo_t) -> c_int;
            sigtimedwait(
                set: *const sigset_t, into: *mut siginfo_t, span: *const timespec
            ) -> c_int;
            sigsuspend(mask: *const sigset_t) -> c_int;
            msgrcv(
                queue: c_int, into: *mut c_void, bytes: size_t, kind: c_long, flags: c_int
            ) -> ssize_t;
            mq_receive(
                queue: mqd_t, into: *mut c_char, bytes: size_t, priority: *mut c_uint
            ) -> ssize_t;
            mq_timedreceive(
                queue: mqd_t, into: *mut c_char, bytes: size_t, priority: *mut c_uint,
                until: *const timespec
            ) -> ssize_t;
            // What programs call that are compiled with `_FORTIFY_SOURCE`.
            __read_chk(file: c_int, into: *mut c_void, bytes: size_t, room: size_t) -> ssize_t;
            __recv_chk(
                socket: c_int, into: *mut c_void, bytes: size_t, room: size_t, flags: c_int
            ) -> ssize_t;
            __recvfrom_chk(
                socket: c_int, into: *mut c_void, bytes: size_t, room: size_t, flags: c_int,
                from: *mut sockaddr, length: *mut socklen_t
            ) -> ssize_t;
            __poll_chk(
                files: *mut pollfd, count: nfds_t, milliseconds: c_int, room: size_t
            ) -> c_int;
            __ppoll_chk(
                files: *mut pollfd, count: nfds_t, span: *const timespec, mask: *const sigset_t,
                room: size_t
            ) -> c_int;
        }
    };
}

pub(crate) use waiting;

waiting!(functions);
