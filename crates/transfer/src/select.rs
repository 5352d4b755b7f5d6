//! Which fields of an event somebody wants.

use std::fmt;
use std::sync::Arc;

/// Fields of events, each of which has a slot in a [`Row`](crate::Row), numbered
/// from 0 in the order in which they were asked for.
///
/// A path names a field: `temperature`, `position.lat`, `samples[3]`. The path
/// `value` is the whole body, unless the body has a field of that name, so
/// `value.temperature` is a field too, and a body that is only a number is
/// `value`. The header stands below `event`: `event.name`, `event.time`,
/// `event.sequence`, `event.origin`, `event.age`, `event.accuracy`,
/// `event.failure`; a field of the body that is named `event` is `value.event`.
/// The age is that at the time of the event, and 0 where nothing is said of it.
///
/// Several readers of one stream ask one selection, so that an event is read
/// once for all of them.
///
/// ```
/// use milieu_transfer::Selection;
///
/// let mut selection = Selection::default();
/// assert_eq!(selection.add("position.lat").unwrap(), 0);
/// assert_eq!(selection.add("event.time").unwrap(), 1);
/// assert_eq!(selection.add("position.lat").unwrap(), 0);
/// assert_eq!(selection.len(), 2);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Selection(Arc<Wanted>);

#[derive(Clone, Debug, Default)]
struct Wanted {
    paths: Vec<Path>,
    headers: Vec<(HeaderField, usize)>,
    body: Node,
}

/// A part of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderField {
    Name,
    Time,
    Sequence,
    Origin,
    Age,
    Accuracy,
    Failure,
}

/// The parts of the header by name, below `event`.
const HEADER: [(&str, HeaderField); 7] = [
    ("name", HeaderField::Name),
    ("time", HeaderField::Time),
    ("sequence", HeaderField::Sequence),
    ("origin", HeaderField::Origin),
    ("age", HeaderField::Age),
    ("accuracy", HeaderField::Accuracy),
    ("failure", HeaderField::Failure),
];

impl Selection {
    /// Asks for a field and says which slot it has: an old one if it was asked
    /// for before.
    ///
    /// # Errors
    /// If the text is no path, or names no part of a header below `event`.
    pub fn add(&mut self, path: &str) -> Result<usize, PathError> {
        Path::parse(path).and_then(|path| self.add_path(path))
    }

    /// Asks for a field by its path.
    ///
    /// # Errors
    /// If the path goes below `event` and names no part of a header.
    pub fn add_path(&mut self, path: Path) -> Result<usize, PathError> {
        if let Some(slot) = self.0.paths.iter().position(|known| *known == path) {
            return Ok(slot);
        }
        let header = path.header()?;
        let wanted = Arc::make_mut(&mut self.0);
        let slot = wanted.paths.len();
        match header {
            Some(header) => wanted.headers.push((header, slot)),
            None => wanted.body.want(&path.0, slot),
        }
        wanted.paths.push(path);
        Ok(slot)
    }

    /// The fields in the order of their slots.
    pub fn paths(&self) -> impl ExactSizeIterator<Item = &Path> {
        self.0.paths.iter()
    }

    /// How many slots there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.paths.len()
    }

    /// Whether nothing was asked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.paths.is_empty()
    }

    pub(crate) fn headers(&self) -> &[(HeaderField, usize)] {
        &self.0.headers
    }

    pub(crate) fn body(&self) -> &Node {
        &self.0.body
    }

    /// Whether both are one selection: then they are equal.
    #[inline]
    pub(crate) fn is(&self, other: &Selection) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The way from an event to one of its fields.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Path(Vec<Step>);

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// To the field of a struct, or the value of a text key.
    Field(Box<str>),
    /// To an element of a list, counted from 0.
    Index(u32),
}

impl Path {
    /// The path of these steps, the first of which goes to a field.
    #[must_use]
    pub fn new(first: &str, further: impl IntoIterator<Item = Step>) -> Path {
        let first = Step::Field(first.into());
        Path(std::iter::once(first).chain(further).collect())
    }

    /// Reads `position.lat` or `samples[3]`.
    ///
    /// # Errors
    /// If the text is something else.
    pub fn parse(text: &str) -> Result<Path, PathError> {
        let wrong = || PathError(Wrong::Syntax(text.into()));
        let mut steps = Vec::new();
        for part in text.split('.') {
            let (name, indexes) = part.split_at(part.find('[').unwrap_or(part.len()));
            if !is_identifier(name) {
                return Err(wrong());
            }
            steps.push(Step::Field(name.into()));
            let mut rest = indexes;
            while let Some(inner) = rest.strip_prefix('[') {
                let (index, after) = inner.split_once(']').ok_or_else(wrong)?;
                let digits = !index.is_empty() && index.bytes().all(|b| b.is_ascii_digit());
                let index = index.parse().ok().filter(|_| digits).ok_or_else(wrong)?;
                steps.push(Step::Index(index));
                rest = after;
            }
            if !rest.is_empty() {
                return Err(wrong());
            }
        }
        Ok(Path(steps))
    }

    /// The steps from the event on.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// The part of the header that this is.
    fn header(&self) -> Result<Option<HeaderField>, PathError> {
        let [Step::Field(first), further @ ..] = &self.0[..] else {
            return Ok(None);
        };
        if &**first != "event" {
            return Ok(None);
        }
        let known = match further {
            [Step::Field(name)] => HEADER.iter().find(|(known, _)| *known == &**name),
            _ => None,
        };
        match known {
            Some((_, field)) => Ok(Some(*field)),
            None => Err(PathError(Wrong::Header(self.to_string()))),
        }
    }
}

fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    let starts = |b: u8| b.is_ascii_alphabetic() || b == b'_';
    bytes.next().is_some_and(starts) && bytes.all(|b| starts(b) || b.is_ascii_digit())
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Field(name) if at == 0 => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// Why a text names no field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathError(Wrong);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Wrong {
    Syntax(String),
    Header(String),
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Wrong::Syntax(text) => write!(
                f,
                "{text:?} is no path of a field; write it as `position.lat` or `samples[3]`"
            ),
            Wrong::Header(path) => {
                write!(f, "`{path}` is no part of an event's header; there are")?;
                for (at, (name, _)) in HEADER.iter().enumerate() {
                    let between = if at == 0 { " " } else { ", " };
                    write!(f, "{between}`event.{name}`")?;
                }
                f.write_str("; a field of the body that is named `event` is `value.event`")
            }
        }
    }
}

impl std::error::Error for PathError {}

/// What is wanted of a value: itself, or parts of it.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Where the value itself goes; [`NOWHERE`] if it is not wanted.
    pub slot: usize,
    /// Its parts: in the order in which a struct last named them, and indexes
    /// ascending.
    pub parts: Vec<Part>,
}

/// What is wanted of a part of a value.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub step: Step,
    /// The field's name as the type says it, once it was seen: comparing
    /// addresses then finds it.
    pub name: &'static str,
    pub node: Node,
}

/// A slot that no row has.
const NOWHERE: usize = usize::MAX;

impl Default for Node {
    fn default() -> Node {
        Node::at(NOWHERE)
    }
}

impl Node {
    /// What is wanted of a value is only itself.
    pub(crate) fn at(slot: usize) -> Node {
        let parts = Vec::new();
        Node { slot, parts }
    }

    /// Whether the value itself is wanted.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.slot != NOWHERE
    }

    fn want(&mut self, path: &[Step], slot: usize) {
        let Some((step, further)) = path.split_first() else {
            self.slot = slot;
            return;
        };
        let at = match self.parts.iter().position(|part| part.step == *step) {
            Some(at) => at,
            None => {
                // Indexes ascending, so that one walk over a list meets them all.
                let later = |part: &Part| matches!((&part.step, step), (Step::Index(a), Step::Index(b)) if a > b);
                let at = self.parts.iter().position(later);
                let at = at.unwrap_or(self.parts.len());
                let (step, name, node) = (step.clone(), "", Node::default());
                self.parts.insert(at, Part { step, name, node });
                at
            }
        };
        self.parts[at].node.want(further, slot);
    }

    /// Takes the part `value` out and wants it of this value itself: so it is
    /// where the body has no such field. Where something is wanted twice then,
    /// `same` gets the slot that is read and the other one.
    pub(crate) fn flatten(&mut self, same: &mut Vec<(usize, usize)>) {
        let is_value = |part: &Part| matches!(&part.step, Step::Field(name) if &**name == "value");
        if let Some(at) = self.parts.iter().position(is_value) {
            let whole = self.parts.remove(at).node;
            self.join(whole, same);
        }
    }

    fn join(&mut self, other: Node, same: &mut Vec<(usize, usize)>) {
        match (self.is_wanted(), other.is_wanted()) {
            (true, true) => same.push((self.slot, other.slot)),
            (false, true) => self.slot = other.slot,
            _ => {}
        }
        for part in other.parts {
            match self.parts.iter_mut().find(|known| known.step == part.step) {
                Some(known) => known.node.join(part.node, same),
                None => self.parts.push(part),
            }
        }
        self.parts.sort_by_key(|part| match part.step {
            Step::Index(index) => index,
            Step::Field(_) => 0,
        });
    }
}
