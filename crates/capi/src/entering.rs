//! Layers that are entered for a while: frames, and what is captured of them.

use milieu::{
    Captured,
    context::{Fixed, Following, LayerSet, Switch},
};

use crate::{
    abi::{
        MILIEU_CAPTURED, MILIEU_FIXED, MILIEU_FOLLOWING, MILIEU_INVALID, MILIEU_WRONG_FRAME,
        milieu_frame, milieu_layer, milieu_result,
    },
    call::{Failure, call, out},
    context::{Context, Frame, milieu_context},
    handle::{self, Slot, handle, using},
    text::read_slice,
};

handle!(Captured, b"capt", "milieu_captured");

/// See `milieu.h`.
#[allow(non_camel_case_types)]
pub type milieu_captured = Slot<Captured>;

/// A layer of any kind.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct milieu_any_layer {
    /// Which of the members counts.
    pub kind: u32,
    /// The number of a contextual value.
    pub value: u32,
    /// A layer with a value.
    pub layer: milieu_layer,
    /// Layers of another context.
    pub captured: *const milieu_captured,
}

/// Enters a layer.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_enter(
    context: *mut milieu_context,
    layer: milieu_layer,
    frame: *mut milieu_frame,
) -> milieu_result {
    // SAFETY: as the caller vouches.
    call(|| unsafe { enter(context, &raw const layer, 1, frame) })
}

/// Enters several layers together.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_enter_all(
    context: *mut milieu_context,
    layers: *const milieu_layer,
    count: usize,
    frame: *mut milieu_frame,
) -> milieu_result {
    // SAFETY: as the caller vouches.
    call(|| unsafe { enter(context, layers, count, frame) })
}

/// # Safety
///
/// As `milieu.h` says.
#[inline(always)]
unsafe fn enter(
    context: *mut milieu_context,
    layers: *const milieu_layer,
    count: usize,
    frame: *mut milieu_frame,
) -> Result<(), Failure> {
    // SAFETY: as the caller vouches.
    unsafe {
        let mut context = using(context.cast_const())?;
        let frame = out(frame, "frame")?;
        // One is the most frequent, and never too many.
        *frame = match count {
            1 => {
                let layer = context.layer(&read_slice(layers, 1, "layers")?[0])?;
                context.enter(layer)
            }
            _ => enter_several(&mut context, layers, count)?,
        };
    }
    Ok(())
}

/// # Safety
///
/// The layers and their texts are readable.
#[inline(never)]
unsafe fn enter_several(
    context: &mut Context,
    layers: *const milieu_layer,
    count: usize,
) -> Result<milieu_frame, Failure> {
    // SAFETY: as the caller vouches.
    let layers = unsafe { read_slice(layers, count, "layers")? };
    // SAFETY: as the caller vouches.
    let layers = layers.iter().map(|layer| unsafe { context.layer(layer) });
    let layers: Vec<Fixed<'_>> = layers.collect::<Result<_, _>>()?;
    let layers: Vec<&dyn Switch> = layers.iter().map(|it| it as &dyn Switch).collect();
    Ok(context.enter(&layers[..]))
}

/// Enters a contextual value as a layer.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_enter_value(
    context: *mut milieu_context,
    value: u32,
    frame: *mut milieu_frame,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        unsafe {
            let mut context = using(context.cast_const())?;
            let following = context.erased.following(context.value(value)?);
            let frame = out(frame, "frame")?;
            *frame = context.enter(following);
        }
        Ok(())
    })
}

/// Enters layers of any kind together.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_enter_mixed(
    context: *mut milieu_context,
    layers: *const milieu_any_layer,
    count: usize,
    frame: *mut milieu_frame,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        unsafe {
            let mut context = using(context.cast_const())?;
            let layers = read_slice(layers, count, "layers")?;
            let frame = out(frame, "frame")?;
            *frame = enter_mixed(&mut context, layers)?;
        }
        Ok(())
    })
}

/// One of several layers, whose texts are the caller's.
enum Mixed<'a> {
    Fixed(Fixed<'a>),
    Following(Following),
    Captured(&'a Captured),
}

impl Mixed<'_> {
    fn set(&self) -> &dyn LayerSet {
        match self {
            Mixed::Fixed(fixed) => fixed,
            Mixed::Following(following) => following,
            Mixed::Captured(captured) => captured,
        }
    }
}

/// # Safety
///
/// The texts of the layers are readable, and captured layers are not freed meanwhile.
unsafe fn enter_mixed(
    context: &mut Context,
    layers: &[milieu_any_layer],
) -> Result<milieu_frame, Failure> {
    let mut mixed = Vec::with_capacity(layers.len());
    for layer in layers {
        mixed.push(match layer.kind {
            // SAFETY: as the caller vouches.
            MILIEU_FIXED => Mixed::Fixed(unsafe { context.layer(&layer.layer)? }),
            MILIEU_FOLLOWING => {
                let value = context.value(layer.value)?;
                Mixed::Following(context.erased.following(value))
            }
            // SAFETY: as the caller vouches.
            MILIEU_CAPTURED => Mixed::Captured(unsafe { handle::shared(layer.captured)? }),
            kind => return Err(no_layer(kind)),
        });
    }
    let all: Vec<&dyn LayerSet> = mixed.iter().map(Mixed::set).collect();
    Ok(context.enter(&all[..]))
}

#[cold]
fn no_layer(kind: u32) -> Failure {
    let message = format!("there is no kind {kind} of layers; see milieu_layer_kind");
    Failure::new(MILIEU_INVALID, message)
}

/// Leaves a frame.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_leave(
    context: *mut milieu_context,
    frame: milieu_frame,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let mut context = unsafe { using(context.cast_const())? };
        match context.frames.last() {
            Some(last) if last.number == frame => {
                let depth = last.depth;
                context.frames.pop();
                context.erased.leave(depth);
                Ok(())
            }
            _ => Err(wrong_frame(&context.frames, frame)),
        }
    })
}

#[cold]
fn wrong_frame(frames: &[Frame], frame: milieu_frame) -> Failure {
    let above = frames.iter().rev().take_while(|it| it.number != frame);
    let above = above.count();
    let message = if above < frames.len() {
        format!("{above} frames that were entered later are not left yet; leave those first")
    } else {
        "this context has no such frame: it was left, or belongs to another context".to_owned()
    };
    Failure::new(MILIEU_WRONG_FRAME, message)
}

/// Takes the layers entered in a context.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_captured_new(
    context: *const milieu_context,
    captured: *mut *mut milieu_captured,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (context, captured) = unsafe { (using(context)?, out(captured, "captured")?) };
        *captured = handle::new(context.erased.capture());
        Ok(())
    })
}

/// Gives captured layers back.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_captured_free(captured: *mut milieu_captured) {
    call(|| {
        // SAFETY: as the caller vouches.
        drop(unsafe { handle::take(captured)? });
        Ok(())
    });
}

/// Enters captured layers.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_enter_captured(
    context: *mut milieu_context,
    captured: *const milieu_captured,
    frame: *mut milieu_frame,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (mut context, captured, frame) = unsafe {
            (
                using(context.cast_const())?,
                handle::shared(captured)?,
                out(frame, "frame")?,
            )
        };
        *frame = context.enter(captured);
        Ok(())
    })
}
