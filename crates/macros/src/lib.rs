//! `derive(Environment)`, `derive(Choice)`, `derive(Event)`, `environment!` and `layer!`.
//!
//! Users meet these macros in the facade, `milieu`, to which the expansions
//! refer; `crate = path` in any of them says another place.
//!
//! Properties kept:
//!
//! - what the compiler of specifications would report, these report at the
//!   token that is wrong, when the program is compiled;
//! - an expansion names everything by absolute paths and takes no name from the
//!   place where it stands, but the module `at` and the items it documents;
//! - no expansion can fail at run time: defaults are checked here.

mod choice;
mod derive;
mod environment;
mod event;
mod layer;

use proc_macro::TokenStream;
use quote::ToTokens;
use syn::parse_macro_input;

/// Makes an environment of a struct: each field is a contextual value.
///
/// ```standalone_crate
/// # extern crate self as milieu;
/// # pub use milieu_context as context;
/// # pub use milieu_keys as keys;
/// # use milieu_context::{Coordinator, Text};
/// # use milieu_macros::Environment;
/// #[derive(Environment)]
/// #[environment(at = limit)]
/// struct Limits {
///     #[key(default = 4.5)]
///     low: f64,
/// }
///
/// #[derive(Environment)]
/// #[environment(root = "/sw/pi")]
/// struct Station {
///     /// The language of the pages.
///     #[key("%session%/language", default = "en", env = ["LANG"])]
///     language: Text,
///     /// How long to wait for a sensor.
///     #[key("timeout", default = 10, range = "1-60", unit = "s", readonly)]
///     timeout: u32,
///     /// A field without `key` is called as itself: `/sw/pi/verbose`.
///     verbose: bool,
///     /// An environment of its own, here below `/sw/pi/limits`.
///     #[part("/sw/pi/limits")]
///     limits: Limits,
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let coordinator = Coordinator::new();
/// let mut cx = coordinator.context::<Station>()?;
/// assert_eq!((&*cx.language, cx.timeout, cx.limits.low), ("en", 10, 4.5));
/// cx.set::<at::language>("de")?;
/// cx.set::<at::limits<limit::low>>(2.0)?;
/// assert_eq!((&*cx.language, cx.limits.low), ("de", 2.0));
/// # Ok(())
/// # }
/// ```
///
/// Fields are `bool`, `i16` to `i64`, `u16` to `u64`, `f32`, `f64`, `Text`,
/// enums that derive [`Choice`](macro@Choice), an `Array` of any of these, and
/// other environments. The name of an array ends in `#`, which stands for the
/// numbers of its elements: `#[key("hosts/#")] hosts: Array<Text>`. Its metadata
/// are those of an element, with `array/min` and `array/max` besides.
///
/// `#[key("name", …)]` takes the name of the key, relative to the `root` unless
/// it begins with a slash, and any metadata of the specification language:
/// `default = "en"`, `readonly`, `range = "1-10"`, `opt = 'l'`,
/// `opt/long = "language"`, lists as `env = ["LC_ALL", "LANG"]`, and metadata
/// of your own as `x/colour = "red"`. What is no word to Rust goes in quotes:
/// `meta("x/wind-speed" = "fast")`. The doc comment is the description. Where
/// a type has another name, `type = "double"` tells.
///
/// `#[part]` takes over the values of another environment, with `("/prefix")`
/// below that prefix.
///
/// `#[environment(root = "/sw/pi", at = markers, crate = ::milieu)]` on the
/// struct sets the root, the name of the module of markers (`at`), and where
/// the facade is. `removed("hours" = "since 2.0 the clock decides")` there says
/// of keys that they are no more, and why, to those who have them in their files.
///
/// Beside the implementation stands the module `at` with a marker for each
/// field. The marker of a part takes a marker of the part's own.
#[proc_macro_derive(Environment, attributes(environment, key, part))]
pub fn environment_derive(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as syn::DeriveInput);
    finish(derive::derive(&input))
}

/// Makes an enum the type of a contextual value.
///
/// ```standalone_crate
/// # extern crate self as milieu;
/// # pub use milieu_context as context;
/// # pub use milieu_keys as keys;
/// # use milieu_macros::Choice;
/// #[derive(Choice, Clone, Copy, Debug, PartialEq)]
/// #[repr(u32)]
/// enum Language {
///     /// Written `en`.
///     En,
///     #[choice("de-AT")]
///     Austrian,
/// }
///
/// # fn main() {
/// assert_eq!(Language::TEXTS, ["en", "de-AT"]);
/// assert_eq!(Language::Austrian.to_string(), "de-AT");
/// assert_eq!("en".parse(), Ok(Language::En));
/// # }
/// ```
///
/// A variant's text is its name in snake case, or what `#[choice("…")]` says.
/// The enum gets `TEXTS`, `as_str`, `Display` and `FromStr` besides. Elements of
/// an array have to be `Copy`.
/// `#[choice(crate = ::milieu)]` on the enum says where the facade is.
#[proc_macro_derive(Choice, attributes(choice))]
pub fn choice_derive(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as syn::DeriveInput);
    finish(choice::derive(&input))
}

/// Describes the type of an event's body, beyond what `serde` knows of it.
///
/// ```standalone_crate
/// # extern crate self as milieu;
/// # pub use milieu_transfer as transfer;
/// # use milieu_macros::Event;
/// # use serde::{Deserialize, Serialize};
/// # use transfer::{Kind, Type};
/// #[derive(Serialize, Deserialize, Event)]
/// struct Temperature {
///     #[event(id = 1)]
///     degrees: f64,
/// }
///
/// #[derive(Serialize, Deserialize, Event)]
/// struct UnitTemperature {
///     #[event(extends)]
///     temperature: Temperature,
///     #[event(id = 1)]
///     unit: String,
/// }
///
/// # fn main() {
/// let child = Kind::<UnitTemperature>::new().of();
/// assert!(child.is(Kind::<Temperature>::new().of()));
/// # }
/// ```
///
/// `#[event(id = 1)]` gives a field a number that stays the same: receivers with
/// another version of the type find it by that, whatever it is called. The
/// numbers of a type need not follow each other; those of a field that is gone
/// are not used again. `#[event(extends)]` says that a field holds what the type
/// extends, which derives `Event` too. `#[event(crate = ::milieu::transfer)]` on
/// the struct says where transfer modes are.
///
/// A type without parameters is known by this wherever its events are made or read.
/// One with parameters, `Reading<T>`, is many types: `Kind::<Reading<f64>>::described()`
/// makes one known.
#[proc_macro_derive(Event, attributes(event))]
pub fn event_derive(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as syn::DeriveInput);
    finish(event::derive(&input))
}

/// Generates the environment of a specification.
///
/// ```standalone_crate
/// # extern crate self as milieu;
/// # pub use milieu_context as context;
/// # pub use milieu_keys as keys;
/// # use milieu_context::Environment as _;
/// mod station {
///     milieu_macros::environment!("tests/specifications/station.ini");
/// }
///
/// mod watchdog {
///     milieu_macros::environment! { r#"
///         [/watchdog/%security%/enable]
///         type=boolean
///     "#, root = "/watchdog" }
/// }
///
/// # fn main() {
/// assert_eq!(station::Environment::initial().hw.gpio.folder, "/sys/class/gpio");
/// assert!(!watchdog::Environment::initial().enable);
/// # }
/// ```
///
/// A text with line breaks is the specification itself, another one the path
/// of its file, from the folder of `Cargo.toml`; when the file changes, Cargo
/// compiles again. `root = "/sw/pi"` generates only that branch, as the
/// environment; `crate = ::milieu` says where the facade is.
#[proc_macro]
pub fn environment(input: TokenStream) -> TokenStream {
    let invocation = parse_macro_input!(input as environment::Invocation);
    finish(invocation.expand())
}

/// Declares layers.
///
/// ```standalone_crate
/// # extern crate self as milieu;
/// # pub use milieu_context as context;
/// # pub use milieu_keys as keys;
/// # use milieu_context::Layer;
/// milieu_macros::layer! {
///     /// Who is logged in.
///     pub struct Session(String) = "session";
///     /// The program is about to end.
///     pub struct Shutdown = "shutdown";
///     /// Whose request this is; tasks that the request spawns keep it.
///     #[inherited]
///     pub struct Tenant(u32) = "tenant";
/// }
///
/// # fn main() {
/// assert_eq!((Tenant::ID, Tenant(7).value()), ("tenant", "7".into()));
/// # }
/// ```
///
/// A layer without a value is active or not. A value is a text (`String`,
/// `&str`, `Box<str>`, `Arc<str>`, `Text`) or anything that implements
/// `Display`; the field is as visible as the layer. Other attributes, derives
/// for instance, stay with the struct. `crate = path;` before the first layer
/// says where the facade is.
#[proc_macro]
pub fn layer(input: TokenStream) -> TokenStream {
    let layers = parse_macro_input!(input as layer::Layers);
    layers.into_token_stream().into()
}

fn finish(result: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    result
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}
