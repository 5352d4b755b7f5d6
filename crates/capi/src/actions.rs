//! Actions of the program on global switches.

use std::ffi::c_void;

use milieu::{Activation, Coordinator as Shared, Registration, context::SwitchError};

use crate::{
    abi::{
        MILIEU_CYCLE, MILIEU_OK, MILIEU_UNFIT, milieu_destroy, milieu_layer, milieu_layout,
        milieu_result, milieu_text,
    },
    call::{Before, CallbackFailed, Failure, call, null, out},
    context::{each_by, no_value},
    coordinator::{Coordinator, milieu_coordinator},
    handle::{self, Slot, handle},
    layout,
    lent::{Lend, Lent},
    scope::{User, milieu_evaluate},
};

/// An action that is registered.
pub struct Registered(#[allow(dead_code)] Registration);

handle!(Registered, b"acts", "milieu_registration");

/// See `milieu.h`.
#[allow(non_camel_case_types)]
pub type milieu_registration = Slot<Registered>;

/// What an action gets to see: borrowed for the action, which may not keep it.
pub struct Switching(*mut Activation<'static>);

impl Lend for Switching {
    const TAG: [u8; 4] = *b"actv";
    const NAME: &'static str = "milieu_activation";
    const IS_OF_THREAD: bool = true;
}

/// See `milieu.h`.
#[allow(non_camel_case_types)]
pub type milieu_activation = Lent<Switching>;

/// See `milieu.h`.
#[allow(non_camel_case_types)]
pub type milieu_action = Option<
    unsafe extern "C" fn(user: *mut c_void, activation: *mut milieu_activation) -> milieu_result,
>;

/// Runs an action of the program.
fn act(
    action: unsafe extern "C" fn(*mut c_void, *mut milieu_activation) -> milieu_result,
    user: &User,
    activation: &mut Activation<'_>,
) {
    let before = Before::callback();
    let seen = Switching(std::ptr::from_mut(activation).cast());
    // SAFETY: the program has handed over both for this.
    let (result, _) = Lent::during(seen, |seen| unsafe { action(user.data(), seen) });
    if result != MILIEU_OK {
        let said = before.said(result);
        let failed = CallbackFailed::payload("an action", activation.layer(), said);
        // The other actions run before this goes on.
        activation.fail(failed);
    }
}

/// What both functions below do.
///
/// # Safety
///
/// As `milieu.h` says.
unsafe fn register(
    coordinator: *const milieu_coordinator,
    id: milieu_text,
    action: milieu_action,
    user: User,
    registration: *mut *mut milieu_registration,
    on: impl FnOnce(&Shared, &str, Box<Action>) -> Registration,
) -> Result<(), Failure> {
    // SAFETY: as the caller vouches.
    let (Coordinator(milieu), id, registration) = unsafe {
        (
            handle::shared(coordinator)?,
            id.read("id")?,
            out(registration, "registration")?,
        )
    };
    let action = action.ok_or_else(|| null("action"))?;
    let run = move |activation: &mut Activation<'_>| act(action, &user, activation);
    let registered = on(milieu.coordinator(), id, Box::new(run));
    *registration = handle::new(Registered(registered));
    Ok(())
}

type Action = dyn Fn(&mut Activation<'_>) + Send + Sync;

/// Runs an action on activation.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_coordinator_on_activation(
    coordinator: *const milieu_coordinator,
    id: milieu_text,
    action: milieu_action,
    user: *mut c_void,
    destroy: milieu_destroy,
    registration: *mut *mut milieu_registration,
) -> milieu_result {
    let user = User::new(user, destroy);
    call(|| {
        let on = |shared: &Shared, id: &str, run: Box<Action>| {
            shared.on_activation_named(id, move |it| run(it))
        };
        // SAFETY: as the caller vouches.
        unsafe { register(coordinator, id, action, user, registration, on) }
    })
}

/// Runs an action on deactivation.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_coordinator_on_deactivation(
    coordinator: *const milieu_coordinator,
    id: milieu_text,
    action: milieu_action,
    user: *mut c_void,
    destroy: milieu_destroy,
    registration: *mut *mut milieu_registration,
) -> milieu_result {
    let user = User::new(user, destroy);
    call(|| {
        let on = |shared: &Shared, id: &str, run: Box<Action>| {
            shared.on_deactivation_named(id, move |it| run(it))
        };
        // SAFETY: as the caller vouches.
        unsafe { register(coordinator, id, action, user, registration, on) }
    })
}

/// Removes an action.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_registration_free(registration: *mut milieu_registration) {
    call(|| {
        // SAFETY: as the caller vouches.
        drop(unsafe { handle::take(registration)? });
        Ok(())
    });
}

/// # Safety
///
/// `activation` is null, or was handed to an action that runs.
unsafe fn find<'a>(
    activation: *const milieu_activation,
) -> Result<&'a mut Activation<'a>, Failure> {
    // SAFETY: as the caller vouches. `act` has it until the action returns, in this thread,
    // and does not touch it meanwhile.
    unsafe { Ok(&mut *Lent::find(activation)?.0.cast()) }
}

/// The layer's identifier.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_activation_layer(
    activation: *const milieu_activation,
    id: *mut milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (activation, id) = unsafe { (find(activation)?, out(id, "id")?) };
        *id = milieu_text::of(activation.layer());
        Ok(())
    })
}

/// The value that the layer got.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_activation_value(
    activation: *const milieu_activation,
    value: *mut milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (activation, value) = unsafe { (find(activation)?, out(value, "value")?) };
        *value = milieu_text::of(activation.value());
        Ok(())
    })
}

/// Activates a layer in the context that switches.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_activation_activate(
    activation: *mut milieu_activation,
    layer: milieu_layer,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (activation, id, value) = unsafe {
            (
                find(activation.cast_const())?,
                layer.id.read("id")?,
                layer.value.read("value")?,
            )
        };
        let switched = activation.activate(milieu::Named(id, value));
        switched.map_err(cycle)
    })
}

/// Activates a contextual value as a layer in the context that switches, whose environment may be
/// another than the value's.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_activation_activate_value(
    activation: *mut milieu_activation,
    layout: *const milieu_layout,
    value: u32,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (activation, layout) =
            unsafe { (find(activation.cast_const())?, layout::read(layout)?) };
        let (index, count) = (value as usize, layout.values().len());
        if index >= count {
            return Err(no_value(value, count));
        }
        let following = activation.following(layout, index);
        let following = following.map_err(|error| Failure::new(MILIEU_UNFIT, error))?;
        activation.activate(following).map_err(cycle)
    })
}

/// Activates a layer that each context evaluates, from the context that switches.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_activation_activate_each(
    activation: *mut milieu_activation,
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
        let (activation, each) = unsafe {
            (
                find(activation.cast_const())?,
                each_by(id, depends_on, count, evaluate, user)?,
            )
        };
        activation.activate(each).map_err(cycle)
    })
}

/// Deactivates a layer in the context that switches.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_activation_deactivate(
    activation: *mut milieu_activation,
    id: milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (activation, id) = unsafe { (find(activation.cast_const())?, id.read("id")?) };
        activation.deactivate_named(id).map_err(cycle)
    })
}

pub(crate) fn cycle(error: SwitchError) -> Failure {
    Failure::new(MILIEU_CYCLE, error)
}
