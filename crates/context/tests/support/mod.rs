//! Environments written by hand, as the compiler would generate them.
#![allow(dead_code, unreachable_pub, unused_imports)]

mod size;

use std::borrow::Cow;

use milieu_context::{Coordinator, Layer};
pub use size::size;

/// `environment! { mod name; field: Type = "/pattern" { "key" = "value" }; … }`
#[macro_export]
macro_rules! environment {
    (mod $module:ident; $($field:ident : $type:ident $(<$element:ident>)? = $pattern:literal
        $({ $($key:literal = $value:literal),* })? ;)*) => {
        #[allow(non_camel_case_types, missing_docs, dead_code)]
        pub mod $module {
            use milieu_context::*;
            #[repr(C)]
            #[derive(Debug, Default)]
            pub struct Environment { $(pub $field: $type$(<$element>)?),* }
            enum Index { $($field),* }
            // SAFETY: offsets and kinds are taken from the fields themselves.
            unsafe impl milieu_context::Environment for Environment {
                const VALUES: &'static [Descriptor] = &[$(Descriptor {
                    pattern: $pattern,
                    offset: std::mem::offset_of!(Environment, $field),
                    kind: <$type$(<$element>)? as Field>::KIND,
                    metadata: &[$crate::metadata_type!($type$(<$element>)?) $($(, ($key, $value))*)?],
                }),*];
                fn initial() -> Self { Environment::default() }
            }
            pub mod at { $(pub struct $field;)* }
            $(
                // SAFETY: the index is that of the field.
                unsafe impl Value for at::$field {
                    type Environment = Environment;
                    type Type = $type$(<$element>)?;
                    const INDEX: usize = Index::$field as usize;
                }
                impl Assign for at::$field {}
            )*
        }
    };
}

/// The `type` of a specification for a Rust type.
#[macro_export]
macro_rules! metadata_type {
    (bool) => {
        ("type", "boolean")
    };
    (i16) => {
        ("type", "short")
    };
    (i32) => {
        ("type", "long")
    };
    (i64) => {
        ("type", "long_long")
    };
    (u16) => {
        ("type", "unsigned_short")
    };
    (u32) => {
        ("type", "unsigned_long")
    };
    (u64) => {
        ("type", "unsigned_long_long")
    };
    (f32) => {
        ("type", "float")
    };
    (f64) => {
        ("type", "double")
    };
    (Text) => {
        ("type", "string")
    };
    (Array<$element:ident>) => {
        $crate::metadata_type!($element)
    };
}

/// Layers as users write them.
macro_rules! layers {
    ($($name:ident = $id:literal;)*) => {$(
        #[derive(Clone, Debug)]
        pub struct $name<'a>(pub &'a str);
        impl Layer for $name<'_> {
            const ID: &'static str = $id;
            fn value(&self) -> Cow<'_, str> { self.0.into() }
        }
    )*};
}
layers! {
    A = "a";
    B = "b";
    C = "c";
    Session = "session";
    Language = "language";
    Country = "country";
    Security = "security";
    BatteryLow = "battery_low";
    Untouched = "untouched";
}

/// A layer that forks keep.
#[derive(Debug)]
pub struct Tenant(pub &'static str);
impl Layer for Tenant {
    const ID: &'static str = "tenant";
    const INHERITED: bool = true;
    fn value(&self) -> Cow<'_, str> {
        self.0.into()
    }
}

/// A coordinator that starts with these keys.
pub fn coordinator(keys: &[(&str, &str)]) -> Coordinator {
    let coordinator = Coordinator::new();
    for (name, text) in keys {
        coordinator.assign(name, text, None).expect("a valid key");
    }
    coordinator
}
