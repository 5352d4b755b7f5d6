//! What stands at names beside streams: services, and watches of all of it.

use std::{ffi::c_void, sync::Arc};

use milieu::{
    stream::names::{Binding, Change, Entry, Member, Query, Refusal, Rights, Service},
    transfer::Time,
};

use super::{
    abi::{milieu_attribute, milieu_name_change, milieu_service},
    effect::{Effect, Holds, bring, milieu_effect, texts},
    milieu_streams,
    subscription::Troubles,
};
use crate::{
    abi::{
        MILIEU_INVALID, MILIEU_OK, MILIEU_WRONG_NAME, milieu_destroy, milieu_result, milieu_text,
    },
    call::{Failure, call, null, said},
    handle,
    layout::check_abi,
    scope::User,
    text::read_slice,
};

/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_name_watch = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        changes: *const milieu_name_change,
        count: usize,
    ) -> milieu_result,
>;

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Failure::new(MILIEU_WRONG_NAME, refusal)
    }
}

/// Puts a service at a name.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_effect_serve(
    streams: *const milieu_streams,
    name: milieu_text,
    service: *const milieu_service,
    effect: *mut *mut milieu_effect,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        unsafe {
            let name = name.read("name")?;
            let given = service.as_ref().ok_or_else(|| null("service"))?;
            check_abi(given.abi, "service")?;
            let endpoint = given.endpoint.read("endpoint")?;
            let count = given.attribute_count as usize;
            let mut attributes = Vec::with_capacity(count);
            for attribute in read_slice(given.attributes, count, "attributes")? {
                let name = attribute.name.read("attribute")?;
                attributes.push((name, attribute.value.read("value")?));
            }
            let until = Time::from_nanoseconds(given.until_ns);
            let service = Service::new(endpoint, attributes, until)?;
            bring(streams, effect, |opened| {
                Ok(Holds::Named(opened.graph().serve(name, service)?))
            })
        }
    })
}

/// Renews the lease of a service.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_effect_renew(
    effect: *const milieu_effect,
    until_ns: i64,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let effect = unsafe { handle::using(effect)? };
        match &effect.holds {
            Holds::Named(named) => Ok(named.renew(Time::from_nanoseconds(until_ns))?),
            _ => Err(no_name(
                "puts no service at a name; milieu_effect_serve makes one that does",
            )),
        }
    })
}

/// Binds a name to others than before.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_effect_rebind(
    effect: *const milieu_effect,
    targets: *const milieu_text,
    count: usize,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (effect, targets) = unsafe { (handle::using(effect)?, texts(targets, count)?) };
        let Effect { holds, opened, .. } = &*effect;
        let Holds::Named(named) = holds else {
            return Err(no_name(
                "binds no name; milieu_effect_bind makes one that does",
            ));
        };
        let targets: Result<Vec<Query>, Refusal> = targets.into_iter().map(Query::parse).collect();
        let targets = targets?;
        for layer in targets.iter().flat_map(Query::layers) {
            opened.milieu.follow(layer)?;
        }
        Ok(named.rebind(Binding::new(targets)?)?)
    })
}

fn no_name(what: &str) -> Failure {
    Failure::new(MILIEU_INVALID, format_args!("this effect {what}"))
}

/// Watches names.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_effect_watch(
    streams: *const milieu_streams,
    query: milieu_text,
    watch: milieu_name_watch,
    user: *mut c_void,
    destroy: milieu_destroy,
    effect: *mut *mut milieu_effect,
) -> milieu_result {
    let user = User::new(user, destroy);
    call(|| {
        let watch = watch.ok_or_else(|| null("watch"))?;
        // SAFETY: as the caller vouches.
        let query = Query::parse(unsafe { query.read("query")? })?;
        let troubles = Arc::<Troubles>::default();
        let noted = Arc::clone(&troubles);
        let told = move |changes: &[Change]| {
            let lent: Vec<Lent> = changes.iter().map(Lent::new).collect();
            let changes: Vec<milieu_name_change> = changes
                .iter()
                .zip(&lent)
                .map(|(it, lent)| lent.change(it))
                .collect();
            // SAFETY: the program has handed over both for this.
            let result = unsafe { watch(user.data(), changes.as_ptr(), changes.len()) };
            if result != MILIEU_OK {
                noted.note(said());
            }
        };
        // SAFETY: as the caller vouches.
        unsafe {
            bring(streams, effect, |opened| {
                let watching = opened.graph().watch(query, Rights::all(), told)?;
                Ok(Holds::Watching(watching, troubles))
            })
        }
    })
}

/// What a change leads to while the callback runs.
struct Lent {
    attributes: Vec<milieu_attribute>,
    targets: Vec<milieu_text>,
}

impl Lent {
    fn new(change: &Change) -> Lent {
        let mut lent = Lent {
            attributes: Vec::new(),
            targets: Vec::new(),
        };
        match member(change).map(|member| &member.entry) {
            Some(Entry::Service(service)) => {
                let attributes = service.attributes();
                lent.attributes = attributes
                    .map(|(name, value)| milieu_attribute {
                        name: milieu_text::of(name),
                        value: milieu_text::of(value),
                    })
                    .collect();
            }
            Some(Entry::Binding(binding)) => {
                let targets = binding.targets().iter();
                lent.targets = targets
                    .map(|target| milieu_text::of(target.as_str()))
                    .collect();
            }
            Some(Entry::Stream(_)) | None => {}
        }
        lent
    }

    fn change(&self, change: &Change) -> milieu_name_change {
        let entry = member(change).map(|member| &member.entry);
        milieu_name_change {
            name: milieu_text::of(change.name().as_str()),
            change: match change {
                Change::Joined(_) => 0,
                Change::Left(_) => 1,
                Change::Changed(_) => 2,
            },
            kind: match entry {
                Some(Entry::Stream(_)) | None => 0,
                Some(Entry::Service(_)) => 1,
                Some(Entry::Binding(_)) => 2,
            },
            endpoint: match entry {
                Some(Entry::Service(service)) => milieu_text::of(service.endpoint()),
                _ => milieu_text::EMPTY,
            },
            attributes: self.attributes.as_ptr(),
            attribute_count: self.attributes.len(),
            targets: self.targets.as_ptr(),
            target_count: self.targets.len(),
        }
    }
}

fn member(change: &Change) -> Option<&Member> {
    match change {
        Change::Joined(member) | Change::Changed(member) => Some(member),
        Change::Left(_) => None,
    }
}
