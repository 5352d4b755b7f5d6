//! Contexts: making, switching, synchronizing, looking.

use std::{
    ffi::c_void,
    ptr::NonNull,
    sync::Arc,
    time::{Duration, Instant},
};

use milieu::{
    ContextOptions,
    context::{Allowed, EachNamed, Erased, Fixed, LayerSet, NOWHERE, each_named},
};

use crate::{
    abi::{
        MILIEU_NO_SUCH, MILIEU_WITHOUT_LAYERS, MILIEU_WITHOUT_SHARING, MILIEU_WRONG_NAME,
        milieu_context_options, milieu_destroy, milieu_frame, milieu_layer, milieu_layout,
        milieu_result, milieu_text,
    },
    actions::cycle,
    call::{Failure, call, null, out},
    coordinator::{Coordinator, milieu_coordinator},
    handle::{self, Slot, handle, using},
    layout::{self, check_abi},
    scope::{User, ask, milieu_evaluate},
    text::{Identifiers, read_slice},
};

/// A context, and what the other side has of it.
pub struct Context {
    pub(crate) erased: Erased,
    pub(crate) policy: u32,
    /// What is entered and not left, the innermost last.
    pub(crate) frames: Vec<Frame>,
    /// The number of the frame entered last. Those of two contexts differ, as
    /// far as 64 bits go.
    last: milieu_frame,
    identifiers: Identifiers,
    lent: Lent,
}

/// What was entered at once.
pub(crate) struct Frame {
    pub(crate) number: milieu_frame,
    pub(crate) depth: usize,
}

/// Texts that the other side may read until the next call.
#[derive(Default)]
struct Lent {
    text: String,
    elements: Vec<String>,
    texts: Vec<milieu_text>,
    active: Vec<(Arc<str>, String)>,
    layers: Vec<milieu_layer>,
}

// SAFETY: the pointers among texts and layers are to what stands beside them.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

handle!(Context, b"ctxt", "milieu_context");

/// See `milieu.h`.
#[allow(non_camel_case_types)]
pub type milieu_context = Slot<Context>;

impl Context {
    fn new(erased: Erased, policy: u32) -> Self {
        // Frames of one context count on from here.
        let last = erased.identity() << 40;
        Context {
            erased,
            policy,
            frames: Vec::new(),
            last,
            identifiers: Identifiers::default(),
            lent: Lent::default(),
        }
    }

    /// Enters layers, and says where.
    #[inline]
    pub(crate) fn enter(&mut self, layers: impl LayerSet) -> milieu_frame {
        let depth = self.erased.enter(layers);
        if cfg!(not(panic = "unwind")) && depth == NOWHERE {
            // A layer's author has failed, which the end of the call says.
            return self.last;
        }
        self.last += 1;
        let number = self.last;
        self.frames.push(Frame { number, depth });
        number
    }

    /// # Safety
    ///
    /// The texts stay as they are for as long as the caller says.
    #[inline(always)]
    pub(crate) unsafe fn layer<'a>(&mut self, layer: &milieu_layer) -> Result<Fixed<'a>, Failure> {
        // SAFETY: as the caller vouches.
        let id = unsafe { self.identifiers.get(layer.id)? };
        // SAFETY: as the caller vouches.
        let value = unsafe { layer.value.read_often("value")? };
        Ok(Fixed {
            id,
            value,
            inherited: layer.inherited,
        })
    }

    /// The place of a value, which has to be there.
    pub(crate) fn value(&self, value: u32) -> Result<usize, Failure> {
        let (index, count) = (value as usize, self.erased.layout().values().len());
        match index < count {
            true => Ok(index),
            false => Err(no_value(value, count)),
        }
    }
}

#[cold]
#[inline(never)]
pub(crate) fn no_value(value: u32, count: usize) -> Failure {
    Failure::new(
        MILIEU_NO_SUCH,
        format_args!("there is no value {value}: the environment has {count}"),
    )
}

/// Hands out a context.
///
/// # Safety
///
/// Both are null or valid for writing.
unsafe fn hand_out(
    erased: Erased,
    policy: u32,
    context: &mut *mut milieu_context,
    environment: *mut *const c_void,
) {
    let place = erased.environment();
    *context = handle::new_by(|handle| {
        let mut made = Context::new(erased, policy);
        if let Some(handle) = NonNull::new(handle) {
            made.erased.mark(handle.cast());
        }
        made
    });
    // SAFETY: as the caller vouches.
    if let Some(environment) = unsafe { environment.as_mut() } {
        *environment = place.cast();
    }
}

/// A context for a thread.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_new(
    coordinator: *const milieu_coordinator,
    layout: *const milieu_layout,
    options: *const milieu_context_options,
    context: *mut *mut milieu_context,
    environment: *mut *const c_void,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        unsafe {
            let Coordinator(milieu) = handle::shared(coordinator)?;
            let layout = layout::read(layout)?;
            let context = out(context, "context")?;
            let mut policy = 0;
            let mut given = ContextOptions::new();
            if let Some(options) = options.as_ref() {
                check_abi(options.abi, "options")?;
                given = given.role(options.role.read("role")?);
                policy = options.policy;
            }
            let allowed = Allowed {
                layers: policy & MILIEU_WITHOUT_LAYERS == 0,
                shared: policy & MILIEU_WITHOUT_SHARING == 0,
            };
            let erased = milieu.erased(layout, given, allowed)?;
            hand_out(erased, policy, context, environment);
            Ok(())
        }
    })
}

/// A further context.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_fork(
    context: *const milieu_context,
    role: milieu_text,
    fork: *mut *mut milieu_context,
    environment: *mut *const c_void,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        unsafe {
            let role = role.read("role")?;
            let fork = out(fork, "fork")?;
            let from = using(context)?;
            let role = (!role.is_empty()).then_some(role);
            hand_out(from.erased.fork(role), from.policy, fork, environment);
            Ok(())
        }
    })
}

/// Gives a context back.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_free(context: *mut milieu_context) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        drop(unsafe { handle::take(context)? });
        Ok(())
    })
}

/// Activates a layer.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_activate(
    context: *mut milieu_context,
    layer: milieu_layer,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        unsafe {
            let mut context = using(context.cast_const())?;
            let layer = context.layer(&layer)?;
            context.erased.activate(&layer).map_err(cycle)
        }
    })
}

/// Activates a contextual value as a layer.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_activate_value(
    context: *mut milieu_context,
    value: u32,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let mut context = unsafe { using(context.cast_const())? };
        let following = context.erased.following(context.value(value)?);
        context.erased.activate(&following).map_err(cycle)
    })
}

/// A layer that each context evaluates by a callback of the program.
///
/// # Safety
///
/// The texts are readable, and `evaluate` may be called with `user`.
pub(crate) unsafe fn each_by(
    id: milieu_text,
    depends_on: *const milieu_text,
    count: usize,
    evaluate: milieu_evaluate,
    user: User,
) -> Result<EachNamed, Failure> {
    // SAFETY: as the caller vouches.
    unsafe {
        let id = id.read("id")?;
        let evaluate = evaluate.ok_or_else(|| null("evaluate"))?;
        let names = read_slice(depends_on, count, "depends_on")?;
        let names = names.iter().map(|name| name.read("depends_on"));
        let names = names.map(|name| name.map(str::to_owned));
        let layer = id.to_owned();
        Ok(each_named(
            id,
            names.collect::<Result<_, _>>()?,
            move |scope| ask(evaluate, &user, &layer, scope),
        ))
    }
}

/// Activates a layer that each context evaluates.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_activate_each(
    context: *mut milieu_context,
    id: milieu_text,
    depends_on: *const milieu_text,
    count: usize,
    evaluate: milieu_evaluate,
    user: *mut c_void,
    destroy: milieu_destroy,
) -> milieu_result {
    let user = User::new(user, destroy);
    call(|| {
        // SAFETY: as the caller vouches.
        unsafe {
            let mut context = using(context.cast_const())?;
            let each = each_by(id, depends_on, count, evaluate, user)?;
            context.erased.activate(&each).map_err(cycle)
        }
    })
}

/// Deactivates a layer.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_deactivate(
    context: *mut milieu_context,
    id: milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        unsafe {
            let mut context = using(context.cast_const())?;
            let layer = context.layer(&milieu_layer {
                id,
                value: milieu_text::EMPTY,
                inherited: false,
            })?;
            context.erased.deactivate(&layer).map_err(cycle)
        }
    })
}

/// Synchronizes.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_sync(context: *mut milieu_context) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        unsafe { using(context.cast_const())? }.erased.sync();
        Ok(())
    })
}

/// Whether there is news.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_has_news(
    context: *const milieu_context,
    news: *mut bool,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (context, news) = unsafe { (using(context)?, out(news, "news")?) };
        *news = context.erased.has_news();
        Ok(())
    })
}

/// Sleeps until there is news.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_wait(
    context: *const milieu_context,
    timeout_ns: i64,
    news: *mut bool,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (context, news) = unsafe { (using(context)?, news.as_mut()) };
        let timeout = u64::try_from(timeout_ns).map(Duration::from_nanos);
        let deadline = timeout.ok().map(|timeout| Instant::now() + timeout);
        let there = context.erased.wait(deadline);
        if let Some(news) = news {
            *news = there;
        }
        Ok(())
    })
}

/// The name of a value.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_name(
    context: *mut milieu_context,
    value: u32,
    name: *mut milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (mut context, name) = unsafe { (using(context.cast_const())?, out(name, "name")?) };
        let index = context.value(value)?;
        let Context { erased, lent, .. } = &mut *context;
        lent.text.clear();
        *name = milieu_text::of(erased.name_into(index, &mut lent.text));
        Ok(())
    })
}

/// The text of a value by its name.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_text(
    context: *mut milieu_context,
    name: milieu_text,
    text: *mut milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (mut context, name, text) = unsafe {
            (
                using(context.cast_const())?,
                name.read("name")?,
                out(text, "text")?,
            )
        };
        let Some(found) = context.erased.text(name) else {
            let message = format!(
                "no environment of the coordinator describes `{name}`; a name is as the \
                 specification has it, with its placeholders"
            );
            return Err(Failure::new(MILIEU_NO_SUCH, message));
        };
        context.lent.text = found.to_owned();
        *text = milieu_text::of(&context.lent.text);
        Ok(())
    })
}

/// The elements of an array by its name.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_elements(
    context: *mut milieu_context,
    name: milieu_text,
    elements: *mut *const milieu_text,
    count: *mut usize,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (mut context, name, elements, count) = unsafe {
            (
                using(context.cast_const())?,
                name.read("name")?,
                out(elements, "elements")?,
                out(count, "count")?,
            )
        };
        let found = context.erased.elements(name);
        let found = found.map_err(|error| Failure::new(MILIEU_WRONG_NAME, error))?;
        let found = found.into_iter().map(str::to_owned).collect();
        let lent = &mut context.lent;
        lent.elements = found;
        lent.texts = lent.elements.iter().map(|it| milieu_text::of(it)).collect();
        *elements = lent.texts.as_ptr();
        *count = lent.texts.len();
        Ok(())
    })
}

/// Who gave a value its content.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_origin(
    context: *mut milieu_context,
    value: u32,
    origin: *mut milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (mut context, origin) =
            unsafe { (using(context.cast_const())?, out(origin, "origin")?) };
        let found = context.erased.origin(context.value(value)?);
        let found = found.map_or_else(String::new, ToString::to_string);
        context.lent.text = found;
        *origin = milieu_text::of(&context.lent.text);
        Ok(())
    })
}

/// Whether a value is the default of its specification.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_is_default(
    context: *const milieu_context,
    value: u32,
    is_default: *mut bool,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (context, is_default) = unsafe { (using(context)?, out(is_default, "is_default")?) };
        *is_default = context.erased.is_default(context.value(value)?);
        Ok(())
    })
}

/// The role of a context.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_role(
    context: *const milieu_context,
    role: *mut milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (context, role) = unsafe { (using(context)?, out(role, "role")?) };
        *role = milieu_text::of(context.erased.role());
        Ok(())
    })
}

/// The value of an active layer.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_layer(
    context: *mut milieu_context,
    id: milieu_text,
    value: *mut milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (mut context, id, value) = unsafe {
            (
                using(context.cast_const())?,
                id.read("id")?,
                out(value, "value")?,
            )
        };
        let found = context.erased.layer(id).unwrap_or_default().to_owned();
        context.lent.text = found;
        *value = milieu_text::of(&context.lent.text);
        Ok(())
    })
}

/// Every active layer.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_layers(
    context: *mut milieu_context,
    layers: *mut *const milieu_layer,
    count: *mut usize,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (mut context, layers, count) = unsafe {
            (
                using(context.cast_const())?,
                out(layers, "layers")?,
                out(count, "count")?,
            )
        };
        let active = context.erased.layers();
        let lent = &mut context.lent;
        lent.active = active;
        let layer = |(id, value): &(Arc<str>, String)| milieu_layer {
            id: milieu_text::of(id),
            value: milieu_text::of(value),
            inherited: false,
        };
        lent.layers = lent.active.iter().map(layer).collect();
        *layers = lent.layers.as_ptr();
        *count = lent.layers.len();
        Ok(())
    })
}

/// The number of a context.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_identity(
    context: *const milieu_context,
    identity: *mut u64,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (context, identity) = unsafe { (using(context)?, out(identity, "identity")?) };
        *identity = context.erased.identity();
        Ok(())
    })
}
