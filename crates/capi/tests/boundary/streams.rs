//! The functions of streams: structs that are copied and read, what is lent, and
//! what a callback may free.

use std::{
    ffi::{CStr, c_void},
    mem::offset_of,
    ptr,
    sync::atomic::{AtomicUsize, Ordering},
};

use milieu_capi::*;

use super::{message, read, text};

/// A part of an event that is described by itself.
#[repr(C)]
#[derive(Clone, Copy)]
struct Gust {
    speed: i32,
    from: milieu_text,
}

/// What may be missing.
#[repr(C)]
#[derive(Clone, Copy)]
struct Maybe<T> {
    value: T,
    is_there: bool,
}

/// An event, with everything that a struct may have.
#[repr(C)]
struct Weather {
    temperature: f64,
    gusts: *const Gust,
    gust_count: usize,
    room: milieu_text,
    last: Maybe<Gust>,
    pulse: Maybe<u16>,
    base: Base,
}

/// What it extends.
#[repr(C)]
#[derive(Clone, Copy)]
struct Base {
    number: u64,
    floor: Maybe<i64>,
}

const ARRAY: u32 = 0x100;

const fn field(name: &'static CStr, offset: usize, kind: u32) -> milieu_event_field {
    milieu_event_field {
        name: name.as_ptr(),
        offset,
        kind,
        metadata_count: 0,
        metadata: ptr::null(),
        layout: ptr::null(),
    }
}

fn layout<T>(name: &'static CStr, fields: &[milieu_event_field]) -> milieu_event_layout {
    milieu_event_layout {
        abi: MILIEU_ABI,
        count: u32::try_from(fields.len()).expect("few"),
        name: name.as_ptr(),
        fields: fields.as_ptr(),
        size: size_of::<T>(),
        align: align_of::<T>(),
    }
}

fn ok(result: milieu_result) {
    assert_eq!(result, MILIEU_OK, "{}", message());
}

/// The types of `Weather` and of what it extends.
fn types() -> (*const milieu_event_type, *const milieu_event_type) {
    let gust_fields = [
        field(c"speed", offset_of!(Gust, speed), 3),
        field(c"from", offset_of!(Gust, from), 10),
    ];
    let gust = layout::<Gust>(c"gust", &gust_fields);
    let base_fields = [
        field(c"number", offset_of!(Base, number), 7),
        field(c"floor", offset_of!(Base, floor), 4 | MILIEU_OPTIONAL),
    ];
    let base = layout::<Base>(c"base", &base_fields);
    let said = [c"extends", c"private"].map(|key| milieu_entry {
        key: key.as_ptr(),
        text: c"".as_ptr(),
    });
    let (extends, private) = (&said[0], &said[1]);
    let of = |layout| milieu_event_field {
        layout,
        ..field(c"", 0, 0)
    };
    let fields = [
        field(c"temperature", offset_of!(Weather, temperature), 9),
        milieu_event_field {
            layout: &raw const gust,
            ..field(c"gusts", offset_of!(Weather, gusts), MILIEU_STRUCT | ARRAY)
        },
        field(c"room", offset_of!(Weather, room), 10),
        milieu_event_field {
            layout: &raw const gust,
            ..field(
                c"last",
                offset_of!(Weather, last),
                MILIEU_STRUCT | MILIEU_OPTIONAL,
            )
        },
        milieu_event_field {
            metadata_count: 1,
            metadata: private,
            ..field(c"pulse", offset_of!(Weather, pulse), 5 | MILIEU_OPTIONAL)
        },
        milieu_event_field {
            name: c"base".as_ptr(),
            offset: offset_of!(Weather, base),
            kind: MILIEU_STRUCT,
            metadata_count: 1,
            metadata: extends,
            ..of(&raw const base)
        },
    ];
    let weather = layout::<Weather>(c"weather", &fields);
    let (mut whole, mut part) = (ptr::null(), ptr::null());
    // SAFETY: the layouts describe these structs, and all that they lead to is there.
    unsafe {
        ok(milieu_event_type_new(&raw const weather, &raw mut whole));
        ok(milieu_event_type_new(&raw const base, &raw mut part));
    }
    (whole, part)
}

/// Streams whose time stands still.
struct Program {
    coordinator: *mut milieu_coordinator,
    streams: *mut milieu_streams,
}

impl Program {
    fn new() -> Program {
        let (mut coordinator, mut streams) = (ptr::null_mut(), ptr::null_mut());
        let options = milieu_streams_options {
            abi: MILIEU_ABI,
            virtual_time: true,
            now_ns: 0,
            clock: None,
            user: ptr::null_mut(),
            destroy: None,
        };
        // SAFETY: the places are there.
        unsafe {
            ok(milieu_coordinator_new(&raw mut coordinator));
            let keep = Some(keep as unsafe extern "C" fn(_, _, _) -> _);
            let name = text("keep");
            ok(milieu_transform_define(
                coordinator,
                name,
                keep,
                false,
                ptr::null_mut(),
                None,
            ));
            let known = Some(answer as unsafe extern "C" fn(_, _, _) -> _);
            ok(milieu_function_define(
                coordinator,
                text("known"),
                known,
                false,
                ptr::null_mut(),
                None,
            ));
            ok(milieu_streams_new(
                coordinator,
                &raw const options,
                &raw mut streams,
            ));
        }
        Program {
            coordinator,
            streams,
        }
    }

    fn subscribe(&self, flow: &str) -> *mut milieu_subscription {
        let mut made = ptr::null_mut();
        // SAFETY: the streams live.
        ok(unsafe {
            milieu_subscription_new(self.streams, text(flow), ptr::null(), &raw mut made)
        });
        made
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: both live.
        unsafe {
            milieu_streams_free(self.streams);
            milieu_coordinator_free(self.coordinator);
        }
    }
}

/// What functions were handed for an event, when they have returned.
static OUTPUT: AtomicUsize = AtomicUsize::new(0);
static ANSWER: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn answer(
    _: *mut c_void,
    _: *const milieu_event,
    answer: *mut milieu_answer,
) -> milieu_result {
    ANSWER.store(answer.expose_provenance(), Ordering::Relaxed);
    // SAFETY: it was handed to this callback.
    unsafe { milieu_answer_give(answer, truth()) }
}

fn truth() -> milieu_datum {
    milieu_datum {
        kind: 1,
        content: milieu_content { boolean: true },
    }
}

unsafe extern "C" fn keep(
    _: *mut c_void,
    event: *const milieu_event,
    output: *mut milieu_output,
) -> milieu_result {
    let mut kept = ptr::null_mut();
    OUTPUT.store(output.expose_provenance(), Ordering::Relaxed);
    // SAFETY: both were handed to this callback.
    unsafe {
        ok(milieu_event_keep(event, &raw mut kept));
        assert_eq!(milieu_output_pass_held(output, kept), MILIEU_INVALID);
        ok(milieu_event_free(kept));
        milieu_output_pass(output)
    }
}

#[test]
fn structs_and_what_they_point_to_are_copied() {
    let program = Program::new();
    let (whole, part) = types();
    let subscription = program.subscribe("/weather | filter $known | transform $keep");
    let (mut publisher, mut event, mut body) = (ptr::null_mut(), ptr::null(), ptr::null());
    // SAFETY: handles live, and bodies are what their types say.
    unsafe {
        ok(milieu_publisher_new(
            program.streams,
            text("/weather"),
            whole,
            false,
            &raw mut publisher,
        ));
        {
            let (north, room) = ("north".to_owned(), "005".to_owned());
            let gust = Gust {
                speed: 7,
                from: text(&north),
            };
            let gusts = [gust, Gust { speed: 9, ..gust }];
            let weather = Weather {
                temperature: 21.5,
                gusts: gusts.as_ptr(),
                gust_count: gusts.len(),
                room: text(&room),
                last: Maybe {
                    value: gust,
                    is_there: true,
                },
                pulse: Maybe {
                    value: 71,
                    is_there: true,
                },
                base: Base {
                    number: 5,
                    floor: Maybe {
                        value: 3,
                        is_there: false,
                    },
                },
            };
            let body = (&raw const weather).cast();
            let none = ptr::null_mut();
            ok(milieu_publisher_publish(publisher, body, ptr::null(), none));
        }
        ok(milieu_subscription_next(subscription, 0, &raw mut event));
        ok(milieu_event_body(event, whole, &raw mut body));
        let seen = &*body.cast::<Weather>();
        assert_eq!(read(seen.room), "005");
        assert_eq!((seen.gust_count, (*seen.gusts.add(1)).speed), (2, 9));
        assert_eq!(read((*seen.gusts).from), "north");
        assert!(seen.last.is_there && seen.pulse.is_there);
        assert_eq!(
            (read(seen.last.value.from), seen.pulse.value),
            ("north".into(), 71)
        );
        ok(milieu_event_body(event, part, &raw mut body));
        assert_eq!((*body.cast::<Base>()).number, 5);
        let mut json = text("");
        ok(milieu_event_json(event, &raw mut json));
        assert!(read(json).contains(r#""base":{"number":5,"floor":null}"#));
        let mut datum = milieu_datum {
            kind: 0,
            content: milieu_content { natural: 0 },
        };
        ok(milieu_event_get(
            event,
            text("gusts[1].speed"),
            &raw mut datum,
        ));
        assert_eq!((datum.kind, datum.content.whole), (4, 9));
        let mut kept = ptr::null_mut();
        ok(milieu_event_keep(event, &raw mut kept));
        // What functions had for it is told, wherever that was.
        let stale = ptr::with_exposed_provenance_mut(OUTPUT.load(Ordering::Relaxed));
        assert_eq!(milieu_output_pass(stale), MILIEU_FREED);
        assert!(message().contains("`milieu_output` is gone"));
        let stale = ptr::with_exposed_provenance_mut(ANSWER.load(Ordering::Relaxed));
        assert_eq!(milieu_answer_give(stale, truth()), MILIEU_FREED);
        ok(milieu_subscription_free(subscription));
        ok(milieu_event_body(kept, whole, &raw mut body));
        assert_eq!(read((*body.cast::<Weather>()).room), "005");
        ok(milieu_event_free(kept));
        milieu_publisher_free(publisher);
    }
}

/// An event that an operator of Milieu has made becomes one of the program's types.
#[test]
fn events_without_a_type_get_one() {
    let program = Program::new();
    let (_, part) = types();
    let subscription =
        program.subscribe("/base | transform {number: number + 1u, floor: int(number)}");
    let without = program.subscribe("/base | transform {number: number}");
    let (mut publisher, mut event, mut body) = (ptr::null_mut(), ptr::null(), ptr::null());
    let base = Base {
        number: 5,
        floor: Maybe {
            value: 0,
            is_there: false,
        },
    };
    // SAFETY: handles live, and bodies are what their types say.
    unsafe {
        ok(milieu_publisher_new(
            program.streams,
            text("/base"),
            part,
            true,
            &raw mut publisher,
        ));
        let given = (&raw const base).cast();
        ok(milieu_publisher_publish(
            publisher,
            given,
            ptr::null(),
            ptr::null_mut(),
        ));
        ok(milieu_subscription_next(subscription, 0, &raw mut event));
        ok(milieu_event_body(event, part, &raw mut body));
        let seen = *body.cast::<Base>();
        assert_eq!(
            (seen.number, seen.floor.value, seen.floor.is_there),
            (6, 5, true)
        );
        ok(milieu_subscription_next(without, 0, &raw mut event));
        ok(milieu_event_body(event, part, &raw mut body));
        assert!(!(*body.cast::<Base>()).floor.is_there);
        // What was lent is told from what is.
        let stale = event;
        ok(milieu_subscription_next(without, 0, &raw mut event));
        assert!(event.is_null());
        assert_eq!(milieu_event_body(stale, part, &raw mut body), MILIEU_FREED);
        ok(milieu_subscription_free(subscription));
        ok(milieu_subscription_free(without));
        milieu_publisher_free(publisher);
    }
}

/// What a callback was handed, when it has returned.
static KEPT: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn receive(user: *mut c_void, event: *const milieu_event) -> milieu_result {
    KEPT.store(event.expose_provenance(), Ordering::Relaxed);
    // SAFETY: `user` is where the listener is, which ends itself.
    unsafe { milieu_listener_free(*user.cast::<*mut milieu_listener>()) };
    MILIEU_OK
}

#[test]
fn a_listener_ends_itself() {
    let program = Program::new();
    let (_, part) = types();
    let base = Base {
        number: 5,
        floor: Maybe {
            value: 0,
            is_there: false,
        },
    };
    let (mut publisher, mut listener) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: handles live until they are freed, which is told.
    unsafe {
        ok(milieu_publisher_new(
            program.streams,
            text("/base"),
            part,
            false,
            &raw mut publisher,
        ));
        let place: *mut *mut milieu_listener = &raw mut listener;
        let user = place.cast::<c_void>();
        ok(milieu_listener_new(
            program.streams,
            text("/base"),
            Some(receive),
            user,
            None,
            place,
        ));
        for _ in 0..2 {
            let body = (&raw const base).cast();
            let none = ptr::null_mut();
            ok(milieu_publisher_publish(publisher, body, ptr::null(), none));
        }
        let kept = KEPT.load(Ordering::Relaxed);
        let mut body = ptr::null();
        let stale = ptr::with_exposed_provenance(kept);
        assert_eq!(milieu_event_body(stale, part, &raw mut body), MILIEU_FREED);
        let mut failures = 0;
        let freed = milieu_listener_failures(listener, &raw mut failures, ptr::null_mut());
        assert_eq!(freed, MILIEU_FREED);
        milieu_publisher_free(publisher);
    }
}
