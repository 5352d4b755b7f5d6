//! An environment as the compiler generates it.
#![allow(dead_code)]

use std::{borrow::Cow, mem::offset_of};

use milieu_context::{Array, Assign, Context, Coordinator, Descriptor, Kind, Layer, Text, Value};

#[derive(Default)]
pub struct Environment {
    pub language: Text,
    pub size: i32,
    pub version: bool,
    pub hosts: Array<Text>,
}

const fn described(pattern: &'static str, offset: usize, kind: Kind) -> Descriptor {
    Descriptor {
        pattern,
        offset,
        kind,
        metadata: &[],
    }
}

// SAFETY: offsets and kinds are those of the fields.
unsafe impl milieu_context::Environment for Environment {
    const VALUES: &'static [Descriptor] = &[
        described(
            "/sw/%session%/language",
            offset_of!(Environment, language),
            Kind::Text,
        ),
        described("/size", offset_of!(Environment, size), Kind::I32),
        described("/version", offset_of!(Environment, version), Kind::Bool),
        described(
            "/hosts/#",
            offset_of!(Environment, hosts),
            Kind::Array(&Kind::Text),
        ),
    ];
    fn initial() -> Self {
        Environment::default()
    }
}

#[allow(non_camel_case_types)]
pub mod at {
    pub enum language {}
    pub enum size {}
    pub enum version {}
    pub enum hosts {}
}

macro_rules! value {
    ($name:ident, $type:ty, $index:literal) => {
        // SAFETY: the index is that of the field.
        unsafe impl Value for at::$name {
            type Environment = Environment;
            type Type = $type;
            const INDEX: usize = $index;
        }
    };
}
value!(language, Text, 0);
value!(size, i32, 1);
value!(version, bool, 2);
value!(hosts, Array<Text>, 3);
impl Assign for at::language {}
impl Assign for at::size {}
impl Assign for at::hosts {}

pub struct Session(pub &'static str);

impl Layer for Session {
    const ID: &'static str = "session";
    fn value(&self) -> Cow<'_, str> {
        self.0.into()
    }
}

pub fn open() -> Context<Environment> {
    Coordinator::new().context().unwrap()
}
