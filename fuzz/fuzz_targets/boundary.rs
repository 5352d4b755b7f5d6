//! Calls of a C program, in any order and with any handle: live ones, freed ones,
//! none at all. Each gets a result, and fields stay readable.
//!
//! Each line is a call: a letter for the function, of streams a digit, digits for the
//! handles, and the rest is a text.
#![no_main]

use std::ffi::{CStr, c_void};
use std::mem::offset_of;
use std::ptr;

use libfuzzer_sys::fuzz_target;
use milieu_capi::*;

/// What generated code would declare.
#[repr(C)]
struct Station {
    enable: bool,
    interval: i32,
    language: milieu_text,
}

const fn entry(key: &'static CStr, text: &'static CStr) -> milieu_entry {
    milieu_entry {
        key: key.as_ptr(),
        text: text.as_ptr(),
    }
}

const fn value(
    pattern: &'static CStr,
    offset: usize,
    kind: u32,
    metadata: &'static Sharable<[milieu_entry; 1]>,
) -> milieu_value {
    milieu_value {
        pattern: pattern.as_ptr(),
        offset,
        kind,
        metadata_count: 1,
        metadata: metadata.0.as_ptr(),
    }
}

struct Sharable<T>(T);
// SAFETY: what is in it is never written.
unsafe impl<T> Sync for Sharable<T> {}

static BOOLEAN: Sharable<[milieu_entry; 1]> = Sharable([entry(c"type", c"boolean")]);
static LONG: Sharable<[milieu_entry; 1]> = Sharable([entry(c"type", c"long")]);
static STRING: Sharable<[milieu_entry; 1]> = Sharable([entry(c"default", c"en")]);
static VALUES: Sharable<[milieu_value; 3]> = Sharable([
    value(c"/a/%a%/enable", offset_of!(Station, enable), 1, &BOOLEAN),
    value(c"/a/%b%/interval", offset_of!(Station, interval), 3, &LONG),
    value(
        c"/a/%a%/%b%/language",
        offset_of!(Station, language),
        10,
        &STRING,
    ),
]);
static LAYOUT: Sharable<milieu_layout> = Sharable(milieu_layout {
    abi: MILIEU_ABI,
    count: 3,
    values: VALUES.0.as_ptr(),
    size: size_of::<Station>(),
    align: align_of::<Station>(),
});

/// An environment that no context has.
static OTHERS: Sharable<[milieu_value; 1]> = Sharable([value(c"/other/%b%/a", 0, 10, &STRING)]);
static OTHER: Sharable<milieu_layout> = Sharable(milieu_layout {
    abi: MILIEU_ABI,
    count: 1,
    values: OTHERS.0.as_ptr(),
    size: size_of::<milieu_text>(),
    align: align_of::<milieu_text>(),
});

/// Handles of one type, those that were freed too.
struct Handles<T>(Vec<(*mut T, bool)>);

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Handles(Vec::new())
    }
}

impl<T> Handles<T> {
    /// Each that lives.
    fn each(&self, call: impl FnMut(*mut T)) {
        let live = self.0.iter().filter(|(_, lives)| *lives);
        live.map(|(handle, _)| *handle).for_each(call);
    }

    /// The one that a digit says: null, or one of those that were made.
    fn get(&self, digit: u8) -> (*mut T, milieu_result) {
        match self.0.get(usize::from(digit.wrapping_sub(b'1'))) {
            Some((handle, true)) => (*handle, MILIEU_OK),
            Some((handle, false)) => (*handle, MILIEU_FREED),
            None => (ptr::null_mut(), MILIEU_NULL),
        }
    }
    fn freed(&mut self, handle: *mut T) {
        for (known, lives) in &mut self.0 {
            *lives &= *known != handle;
        }
    }
}

/// What an action does: the digit that was registered with it.
unsafe extern "C" fn act(user: *mut c_void, activation: *mut milieu_activation) -> milieu_result {
    // SAFETY: the activation is there during the call.
    unsafe {
        match user.addr() % 6 {
            0 => MILIEU_OK,
            1 => MILIEU_CALLBACK,
            2 => milieu_activation_activate(activation, layer("b", "1")),
            3 => milieu_activation_deactivate(activation, text("a")),
            // The values of this environment and the first numbers that none has.
            4 => milieu_activation_activate_value(activation, &LAYOUT.0, user.addr() as u32 % 5),
            _ => milieu_activation_activate_value(activation, &OTHER.0, 0),
        }
    }
}

/// A layer that is what another value says, or fails.
unsafe extern "C" fn evaluate(user: *mut c_void, scope: *mut milieu_scope) -> milieu_result {
    // SAFETY: the scope is there during the call.
    unsafe {
        match user.addr() % 2 {
            0 => milieu_scope_answer(scope, milieu_scope_get(scope, text("/a/%b%/interval"))),
            _ => MILIEU_CALLBACK,
        }
    }
}

fn text(text: &str) -> milieu_text {
    milieu_text {
        bytes: text.as_ptr().cast(),
        length: text.len(),
    }
}

fn layer(id: &'static str, value: &str) -> milieu_layer {
    milieu_layer {
        id: text(id),
        value: text(value),
        inherited: value.len() % 2 == 0,
    }
}

/// What a listener does: the digit that it was made with.
unsafe extern "C" fn receive(user: *mut c_void, event: *const milieu_event) -> milieu_result {
    // SAFETY: the event is lent during the call.
    unsafe {
        match user.addr() % 4 {
            0 => MILIEU_OK,
            1 => milieu_fail(text("as if")),
            2 => {
                let mut kept = ptr::null_mut();
                assert_eq!(milieu_event_keep(event, &mut kept), MILIEU_OK);
                milieu_event_free(kept)
            }
            _ => milieu_event_free(event.cast_mut()),
        }
    }
}

/// The type of texts.
fn texts() -> *const milieu_event_type {
    let field = milieu_event_field {
        name: c"".as_ptr(),
        offset: 0,
        kind: 10,
        metadata_count: 0,
        metadata: ptr::null(),
        layout: ptr::null(),
    };
    let layout = milieu_event_layout {
        abi: MILIEU_ABI,
        count: 1,
        name: c"text".as_ptr(),
        fields: &raw const field,
        size: size_of::<milieu_text>(),
        align: align_of::<milieu_text>(),
    };
    let mut made = ptr::null();
    // SAFETY: the layout describes a text.
    let result = unsafe { milieu_event_type_new(&layout, &mut made) };
    assert_eq!(result, MILIEU_OK);
    made
}

/// Streams, and what comes of them; their time stands still.
#[derive(Default)]
struct Flowing {
    streams: Handles<milieu_streams>,
    publishers: Handles<milieu_publisher>,
    subscriptions: Handles<milieu_subscription>,
    listeners: Handles<milieu_listener>,
    effects: Handles<milieu_effect>,
}

impl Flowing {
    /// Carries out a call if it is one of these: what it says, and what its handle is.
    ///
    /// # Safety
    ///
    /// The text is there meanwhile.
    unsafe fn call(
        &mut self,
        digits: [u8; 3],
        coordinator: (*mut milieu_coordinator, milieu_result),
        given: milieu_text,
    ) -> Option<(milieu_result, milieu_result)> {
        let (streams, known) = self.streams.get(digits[1]);
        let user = ptr::without_provenance_mut(usize::from(digits[2]));
        // SAFETY: as the caller vouches; handles are null or were handed out.
        Some(unsafe {
            match digits[0] {
                b'1' => {
                    let options = milieu_streams_options {
                        abi: MILIEU_ABI,
                        virtual_time: true,
                        now_ns: 0,
                        clock: None,
                        user: ptr::null_mut(),
                        destroy: None,
                    };
                    let (coordinator, known) = coordinator;
                    let mut made = ptr::null_mut();
                    let result = milieu_streams_new(coordinator, &options, &mut made);
                    self.streams.0.push((made, result == MILIEU_OK));
                    (result, known)
                }
                b'!' => {
                    milieu_streams_free(streams);
                    self.streams.freed(streams);
                    (MILIEU_OK, MILIEU_OK)
                }
                b'2' => {
                    let mut made = ptr::null_mut();
                    let retains = digits[2] % 2 == 0;
                    let result = milieu_publisher_new(streams, given, texts(), retains, &mut made);
                    self.publishers.0.push((made, result == MILIEU_OK));
                    (result, known)
                }
                b'@' => {
                    let (publisher, _) = self.publishers.get(digits[1]);
                    milieu_publisher_free(publisher);
                    self.publishers.freed(publisher);
                    (MILIEU_OK, MILIEU_OK)
                }
                b'3' => {
                    let (publisher, known) = self.publishers.get(digits[1]);
                    let body = (&raw const given).cast();
                    let none = ptr::null_mut();
                    let result = milieu_publisher_publish(publisher, body, ptr::null(), none);
                    (result, known)
                }
                b'4' => {
                    let mut made = ptr::null_mut();
                    let result = milieu_subscription_new(streams, given, ptr::null(), &mut made);
                    self.subscriptions.0.push((made, result == MILIEU_OK));
                    (result, known)
                }
                b'$' => {
                    let (subscription, lives) = self.subscriptions.get(digits[1]);
                    let result = milieu_subscription_free(subscription);
                    self.subscriptions.freed(subscription);
                    let known = if subscription.is_null() {
                        MILIEU_OK
                    } else {
                        lives
                    };
                    (result, known)
                }
                b'5' => {
                    let (subscription, known) = self.subscriptions.get(digits[1]);
                    let mut event = ptr::null();
                    let result = milieu_subscription_next(subscription, 0, &mut event);
                    let mut json = text("");
                    if result == MILIEU_OK && !event.is_null() {
                        assert_eq!(milieu_event_json(event, &mut json), MILIEU_OK);
                    }
                    (result, known)
                }
                b'6' => {
                    let mut made = ptr::null_mut();
                    let result =
                        milieu_listener_new(streams, given, Some(receive), user, None, &mut made);
                    self.listeners.0.push((made, result == MILIEU_OK));
                    (result, known)
                }
                b'^' => {
                    let (listener, _) = self.listeners.get(digits[1]);
                    milieu_listener_free(listener);
                    self.listeners.freed(listener);
                    (MILIEU_OK, MILIEU_OK)
                }
                b'7' => {
                    let (mut made, name) = (ptr::null_mut(), text("/named"));
                    let result = milieu_effect_publish(streams, given, name, &mut made);
                    self.effects.0.push((made, result == MILIEU_OK));
                    (result, known)
                }
                b'8' => {
                    let (mut made, name) = (ptr::null_mut(), text("/bound"));
                    let result = milieu_effect_bind(streams, name, &given, 1, &mut made);
                    self.effects.0.push((made, result == MILIEU_OK));
                    (result, known)
                }
                b'&' => {
                    let (effect, _) = self.effects.get(digits[1]);
                    milieu_effect_free(effect);
                    self.effects.freed(effect);
                    (MILIEU_OK, MILIEU_OK)
                }
                _ => return None,
            }
        })
    }

    /// Frees what lives, streams first.
    ///
    /// # Safety
    ///
    /// Nothing of it is used any more.
    unsafe fn free(&self) {
        // SAFETY: as the caller vouches.
        unsafe {
            self.streams.each(|it| milieu_streams_free(it));
            self.publishers.each(|it| milieu_publisher_free(it));
            self.subscriptions
                .each(|it| assert_eq!(milieu_subscription_free(it), MILIEU_OK));
            self.listeners.each(|it| milieu_listener_free(it));
            self.effects.each(|it| milieu_effect_free(it));
        }
    }
}

/// A program while it runs.
#[derive(Default)]
struct Program {
    contexts: Vec<(*mut milieu_context, *const Station, bool)>,
    frames: Vec<milieu_frame>,
}

impl Program {
    fn context(&self, digit: u8) -> (*mut milieu_context, milieu_result) {
        match self.contexts.get(usize::from(digit.wrapping_sub(b'1'))) {
            Some((handle, _, true)) => (*handle, MILIEU_OK),
            Some((handle, _, false)) => (*handle, MILIEU_FREED),
            None => (ptr::null_mut(), MILIEU_NULL),
        }
    }

    /// Every field of every context can be read.
    fn read(&self) {
        for (_, station, _) in self.contexts.iter().filter(|(_, _, lives)| *lives) {
            // SAFETY: the context lives, and nothing runs in it.
            let station = unsafe { &**station };
            let language = station.language;
            // SAFETY: as above.
            let bytes =
                unsafe { std::slice::from_raw_parts(language.bytes.cast::<u8>(), language.length) };
            assert!(std::str::from_utf8(bytes).is_ok());
            let _ = (station.enable, station.interval);
        }
    }
}

/// As few as can be freed before the first slot is used again.
const CALLS: usize = 60;

fuzz_target!(|input: &[u8]| {
    let mut program = Program::default();
    let mut flowing = Flowing::default();
    let mut coordinators: Handles<milieu_coordinator> = Handles(Vec::new());
    let mut registrations: Handles<milieu_registration> = Handles(Vec::new());
    let mut captured: Handles<milieu_captured> = Handles(Vec::new());
    let mut holds: Handles<milieu_hold> = Handles(Vec::new());
    for line in input.split(|byte| *byte == b'\n').take(CALLS) {
        let digit = |at: usize| line.get(at).copied().unwrap_or(b'0');
        let bytes = line.get(3..).unwrap_or_default();
        let given = milieu_text {
            bytes: bytes.as_ptr().cast(),
            length: bytes.len(),
        };
        let switched = milieu_layer {
            id: text(if digit(2) % 2 == 0 { "a" } else { "b" }),
            value: given,
            inherited: digit(2) > b'5',
        };
        let (cx, there) = program.context(digit(1));
        let (coordinator, shared) = coordinators.get(digit(1));
        let index = u32::from(digit(2).wrapping_sub(b'0'));
        let digits = [digit(0), digit(1), digit(2)];
        // SAFETY: the text is there meanwhile.
        let of_streams = unsafe { flowing.call(digits, (coordinator, shared), given) };
        // SAFETY: handles are null or were handed out; texts are there meanwhile.
        let of_contexts = || unsafe {
            match digit(0) {
                b'c' => {
                    let mut made = ptr::null_mut();
                    let result = milieu_coordinator_new(&mut made);
                    coordinators.0.push((made, true));
                    (result, MILIEU_OK)
                }
                b'C' => {
                    milieu_coordinator_free(coordinator);
                    coordinators.freed(coordinator);
                    (MILIEU_OK, MILIEU_OK)
                }
                b'x' => {
                    let (mut made, mut place) = (ptr::null_mut(), ptr::null());
                    let result = milieu_context_new(
                        coordinator,
                        &LAYOUT.0,
                        ptr::null(),
                        &mut made,
                        &mut place,
                    );
                    if result == MILIEU_OK {
                        program.contexts.push((made, place.cast(), true));
                    }
                    (result, shared)
                }
                b'f' => {
                    let (mut made, mut place) = (ptr::null_mut(), ptr::null());
                    let result = milieu_context_fork(cx, given, &mut made, &mut place);
                    if result == MILIEU_OK {
                        program.contexts.push((made, place.cast(), true));
                    }
                    (result, there)
                }
                b'X' => {
                    let result = milieu_context_free(cx);
                    for (known, _, lives) in &mut program.contexts {
                        *lives &= *known != cx;
                    }
                    (result, if cx.is_null() { MILIEU_OK } else { there })
                }
                b'e' => {
                    let mut frame = 0;
                    let result = milieu_context_enter(cx, switched, &mut frame);
                    program.frames.push(frame);
                    (result, there)
                }
                b'E' => {
                    let (mut frame, layers) = (0, [switched, layer("a", "2"), layer("b", "")]);
                    let result = milieu_context_enter_all(
                        cx,
                        layers.as_ptr(),
                        usize::from(digit(2) % 4),
                        &mut frame,
                    );
                    program.frames.push(frame);
                    (result, there)
                }
                b'v' => {
                    let mut frame = 0;
                    let result = milieu_context_enter_value(cx, index, &mut frame);
                    program.frames.push(frame);
                    (result, there)
                }
                b'l' => {
                    let place = usize::from(digit(2)) % (program.frames.len() + 1);
                    let frame = program.frames.iter().rev().nth(place);
                    (milieu_context_leave(cx, frame.copied().unwrap_or(7)), there)
                }
                b'a' => (milieu_context_activate(cx, switched), there),
                b'V' => (milieu_context_activate_value(cx, index), there),
                b'd' => (milieu_context_deactivate(cx, switched.id), there),
                b't' => {
                    let depends_on = text("/a/%b%/interval");
                    let user = ptr::without_provenance_mut(usize::from(digit(2)));
                    (
                        milieu_context_activate_each(
                            cx,
                            text("a"),
                            &depends_on,
                            1,
                            Some(evaluate),
                            user,
                            None,
                        ),
                        there,
                    )
                }
                b'y' => (milieu_context_sync(cx), there),
                b's' => (milieu_context_set_text(cx, index, given), there),
                b'n' => (
                    milieu_context_set_signed(cx, index, bytes.len() as i64),
                    there,
                ),
                b'b' => (milieu_context_set_bool(cx, index, bytes.len() > 1), there),
                b'u' => (milieu_context_unset(cx, index), there),
                b'F' => (milieu_context_forget(cx, switched), there),
                b'N' => {
                    let mut name = text("");
                    (milieu_context_name(cx, index, &mut name), there)
                }
                b'T' => {
                    let mut found = text("");
                    (milieu_context_text(cx, given, &mut found), there)
                }
                b'g' => {
                    let (mut elements, mut count) = (ptr::null(), 0);
                    let result = milieu_context_elements(cx, given, &mut elements, &mut count);
                    (result, there)
                }
                b'L' => {
                    let (mut layers, mut count) = (ptr::null(), 0);
                    (milieu_context_layers(cx, &mut layers, &mut count), there)
                }
                b'k' => {
                    let mut made = ptr::null_mut();
                    let result = milieu_captured_new(cx, &mut made);
                    captured.0.push((made, result == MILIEU_OK));
                    (result, there)
                }
                b'K' => {
                    let (layers, _) = captured.get(digit(2));
                    milieu_captured_free(layers);
                    captured.freed(layers);
                    (MILIEU_OK, MILIEU_OK)
                }
                b'm' => {
                    let (mut frame, (layers, _)) = (0, captured.get(digit(2)));
                    let result = milieu_context_enter_captured(cx, layers, &mut frame);
                    program.frames.push(frame);
                    (result, there)
                }
                b'M' => {
                    // Of the kinds that the text says, and of some that are none.
                    let of_kind = |byte: &u8| milieu_any_layer {
                        kind: u32::from(byte % 5),
                        value: index,
                        layer: switched,
                        captured: captured.get(b'1' + byte / 5 % 4).0,
                    };
                    let layers: Vec<_> = bytes.iter().take(6).map(of_kind).collect();
                    let mut frame = 0;
                    let result =
                        milieu_context_enter_mixed(cx, layers.as_ptr(), layers.len(), &mut frame);
                    program.frames.push(frame);
                    (result, there)
                }
                b'A' => (
                    milieu_coordinator_assign(coordinator, text("/a/%/interval"), given),
                    shared,
                ),
                b'R' => (milieu_coordinator_remove(coordinator, given), shared),
                b'o' => {
                    let mut made = ptr::null_mut();
                    let user = ptr::without_provenance_mut(usize::from(digit(2)));
                    let result = milieu_coordinator_on_activation(
                        coordinator,
                        text("a"),
                        Some(act),
                        user,
                        None,
                        &mut made,
                    );
                    registrations.0.push((made, result == MILIEU_OK));
                    (result, shared)
                }
                b'O' => {
                    let (registration, _) = registrations.get(digit(2));
                    milieu_registration_free(registration);
                    registrations.freed(registration);
                    (MILIEU_OK, MILIEU_OK)
                }
                b'h' => {
                    let mut made = ptr::null_mut();
                    let result = milieu_hold_new(coordinator, &mut made);
                    holds.0.push((made, result == MILIEU_OK));
                    (result, shared)
                }
                b'H' => {
                    let (hold, lives) = holds.get(digit(2));
                    let result = milieu_hold_free(hold);
                    holds.freed(hold);
                    (result, if hold.is_null() { MILIEU_OK } else { lives })
                }
                _ => (MILIEU_OK, MILIEU_OK),
            }
        };
        let (result, known) = of_streams.unwrap_or_else(of_contexts);
        // A wrong handle is told before anything else, but for texts, which are read first.
        assert_ne!(result, MILIEU_PANIC, "{line:?}");
        if known != MILIEU_OK && result != MILIEU_NOT_UTF8 {
            assert!(
                result == MILIEU_NULL || result == MILIEU_FREED,
                "{result} for {line:?}"
            );
        } else if known == MILIEU_OK {
            assert_ne!(result, MILIEU_BUSY, "{line:?}");
        }
        // SAFETY: it is a string.
        let said = unsafe { CStr::from_ptr(milieu_message()) };
        assert!(result == MILIEU_OK || !said.is_empty());
        program.read();
    }
    // SAFETY: what lives is freed once, in any order.
    unsafe {
        for (coordinator, _) in coordinators.0.iter().filter(|(_, lives)| *lives) {
            milieu_coordinator_free(*coordinator);
        }
        program.read();
        flowing.free();
        for (hold, _) in holds.0.iter().filter(|(_, lives)| *lives) {
            assert_eq!(milieu_hold_free(*hold), MILIEU_OK);
        }
        for (cx, _, _) in program.contexts.iter().filter(|(_, _, lives)| *lives) {
            assert_eq!(milieu_context_free(*cx), MILIEU_OK);
        }
        for (registration, _) in registrations.0.iter().filter(|(_, lives)| *lives) {
            milieu_registration_free(*registration);
        }
        for (layers, _) in captured.0.iter().filter(|(_, lives)| *lives) {
            milieu_captured_free(*layers);
        }
    }
});
