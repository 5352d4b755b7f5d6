//! Reading fields of typed bodies: a walk over what `serde` says of a body, that
//! passes by what is not wanted and ends behind the last wanted field.
//!
//! The first walk compares names. `serde` names a field by a text of the program
//! itself, so later walks compare its address, and a walk that misses a field
//! in this way is done again by names.

use std::any::Any;
use std::fmt;

use serde::ser::{self, Serialize, Serializer};

use crate::kind::Body;
use crate::private::PRIVATE;
use crate::row::{Cell, Cells, Plan};
use crate::select::{Node, Part, Step};
use crate::time::{SPAN, Span, TIME, Time};
use crate::to_value::{self, ToValue, to_value};
use crate::top::Top;
use crate::value::Value;

/// A body behind a pointer: what the compiler makes for each type of bodies.
pub(crate) trait Stored: Send + Sync {
    /// The body itself.
    fn any(&self) -> &(dyn Any + Send + Sync);
    /// Puts what is wanted of it into cells by what was learnt of its type; false
    /// if that was not enough.
    fn read_known(&self, plan: &mut Plan, cells: &mut Cells) -> bool;
    /// Puts what is wanted of it into cells, and learns.
    fn read(&self, plan: &mut Plan, cells: &mut Cells);
    /// What it is at the top.
    fn shape(&self) -> Shape;
}

/// What a body is at the top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A struct with a field that is named `value`.
    HasValue,
    /// A struct without one, or no struct: `value` is the body itself.
    Whole,
    /// What has names that may differ from event to event.
    Map,
}

impl<T: Body> Stored for T {
    fn any(&self) -> &(dyn Any + Send + Sync) {
        self
    }

    #[inline]
    fn read_known(&self, plan: &mut Plan, cells: &mut Cells) -> bool {
        let node = plan.known(cells);
        let _ = self.serialize(Reader::<false> { node, cells });
        plan.is_done(cells)
    }

    fn read(&self, plan: &mut Plan, cells: &mut Cells) {
        if let Some(value) = (self as &dyn Any).downcast_ref::<Value>() {
            return plan.read_value(cells, value);
        }
        plan.read(
            cells,
            |node, cells| {
                let _ = self.serialize(Reader::<true> { node, cells });
            },
            || to_value(self),
        );
    }

    fn shape(&self) -> Shape {
        match self.serialize(Top) {
            Err(Stop::At(shape)) => shape,
            _ => Shape::Whole,
        }
    }
}

/// The end of a walk, before the end of what is walked over.
#[derive(Debug)]
pub(crate) enum Stop {
    /// All is found.
    Found,
    /// This is what it is.
    At(Shape),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no more is wanted")
    }
}

impl std::error::Error for Stop {}

impl ser::Error for Stop {
    fn custom<T: fmt::Display>(_: T) -> Stop {
        Stop::Found
    }
}

/// Puts what is wanted of one value into cells.
struct Reader<'r, const NAMES: bool> {
    node: &'r mut Node,
    cells: &'r mut Cells,
}

impl<const NAMES: bool> Reader<'_, NAMES> {
    #[inline]
    fn put(self, cell: Cell) -> Result<(), Stop> {
        self.cells.put(self.node, cell);
        Ok(())
    }
}

macro_rules! numbers {
    ($($method:ident($type:ty) = $cell:ident($convert:expr);)*) => {$(
        #[inline]
        fn $method(self, value: $type) -> Result<(), Stop> {
            self.put(Cell::$cell($convert(value)))
        }
    )*};
}

impl<'r, const NAMES: bool> Serializer for Reader<'r, NAMES> {
    type Ok = ();
    type Error = Stop;
    type SerializeSeq = Elements<'r, NAMES>;
    type SerializeTuple = Elements<'r, NAMES>;
    type SerializeTupleStruct = Elements<'r, NAMES>;
    type SerializeStruct = Fields<'r, NAMES>;
    type SerializeMap = Rest<'r, to_value::Entries>;
    type SerializeTupleVariant = Rest<'r, to_value::Variant<to_value::Elements>>;
    type SerializeStructVariant = Rest<'r, to_value::Variant<to_value::Entries>>;

    /// Points in time come as numbers.
    fn is_human_readable(&self) -> bool {
        false
    }

    numbers! {
        serialize_bool(bool) = Bool(|value| value);
        serialize_i8(i8) = Int(i64::from);
        serialize_i16(i16) = Int(i64::from);
        serialize_i32(i32) = Int(i64::from);
        serialize_i64(i64) = Int(|value| value);
        serialize_u8(u8) = Uint(u64::from);
        serialize_u16(u16) = Uint(u64::from);
        serialize_u32(u32) = Uint(u64::from);
        serialize_u64(u64) = Uint(|value| value);
        serialize_f32(f32) = Double(f64::from);
        serialize_f64(f64) = Double(|value| value);
    }

    fn serialize_i128(self, value: i128) -> Result<(), Stop> {
        self.cells.put_value(self.node, &to_value(&value));
        Ok(())
    }

    fn serialize_u128(self, value: u128) -> Result<(), Stop> {
        self.cells.put_value(self.node, &to_value(&value));
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result<(), Stop> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Result<(), Stop> {
        self.cells.put_text(self.node, value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Stop> {
        self.cells.put_bytes(self.node, value);
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Stop> {
        self.put(Cell::Null)
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Stop> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Stop> {
        self.put(Cell::Null)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Stop> {
        self.put(Cell::Null)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Stop> {
        self.serialize_str(variant)
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Stop> {
        let Reader { node, cells } = self;
        // What is private is missing.
        if name == PRIVATE {
            return Ok(());
        }
        let read = value.serialize(Reader::<NAMES> { node, cells });
        if let (Some(make), Cell::Int(number)) = (cell_of(name), cells.at(node)) {
            cells.replace(node, make(number));
        }
        read
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Stop> {
        let value = ToValue.serialize_newtype_variant(name, index, variant, value);
        self.cells
            .put_value(self.node, &value.unwrap_or(Value::Null));
        Ok(())
    }

    #[inline]
    fn serialize_seq(self, length: Option<usize>) -> Result<Self::SerializeSeq, Stop> {
        let whole = self
            .node
            .is_wanted()
            .then(|| to_value::Elements::new(length));
        let Reader { node, cells } = self;
        let next = 0;
        Ok(Elements {
            node,
            cells,
            next,
            whole,
            index: 0,
        })
    }

    #[inline]
    fn serialize_tuple(self, length: usize) -> Result<Self::SerializeTuple, Stop> {
        self.serialize_seq(Some(length))
    }

    #[inline]
    fn serialize_tuple_struct(
        self,
        _: &'static str,
        length: usize,
    ) -> Result<Self::SerializeTupleStruct, Stop> {
        self.serialize_seq(Some(length))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Self::SerializeTupleVariant, Stop> {
        let made = to_value::Variant::new(variant, to_value::Elements::new(Some(length)));
        Ok(Rest::new(self.node, self.cells, made))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Stop> {
        Ok(Rest::new(
            self.node,
            self.cells,
            to_value::Entries::default(),
        ))
    }

    #[inline]
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct, Stop> {
        let Reader { node, cells } = self;
        let is_whole = node.is_wanted();
        cells.incomplete |= is_whole;
        let whole = (NAMES && is_whole).then(Box::default);
        let wanted = node.parts.first().map_or("", |part| part.name);
        Ok(Fields {
            node,
            cells,
            wanted,
            next: 0,
            whole,
        })
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Stop> {
        let made = to_value::Variant::new(variant, to_value::Entries::default());
        Ok(Rest::new(self.node, self.cells, made))
    }
}

/// What a newtype of this name makes of its number.
#[inline]
fn cell_of(name: &'static str) -> Option<fn(i64) -> Cell> {
    match name {
        TIME => Some(|number| Cell::Time(Time::from_nanoseconds(number))),
        SPAN => Some(|number| Cell::Span(Span::from_nanoseconds(number))),
        _ => None,
    }
}

/// A struct that is walked over. With `NAMES` the parts behind `next` are not
/// found yet, and those before are in the order in which they were found.
struct Fields<'r, const NAMES: bool> {
    node: &'r mut Node,
    cells: &'r mut Cells,
    /// The name of the part that comes next.
    wanted: &'static str,
    next: usize,
    /// The struct as a value, where it is wanted itself too: only with `NAMES`,
    /// so that everybody else does not pay for it.
    whole: Option<Box<to_value::Entries>>,
}

impl<const NAMES: bool> Fields<'_, NAMES> {
    #[cold]
    fn find(&mut self, key: &'static str) -> bool {
        let is_it = |part: &Part| matches!(&part.step, Step::Field(name) if **name == *key);
        let Some(at) = self.node.parts[self.next..].iter().position(is_it) else {
            return false;
        };
        self.node.parts.swap(self.next, self.next + at);
        self.node.parts[self.next].name = key;
        true
    }

    #[inline]
    fn take<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
        let Some(part) = self.node.parts.get_mut(self.next) else {
            return Ok(());
        };
        let (node, cells) = (&mut part.node, &mut *self.cells);
        let _ = value.serialize(Reader::<NAMES> { node, cells });
        self.next += 1;
        match self.node.parts.get(self.next) {
            Some(part) => {
                self.wanted = part.name;
                Ok(())
            }
            None if NAMES && self.whole.is_some() => Ok(()),
            None => Err(Stop::Found),
        }
    }
}

impl<const NAMES: bool> ser::SerializeStruct for Fields<'_, NAMES> {
    type Ok = ();
    type Error = Stop;

    #[inline(always)]
    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), Stop> {
        if NAMES {
            if let Some(whole) = &mut self.whole {
                whole.add(Value::from(key), to_value(value));
            }
            return if self.find(key) {
                self.take(value)
            } else {
                Ok(())
            };
        }
        if std::ptr::eq(key.as_ptr(), self.wanted.as_ptr()) && key.len() == self.wanted.len() {
            return self.take(value);
        }
        Ok(())
    }

    #[inline]
    fn end(self) -> Result<(), Stop> {
        if let Some(whole) = self.whole {
            let whole = whole.done();
            let slot = Node::at(self.node.slot);
            self.cells.put_value(&slot, &whole);
        }
        if self.next < self.node.parts.len() {
            self.cells.incomplete = true;
        }
        Ok(())
    }
}

/// A list that is walked over.
struct Elements<'r, const NAMES: bool> {
    node: &'r mut Node,
    cells: &'r mut Cells,
    index: u32,
    next: usize,
    whole: Option<to_value::Elements>,
}

impl<const NAMES: bool> Elements<'_, NAMES> {
    #[inline]
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
        if let Some(whole) = &mut self.whole {
            whole.add(to_value(value));
        }
        let index = self.index;
        self.index = index.saturating_add(1);
        match self.node.parts.get_mut(self.next) {
            // No list has fields.
            Some(part) if matches!(part.step, Step::Field(_)) => self.next += 1,
            Some(part) if part.step == Step::Index(index) => {
                let (node, cells) = (&mut part.node, &mut *self.cells);
                let _ = value.serialize(Reader::<NAMES> { node, cells });
                self.next += 1;
            }
            Some(_) => {}
            None if self.whole.is_none() => return Err(Stop::Found),
            None => {}
        }
        Ok(())
    }

    fn finish(self) -> Result<(), Stop> {
        if let Some(whole) = self.whole {
            let slot = Node::at(self.node.slot);
            self.cells.put_value(&slot, &whole.done());
        }
        Ok(())
    }
}

macro_rules! elements {
    ($($trait:ident::$method:ident;)*) => {$(
        impl<const NAMES: bool> ser::$trait for Elements<'_, NAMES> {
            type Ok = ();
            type Error = Stop;

            #[inline]
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
                self.element(value)
            }

            #[inline]
            fn end(self) -> Result<(), Stop> {
                self.finish()
            }
        }
    )*};
}

elements! {
    SerializeSeq::serialize_element;
    SerializeTuple::serialize_element;
    SerializeTupleStruct::serialize_field;
}

/// What becomes a value first, from which the wanted parts are taken then.
struct Rest<'r, M> {
    node: &'r Node,
    cells: &'r mut Cells,
    made: M,
}

impl<'r, M> Rest<'r, M> {
    fn new(node: &'r Node, cells: &'r mut Cells, made: M) -> Rest<'r, M> {
        Rest { node, cells, made }
    }
}

impl<M: ser::SerializeMap<Ok = Value>> ser::SerializeMap for Rest<'_, M> {
    type Ok = ();
    type Error = Stop;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Stop> {
        self.made.serialize_key(key).map_err(|_| Stop::Found)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
        self.made.serialize_value(value).map_err(|_| Stop::Found)
    }

    fn end(self) -> Result<(), Stop> {
        let value = self.made.end().map_err(|_| Stop::Found)?;
        self.cells.put_value(self.node, &value);
        Ok(())
    }
}

impl<M: ser::SerializeTupleVariant<Ok = Value>> ser::SerializeTupleVariant for Rest<'_, M> {
    type Ok = ();
    type Error = Stop;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
        self.made.serialize_field(value).map_err(|_| Stop::Found)
    }

    fn end(self) -> Result<(), Stop> {
        let value = self.made.end().map_err(|_| Stop::Found)?;
        self.cells.put_value(self.node, &value);
        Ok(())
    }
}

impl<M: ser::SerializeStructVariant<Ok = Value>> ser::SerializeStructVariant for Rest<'_, M> {
    type Ok = ();
    type Error = Stop;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), Stop> {
        self.made
            .serialize_field(key, value)
            .map_err(|_| Stop::Found)
    }

    fn end(self) -> Result<(), Stop> {
        let value = self.made.end().map_err(|_| Stop::Found)?;
        self.cells.put_value(self.node, &value);
        Ok(())
    }
}
