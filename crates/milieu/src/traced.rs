//! Layers as spans and fields of `tracing`.
//!
//! The macros of `tracing` fix names of spans and fields when a program is
//! compiled, and layers are named by specifications, perhaps at run time. So
//! the descriptions that subscribers see are made here, when a layer is first
//! seen, and kept for the rest of the process, as `tracing` demands.
//!
//! Properties kept:
//! - layers are few, and what is kept stays bounded whatever they are called:
//!   [`OWN`] identifiers get a field of their own, those beyond share one;
//! - without a subscriber that wants the spans, nothing is made, and the value
//!   of a layer is not asked for once more;
//! - no lock is held while a subscriber runs.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
};

use milieu_context::{Context, Entered, Environment, Layer, Policy, Threads};
use tracing::{
    Level, Metadata, Span,
    callsite::{self, Callsite},
    dispatcher,
    field::{Field, FieldSet, Value, display},
    level_filters::{LevelFilter, STATIC_MAX_LEVEL},
    metadata::Kind,
    span::EnteredSpan,
    subscriber::Interest,
};

/// How many layers get fields and spans of their own.
const OWN: usize = 31;

/// The target of all spans, for filters such as `milieu=info`.
const TARGET: &str = "milieu";

/// Contexts in logs and traces.
///
/// ```
/// use milieu::{Traced, layer};
/// # use milieu::{Context, Environment};
/// layer! { pub struct Session(String) = "session"; }
///
/// # fn example<E: Environment>(cx: &mut Context<E>) {
/// let mut cx = cx.enter_traced(Session("anna".into()));
/// // Events here are within the span `session{session=anna}`.
/// # }
/// ```
///
/// A span that is entered belongs to a thread, so the guard cannot be held
/// across `await`. There, enter the layer as ever and instrument what runs:
///
/// ```
/// # use milieu::{Context, Environment, Traced, layer};
/// # use tracing::Instrument;
/// # layer! { pub struct Session(String) = "session"; }
/// # async fn answer<E: Environment>(_: &mut Context<E>) {}
/// # async fn example<E: Environment>(cx: &mut Context<E>) {
/// let mut cx = cx.enter(Session("anna".into()));
/// let span = cx.span();
/// answer(&mut cx).instrument(span).await;
/// # }
/// ```
pub trait Traced<E: Environment, P: Policy> {
    /// Enters a layer and a span, both until the guard is dropped. The span has
    /// the name of the layer, and its value as a field of the same name.
    fn enter_traced<L: Layer>(&mut self, layer: L) -> TracedEntered<'_, E, P>;

    /// A span `context` with a field for each layer that is active here: those
    /// of a request, for instance. Later switches do not change it.
    fn span(&self) -> Span;
}

impl<E: Environment, P: Policy> Traced<E, P> for Context<E, P> {
    fn enter_traced<L: Layer>(&mut self, layer: L) -> TracedEntered<'_, E, P> {
        let span = layer_span(&layer).entered();
        TracedEntered {
            span,
            context: self.enter(layer),
        }
    }

    fn span(&self) -> Span {
        if !Site::may_be_enabled() {
            return Span::none();
        }
        let layers = self.layers();
        context_site(&layers).span(&layers)
    }
}

/// A layer and a span, entered until this is dropped. It is the context, for
/// whoever needs one.
#[must_use = "layer and span are left when the guard is dropped"]
pub struct TracedEntered<'c, E: Environment, P: Policy = Threads> {
    span: EnteredSpan,
    context: Entered<'c, E, P>,
}

impl<E: Environment, P: Policy> TracedEntered<'_, E, P> {
    /// The span, to record more in it.
    #[must_use]
    pub fn span(&self) -> &Span {
        &self.span
    }
}

impl<E: Environment, P: Policy> Deref for TracedEntered<'_, E, P> {
    type Target = Context<E, P>;
    fn deref(&self) -> &Context<E, P> {
        &self.context
    }
}

impl<E: Environment, P: Policy> DerefMut for TracedEntered<'_, E, P> {
    fn deref_mut(&mut self) -> &mut Context<E, P> {
        &mut self.context
    }
}

/// A layer's identifier and value.
type Active = (Arc<str>, String);

fn layer_span<L: Layer>(layer: &L) -> Span {
    if !Site::may_be_enabled() {
        return Span::none();
    }
    let value = layer.value().into_owned();
    let layers = if value.is_empty() {
        Vec::new()
    } else {
        vec![(L::ID.into(), value)]
    };
    layer_site(L::ID).span(&layers)
}

/// Where a span comes from, as `tracing` knows it.
struct Site {
    metadata: OnceLock<Metadata<'static>>,
    registered: AtomicBool,
    interest: AtomicU8,
}

const NEVER: u8 = 0;
const SOMETIMES: u8 = 1;
const ALWAYS: u8 = 2;

impl Callsite for Site {
    fn set_interest(&self, interest: Interest) {
        let interest = if interest.is_never() {
            NEVER
        } else if interest.is_always() {
            ALWAYS
        } else {
            SOMETIMES
        };
        self.interest.store(interest, Ordering::Release);
    }

    fn metadata(&self) -> &Metadata<'_> {
        self.metadata
            .get()
            .expect("set before anybody gets to know the site")
    }
}

impl Site {
    /// Makes a site that lasts as long as the process. A last field takes the
    /// layers that have none of their own.
    fn new(name: &'static str, layers: &[&'static str]) -> &'static Site {
        let site: &'static Site = Box::leak(Box::new(Site {
            metadata: OnceLock::new(),
            registered: AtomicBool::new(false),
            interest: AtomicU8::new(SOMETIMES),
        }));
        let mut fields = layers.to_vec();
        fields.push(OTHERS);
        let fields = FieldSet::new(Box::leak(fields.into()), callsite::Identifier(site));
        site.metadata.get_or_init(|| {
            let module = Some(module_path!());
            Metadata::new(
                name,
                TARGET,
                Level::INFO,
                None,
                None,
                module,
                fields,
                Kind::SPAN,
            )
        });
        site
    }

    /// Whether anybody at all wants spans of this level: two loads.
    fn may_be_enabled() -> bool {
        Level::INFO <= STATIC_MAX_LEVEL && Level::INFO <= LevelFilter::current()
    }

    fn is_enabled(&'static self, metadata: &'static Metadata<'static>) -> bool {
        // Subscribers run here, and may well want a span themselves.
        if !self.registered.swap(true, Ordering::AcqRel) {
            callsite::register(self);
        }
        match self.interest.load(Ordering::Acquire) {
            NEVER => false,
            ALWAYS => true,
            _ => dispatcher::get_default(|subscriber| subscriber.enabled(metadata)),
        }
    }

    fn span(&'static self, layers: &[Active]) -> Span {
        let metadata: &'static Metadata<'static> = self
            .metadata
            .get()
            .expect("set before anybody gets to know the site");
        if !self.is_enabled(metadata) {
            return Span::none();
        }
        let fields = metadata.fields();
        let Some(last) = fields.field(OTHERS) else {
            return Span::none();
        };
        let others = Others(layers, fields);
        let mut values: [(&Field, Option<&dyn Value>); OWN + 1] =
            std::array::from_fn(|_| (&last, None));
        let known: Vec<Field> = fields.iter().take(fields.len() - 1).collect();
        for (place, field) in values.iter_mut().zip(&known) {
            let layer = layers.iter().find(|(id, _)| **id == *field.name());
            *place = (field, layer.map(|(_, value)| value as &dyn Value));
        }
        let shown = display(&others);
        if others.iter().next().is_some() {
            values[OWN] = (&last, Some(&shown));
        }
        Span::new(metadata, &fields.value_set(&values))
    }
}

/// The field of the layers that have none of their own. A placeholder holds no
/// blank, so that no specification has a layer of this name.
const OTHERS: &str = "other layers";

/// The layers without a field: `room=kitchen floor=2`.
struct Others<'a>(&'a [Active], &'a FieldSet);

impl Others<'_> {
    fn iter(&self) -> impl Iterator<Item = &Active> {
        let own = |id: &str| id != OTHERS && self.1.field(id).is_some();
        self.0.iter().filter(move |(id, _)| !own(id))
    }
}

impl fmt::Display for Others<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (id, value)) in self.iter().enumerate() {
            if i > 0 {
                f.write_str(" ")?;
            }
            write!(f, "{id}={value:?}")?;
        }
        Ok(())
    }
}

/// All sites of this process.
struct Sites {
    /// Of spans that have the name of a layer.
    layers: Vec<(&'static str, &'static Site)>,
    /// Of contexts: one field for each layer that any context has had so far.
    known: Vec<&'static str>,
    context: Option<&'static Site>,
    /// Of layers beyond those that get a site of their own.
    rest: Option<&'static Site>,
}

static SITES: Mutex<Sites> = Mutex::new(Sites {
    layers: Vec::new(),
    known: Vec::new(),
    context: None,
    rest: None,
});

/// The site of spans that are named after a layer.
fn layer_site(id: &'static str) -> &'static Site {
    let mut sites = SITES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, site)) = sites.layers.iter().find(|(known, _)| *known == id) {
        return site;
    }
    if sites.layers.len() == OWN || id == OTHERS {
        return sites.rest.get_or_insert_with(|| Site::new("layer", &[]));
    }
    let site = Site::new(id, &[id]);
    sites.layers.push((id, site));
    site
}

/// The site of a context's span. Whenever a context has a layer that none had
/// before, a new site with one more field takes the place of the last one.
fn context_site(layers: &[Active]) -> &'static Site {
    let mut sites = SITES.lock().unwrap_or_else(PoisonError::into_inner);
    for (id, _) in layers {
        let is_new = **id != *OTHERS && !sites.known.iter().any(|known| **known == **id);
        if is_new && sites.known.len() < OWN {
            sites.known.push(Box::leak(Box::from(&**id)));
            sites.context = None;
        }
    }
    match sites.context {
        Some(site) => site,
        None => {
            let site = Site::new("context", &sites.known);
            sites.context = Some(site);
            site
        }
    }
}
