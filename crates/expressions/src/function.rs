//! The functions that expressions can call, by name.

/// A function of CEL's standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Function {
    Size,
    Contains,
    StartsWith,
    EndsWith,
    Matches,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Bool,
    Span,
    Time,
    Dyn,
    Type,
    FullYear,
    Month,
    Date,
    DayOfMonth,
    DayOfWeek,
    DayOfYear,
    Hours,
    Minutes,
    Seconds,
    Milliseconds,
}

/// How a function is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `size(x)`
    Plain,
    /// `x.size()`
    Method,
    /// Both ways.
    Both,
}

struct Row {
    name: &'static str,
    function: Function,
    form: Form,
    /// The fewest and the most arguments, with the one before the dot.
    arguments: (usize, usize),
}

const fn row(name: &'static str, function: Function, form: Form, arguments: (usize, usize)) -> Row {
    Row {
        name,
        function,
        form,
        arguments,
    }
}

const ALL: &[Row] = &[
    row("size", Function::Size, Form::Both, (1, 1)),
    row("contains", Function::Contains, Form::Method, (2, 2)),
    row("startsWith", Function::StartsWith, Form::Method, (2, 2)),
    row("endsWith", Function::EndsWith, Form::Method, (2, 2)),
    row("matches", Function::Matches, Form::Both, (2, 2)),
    row("int", Function::Int, Form::Plain, (1, 1)),
    row("uint", Function::Uint, Form::Plain, (1, 1)),
    row("double", Function::Double, Form::Plain, (1, 1)),
    row("string", Function::Text, Form::Plain, (1, 1)),
    row("bytes", Function::Bytes, Form::Plain, (1, 1)),
    row("bool", Function::Bool, Form::Plain, (1, 1)),
    row("duration", Function::Span, Form::Plain, (1, 1)),
    row("timestamp", Function::Time, Form::Plain, (1, 1)),
    row("dyn", Function::Dyn, Form::Plain, (1, 1)),
    row("type", Function::Type, Form::Plain, (1, 1)),
    row("getFullYear", Function::FullYear, Form::Method, (1, 2)),
    row("getMonth", Function::Month, Form::Method, (1, 2)),
    row("getDate", Function::Date, Form::Method, (1, 2)),
    row("getDayOfMonth", Function::DayOfMonth, Form::Method, (1, 2)),
    row("getDayOfWeek", Function::DayOfWeek, Form::Method, (1, 2)),
    row("getDayOfYear", Function::DayOfYear, Form::Method, (1, 2)),
    row("getHours", Function::Hours, Form::Method, (1, 2)),
    row("getMinutes", Function::Minutes, Form::Method, (1, 2)),
    row("getSeconds", Function::Seconds, Form::Method, (1, 2)),
    row(
        "getMilliseconds",
        Function::Milliseconds,
        Form::Method,
        (1, 2),
    ),
];

/// Why a call is none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There is no such function; perhaps one of these names was meant.
    Unknown,
    /// It is called the other way.
    Form(Form),
    /// It takes so many arguments, not counting the one before the dot.
    Arguments(usize, usize),
}

impl Function {
    /// The function that a call means.
    pub(crate) fn called(
        name: &str,
        is_method: bool,
        arguments: usize,
    ) -> Result<Function, Refusal> {
        let row = ALL.iter().find(|row| row.name == name);
        let row = row.ok_or(Refusal::Unknown)?;
        let other = if is_method { Form::Plain } else { Form::Method };
        if row.form == other {
            return Err(Refusal::Form(row.form));
        }
        let (least, most) = row.arguments;
        if (least..=most).contains(&arguments) {
            return Ok(row.function);
        }
        let before = usize::from(is_method);
        Err(Refusal::Arguments(least - before, most - before))
    }

    fn row(self) -> &'static Row {
        let mut rows = ALL.iter();
        rows.find(|row| row.function == self).unwrap_or(&ALL[0])
    }

    pub(crate) fn name(self) -> &'static str {
        self.row().name
    }

    /// Whether it is written behind a dot.
    pub(crate) fn is_method(self) -> bool {
        self.row().form != Form::Plain
    }

    /// The names of all functions.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        ALL.iter().map(|row| row.name)
    }
}
