//! The types that both sides know, as `milieu.h` lays them out.
//!
//! Numbers of C enums are plain integers here: what comes from the other side
//! may be any number.

#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_int, c_void};

/// How a call ended.
pub type milieu_result = c_int;

macro_rules! results {
    ($($name:ident = $number:literal),* $(,)?) => {
        $(#[doc = concat!("See `", stringify!($name), "` in `milieu.h`.")]
        pub const $name: milieu_result = $number;)*

        /// Every result with its name.
        pub(crate) const RESULTS: &[(milieu_result, &std::ffi::CStr)] = &[$((
            $number,
            // The names have no zero byte but the one that ends them.
            match std::ffi::CStr::from_bytes_with_nul(
                concat!(stringify!($name), "\0").as_bytes(),
            ) {
                Ok(name) => name,
                Err(_) => c"",
            },
        )),*];
    };
}
results! {
    MILIEU_OK = 0,
    MILIEU_SAY = 1,
    MILIEU_ENDED = 2,
    MILIEU_REFUSED = 3,
    MILIEU_NULL = 10,
    MILIEU_WRONG_HANDLE = 11,
    MILIEU_FREED = 12,
    MILIEU_BUSY = 13,
    MILIEU_WRONG_THREAD = 14,
    MILIEU_WRONG_FRAME = 15,
    MILIEU_NOT_UTF8 = 16,
    MILIEU_NO_SUCH = 17,
    MILIEU_WRONG_LAYOUT = 18,
    MILIEU_LATE = 19,
    MILIEU_INVALID = 20,
    MILIEU_READ_ONLY = 21,
    MILIEU_WRONG_NAME = 22,
    MILIEU_CYCLE = 23,
    MILIEU_UNFIT = 24,
    MILIEU_USAGE = 25,
    MILIEU_FILES = 26,
    MILIEU_WRONG_FLOW = 27,
    MILIEU_SYSTEM = 28,
    MILIEU_CALLBACK = 30,
    MILIEU_PANIC = 31,
}

/// What generated tables and option structs state.
pub const MILIEU_ABI: u32 = 1;

/// Added to a kind.
pub const MILIEU_ARRAY: u32 = 0x100;

/// A text.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_text {
    /// The first byte.
    pub bytes: *const c_char,
    /// How many bytes.
    pub length: usize,
}

/// A layer with a value.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_layer {
    /// The placeholder.
    pub id: milieu_text,
    /// The value; empty is inactive.
    pub value: milieu_text,
    /// Whether a fork keeps it.
    pub inherited: bool,
}

/// A layer with a value, of a [`milieu_any_layer`](crate::milieu_any_layer).
pub const MILIEU_FIXED: u32 = 1;
/// A contextual value as a layer.
pub const MILIEU_FOLLOWING: u32 = 2;
/// What was entered in another context.
pub const MILIEU_CAPTURED: u32 = 3;

/// Layers that were entered together.
pub type milieu_frame = u64;

/// One piece of metadata.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_entry {
    /// What it is about.
    pub key: *const c_char,
    /// What it says.
    pub text: *const c_char,
}

/// One field of an environment.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_value {
    /// The name with placeholders.
    pub pattern: *const c_char,
    /// In bytes, from the start of the struct.
    pub offset: usize,
    /// With [`MILIEU_ARRAY`] or without.
    pub kind: u32,
    /// How many entries `metadata` has.
    pub metadata_count: u32,
    /// What the specification says.
    pub metadata: *const milieu_entry,
}

/// What generated code says of its struct.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_layout {
    /// [`MILIEU_ABI`]
    pub abi: u32,
    /// How many values there are.
    pub count: u32,
    /// The values.
    pub values: *const milieu_value,
    /// Of the struct, in bytes.
    pub size: usize,
    /// Of the struct, in bytes.
    pub align: usize,
}

/// How an application is opened.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_options {
    /// [`MILIEU_ABI`]
    pub abi: u32,
    /// `argc`
    pub argument_count: c_int,
    /// `argv`, or null.
    pub arguments: *const *const c_char,
    /// Whose options these are.
    pub layout: *const milieu_layout,
    /// Instead of XDG's.
    pub user_folder: milieu_text,
    /// Instead of XDG's.
    pub system_folder: milieu_text,
    /// For help.
    pub description: milieu_text,
}

/// What a new context is given.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_context_options {
    /// [`MILIEU_ABI`]
    pub abi: u32,
    /// What it is not to do.
    pub policy: u32,
    /// A name, or empty.
    pub role: milieu_text,
}

/// A context does nothing about layers.
pub const MILIEU_WITHOUT_LAYERS: u32 = 1;
/// A context does not synchronize.
pub const MILIEU_WITHOUT_SHARING: u32 = 2;
/// A context assigns nothing.
pub const MILIEU_WITHOUT_ASSIGNMENT: u32 = 4;

/// A key of a held key set.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_key {
    /// Its name.
    pub name: milieu_text,
    /// Its value.
    pub value: milieu_text,
    /// Who said so, or empty.
    pub origin: milieu_text,
}

/// A key with another value in force than before.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_change {
    /// Its name.
    pub name: milieu_text,
    /// What was in force; its bytes are null where nothing was.
    pub before: milieu_text,
    /// What is; its bytes are null where nothing is.
    pub after: milieu_text,
    /// Who said so, or empty.
    pub origin: milieu_text,
    /// Whether it is a secret.
    pub secret: bool,
}

/// What has come from the files.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_news {
    /// What it is.
    pub kind: u32,
    /// What has changed.
    pub changes: *const milieu_change,
    /// How many.
    pub count: usize,
    /// For people.
    pub message: milieu_text,
}

/// Keys have other values.
pub const MILIEU_CHANGED: u32 = 1;
/// Values break rules.
pub const MILIEU_KEYS_REFUSED: u32 = 2;
/// A file cannot be understood.
pub const MILIEU_FILE_INVALID: u32 = 3;
/// A file can be understood again.
pub const MILIEU_FILE_VALID: u32 = 4;
/// A file cannot be watched.
pub const MILIEU_FILE_UNWATCHED: u32 = 5;

/// A conflict is refused.
pub const MILIEU_REFUSE_CONFLICT: u32 = 0;
/// What this program has assigned counts.
pub const MILIEU_OURS: u32 = 1;
/// What the other program has written counts.
pub const MILIEU_THEIRS: u32 = 2;

/// Who has written something.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_author {
    /// The user.
    pub user: milieu_text,
    /// The program.
    pub program: milieu_text,
    /// The machine.
    pub host: milieu_text,
    /// The number of the process.
    pub process: u32,
}

/// A key that two programs have changed differently; bytes are null where there is no value.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_conflict {
    /// Its name.
    pub name: milieu_text,
    /// What this program has known.
    pub base: milieu_text,
    /// What this program makes of it.
    pub ours: milieu_text,
    /// What the other one has made of it.
    pub theirs: milieu_text,
    /// The other one.
    pub by: milieu_author,
    /// Whether it is a secret.
    pub secret: bool,
}

/// A key of today.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_target {
    /// Its name.
    pub name: milieu_text,
    /// Whether it has its value from the old one.
    pub outcome: u32,
}

/// The value is that of the old key.
pub const MILIEU_TAKEN: u32 = 1;
/// Another key is preferred to the old one.
pub const MILIEU_OUTRANKED: u32 = 2;
/// The value of the old key is not allowed.
pub const MILIEU_NOT_ALLOWED: u32 = 3;

/// A key as a file has it, and what became of it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_notice {
    /// Its name in the file.
    pub name: milieu_text,
    /// Its value there; the bytes of a secret are null.
    pub value: milieu_text,
    /// The file and line.
    pub origin: milieu_text,
    /// Its names of today.
    pub targets: *const milieu_target,
    /// How many.
    pub count: usize,
    /// As the specification says it.
    pub reason: milieu_text,
    /// For people.
    pub message: milieu_text,
    /// What became of it.
    pub fate: u32,
    /// Whether the program goes without a value.
    pub is_error: bool,
    /// Whether it is a secret.
    pub secret: bool,
}

/// A key has another name.
pub const MILIEU_RENAMED: u32 = 1;
/// A key should not be used.
pub const MILIEU_DEPRECATED: u32 = 2;

/// What was written into a file at once.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_commit {
    /// The file.
    pub file: milieu_text,
    /// Its namespace.
    pub whose: milieu_text,
    /// From 1.
    pub id: u64,
    /// Since 1970.
    pub time_ns: i64,
    /// Who.
    pub author: milieu_author,
    /// The commit that it takes back, or 0.
    pub undoes: u64,
    /// The commit that has taken it back, or 0.
    pub undone_by: u64,
    /// What.
    pub changes: *const milieu_change,
    /// How many.
    pub count: usize,
}

/// Lets go of what was handed over with a callback.
pub type milieu_destroy = Option<unsafe extern "C" fn(user: *mut c_void)>;
