//! Layers: what users write, and how a context holds them.

use std::{
    borrow::Cow,
    marker::PhantomData,
    sync::{Arc, PoisonError},
};

use milieu_keys::escape_value;

use crate::{
    Descriptor, Value, arena::SHORT, core::Core, failure::Failed, frame::Filling, hash::Hash,
    schema::ValueSpec,
};

/// A layer: a dimension along which contextual values differ.
///
/// By hand a layer is a few lines (CoElektra, II):
///
/// ```
/// use std::borrow::Cow;
/// use milieu_context::Layer;
///
/// struct Session(String);
/// impl Layer for Session {
///     const ID: &'static str = "session";
///     fn value(&self) -> Cow<'_, str> {
///         (&self.0).into()
///     }
/// }
/// ```
pub trait Layer {
    /// The placeholder that this layer replaces, without its percent signs.
    const ID: &'static str;
    /// Whether a [fork](crate::Context::fork) of a context keeps this layer.
    const INHERITED: bool = false;
    /// What stands in the place of the placeholder; an empty text is inactive.
    ///
    /// Any text is safe: a slash adds no level and `%` does not look inactive.
    fn value(&self) -> Cow<'_, str>;
}

/// A layer that each context evaluates for itself (CoElektra, III-E).
///
/// Activated globally by way of [`each`], it affects the contexts for which its
/// value is not empty: one thread, or the threads of a pool. A context
/// evaluates it when it adopts the layer, and again when a value changes that
/// the layer [depends on](ThreadLayer::depends_on).
///
/// ```
/// use std::borrow::Cow;
/// use milieu_context::{Scope, ThreadLayer};
///
/// struct Background;
/// impl ThreadLayer for Background {
///     const ID: &'static str = "background";
///     fn value(&self, scope: &Scope<'_>) -> Cow<'_, str> {
///         if scope.role().starts_with("/pool/") { "active".into() } else { "".into() }
///     }
/// }
/// ```
pub trait ThreadLayer: Send + Sync + 'static {
    /// The placeholder that this layer replaces.
    const ID: &'static str;
    /// The value in the context that `scope` describes; empty is inactive.
    ///
    /// It must be a function of `scope` alone.
    fn value(&self, scope: &Scope<'_>) -> Cow<'_, str>;
    /// Names (with placeholders) of the contextual values that `value` reads.
    fn depends_on(&self) -> &[&'static str] {
        &[]
    }
}

/// What a thread-based layer may know of the context that evaluates it.
pub struct Scope<'a> {
    pub(crate) core: &'a Core,
}

impl Scope<'_> {
    /// The number that the context got when it was made, unique in its process.
    #[must_use]
    pub fn identity(&self) -> u64 {
        self.core.identity
    }

    /// The role that the context got when it was made: a name, or empty.
    #[must_use]
    pub fn role(&self) -> &str {
        &self.core.role
    }

    /// The text of a contextual value that the layer
    /// [depends on](ThreadLayer::depends_on), as this context sees it; `None`
    /// for a name that no environment of the coordinator describes.
    #[must_use]
    pub fn get(&self, pattern: &str) -> Option<&str> {
        self.core.text_of(pattern)
    }

    /// Says that the layer's author has failed, for one that cannot panic: what
    /// a panic with this payload would lead to comes when the layer is evaluated.
    #[doc(hidden)]
    pub fn fail(&self, failed: Failed) {
        let slot = self.core.panic.lock();
        *slot.unwrap_or_else(PoisonError::into_inner) = Some(failed);
    }
}

/// How a layer gets its value.
#[doc(hidden)]
pub enum Binding<'a> {
    /// A fixed value; empty is inactive.
    Text(Cow<'a, str>),
    /// A value that each context finds for itself.
    Bound(Arc<Bound>),
}

impl Binding<'_> {
    pub(crate) const INACTIVE: Binding<'static> = Binding::Text(Cow::Borrowed(""));
}

/// A binding that everybody shares.
#[derive(Clone)]
#[doc(hidden)]
pub enum Global {
    Inactive,
    Text(Arc<str>),
    Bound(Arc<Bound>),
}

impl Global {
    pub(crate) fn new(binding: Binding<'_>) -> Global {
        match binding {
            Binding::Text(text) if text.is_empty() => Global::Inactive,
            Binding::Text(text) => Global::Text(text.into()),
            Binding::Bound(bound) => Global::Bound(bound),
        }
    }

    /// Whether both are the same fixed value.
    pub(crate) fn same_fixed(&self, other: &Global) -> bool {
        match (self, other) {
            (Global::Inactive, Global::Inactive) => true,
            (Global::Text(a), Global::Text(b)) => a == b,
            _ => false,
        }
    }
}

/// A layer whose value is a function of the context.
#[doc(hidden)]
pub enum Bound {
    /// The text of a contextual value.
    Value(Arc<ValueSpec>),
    /// A thread-based layer, with the values that it depends on.
    Thread(ThreadBased, Vec<Arc<ValueSpec>>),
}

impl Bound {
    /// The values whose change means a new evaluation.
    pub(crate) fn dependencies(&self) -> &[Arc<ValueSpec>] {
        match self {
            Bound::Value(spec) => std::slice::from_ref(spec),
            Bound::Thread(_, specs) => specs,
        }
    }
}

/// A thread-based layer that contexts share.
#[doc(hidden)]
pub type ThreadBased = Arc<dyn Evaluate>;

/// The object-safe half of [`ThreadLayer`].
#[doc(hidden)]
pub trait Evaluate: Send + Sync {
    fn evaluate(&self, scope: &Scope<'_>) -> String;
    fn names(&self) -> Vec<&str>;
}

impl<L: ThreadLayer> Evaluate for L {
    fn evaluate(&self, scope: &Scope<'_>) -> String {
        self.value(scope).into_owned()
    }
    fn names(&self) -> Vec<&str> {
        self.depends_on().to_vec()
    }
}

/// The identifier of a layer; the static ones are found without hashing.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum Id<'a> {
    Static(&'static str),
    Dynamic(&'a str),
}

/// Something that switches one layer: a [`Layer`], [`each`], [`value`],
/// [`without`], or a [`Named`] layer.
///
/// The methods are internal; implement [`Layer`] or [`ThreadLayer`] instead.
pub trait Switch {
    #[doc(hidden)]
    fn id(&self) -> Id<'_>;
    #[doc(hidden)]
    fn binding(&self, core: &Core) -> Binding<'_>;
    #[doc(hidden)]
    fn inherited(&self) -> bool {
        false
    }
    /// # Safety
    ///
    /// `environment` is that of `core`.
    #[doc(hidden)]
    unsafe fn enter_alone(&self, core: &mut Core, environment: *mut u8) -> usize {
        // The author's code runs before anything changes, so it may panic.
        let binding = self.binding(core);
        let fill = |frame: &mut Filling<'_>| {
            frame.core.cover(self.id(), &binding, self.inherited());
        };
        // SAFETY: as the caller vouches.
        unsafe { core.enter_set(environment, fill) }
    }
}

impl<L: Layer> Switch for L {
    #[inline]
    fn id(&self) -> Id<'_> {
        Id::Static(L::ID)
    }
    #[inline]
    fn binding(&self, _: &Core) -> Binding<'_> {
        Binding::Text(self.value())
    }
    #[inline]
    fn inherited(&self) -> bool {
        L::INHERITED
    }
    #[inline]
    unsafe fn enter_alone(&self, core: &mut Core, environment: *mut u8) -> usize {
        let value = self.value();
        // SAFETY: as the caller vouches.
        unsafe { core.enter_text(environment, L::ID, &value, L::INHERITED) }
    }
}

/// A layer that is inactive: what [`without`] makes.
pub struct Without<L>(PhantomData<L>);

/// For [`enter`](crate::Context::enter): the layer is inactive until the guard is dropped.
#[must_use]
pub fn without<L: Layer>() -> Without<L> {
    Without(PhantomData)
}

impl<L: Layer> Switch for Without<L> {
    fn id(&self) -> Id<'_> {
        Id::Static(L::ID)
    }
    fn binding(&self, _: &Core) -> Binding<'_> {
        Binding::INACTIVE
    }
    fn inherited(&self) -> bool {
        L::INHERITED
    }
}

/// A layer whose identifier is only known at run time: `Named("session", "anna")`.
pub struct Named<'a>(
    /// The layer's identifier.
    pub &'a str,
    /// Its value; empty is inactive.
    pub &'a str,
);

impl Switch for Named<'_> {
    fn id(&self) -> Id<'_> {
        Id::Dynamic(self.0)
    }
    fn binding(&self, _: &Core) -> Binding<'_> {
        Binding::Text(Cow::Borrowed(self.1))
    }
}

/// As [`Named`], with an identifier that stays where it is: it is found by its
/// address when it was entered before, as that of a [`Layer`] is.
#[derive(Clone, Copy, Debug)]
pub struct Fixed<'a> {
    /// The layer's identifier.
    pub id: &'static str,
    /// Its value; empty is inactive.
    pub value: &'a str,
    /// As [`Layer::INHERITED`].
    pub inherited: bool,
}

impl Switch for Fixed<'_> {
    #[inline]
    fn id(&self) -> Id<'_> {
        Id::Static(self.id)
    }
    #[inline]
    fn binding(&self, _: &Core) -> Binding<'_> {
        Binding::Text(Cow::Borrowed(self.value))
    }
    #[inline]
    fn inherited(&self) -> bool {
        self.inherited
    }
    #[inline]
    unsafe fn enter_alone(&self, core: &mut Core, environment: *mut u8) -> usize {
        // SAFETY: as the caller vouches.
        unsafe { core.enter_text(environment, self.id, self.value, self.inherited) }
    }
}

/// A thread-based layer on its way to an activation: what [`each`] makes.
pub struct Each<L>(Arc<L>);

/// Wraps a thread-based layer for [`activate`](crate::Context::activate).
pub fn each<L: ThreadLayer>(layer: L) -> Each<L> {
    Each(Arc::new(layer))
}

impl<L: ThreadLayer> Switch for Each<L> {
    fn id(&self) -> Id<'_> {
        Id::Static(L::ID)
    }
    fn binding(&self, core: &Core) -> Binding<'_> {
        Binding::Bound(core.with_dependencies(self.0.clone()))
    }
}

/// A thread-based layer that is only known at run time: what [`each_named`] makes.
pub struct EachNamed {
    id: String,
    layer: ThreadBased,
}

/// As [`each`], for a layer that is no type: its identifier, the names (with
/// placeholders) of the contextual values that `value` reads, and `value` itself,
/// of which the same is asked as of [`ThreadLayer::value`].
pub fn each_named(
    id: impl Into<String>,
    depends_on: Vec<String>,
    value: impl Fn(&Scope<'_>) -> String + Send + Sync + 'static,
) -> EachNamed {
    EachNamed {
        id: id.into(),
        layer: Arc::new(Evaluated { depends_on, value }),
    }
}

struct Evaluated<F> {
    depends_on: Vec<String>,
    value: F,
}

impl<F: Fn(&Scope<'_>) -> String + Send + Sync> Evaluate for Evaluated<F> {
    fn evaluate(&self, scope: &Scope<'_>) -> String {
        (self.value)(scope)
    }
    fn names(&self) -> Vec<&str> {
        self.depends_on.iter().map(String::as_str).collect()
    }
}

impl Switch for EachNamed {
    fn id(&self) -> Id<'_> {
        Id::Dynamic(&self.id)
    }
    fn binding(&self, core: &Core) -> Binding<'_> {
        Binding::Bound(core.with_dependencies(self.layer.clone()))
    }
}

/// A contextual value as a layer: what [`value`] makes.
pub struct ValueLayer<V>(PhantomData<V>);

/// A contextual value as a layer. Its placeholder is the value's `layer/name`,
/// or else the last identifier of its name; its value follows the contextual
/// value wherever that changes.
///
/// ```ignore
/// cx.enter(value::<at::sw::pi::language>());   // `%language%` follows the session
/// ```
#[must_use]
pub fn value<V: Value>() -> ValueLayer<V> {
    ValueLayer(PhantomData)
}

impl<V: Value> Switch for ValueLayer<V> {
    fn id(&self) -> Id<'_> {
        Id::Static(layer_of(
            &<V::Environment as crate::Environment>::VALUES[V::INDEX],
        ))
    }
    fn binding(&self, core: &Core) -> Binding<'_> {
        let descriptor = &<V::Environment as crate::Environment>::VALUES[V::INDEX];
        let spec = core.spec(descriptor);
        let spec = spec.unwrap_or_else(|error| panic!("{error}"));
        Binding::Bound(Arc::new(Bound::Value(spec)))
    }
}

/// A contextual value as a layer, where the value is only known at run time.
pub struct Following {
    pub(crate) id: &'static str,
    pub(crate) spec: Arc<ValueSpec>,
}

impl Switch for Following {
    fn id(&self) -> Id<'_> {
        Id::Static(self.id)
    }
    fn binding(&self, _: &Core) -> Binding<'_> {
        Binding::Bound(Arc::new(Bound::Value(self.spec.clone())))
    }
}

/// The identifier of the layer that follows a value.
pub(crate) fn layer_of(descriptor: &Descriptor) -> &'static str {
    let mut metadata = descriptor.metadata.iter();
    let named = metadata.find(|(key, _)| *key == "layer/name");
    named.map_or_else(|| last_identifier(descriptor.pattern), |(_, name)| *name)
}

fn last_identifier(pattern: &'static str) -> &'static str {
    let plain = |level: &&str| !level.is_empty() && !level.contains('%') && *level != "#";
    pattern.rsplit('/').find(plain).unwrap_or(pattern)
}

/// One or several layers that are entered together: each value that they touch
/// is updated once, and of two with the same identifier the last one wins.
pub trait LayerSet {
    #[doc(hidden)]
    fn fill(&self, frame: &mut Filling<'_>);
    /// Enters them; returns the frame's depth.
    ///
    /// # Safety
    ///
    /// `environment` is that of `core`.
    #[doc(hidden)]
    unsafe fn enter(&self, core: &mut Core, environment: *mut u8) -> usize {
        // SAFETY: as the caller vouches.
        unsafe { core.enter_set(environment, |frame| self.fill(frame)) }
    }
}

impl<S: Switch> LayerSet for S {
    #[inline]
    fn fill(&self, frame: &mut Filling<'_>) {
        let binding = self.binding(frame.core);
        frame.core.cover(self.id(), &binding, self.inherited());
    }
    #[inline]
    unsafe fn enter(&self, core: &mut Core, environment: *mut u8) -> usize {
        // SAFETY: as the caller vouches.
        unsafe { self.enter_alone(core, environment) }
    }
}

/// As many layers as there are when the program runs.
impl LayerSet for &[&dyn Switch] {
    fn fill(&self, frame: &mut Filling<'_>) {
        for layer in *self {
            let binding = layer.binding(frame.core);
            frame.core.cover(layer.id(), &binding, layer.inherited());
        }
    }
}

/// As many sets of layers, such as single layers and [captured](crate::Captured) ones.
impl LayerSet for &[&dyn LayerSet] {
    fn fill(&self, frame: &mut Filling<'_>) {
        for set in *self {
            set.fill(frame);
        }
    }
}

macro_rules! tuples {
    ($($name:ident)+) => {
        impl<$($name: LayerSet),+> LayerSet for ($($name,)+) {
            #[allow(non_snake_case)]
            fn fill(&self, frame: &mut Filling<'_>) {
                let ($($name,)+) = self;
                $($name.fill(frame);)+
            }
        }
    };
}
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D F);
tuples!(A B C D F G);

/// A layer as a context holds it. Plain data: the context owns the text.
#[derive(Clone, Copy)]
pub struct LayerCell {
    /// The value as its author gave it; empty is inactive.
    text: *const u8,
    length: u32,
    flags: u32,
    /// The hash of the level that consists of this layer alone, if `HASHED`.
    hash: Hash,
}

/// A frame of this context put the cell here.
const LOCAL: u32 = 1;
/// A fork keeps it.
const INHERITED: u32 = 2;
const HASHED: u32 = 4;
/// Its value is the global binding, evaluated here.
const GLOBAL: u32 = 8;
/// Its value is its frame's own binding, by the position in the upper bits.
const OWN: u32 = 16;
/// It is active with a short value that is part of a name as it is, which is known
/// once it is `HASHED`.
const PLAIN: u32 = 32;
const POSITION: u32 = 8;

/// Where a layer's value comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Fixed,
    /// The global binding of the layer, evaluated here.
    Global,
    /// The frame's own binding, by its position.
    Local(u32),
}

// SAFETY: the pointer is to immutable bytes that the context owns.
unsafe impl Send for LayerCell {}
// SAFETY: as above.
unsafe impl Sync for LayerCell {}

impl LayerCell {
    pub const INACTIVE: LayerCell = LayerCell {
        text: std::ptr::null(),
        length: 0,
        flags: 0,
        hash: Hash { main: 0, check: 0 },
    };

    /// A cell with a text.
    ///
    /// # Safety
    ///
    /// `text` is the beginning of a `str` of that length, which stays as long
    /// as the cell is used.
    #[inline]
    pub unsafe fn new(text: *const u8, length: usize) -> LayerCell {
        let mut cell = LayerCell::INACTIVE;
        // SAFETY: as the caller vouches.
        unsafe { cell.set(text, length) };
        cell
    }

    /// A cell of a frame with a text.
    ///
    /// # Safety
    ///
    /// As [`new`](LayerCell::new), and the length is below 4 GiB.
    #[inline]
    #[allow(clippy::cast_possible_truncation)]
    pub unsafe fn new_local(text: *const u8, length: usize, inherited: bool) -> LayerCell {
        LayerCell {
            text,
            length: length as u32,
            flags: LOCAL | if inherited { INHERITED } else { 0 },
            hash: Hash { main: 0, check: 0 },
        }
    }

    /// The same as a layer of a frame.
    #[inline]
    #[must_use]
    pub fn local(mut self, inherited: bool) -> LayerCell {
        self.flags |= LOCAL | if inherited { INHERITED } else { 0 };
        self
    }

    /// The same with a value that comes from elsewhere, and is not known yet.
    #[inline]
    #[must_use]
    pub fn bound(mut self, source: Source) -> LayerCell {
        self.flags |= match source {
            Source::Fixed => 0,
            Source::Global => GLOBAL,
            Source::Local(at) => OWN | at << POSITION,
        };
        self
    }

    #[inline]
    pub fn is_local(&self) -> bool {
        self.flags & LOCAL != 0
    }

    #[inline]
    pub fn is_inherited(&self) -> bool {
        self.flags & INHERITED != 0
    }

    #[inline]
    pub fn is_bound(&self) -> bool {
        self.flags & (GLOBAL | OWN) != 0
    }

    pub fn source(&self) -> Source {
        if self.flags & GLOBAL != 0 {
            Source::Global
        } else if self.flags & OWN != 0 {
            Source::Local(self.flags >> POSITION)
        } else {
            Source::Fixed
        }
    }

    /// The value as its author gave it.
    #[inline]
    pub fn raw(&self) -> &str {
        if self.length == 0 {
            return "";
        }
        // SAFETY: it has a text.
        unsafe { self.text() }
    }

    /// As [`raw`](LayerCell::raw).
    ///
    /// # Safety
    ///
    /// The value is not empty.
    #[inline]
    unsafe fn text(&self) -> &str {
        // SAFETY: `new` was given the parts of a `str` that is still there.
        unsafe {
            let bytes = std::slice::from_raw_parts(self.text, self.length as usize);
            std::str::from_utf8_unchecked(bytes)
        }
    }

    /// Gives the cell another text.
    ///
    /// # Safety
    ///
    /// As [`new`](LayerCell::new).
    #[inline]
    pub unsafe fn set(&mut self, text: *const u8, length: usize) {
        self.text = text;
        self.length = u32::try_from(length).expect("layer values are shorter than 4 GiB");
        self.flags &= !(HASHED | PLAIN);
    }

    /// Makes the layer inactive, without looking at its text.
    pub fn clear(&mut self) {
        self.length = 0;
        self.flags &= !(HASHED | PLAIN);
    }

    /// Whether the layer is active.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.length > 0
    }

    /// The value as part of a name.
    pub fn escaped(&self) -> Cow<'_, str> {
        escaped(self.raw())
    }

    /// The value, where it is known to be short, and part of a name as it is.
    #[inline]
    pub fn short(&self) -> Option<&str> {
        // SAFETY: the flag says that there is a value.
        (self.flags & PLAIN != 0).then(|| unsafe { self.text() })
    }

    /// Computes the hash once, for a layer that names depend on.
    #[inline]
    pub fn make_hash(&mut self) {
        if self.flags & HASHED == 0 {
            let (hash, plain) = level(self.raw());
            self.hash = hash;
            self.flags |= if plain && self.length <= SHORT as u32 {
                HASHED | PLAIN
            } else {
                HASHED
            };
        }
    }

    #[inline]
    pub fn hash(&self) -> Hash {
        if self.flags & HASHED != 0 {
            self.hash
        } else {
            level(self.raw()).0
        }
    }
}

/// The hash of a level that consists of one layer, and whether that is active and
/// its value part of a name as it is.
#[inline]
fn level(raw: &str) -> (Hash, bool) {
    if raw.is_empty() {
        (Hash::level("%"), false)
    } else if needs_escape(raw) {
        (Hash::level(&escaped(raw)), false)
    } else {
        (Hash::level(raw), true)
    }
}

fn escaped(raw: &str) -> Cow<'_, str> {
    if !needs_escape(raw) {
        return Cow::Borrowed(raw);
    }
    let mut text = String::new();
    escape_value(raw, &mut text);
    Cow::Owned(text)
}

/// Whether a value has to be changed to be part of a name: it has a slash, a
/// backslash or a percent sign, or it is `.` or `..`.
#[inline]
fn needs_escape(raw: &str) -> bool {
    let mut rest = raw.as_bytes();
    let mut found = 0;
    while let Some((word, after)) = rest.split_first_chunk::<8>() {
        found |= special(u64::from_le_bytes(*word));
        rest = after;
    }
    let mut word = [b'x'; 8];
    word[..rest.len()].copy_from_slice(rest);
    found |= special(u64::from_le_bytes(word));
    found != 0 || raw == "." || raw == ".."
}

/// Not zero where one of the eight bytes is `/`, `\\` or `%`.
#[inline]
fn special(word: u64) -> u64 {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = LOW << 7;
    let has = |byte: u8| {
        let x = word ^ (LOW * u64::from(byte));
        x.wrapping_sub(LOW) & !x & HIGH
    };
    has(b'/') | has(b'\\') | has(b'%')
}
