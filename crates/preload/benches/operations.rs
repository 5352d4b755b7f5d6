//! What functions of the C library cost with the preload before them, each beside the
//! C library's own: the shared object is loaded into this program and called in it.
//!
//! It answers as `xtask/measure` says.

use std::ffi::{CString, c_int, c_void};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use std::thread::JoinHandle;

use measure::{Loop, Operation, alone, answer, paired};
use milieu_threads::attributes::{Attributes, Role, SCHED_TEK};
use milieu_threads::host::{Described, Functions, POLICY, Request};

type Lock = unsafe extern "C" fn(*mut libc::pthread_mutex_t) -> c_int;
type Create = unsafe extern "C" fn(
    *mut libc::pthread_t,
    *const libc::pthread_attr_t,
    extern "C" fn(*mut c_void) -> *mut c_void,
    *mut c_void,
) -> c_int;

/// A function of the preload's, which is built if it is not there.
fn served(name: &str) -> *mut c_void {
    static LIBRARY: OnceLock<usize> = OnceLock::new();
    let library = *LIBRARY.get_or_init(|| {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent();
        let target = target.expect("Cargo's folder");
        let built = Command::new(env!("CARGO"))
            .current_dir(package)
            .args(["build", "--quiet", "--profile", "preload", "--target-dir"])
            .arg(target)
            .args(["-p", "milieu-preload"])
            .status();
        assert!(built.expect("Cargo starts").success());
        let path = target.join("preload").join(milieu_threads::run::LIBRARY);
        let path = CString::new(path.into_os_string().into_encoded_bytes()).expect("a path");
        // SAFETY: what is loaded was just built, and stays.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!library.is_null(), "the shared object cannot be loaded");
        library as usize
    });
    let name = CString::new(name).expect("a name");
    // SAFETY: it was loaded, and the name ends with a zero.
    let found = unsafe { libc::dlsym(library as *mut c_void, name.as_ptr()) };
    assert!(!found.is_null(), "{name:?} is not there");
    found
}

fn nothing() -> Loop {
    Box::new(|times| {
        for number in 0..times {
            std::hint::black_box(number);
        }
    })
}

fn locking(lock: Lock) -> Loop {
    let mut mutex = Box::new(libc::PTHREAD_MUTEX_INITIALIZER);
    Box::new(move |times| {
        for _ in 0..times {
            // SAFETY: the mutex lives, and nobody else has it.
            unsafe {
                lock(&raw mut *mutex);
                libc::pthread_mutex_unlock(&raw mut *mutex);
            }
        }
    })
}

fn lock() -> Loop {
    locking(libc::pthread_mutex_lock)
}

fn lock_served() -> Loop {
    // SAFETY: the function of this name has this type.
    locking(unsafe { std::mem::transmute::<*mut c_void, Lock>(served("pthread_mutex_lock")) })
}

/// As [`lock`], in a program that has another thread: alone, the C library takes a lock
/// without an atomic instruction.
fn lock_beside() -> Loop {
    static OTHER: OnceLock<JoinHandle<()>> = OnceLock::new();
    OTHER.get_or_init(|| {
        std::thread::spawn(|| {
            loop {
                std::thread::park();
            }
        })
    });
    lock()
}

/// As [`lock_served`] in such a program, while its threads are mediated: the last of all, as
/// that stays so.
fn lock_mediated() -> Loop {
    type Become = unsafe extern "C" fn(libc::pthread_t, c_int, *const libc::sched_param) -> c_int;
    // SAFETY: the function of this name has this type.
    let becomes: Become = unsafe { std::mem::transmute(served("pthread_setschedparam")) };
    let priority = libc::sched_param { sched_priority: 0 };
    // SAFETY: this thread lives, and so does the priority.
    let said = unsafe { becomes(libc::pthread_self(), SCHED_TEK, &raw const priority) };
    assert_eq!(said, 0, "this thread becomes critical");
    drop(lock_beside());
    lock_served()
}

/// What programs have of `milieu/threads.h`: a table of functions, which they ask for once.
fn told() -> &'static Functions {
    static TOLD: OnceLock<usize> = OnceLock::new();
    let told = TOLD.get_or_init(|| {
        type Ask = unsafe extern "C" fn(libc::pthread_t, c_int, *mut Request) -> c_int;
        // SAFETY: the function of this name has this type, of this policy.
        let ask: Ask = unsafe { std::mem::transmute(served("pthread_setschedparam")) };
        let mut request = Request {
            param: libc::sched_param { sched_priority: 1 },
            here: null(),
        };
        // SAFETY: the request lives.
        let said = unsafe { ask(libc::pthread_self(), POLICY, &raw mut request) };
        assert_eq!(said, 0, "it is served");
        request.here as usize
    });
    // SAFETY: whoever serves a process has it until that ends.
    unsafe { &*(*told as *const Functions) }
}

fn described() -> Box<Described> {
    let role = Role::new("gas-detection").expect("a role");
    Box::new(Described::of(&Attributes::of(role)))
}

fn attributes_get() -> Loop {
    let (here, mut into) = (told(), described());
    Box::new(move |times| {
        for _ in 0..times {
            // SAFETY: this thread lives, and so does the description.
            unsafe { (here.get_attributes)(libc::pthread_self(), &raw mut *into) };
        }
    })
}

fn attributes_set() -> Loop {
    let (here, said) = (told(), described());
    Box::new(move |times| {
        for _ in 0..times {
            // SAFETY: this thread lives, and so does the description.
            unsafe { (here.set_attributes)(libc::pthread_self(), &raw const *said) };
        }
    })
}

/// The C library's own question about a thread.
fn policy_get() -> Loop {
    Box::new(|times| {
        let (mut policy, mut param) = (0, libc::sched_param { sched_priority: 0 });
        for _ in 0..times {
            // SAFETY: this thread lives, and so does what is written to.
            unsafe {
                libc::pthread_getschedparam(libc::pthread_self(), &mut policy, &mut param);
            }
        }
    })
}

extern "C" fn returns(argument: *mut c_void) -> *mut c_void {
    argument
}

fn creating(create: Create) -> Loop {
    Box::new(move |times| {
        for _ in 0..times {
            let mut thread = 0;
            // SAFETY: the thread is joined before anything goes.
            unsafe {
                assert_eq!(create(&mut thread, null(), returns, null_mut()), 0);
                libc::pthread_join(thread, null_mut());
            }
        }
    })
}

fn create() -> Loop {
    creating(libc::pthread_create)
}

fn create_served() -> Loop {
    // SAFETY: the function of this name has this type.
    creating(unsafe { std::mem::transmute::<*mut c_void, Create>(served("pthread_create")) })
}

const OPERATIONS: &[Operation] = &[
    alone("loop", nothing),
    alone("lock", lock),
    paired("lock-served", lock_served, lock),
    alone("create", create),
    paired("create-served", create_served, create),
    alone("policy-get", policy_get),
    paired("attributes-get", attributes_get, policy_get),
    paired("attributes-set", attributes_set, policy_get),
    alone("lock-beside", lock_beside),
    paired("lock-mediated", lock_mediated, lock_beside),
];

fn main() -> ExitCode {
    answer(OPERATIONS)
}
