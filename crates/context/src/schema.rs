//! What a coordinator knows of names: layers, values, and the plan of each environment.
//!
//! Layers and patterns are interned, so that two environments that name the
//! same key mean the same value. A plan is the static table that switching
//! works from: for each layer, the values that it touches, those with a common
//! parent together.

use std::sync::Arc;

use milieu_keys::{
    Pattern, Rules,
    pattern::LevelPattern,
    rules::{Scalar, Type},
    sort,
};

use crate::{
    Description, Descriptor, Invalid, Kind, OpenError,
    elements::NONE,
    environment::Identity,
    field::{Cell, Shape},
    hash::Hash,
    map::{Column, Map, Tag},
    resolve::{Layers, Level, Parent, Resolution, Slot},
};

/// A value as the coordinator knows it, whichever environments hold it.
#[derive(Debug)]
pub struct ValueSpec {
    pub pattern: Pattern,
    pub kind: Kind,
    pub tag: Tag,
    pub rules: Rules,
    /// The value's own name.
    pub own: Resolution,
    /// Names that come before it.
    pub overrides: Vec<Resolution>,
    /// Names that come after it.
    pub fallbacks: Vec<Resolution>,
    /// The patterns of both, of an array.
    pub alternates: Vec<Pattern>,
    /// Keys of another type may have the same name (`allow/overlap`).
    pub overlaps: bool,
    /// Every layer that any of these names depends on.
    pub slots: Vec<Slot>,
    /// Shared, not boxed: string cells point into it wherever it moves.
    pub default_text: Arc<str>,
    pub default: Cell,
}

impl ValueSpec {
    /// Whether other names take part in its cascade.
    pub fn has_alternates(&self) -> bool {
        !self.overrides.is_empty() || !self.fallbacks.is_empty()
    }

    /// Whether its field is an array.
    pub fn is_array(&self) -> bool {
        matches!(self.kind, Kind::Array(_))
    }

    /// The stored value that is in force; `None` where the default is.
    pub fn find<'m>(&self, map: &'m Map, layers: Layers<'_>) -> Option<&'m Column> {
        let found = |resolution: &Resolution| {
            let column = resolution.find(map, layers);
            column.filter(|column| column.tag != NONE)
        };
        self.overrides
            .iter()
            .chain([&self.own])
            .chain(&self.fallbacks)
            .find_map(found)
    }

    /// The cell of a stored value of another type.
    ///
    /// Such a key, which only an override or a fallback can lead to, is read as
    /// text and counts where it keeps this value's rules.
    #[cold]
    fn cell_of_other(&self, column: &Column) -> Cell {
        self.convert(&column.datum.text).unwrap_or(self.default)
    }

    fn convert(&self, text: &str) -> Option<Cell> {
        Cell::new(self.kind, &self.rules.check(text).ok()?, text)
    }

    /// The text of the value in force.
    pub fn text<'a>(&'a self, map: &'a Map, layers: Layers<'_>) -> &'a str {
        match self.find(map, layers) {
            Some(column)
                if column.tag == self.tag || self.convert(&column.datum.text).is_some() =>
            {
                &column.datum.text
            }
            _ => &self.default_text,
        }
    }
}

/// A value of one environment.
///
/// What is needed whenever it is evaluated lies here, side by side: who comes
/// from other work has little in the cache.
#[derive(Debug)]
pub struct Planned {
    pub spec: Arc<ValueSpec>,
    pub offset: u32,
    pub shape: Shape,
    tag: Tag,
    default: Cell,
    /// The last level of its own name, where that is always the same.
    base: Option<Hash>,
}

impl Planned {
    fn new(spec: Arc<ValueSpec>, descriptor: &Descriptor) -> Planned {
        Planned {
            offset: u32::try_from(descriptor.offset).expect("environments below 4 GiB"),
            shape: descriptor.kind.shape(),
            tag: spec.tag,
            default: spec.default,
            base: match spec.own.base {
                Level::Literal(hash) => Some(hash),
                Level::Varying(_) => None,
            },
            spec,
        }
    }

    /// The last level of its own name.
    #[inline]
    pub fn base(&self, layers: Layers<'_>) -> Hash {
        match self.base {
            Some(hash) => hash,
            None => self.spec.own.base.hash(layers),
        }
    }

    /// The cell of a stored value, as this value's type.
    #[inline]
    pub fn cell(&self, column: Option<&Column>) -> Cell {
        match column {
            Some(column) if column.tag == self.tag => column.cell,
            Some(column) => self.spec.cell_of_other(column),
            None => self.default,
        }
    }
}

/// Values that a layer touches and that share a parent.
#[derive(Debug)]
pub struct Group {
    pub parent: Parent,
    pub values: Box<[u32]>,
}

/// What one layer touches.
#[derive(Debug, Default)]
pub struct Touched {
    pub groups: Box<[Group]>,
    /// Values with overrides or fallbacks, evaluated one by one.
    pub single: Box<[u32]>,
}

impl Touched {
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.single.is_empty()
    }
}

/// The static table of one environment in one coordinator.
#[derive(Debug)]
pub struct Plan {
    pub values: Box<[Planned]>,
    touched: Box<[Option<Box<Touched>>]>,
    /// Everything, for a refresh.
    pub all: Touched,
    /// The layers that touch something, by their identifiers.
    layers: Box<[(Arc<str>, Slot)]>,
}

impl Plan {
    /// The values that a layer touches.
    #[inline]
    pub fn touched(&self, slot: Slot) -> Option<&Touched> {
        self.touched.get(slot as usize)?.as_deref()
    }

    /// The number of a layer that touches something here. Takes no lock.
    pub fn slot(&self, id: &str) -> Option<Slot> {
        self.layers
            .iter()
            .find(|(known, _)| **known == *id)
            .map(|(_, slot)| *slot)
    }

    fn new(values: Vec<Planned>, id: impl Fn(Slot) -> Arc<str>) -> Plan {
        let slots = values.iter().flat_map(|v| v.spec.slots.iter().copied());
        let count = slots.max().map_or(0, |slot| slot as usize + 1);
        let touched_by = |slot: Option<Slot>| {
            let of: Vec<u32> = (0..)
                .zip(&values)
                .filter(|(_, v)| slot.is_none_or(|slot| v.spec.slots.contains(&slot)))
                .map(|(i, _)| i)
                .collect();
            group(&values, &of)
        };
        #[allow(clippy::cast_possible_truncation)]
        let touched: Box<[_]> = (0..count)
            .map(|slot| touched_by(Some(slot as Slot)))
            .map(|touched| (!touched.is_empty()).then(|| Box::new(touched)))
            .collect();
        let all = touched_by(None);
        let slots = (0..).zip(&touched).filter(|(_, touched)| touched.is_some());
        let layers = slots.map(|(slot, _)| (id(slot), slot)).collect();
        Plan {
            layers,
            touched,
            all,
            values: values.into(),
        }
    }
}

fn group(values: &[Planned], of: &[u32]) -> Touched {
    let mut groups: Vec<(&Parent, Vec<u32>)> = Vec::new();
    let mut single = Vec::new();
    for &index in of {
        let spec = &values[index as usize].spec;
        if spec.has_alternates() {
            single.push(index);
            continue;
        }
        let parent = &spec.own.parent;
        match groups.iter_mut().find(|(known, _)| *known == parent) {
            Some((_, group)) => group.push(index),
            None => groups.push((parent, vec![index])),
        }
    }
    let group = |(parent, values): (&Parent, Vec<u32>)| Group {
        parent: parent.clone(),
        values: values.into(),
    };
    Touched {
        groups: groups.into_iter().map(group).collect(),
        single: single.into(),
    }
}

/// The names that a coordinator knows.
#[derive(Default)]
pub struct Schema {
    /// The identifiers of layers, by number.
    ids: Vec<Arc<str>>,
    /// The numbers of layers, in the order of their identifiers.
    layers: Vec<Slot>,
    /// Values by their patterns, in the order of these.
    values: Vec<(&'static str, Arc<ValueSpec>)>,
    enums: Vec<Vec<String>>,
    /// A handful, so that looking through them takes no time.
    plans: Vec<(Identity, Arc<Plan>)>,
    /// The values that are arrays.
    pub arrays: Vec<Arc<ValueSpec>>,
    /// Whether two patterns can name one key, which then has both their rules.
    pub meeting: bool,
}

impl Schema {
    /// The number of a layer; unknown ones get the next.
    pub fn slot(&mut self, id: &str) -> Slot {
        let place = match self.layer_place(id) {
            Ok(place) => return self.layers[place],
            Err(place) => place,
        };
        let slot = Slot::try_from(self.ids.len()).expect("fewer than 2^32 layers");
        self.ids.push(id.into());
        self.layers.insert(place, slot);
        slot
    }

    /// The number of a layer, if it is known.
    pub fn known_slot(&self, id: &str) -> Option<Slot> {
        Some(self.layers[self.layer_place(id).ok()?])
    }

    /// Where among the layers one stands, or where it would.
    fn layer_place(&self, id: &str) -> Result<usize, usize> {
        self.layers
            .binary_search_by(|slot| (*self.ids[*slot as usize]).cmp(id))
    }

    /// The identifiers of the layers that some value depends on, sorted.
    pub fn used_layers(&self) -> Vec<String> {
        let mut used: Vec<String> = self
            .known_values()
            .flat_map(|spec| {
                spec.slots
                    .iter()
                    .map(|slot| self.id(*slot).as_ref().to_owned())
            })
            .collect();
        sort::by(&mut used, Ord::cmp);
        used.dedup();
        used
    }

    /// The identifier of a layer.
    pub fn id(&self, slot: Slot) -> Arc<str> {
        self.ids[slot as usize].clone()
    }

    /// How many layers are known.
    pub fn layer_count(&self) -> usize {
        self.ids.len()
    }

    /// A value by its pattern.
    pub fn value(&self, pattern: &str) -> Option<Arc<ValueSpec>> {
        let place = self.value_place(pattern).ok()?;
        Some(self.values[place].1.clone())
    }

    /// Where among the values one stands, or where it would.
    fn value_place(&self, pattern: &str) -> Result<usize, usize> {
        self.values
            .binary_search_by(|(known, _)| (*known).cmp(pattern))
    }

    fn known_values(&self) -> impl Iterator<Item = &Arc<ValueSpec>> {
        self.values.iter().map(|(_, spec)| spec)
    }

    /// Every value whose pattern a concrete name can come from.
    pub fn values_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Arc<ValueSpec>> {
        self.known_values()
            .filter(move |spec| spec.pattern.matches(name))
    }

    /// Whether an environment calls the key a secret.
    pub fn is_secret(&self, name: &str) -> bool {
        let mut values = self.known_values();
        values.any(|spec| spec.rules.secret() && spec.pattern.declares(name))
    }

    /// The plan of an environment that is known already.
    pub fn known_plan(&self, environment: &Description) -> Option<Arc<Plan>> {
        let is_it = |(identity, _): &&(Identity, Arc<Plan>)| *identity == environment.identity;
        let (_, plan) = self.plans.iter().find(is_it)?;
        Some(plan.clone())
    }

    /// Values of an environment, with those that are new; nothing is remembered yet.
    pub fn describe(
        &mut self,
        environment: &Description,
    ) -> Result<Vec<Arc<ValueSpec>>, OpenError> {
        let mut all: Vec<Arc<ValueSpec>> = Vec::new();
        for descriptor in environment.values {
            let spec = self.describe_value(descriptor)?;
            // The name of an array is that of no other key.
            let clash = self
                .known_values()
                .chain(&all)
                .filter(|other| other.is_array() == spec.is_array())
                .filter(|other| other.tag != spec.tag && !(other.overlaps || spec.overlaps))
                .find(|other| other.pattern.unifies(&spec.pattern));
            if let Some(other) = clash {
                return Err(OpenError::Types {
                    pattern: descriptor.pattern.into(),
                    other: other.pattern.as_str().into(),
                });
            }
            all.push(spec);
        }
        Ok(all)
    }

    /// Remembers an environment.
    pub fn remember(&mut self, environment: &Description, specs: Vec<Arc<ValueSpec>>) -> Arc<Plan> {
        self.meeting |= specs.iter().enumerate().any(|(i, spec)| {
            let others = self.known_values().chain(&specs[..i]);
            let mut others = others.filter(|other| !Arc::ptr_eq(other, spec));
            others.any(|other| other.pattern.unifies(&spec.pattern))
        });
        let ids = self.ids.clone();
        let mut planned = Vec::new();
        for (descriptor, spec) in environment.values.iter().zip(specs) {
            if let Err(place) = self.value_place(descriptor.pattern) {
                let named = (descriptor.pattern, spec.clone());
                self.values.insert(place, named);
                if spec.is_array() {
                    self.arrays.push(spec.clone());
                }
            }
            planned.push(Planned::new(spec, descriptor));
        }
        let plan = Arc::new(Plan::new(planned, |slot| ids[slot as usize].clone()));
        self.plans.push((environment.identity, plan.clone()));
        plan
    }

    /// A value from its descriptor, without remembering it.
    pub fn describe_value(&mut self, descriptor: &Descriptor) -> Result<Arc<ValueSpec>, OpenError> {
        let pattern = descriptor.pattern;
        let metadata = |error| OpenError::Metadata {
            pattern: pattern.into(),
            error,
        };
        let rules = Rules::from_metadata(descriptor.metadata).map_err(metadata)?;
        if !fits(descriptor.kind, *rules.type_()) {
            return Err(OpenError::Field {
                pattern: pattern.into(),
                type_: rules.type_().to_string(),
                kind: descriptor.kind,
            });
        }
        let tag = self.tag(descriptor.kind, &rules);
        if let Some(known) = self.value(pattern).filter(|known| known.tag == tag) {
            return Ok(known);
        }
        let parsed = parse(pattern)?;
        let own = self.resolution(&parsed);
        check_array(descriptor, &parsed, &rules)?;
        let overrides = self.alternates(descriptor, "override")?;
        let fallbacks = self.alternates(descriptor, "fallback")?;
        let mut slots = own.slots();
        for alternate in overrides.iter().chain(&fallbacks) {
            slots.extend(alternate.slots());
        }
        sort::by(&mut slots, Ord::cmp);
        slots.dedup();
        let default_text: Arc<str> = default_text(descriptor.kind, &rules).into();
        let default = match rules.default() {
            Some(_) => checked(descriptor.kind, &rules, &default_text),
            None => Ok(Cell::zero(descriptor.kind, &default_text)),
        }
        .map_err(|violation| {
            OpenError::Default(Invalid {
                name: pattern.into(),
                violation,
                origin: None,
            })
        })?;
        Ok(Arc::new(ValueSpec {
            pattern: parsed,
            kind: descriptor.kind,
            tag,
            rules,
            own,
            overrides,
            fallbacks,
            alternates: alternate_arrays(descriptor)?,
            overlaps: descriptor
                .metadata
                .iter()
                .any(|(key, _)| *key == "allow/overlap"),
            slots,
            default,
            default_text,
        }))
    }

    /// The names that come before or after a value.
    fn alternates(
        &mut self,
        descriptor: &Descriptor,
        prefix: &str,
    ) -> Result<Vec<Resolution>, OpenError> {
        let mut all = Vec::new();
        for name in alternates(descriptor, prefix) {
            all.push(self.resolution(&parse(name)?));
        }
        Ok(all)
    }

    fn resolution(&mut self, pattern: &Pattern) -> Resolution {
        Resolution::new(pattern, |id| self.slot(id))
    }

    /// The number of a type; enums with the same variants are one.
    fn tag(&mut self, kind: Kind, rules: &Rules) -> Tag {
        match kind {
            Kind::Array(element) => return Tag(self.tag(*element, rules).0 | ARRAY),
            Kind::Enum => {}
            other => return Tag(number(other)),
        }
        let variants = rules.variants();
        let known = self
            .enums
            .iter()
            .position(|known| known == variants)
            .unwrap_or_else(|| {
                self.enums.push(variants.to_vec());
                self.enums.len() - 1
            });
        Tag(100 + u32::try_from(known).expect("fewer than 2^32 enums"))
    }
}

/// The tag of a text that no specification describes.
pub const TEXT: Tag = Tag(number(Kind::Text));

/// Added to the tag of the elements.
const ARRAY: u32 = 1 << 31;

/// The number of a kind; enums and arrays have more than one type.
const fn number(kind: Kind) -> u32 {
    match kind {
        Kind::Bool => 1,
        Kind::I16 => 2,
        Kind::I32 => 3,
        Kind::I64 => 4,
        Kind::U16 => 5,
        Kind::U32 => 6,
        Kind::U64 => 7,
        Kind::F32 => 8,
        Kind::F64 => 9,
        Kind::Text => 10,
        Kind::Enum => 11,
        Kind::Array(_) => 12,
    }
}

/// The names that come before or after a value.
fn alternates(descriptor: &Descriptor, prefix: &str) -> impl Iterator<Item = &'static str> {
    let of = move |key: &str| {
        let rest = key.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.starts_with("/#"))
    };
    let metadata = descriptor.metadata.iter();
    metadata
        .filter(move |(key, _)| of(key))
        .map(|(_, name)| *name)
}

/// The overrides and fallbacks of an array, which are arrays as well.
fn alternate_arrays(descriptor: &Descriptor) -> Result<Vec<Pattern>, OpenError> {
    if descriptor.kind.element().is_none() {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    for prefix in ["override", "fallback"] {
        for name in alternates(descriptor, prefix) {
            let pattern = parse(name)?;
            if !pattern.as_str().ends_with("/#") {
                return Err(array_error(
                    descriptor,
                    "an override or a fallback is no array: let its name end in `/#` as well",
                ));
            }
            all.push(pattern);
        }
    }
    Ok(all)
}

/// Whether a value is an array just where its name says so.
fn check_array(descriptor: &Descriptor, pattern: &Pattern, rules: &Rules) -> Result<(), OpenError> {
    let levels = pattern.level_patterns();
    let is_array = |level: &LevelPattern| level.literal() == Some("#");
    let named = levels.last().is_some_and(is_array);
    let problem = match descriptor.kind.element() {
        _ if levels.iter().rev().skip(1).any(is_array) => {
            "only the last level of a name can be `#`: for several values of each element make \
             several arrays, or let a layer tell the elements apart"
        }
        Some(Kind::Array(_)) => "the elements of an array are no arrays",
        Some(_) if !named => "the field is an `Array`, so let the name end in `/#`",
        None if named => "the name is that of an array, so make the field an `Array`",
        Some(_) if rules.default().is_some() => {
            "an array that nobody gives has no elements, so it has no default: a file of the \
             system's can give it elements"
        }
        _ => return Ok(()),
    };
    Err(array_error(descriptor, problem))
}

fn array_error(descriptor: &Descriptor, problem: &'static str) -> OpenError {
    OpenError::Array {
        pattern: descriptor.pattern.into(),
        problem,
    }
}

fn parse(pattern: &str) -> Result<Pattern, OpenError> {
    Pattern::parse(pattern).map_err(|error| OpenError::Pattern {
        pattern: pattern.into(),
        error,
    })
}

/// Whether a field can hold whatever its key can be.
fn fits(kind: Kind, type_: Type) -> bool {
    let kind = kind.element().unwrap_or(kind);
    let holds = |scalar: Scalar<'_>| Cell::new(kind, &scalar, "").is_some();
    let Some((min, max)) = type_.integer_bounds() else {
        return holds(type_.zero());
    };
    let holds = |bound: i128| match type_.zero() {
        Scalar::Unsigned(_) => u64::try_from(bound).is_ok_and(|it| holds(Scalar::Unsigned(it))),
        _ => i64::try_from(bound).is_ok_and(|it| holds(Scalar::Signed(it))),
    };
    holds(min) && holds(max)
}

/// Checks a text and makes the cell, which points into the text.
pub fn checked(kind: Kind, rules: &Rules, text: &str) -> Result<Cell, milieu_keys::Violation> {
    let scalar = rules.check(text)?;
    Cell::new(kind, &scalar, text).ok_or_else(|| milieu_keys::Violation {
        rule: "type".into(),
        value: text.into(),
        message: format!(
            "does not fit a field of kind {kind:?}; make the field's type that of the specification"
        ),
    })
}

/// The default of the specification, or else the type's zero.
fn default_text(kind: Kind, rules: &Rules) -> String {
    match (rules.default(), kind) {
        (Some(default), _) => default.into(),
        (None, Kind::Bool) => "false".into(),
        (None, Kind::Text | Kind::Array(_)) => String::new(),
        (None, Kind::Enum) => rules.variants().first().cloned().unwrap_or_default(),
        (None, _) => "0".into(),
    }
}
