//! Fields of one event, where expressions find them.

use crate::event::{Event, Header};
use crate::kind::Type;
use crate::read::Shape;
use crate::select::{HeaderField, Node, Selection, Step};
use crate::time::{Span, Time};
use crate::value::{Map, Value};

/// The fields of an event that a [`Selection`] asks for, in numbered slots.
///
/// A row is kept and filled again and again: its buffers, and what it learnt
/// about the type of the events, make reading cheap. Filling it allocates
/// nothing once the buffers are large enough, except for lists and maps of
/// typed bodies, which become values.
///
/// ```
/// use milieu_transfer::{Row, Selection, Slot, Value};
///
/// let mut selection = Selection::default();
/// let value = selection.add("value").unwrap();
/// let mut row = Row::default();
/// row.read_value(&selection, &Value::Double(33.5));
/// assert_eq!(row.slot(value), Slot::Double(33.5));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Row {
    plan: Option<Box<Plan>>,
    cells: Cells,
}

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Slot<'a> {
    /// The event has no such field.
    Missing,
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number of an unsigned type.
    Uint(u64),
    /// A number.
    Double(f64),
    /// A point in time.
    Time(Time),
    /// A distance in time.
    Span(Span),
    /// A text.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A list, a map, or what else is more than one of the above.
    Value(&'a Value),
}

macro_rules! scalars {
    ($($(#[$meta:meta])* $name:ident: $cell:ident($type:ty);)*) => {$(
        $(#[$meta])*
        #[inline]
        #[must_use]
        pub fn $name(&self, number: usize) -> Option<$type> {
            match self.cells.cells.get(number) {
                Some(Cell::$cell(value)) => Some(*value),
                _ => None,
            }
        }
    )*};
}

impl Row {
    /// The slot of this number; missing where the selection has none such.
    #[inline]
    #[must_use]
    pub fn slot(&self, number: usize) -> Slot<'_> {
        match self.cells.cells.get(number) {
            None | Some(Cell::Missing) => Slot::Missing,
            Some(Cell::Null) => Slot::Null,
            Some(Cell::Bool(value)) => Slot::Bool(*value),
            Some(Cell::Int(value)) => Slot::Int(*value),
            Some(Cell::Uint(value)) => Slot::Uint(*value),
            Some(Cell::Double(value)) => Slot::Double(*value),
            Some(Cell::Time(value)) => Slot::Time(*value),
            Some(Cell::Span(value)) => Slot::Span(*value),
            Some(Cell::Text(at, length)) => {
                let (at, length) = (*at as usize, *length as usize);
                Slot::Text(&self.cells.texts[at..at + length])
            }
            Some(Cell::Bytes(at, length)) => {
                let (at, length) = (*at as usize, *length as usize);
                Slot::Bytes(&self.cells.bytes[at..at + length])
            }
            Some(Cell::Value(at)) => Slot::Value(&self.cells.values[*at as usize]),
        }
    }

    scalars! {
        /// The truth value in a slot, if there is one.
        bool: Bool(bool);
        /// The whole number in a slot, if there is one of this kind.
        int: Int(i64);
        /// The unsigned number in a slot, if there is one of this kind.
        uint: Uint(u64);
        /// The number of double precision in a slot, if there is one of this kind.
        double: Double(f64);
        /// The point in time in a slot, if there is one.
        time: Time(Time);
        /// The distance in time in a slot, if there is one.
        span: Span(Span);
    }

    /// The text in a slot, if there is one.
    #[inline]
    #[must_use]
    pub fn text(&self, number: usize) -> Option<&str> {
        match self.cells.cells.get(number) {
            Some(Cell::Text(at, length)) => {
                let (at, length) = (*at as usize, *length as usize);
                self.cells.texts.get(at..at + length)
            }
            _ => None,
        }
    }

    /// Fills the slots from a body that belongs to no event; what is asked of
    /// the header is missing.
    pub fn read_value(&mut self, selection: &Selection, body: &Value) {
        // What was learnt of a type was learnt for as many slots.
        if let Some(plan) = &mut self.plan {
            plan.is_known = false;
        }
        self.cells.clear(selection.len());
        self.cells.body(selection, body);
    }

    /// The plan for a type, if it is the one that was used last.
    fn plan(&mut self, selection: &Selection, event: &Event) -> &mut Plan {
        let is_it = |plan: &Plan| plan.selection.is(selection) && std::ptr::eq(plan.of, event.of());
        let known = self.plan.take().filter(|plan| is_it(plan));
        let learn = || Box::new(Plan::new(selection, event));
        self.plan.insert(known.unwrap_or_else(learn))
    }
}

/// How events of one type are read.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    selection: Selection,
    of: &'static Type,
    wanted: Node,
    /// Slots that another one is copied to, after reading.
    same: Vec<(usize, usize)>,
    shape: Shape,
    /// How many slots a walk over a body fills.
    of_body: usize,
    /// Whether all fields were found by name, so that they can be found by the
    /// addresses of their names.
    is_known: bool,
    /// Whether there is more than what a walk over a body fills.
    has_more: bool,
    /// Whether there were events that left slots empty in spite of that.
    is_sparse: bool,
}

impl Event {
    /// Fills the slots of a row with the fields that a selection asks for.
    ///
    /// A body of a Rust type is walked once, up to the last field wanted, by a
    /// function that the compiler made for that type. An enum's variant with
    /// fields is a map with one key, as in JSON.
    #[inline]
    pub fn read(&self, selection: &Selection, row: &mut Row) {
        let Row { plan, cells } = row;
        if let Some(plan) = plan {
            let is_of = std::ptr::eq(plan.of, self.of());
            let is_known = is_of && plan.is_known && plan.selection.is(selection);
            if is_known && self.stored().read_known(plan, cells) {
                if plan.has_more {
                    plan.finish(self.header(), cells);
                }
                return;
            }
        }
        self.read_slowly(selection, row);
    }

    /// Reads what is not known yet, or is not the body's alone.
    #[cold]
    fn read_slowly(&self, selection: &Selection, row: &mut Row) {
        row.plan(selection, self);
        row.cells.clear(selection.len());
        let Row { plan, cells } = row;
        if let Some(plan) = plan {
            self.stored().read(plan, cells);
            plan.finish(self.header(), cells);
        }
    }
}

impl Plan {
    #[cold]
    fn new(selection: &Selection, event: &Event) -> Plan {
        let mut plan = Plan {
            selection: selection.clone(),
            of: event.of(),
            wanted: selection.body().clone(),
            same: Vec::new(),
            shape: event.stored().shape(),
            of_body: 0,
            is_known: false,
            has_more: false,
            is_sparse: false,
        };
        if plan.shape == Shape::Whole {
            plan.wanted.flatten(&mut plan.same);
        }
        let others = selection.headers().len() + plan.same.len();
        plan.of_body = selection.len() - others;
        plan.has_more = others > 0;
        plan
    }

    /// The parts wanted, if events of this type can be read by the addresses of
    /// names. Makes the cells ready for it.
    #[inline]
    pub(crate) fn known(&mut self, cells: &mut Cells) -> &mut Node {
        if self.is_sparse {
            cells.empty();
        }
        cells.texts.clear();
        if cells.is_rich {
            cells.empty_buffers();
        }
        cells.left = self.of_body;
        cells.incomplete = false;
        &mut self.wanted
    }

    /// Whether a walk by addresses filled all cells that it could.
    #[inline]
    pub(crate) fn is_done(&mut self, cells: &Cells) -> bool {
        (cells.left == 0 || self.is_sparse) && !cells.incomplete
    }

    /// Reads by names or, where they differ from event to event, as a value.
    pub(crate) fn read(
        &mut self,
        cells: &mut Cells,
        by_names: impl FnOnce(&mut Node, &mut Cells),
        value: impl FnOnce() -> Value,
    ) {
        if self.shape == Shape::Map {
            return self.read_value(cells, &value());
        }
        cells.left = self.of_body;
        by_names(&mut self.wanted, cells);
        self.is_sparse |= cells.left > 0;
        self.is_known = !cells.incomplete;
    }

    /// Puts what is not found in the body, or was found for another slot.
    fn finish(&self, header: &Header, cells: &mut Cells) {
        for (field, slot) in self.selection.headers() {
            cells.header(header, *field, *slot);
        }
        for (read, copy) in &self.same {
            cells.cells[*copy] = cells.cells[*read];
        }
    }

    /// Reads a body that is a value.
    pub(crate) fn read_value(&self, cells: &mut Cells, body: &Value) {
        cells.body(&self.selection, body);
    }
}

/// What a slot holds, in one word and a tag; the rest lies in the buffers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cell {
    Missing,
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Time(Time),
    Span(Span),
    Text(u32, u32),
    Bytes(u32, u32),
    Value(u32),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Cells {
    cells: Vec<Cell>,
    texts: String,
    bytes: Vec<u8>,
    values: Vec<Value>,
    /// Whether there are bytes or values in the buffers.
    is_rich: bool,
    /// Whether a walk did not meet everything that it was to meet.
    pub incomplete: bool,
    /// How many cells a walk did not fill yet.
    left: usize,
}

impl Cells {
    fn clear(&mut self, slots: usize) {
        self.cells.resize(slots, Cell::Missing);
        self.empty();
    }

    fn empty(&mut self) {
        self.cells.fill(Cell::Missing);
        self.texts.clear();
        self.empty_buffers();
        self.incomplete = false;
    }

    /// Empties those buffers that few events need.
    fn empty_buffers(&mut self) {
        self.bytes.clear();
        self.values.clear();
        self.is_rich = false;
    }

    /// Puts what one word can hold.
    #[inline]
    pub(crate) fn put(&mut self, node: &Node, cell: Cell) {
        if let Some(place) = self.cells.get_mut(node.slot) {
            *place = cell;
            self.left = self.left.wrapping_sub(1);
        }
    }

    /// Puts something else in the place of what was put last for this.
    pub(crate) fn replace(&mut self, node: &Node, cell: Cell) {
        if let Some(place) = self.cells.get_mut(node.slot) {
            *place = cell;
        }
    }

    /// What was put last for this.
    pub(crate) fn at(&self, node: &Node) -> Cell {
        let cell = self.cells.get(node.slot);
        cell.copied().unwrap_or(Cell::Missing)
    }

    #[inline]
    pub(crate) fn put_text(&mut self, node: &Node, text: &str) {
        if !node.is_wanted() {
            return;
        }
        let cell = match place(self.texts.len(), text.len()) {
            Some((at, length)) => {
                self.texts.push_str(text);
                Cell::Text(at, length)
            }
            None => self.keep(Value::Text(text.into())),
        };
        self.put(node, cell);
    }

    pub(crate) fn put_bytes(&mut self, node: &Node, bytes: &[u8]) {
        if !node.is_wanted() {
            return;
        }
        let cell = match place(self.bytes.len(), bytes.len()) {
            Some((at, length)) => {
                self.is_rich = true;
                self.bytes.extend_from_slice(bytes);
                Cell::Bytes(at, length)
            }
            None => self.keep(Value::Bytes(bytes.into())),
        };
        self.put(node, cell);
    }

    fn keep(&mut self, value: Value) -> Cell {
        let at = u32::try_from(self.values.len());
        self.is_rich = true;
        self.values.push(value);
        at.map_or(Cell::Missing, Cell::Value)
    }

    /// Puts a value and what is wanted of its parts.
    pub(crate) fn put_value(&mut self, node: &Node, value: &Value) {
        match value {
            Value::Null => self.put(node, Cell::Null),
            Value::Bool(value) => self.put(node, Cell::Bool(*value)),
            Value::Int(value) => self.put(node, Cell::Int(*value)),
            Value::Uint(value) => self.put(node, Cell::Uint(*value)),
            Value::Double(value) => self.put(node, Cell::Double(*value)),
            Value::Time(value) => self.put(node, Cell::Time(*value)),
            Value::Span(value) => self.put(node, Cell::Span(*value)),
            Value::Text(text) => self.put_text(node, text),
            Value::Bytes(bytes) => self.put_bytes(node, bytes),
            // Expressions do not see what is private: it stays missing.
            Value::Private(_) => {}
            Value::Shared(_, value) => self.put_value(node, value),
            Value::Link(_) => {
                let cell = self.keep(value.clone());
                self.put(node, cell);
            }
            Value::List(list) => self.put_whole(node, value, |step| match step {
                Step::Index(index) => list.get(*index as usize),
                Step::Field(_) => None,
            }),
            Value::Map(map) => self.put_whole(node, value, |step| part(map, step)),
        }
    }

    fn put_whole<'v>(
        &mut self,
        node: &Node,
        value: &Value,
        part: impl Fn(&Step) -> Option<&'v Value>,
    ) {
        if node.is_wanted() {
            let cell = self.keep(value.clone());
            self.put(node, cell);
        }
        for wanted in &node.parts {
            if let Some(part) = part(&wanted.step) {
                self.put_value(&wanted.node, part);
            }
        }
    }

    /// Puts what is wanted of a body that is a value.
    pub(crate) fn body(&mut self, selection: &Selection, body: &Value) {
        let wanted = selection.body();
        self.put_value(wanted, body);
        let names_value =
            |body: &Value| matches!(body, Value::Map(map) if map.field("value").is_some());
        if names_value(unshared(body)) {
            return;
        }
        for part in &wanted.parts {
            if matches!(&part.step, Step::Field(name) if &**name == "value") {
                self.put_value(&part.node, body);
            }
        }
    }

    fn header(&mut self, header: &Header, field: HeaderField, slot: usize) {
        let node = Node::at(slot);
        let quality = header.quality.as_deref();
        match field {
            HeaderField::Name => self.put_text(&node, header.stream.name.as_str()),
            HeaderField::Origin => self.put_text(&node, &header.stream.origin.0),
            HeaderField::Time => self.put(&node, Cell::Time(header.time)),
            HeaderField::Sequence => self.put(&node, whole(header.sequence)),
            HeaderField::Age => {
                let age = quality.and_then(|quality| quality.age);
                self.put(&node, Cell::Span(age.unwrap_or(Span::ZERO)));
            }
            HeaderField::Accuracy => {
                let accuracy = quality.and_then(|quality| quality.accuracy);
                self.put(&node, accuracy.map_or(Cell::Missing, Cell::Double));
            }
            HeaderField::Failure => match quality.and_then(|quality| quality.failure.as_deref()) {
                Some(failure) => self.put_text(&node, failure),
                None => self.put(&node, Cell::Missing),
            },
        }
    }
}

/// A count as a signed number, which literals are.
fn whole(count: u64) -> Cell {
    i64::try_from(count).map_or(Cell::Uint(count), Cell::Int)
}

fn unshared(value: &Value) -> &Value {
    match value {
        Value::Shared(_, value) => unshared(value),
        value => value,
    }
}

/// The part of a map that a step goes to: texts and whole numbers are keys.
fn part<'m>(map: &'m Map, step: &Step) -> Option<&'m Value> {
    match step {
        Step::Field(name) => map.field(name),
        Step::Index(index) => {
            let is_it = |key: &Value| match key {
                Value::Int(key) => *key == i64::from(*index),
                Value::Uint(key) => *key == u64::from(*index),
                _ => false,
            };
            let mut entries = map.iter();
            entries.find(|(key, _)| is_it(key)).map(|(_, value)| value)
        }
    }
}

/// Place and length in a buffer, if they can be said in half a word each.
#[inline]
fn place(at: usize, length: usize) -> Option<(u32, u32)> {
    let (at, length) = (u32::try_from(at).ok()?, u32::try_from(length).ok()?);
    at.checked_add(length)?;
    Some((at, length))
}
