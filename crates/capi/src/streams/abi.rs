//! The types of streams that both sides know, as `streams.h` lays them out.

#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_void};

use super::clock::milieu_clock;
use super::operator::{milieu_make, milieu_restore, milieu_save, milieu_step, milieu_wake};
use crate::abi::{milieu_destroy, milieu_entry, milieu_text};

/// Kinds that only fields of events and data have, beside those of environments.
pub const MILIEU_I8: u32 = 12;
/// See `milieu_kind`.
pub const MILIEU_U8: u32 = 13;
/// See `milieu_kind`.
pub const MILIEU_TIME: u32 = 14;
/// See `milieu_kind`.
pub const MILIEU_SPAN: u32 = 15;
/// See `milieu_kind`.
pub const MILIEU_BYTES: u32 = 16;
/// See `milieu_kind`.
pub const MILIEU_JSON: u32 = 17;

/// A struct that is described by itself.
pub const MILIEU_STRUCT: u32 = 18;
/// Of a parameter: an expression, or `$name` of a function.
pub const MILIEU_EXPRESSION: u32 = 19;
/// Of a parameter: fields and the expressions that they become, or one of the whole.
pub const MILIEU_FIELDS: u32 = 20;
/// Of a parameter: one or more functions of the operator's own.
pub const MILIEU_FUNCTIONS: u32 = 21;
/// Added to a kind: behind the field is a `bool` that says whether it is there.
pub const MILIEU_OPTIONAL: u32 = 0x200;

/// A time that is none: now, where something is published.
pub const MILIEU_NOW: i64 = i64::MIN;

/// One field of a type of events.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_event_field {
    /// Its name; empty where the body is this field and nothing else.
    pub name: *const c_char,
    /// In bytes, from the start of the struct.
    pub offset: usize,
    /// With `MILIEU_ARRAY` or without.
    pub kind: u32,
    /// How many there are.
    pub metadata_count: u32,
    /// What else is to be known of it.
    pub metadata: *const milieu_entry,
    /// Of `MILIEU_STRUCT`: how that is described.
    pub layout: *const milieu_event_layout,
}

/// What a program says of a type of events.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_event_layout {
    /// `MILIEU_ABI`
    pub abi: u32,
    /// How many fields there are.
    pub count: u32,
    /// What the type is called.
    pub name: *const c_char,
    /// The fields.
    pub fields: *const milieu_event_field,
    /// Of the struct, in bytes.
    pub size: usize,
    /// Of the struct, in bytes.
    pub align: usize,
}

/// What a datum holds.
#[repr(C)]
#[derive(Clone, Copy)]
pub union milieu_content {
    /// `MILIEU_BOOL`
    pub boolean: bool,
    /// `MILIEU_I64`, `MILIEU_TIME`, `MILIEU_SPAN`
    pub whole: i64,
    /// `MILIEU_U64`
    pub natural: u64,
    /// `MILIEU_F64`
    pub number: f64,
    /// `MILIEU_TEXT`, `MILIEU_BYTES`, `MILIEU_JSON`
    pub text: milieu_text,
}

/// A value of which only its kind is known.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct milieu_datum {
    /// 0 is nothing.
    pub kind: u32,
    /// What it holds.
    pub content: milieu_content,
}

impl milieu_datum {
    /// Nothing; who takes it for something else all the same finds zeros, or no text.
    pub(crate) const NOTHING: milieu_datum = milieu_datum {
        kind: 0,
        content: milieu_content {
            text: milieu_text::EMPTY,
        },
    };
}

/// A function that an operator is told.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct milieu_function_call {
    /// What it is called.
    pub name: milieu_text,
    /// What it is told.
    pub arguments: *const milieu_datum,
    /// How many there are.
    pub argument_count: usize,
}

/// Something that an operator is told.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct milieu_told {
    /// Which parameter; empty is the next one.
    pub name: milieu_text,
    /// What it is.
    pub value: milieu_datum,
}

/// What came of a case.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_case {
    /// What it is about.
    pub title: milieu_text,
    /// What was to happen.
    pub expected: milieu_text,
    /// What has happened.
    pub found: milieu_text,
    /// Where they differ; empty where they do not.
    pub difference: milieu_text,
    /// Whether they do not.
    pub passed: bool,
}

/// How well it is known what an event says.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_quality {
    /// When it happened; [`MILIEU_NOW`] where an event is published.
    pub time_ns: i64,
    /// How old what it says was already then.
    pub age_ns: i64,
    /// The truth lies at most this far away; negative where it is not known.
    pub accuracy: f64,
    /// What is wrong with the sensor; empty is nothing.
    pub failure: milieu_text,
}

/// What every event has.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_header {
    /// The name of its stream.
    pub name: milieu_text,
    /// Who publishes.
    pub origin: milieu_text,
    /// Which life of the publisher it is of.
    pub incarnation: u64,
    /// Its number in that.
    pub sequence: u64,
    /// When, and how well it is known.
    pub quality: milieu_quality,
}

/// How events are delivered.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_delivery {
    /// `MILIEU_ABI`
    pub abi: u32,
    /// How many events may wait; 0 is only the newest one.
    pub capacity: u32,
    /// What becomes of one that finds no room.
    pub overflow: u32,
}

/// What has become of events.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_tally {
    /// Taken by the program.
    pub taken: u64,
    /// Dropped.
    pub dropped: u64,
    /// Waiting to be taken.
    pub waiting: u64,
}

/// Something that is reached by other means, at a name.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_service {
    /// `MILIEU_ABI`
    pub abi: u32,
    /// How many there are.
    pub attribute_count: u32,
    /// What is to be known of it.
    pub attributes: *const milieu_attribute,
    /// Where it is reached.
    pub endpoint: milieu_text,
    /// When its lease ends.
    pub until_ns: i64,
}

/// Something that is to be known of a service.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_attribute {
    /// What it is called.
    pub name: milieu_text,
    /// What it is.
    pub value: milieu_text,
}

/// Names, as queries that mean them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_names {
    /// Without placeholders and conditions.
    pub queries: *const milieu_text,
    /// How many there are.
    pub count: usize,
}

/// What somebody may do.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_rights {
    /// `MILIEU_ABI`
    pub abi: u32,
    /// Names that may be read.
    pub read: milieu_names,
    /// Names at which may be published.
    pub publish: milieu_names,
    /// Names whose private fields may be read.
    pub read_private: milieu_names,
    /// Names whose private fields may be set from outside.
    pub set_private: milieu_names,
}

/// What has become of a name.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_name_change {
    /// The name.
    pub name: milieu_text,
    /// 0: something stands there; 1: nothing more; 2: something else.
    pub change: u32,
    /// What stands there: 0 a stream, 1 a service, 2 a binding.
    pub kind: u32,
    /// Where the service is reached.
    pub endpoint: milieu_text,
    /// What is to be known of the service.
    pub attributes: *const milieu_attribute,
    /// How many there are.
    pub attribute_count: usize,
    /// What the name stands for.
    pub targets: *const milieu_text,
    /// How many there are.
    pub target_count: usize,
}

/// How streams are opened.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_streams_options {
    /// `MILIEU_ABI`
    pub abi: u32,
    /// Whether time passes only when it is told to.
    pub virtual_time: bool,
    /// What time it is at first, then.
    pub now_ns: i64,
    /// Says what time it is.
    pub clock: milieu_clock,
    /// What it is handed.
    pub user: *mut c_void,
    /// Lets go of that.
    pub destroy: milieu_destroy,
}

/// On what terms threads work with what takes long.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_blocking {
    /// `MILIEU_ABI`
    pub abi: u32,
    /// How many there are for all of it.
    pub threads: u32,
    /// How many events may wait for each operator.
    pub queue: u32,
    /// How long an operator may take over one event.
    pub patience_ns: i64,
}

/// A parameter of an operator.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_parameter {
    /// Its name.
    pub name: *const c_char,
    /// What it may be.
    pub kind: u32,
    /// How many there are.
    pub choice_count: u32,
    /// The words of an enumeration.
    pub choices: *const *const c_char,
    /// What holds where it is not given; null: it must be, empty: there is none.
    pub otherwise: *const c_char,
    /// What it means, in one sentence.
    pub summary: *const c_char,
    /// Whether its name may be left out.
    pub positional: bool,
}

/// What a program says of an operator.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_operator {
    /// `MILIEU_ABI`
    pub abi: u32,
    /// How many flows it reads; 0 is any number, whose order does not matter.
    pub inputs: u32,
    /// What it is, or-ed.
    pub flags: u32,
    /// How many there are.
    pub parameter_count: u32,
    /// What flows call it.
    pub name: *const c_char,
    /// What it does, in one sentence.
    pub summary: *const c_char,
    /// What it is told.
    pub parameters: *const milieu_parameter,
    /// Makes one.
    pub make: milieu_make,
    /// An event has come.
    pub step: milieu_step,
    /// The time has come that it has asked for.
    pub wake: milieu_wake,
    /// Says what it has to remember.
    pub save: milieu_save,
    /// Goes on from that.
    pub restore: milieu_restore,
    /// Lets go of one.
    pub free: milieu_destroy,
}
