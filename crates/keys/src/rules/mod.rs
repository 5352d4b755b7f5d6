//! What values a key may have: its type and its checks.
//!
//! [`Rules`] are built once from the metadata of a key and then applied to
//! every value that it gets, from whatever source. Building reports metadata
//! that cannot be meant; applying reports values that are not allowed. Both
//! errors say what is wrong and how to mend it; neither knows the place, which
//! the caller adds.
//!
//! Properties kept:
//! - nothing here reads a file; what concerns files needs a [`FileSystem`];
//! - a regular expression takes time linear in the text;
//! - a canonical text is accepted again and is its own canonical text.
//!
//! # Canonical texts
//!
//! Many texts may stand for one value: `yes` and `1` for true, `007` for 7.
//! [`Rules::canonical`] gives the one that is written to files: `true` and
//! `false` for booleans, since people read those files; plain decimal digits
//! for whole numbers; the shortest digits that read back the same for
//! floating-point numbers; the number in the base unit (bytes, seconds, or what
//! the metadata `unit` says) for numbers with `check/unit`. Strings and
//! variants stay as they are, and so does a text whose canonical form another
//! check refuses.
//!
//! # Secrets
//!
//! The values of a key with the metadata `secret` are for the program alone.
//! What is made here never holds one: a [`Violation`] says [`REDACTED`] in its
//! place, and of the reason no more than the rule. A [`Key`](crate::Key) does
//! not know its metadata, so whoever shows a key or a value asks
//! [`Rules::secret`] or [`Secrets`](crate::Secrets) first; `docs/secrets.md` lists who does.

#[cfg(feature = "checks")]
mod build;
#[cfg(feature = "checks")]
mod checks;
#[cfg(feature = "checks")]
mod convert;
#[cfg(feature = "checks")]
mod dates;
mod formats;
mod known;
mod old_names;
#[cfg(any(test, not(feature = "checks")))]
mod plain;
#[cfg(feature = "checks")]
mod range;
mod types;
#[cfg(feature = "checks")]
mod units;

pub use formats::{FileKind, FileSystem};
pub use known::{KNOWN, KnownKey, array_index, array_level, known, nearest};
pub(crate) use known::{flag, long_option, short_option};
pub use old_names::OldName;
pub use types::{Scalar, Type, parse_boolean};

#[cfg(feature = "checks")]
use checks::Check;
use std::borrow::Cow;
use std::fmt;
#[cfg(feature = "checks")]
use units::Unit;

/// What is shown in place of a secret, however long that is.
pub const REDACTED: &str = "(secret)";

/// The metadata of one key: pairs of metadata key and value. A key without a
/// value has the empty text.
pub type Metadata<'a> = &'a [(&'a str, &'a str)];

/// The type and the checks of one key.
///
/// ```
/// use milieu_keys::{Rules, Scalar};
///
/// let rules = Rules::from_metadata(&[("type", "short"), ("range", "1-10")])?;
/// assert_eq!(rules.check("7"), Ok(Scalar::Signed(7)));
/// assert_eq!(
///     rules.check("11").unwrap_err().to_string(),
///     "`11` is out of range; give a number of 1 to 10 (rule range=1-10)"
/// );
/// # Ok::<(), milieu_keys::RuleError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Rules {
    type_: Type,
    variants: Vec<String>,
    #[cfg(feature = "checks")]
    unit: Option<Unit>,
    #[cfg(feature = "checks")]
    checks: Vec<Check>,
    #[cfg(feature = "floats")]
    infinite: bool,
    default: Option<String>,
    read_only: bool,
    required: bool,
    secret: bool,
    array: (Option<u32>, Option<u32>),
    old_names: Vec<OldName>,
}

impl Rules {
    /// The rules of a key without metadata: any text is allowed.
    pub fn unrestricted() -> Rules {
        Rules {
            type_: Type::String,
            variants: Vec::new(),
            #[cfg(feature = "checks")]
            unit: None,
            #[cfg(feature = "checks")]
            checks: Vec::new(),
            #[cfg(feature = "floats")]
            infinite: false,
            default: None,
            read_only: false,
            required: false,
            secret: false,
            array: (None, None),
            old_names: Vec::new(),
        }
    }

    /// Reads the rules from the metadata of a key. Metadata keys that are not
    /// [`KNOWN`] are the user's own and are passed over.
    ///
    /// # Errors
    /// The first metadata that cannot be meant: an unknown type, a default that
    /// breaks the rules, a range that is empty.
    pub fn from_metadata(metadata: Metadata<'_>) -> Result<Rules, RuleError> {
        #[cfg(feature = "checks")]
        return build::rules(metadata);
        #[cfg(not(feature = "checks"))]
        plain::rules(metadata)
    }

    /// The type.
    pub fn type_(&self) -> &Type {
        &self.type_
    }

    /// The variants of an enum, in their order; empty for other types.
    pub fn variants(&self) -> &[String] {
        &self.variants
    }

    /// The default as the metadata gives it; it keeps the rules.
    pub fn default(&self) -> Option<&str> {
        self.default.as_deref()
    }

    /// Whether programs must not assign the value.
    pub fn read_only(&self) -> bool {
        self.read_only
    }

    /// Whether somebody has to give a value.
    pub fn required(&self) -> bool {
        self.required
    }

    /// Whether the values are for the program alone: nothing that people see
    /// may show one.
    pub fn secret(&self) -> bool {
        self.secret
    }

    /// The least and the greatest number of elements of an array.
    pub fn array(&self) -> (Option<u32>, Option<u32>) {
        self.array
    }

    /// The value as long as nobody gives one: the default, or the zero of the
    /// type.
    ///
    /// # Errors
    /// When there is no default and the zero breaks the rules.
    pub fn initial(&self) -> Result<Scalar<'_>, Violation> {
        if let Some(default) = self.default() {
            return self.check(default);
        }
        let zero = self.type_.zero();
        let text = types::text(self.type_, &self.variants, zero);
        // The zero of a string, an empty text, says that there is no value.
        if self.type_ != Type::String {
            // What everybody starts with is no secret.
            self.apply(&text, zero)?;
        }
        Ok(zero)
    }

    /// Checks a value.
    ///
    /// # Errors
    /// The first rule that the value breaks.
    pub fn check<'a>(&self, text: &'a str) -> Result<Scalar<'a>, Violation> {
        let scalar = self.read(text);
        scalar
            .and_then(|scalar| self.apply(text, scalar).map(|()| scalar))
            .map_err(|violation| self.veiled(violation))
    }

    /// Checks a value, and of a path also whether the right kind of thing
    /// stands there.
    ///
    /// # Errors
    /// The first rule that the value breaks.
    pub fn check_with<'a>(
        &self,
        text: &'a str,
        files: &dyn FileSystem,
    ) -> Result<Scalar<'a>, Violation> {
        let scalar = self.check(text)?;
        #[cfg(not(feature = "checks"))]
        let _ = files;
        #[cfg(feature = "checks")]
        for check in &self.checks {
            check
                .apply_to_files(text, files)
                .map_err(|message| self.veiled(Violation::new(&check.rule(), text, &message)))?;
        }
        Ok(scalar)
    }

    /// Checks a value and gives the text that is written for it, the same for
    /// all texts of one value.
    ///
    /// # Errors
    /// The first rule that the value breaks.
    pub fn canonical<'a>(&'a self, text: &'a str) -> Result<Cow<'a, str>, Violation> {
        let canonical = self.text(self.check(text)?);
        // An expression or a list of texts may ask for another spelling.
        if canonical != text && self.check(&canonical).is_err() {
            return Ok(Cow::Borrowed(text));
        }
        Ok(canonical)
    }

    /// The canonical text of a value of this type.
    pub fn text<'a>(&'a self, scalar: Scalar<'a>) -> Cow<'a, str> {
        types::text(self.type_, &self.variants, scalar)
    }

    /// Reads a text by type and unit alone.
    fn read<'a>(&self, text: &'a str) -> Result<Scalar<'a>, Violation> {
        let type_ = self.type_;
        let broken = |message: String| Violation::new(&format!("type={type_}"), text, &message);
        #[cfg(feature = "checks")]
        if let Some(unit) = self.unit.as_ref().filter(|_| type_.is_number()) {
            // A number without a unit is in the base unit already.
            if text.parse::<f64>().is_err() {
                return self.read_quantity(unit, text);
            }
        }
        if type_.integer_bounds().is_some() {
            return types::integer(type_, text)
                .map(|number| self.whole(number))
                .map_err(broken);
        }
        match type_ {
            Type::Boolean => types::boolean(text).map(Scalar::Boolean).map_err(broken),
            #[cfg(feature = "floats")]
            Type::Float | Type::Double => types::float(type_, text, self.infinite)
                .map(Scalar::Float)
                .map_err(broken),
            Type::Enum => self
                .variant(text)
                .map(Scalar::Variant)
                .map_err(|message| Violation::new("check/enum", text, &message)),
            _ => Ok(Scalar::Text(text)),
        }
    }

    #[cfg(feature = "checks")]
    fn read_quantity<'a>(&self, unit: &Unit, text: &'a str) -> Result<Scalar<'a>, Violation> {
        let type_ = self.type_;
        let broken =
            |message: String| Violation::new(&format!("check/unit={unit}"), text, &message);
        let quantity = unit.read(text, true).map_err(broken)?;
        if type_.is_float() {
            let number = types::float_text(Type::Double, quantity.float());
            return types::float(type_, &number, self.infinite)
                .map(Scalar::Float)
                .map_err(broken);
        }
        let whole = quantity.whole().ok_or_else(|| {
            broken(format!(
                "is not a whole number of {}; give a multiple of it",
                unit.base()
            ))
        })?;
        types::integer(type_, &whole.to_string())
            .map(|number| self.whole(number))
            .map_err(|message| broken(format!("is {whole} {} and {message}", unit.base())))
    }

    fn whole(&self, number: i128) -> Scalar<'static> {
        // The bounds of the type have been checked, so nothing is cut off.
        match self.type_.integer_bounds() {
            Some((0, _)) => Scalar::Unsigned(number as u64),
            _ => Scalar::Signed(number as i64),
        }
    }

    fn variant(&self, text: &str) -> Result<u32, String> {
        match self.variants.iter().position(|variant| variant == text) {
            Some(index) => Ok(index as u32),
            None => Err(types::not_among(text, &self.variants)),
        }
    }

    /// The violation as people may see it.
    fn veiled(&self, violation: Violation) -> Violation {
        if !self.secret {
            return violation;
        }
        #[cfg(not(feature = "checks"))]
        return violation.redacted();
        #[cfg(feature = "checks")]
        self.veiled_by_checks(violation)
    }

    #[cfg(feature = "checks")]
    fn veiled_by_checks(&self, violation: Violation) -> Violation {
        // Nearly every reason quotes or measures the value. What the
        // specification says of an expression in its own words does not.
        let own_words = self.checks.iter().find_map(|check| match &check.kind {
            checks::Kind::Expression { message, .. } if check.rule() == violation.rule => message
                .as_ref()
                .map(|message| format!("is refused: {message}")),
            _ => None,
        });
        let redacted = violation.redacted();
        Violation {
            message: own_words.unwrap_or(redacted.message),
            ..redacted
        }
    }

    /// Applies the checks beyond the type.
    fn apply(&self, text: &str, scalar: Scalar<'_>) -> Result<(), Violation> {
        #[cfg(not(feature = "checks"))]
        let _ = (text, scalar);
        #[cfg(feature = "checks")]
        for check in &self.checks {
            check
                .apply(text, scalar)
                .map_err(|message| Violation::new(&check.rule(), text, &message))?;
        }
        Ok(())
    }
}

/// Metadata that cannot be meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// The metadata key.
    pub key: String,
    /// Its value.
    pub value: String,
    /// What is wrong.
    pub message: String,
    /// The way out.
    pub help: String,
}

impl RuleError {
    pub(crate) fn new(
        key: impl Into<String>,
        value: impl Into<String>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> RuleError {
        RuleError {
            key: key.into(),
            value: value.into(),
            message: message.into(),
            help: help.into(),
        }
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RuleError {
            key,
            value,
            message,
            help,
        } = self;
        let (key, value) = (Shortened(key), Shortened(value));
        let (message, help) = (OneLine(message), OneLine(help));
        write!(f, "metadata `{key}={value}`: {message}; {help}")
    }
}

impl std::error::Error for RuleError {}

/// A value that breaks a rule. Displayed it is one line without the place:
/// `11` is out of range; give a number of 1 to 10 (rule check/range=1-10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule, as the specification writes it: `check/range=1-10`.
    pub rule: String,
    /// The value.
    pub value: String,
    /// Why the value breaks the rule, and what to give instead.
    pub message: String,
}

impl Violation {
    #[cold]
    #[inline(never)]
    fn new(rule: &str, value: &str, message: &str) -> Violation {
        Violation {
            rule: rule.into(),
            value: value.into(),
            message: message.into(),
        }
    }

    /// The violation without the value and without what the reason says of it.
    #[must_use]
    pub fn redacted(self) -> Violation {
        Violation {
            rule: self.rule,
            value: REDACTED.to_owned(),
            message: "breaks this rule; give one that keeps it".to_owned(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation {
            rule,
            value,
            message,
        } = self;
        let (rule, value) = (Shortened(rule), Shortened(value));
        write!(f, "`{value}` {} (rule {rule})", OneLine(message))
    }
}

impl std::error::Error for Violation {}

/// A text that cannot break a line or steer a terminal.
pub(crate) struct OneLine<'a>(pub(crate) &'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c.is_control() {
            true => write!(f, "{}", c.escape_default()),
            false => write!(f, "{c}"),
        })
    }
}

/// The same, and it cannot flood one either.
pub(crate) struct Shortened<'a>(pub(crate) &'a str);

impl fmt::Display for Shortened<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 80;
        match self.0.char_indices().nth(MOST) {
            Some((end, _)) => write!(f, "{}…", OneLine(&self.0[..end])),
            None => write!(f, "{}", OneLine(self.0)),
        }
    }
}
