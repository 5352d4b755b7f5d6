//! Rust and C lay out what both have alike, on the machine that the test is compiled for.

mod support;

use std::fs;
use std::process::Command;

use milieu_capi::*;
use support::{Language, compilers, has, package, scratch, skipped};

/// What has to hold in C, a line for each size, each place of a member and each constant.
fn assertions() -> String {
    let mut lines = String::new();
    let mut hold = |it: &str, is: String| {
        lines += &format!("_Static_assert({it} == {is}, \"{it} is {is}\");\n");
    };
    macro_rules! layout {
        ($($type:ident { $($member:ident),* })*) => {$(
            let name = stringify!($type);
            hold(&format!("sizeof({name})"), size_of::<$type>().to_string());
            hold(&format!("_Alignof({name})"), align_of::<$type>().to_string());
            $(hold(
                &format!("offsetof({name}, {})", stringify!($member)),
                std::mem::offset_of!($type, $member).to_string(),
            );)*
        )*};
    }
    macro_rules! constants {
        ($($name:ident),*) => {$(hold(stringify!($name), $name.to_string());)*};
    }
    layout! {
        milieu_result {}
        milieu_text { bytes, length }
        milieu_layer { id, value, inherited }
        milieu_any_layer { kind, value, layer, captured }
        milieu_frame {}
        milieu_entry { key, text }
        milieu_value { pattern, offset, kind, metadata_count, metadata }
        milieu_layout { abi, count, values, size, align }
        milieu_options {
            abi, argument_count, arguments, layout, user_folder, system_folder, description
        }
        milieu_context_options { abi, policy, role }
        milieu_key { name, value, origin }
        milieu_change { name, before, after, origin, secret }
        milieu_news { kind, changes, count, message }
        milieu_author { user, program, host, process }
        milieu_conflict { name, base, ours, theirs, by, secret }
        milieu_target { name, outcome }
        milieu_notice {
            name, value, origin, targets, count, reason, message, fate, is_error, secret
        }
        milieu_commit {
            file, whose, id, time_ns, author, undoes, undone_by, changes, count
        }
    }
    #[cfg(feature = "stream")]
    layout! {
        milieu_streams_options { abi, virtual_time, now_ns, clock, user, destroy }
        milieu_blocking { abi, threads, queue, patience_ns }
        milieu_event_field { name, offset, kind, metadata_count, metadata, layout }
        milieu_event_layout { abi, count, name, fields, size, align }
        milieu_quality { time_ns, age_ns, accuracy, failure }
        milieu_header { name, origin, incarnation, sequence, quality }
        milieu_datum { kind, content }
        milieu_delivery { abi, capacity, overflow }
        milieu_tally { taken, dropped, waiting }
        milieu_attribute { name, value }
        milieu_service { abi, attribute_count, attributes, endpoint, until_ns }
        milieu_name_change {
            name, change, kind, endpoint, attributes, attribute_count, targets, target_count
        }
        milieu_told { name, value }
        milieu_case { title, expected, found, difference, passed }
        milieu_function_call { name, arguments, argument_count }
        milieu_parameter { name, kind, choice_count, choices, otherwise, summary, positional }
        milieu_operator {
            abi, inputs, flags, parameter_count, name, summary, parameters, make, step, wake,
            save, restore, free
        }
    }
    #[cfg(feature = "stream")]
    layout! {
        milieu_names { queries, count }
        milieu_rights { abi, read, publish, read_private, set_private }
        milieu_mode {
            abi, version, name, media_type, builds_on_frames, replaces, begin, encode, decode, end
        }
    }
    #[cfg(feature = "links")]
    layout! {
        milieu_peer { name, id, is_here }
        milieu_terms {
            abi, window, grant, is_open, modes, mode_count, types, type_count, delivery,
            event_bytes_max, event_depth_max, names_max, edges_max, waiting_max
        }
        milieu_parcel {
            peer, channel, mode, schema, incarnation, sequence, time_ns, payload, wants_receipt,
            receipt
        }
        milieu_refusal {}
        milieu_carrier {
            abi, flags, bytes_max, requests_max, credit_max, submit, credit, grant, shut, leave,
            request, reply, poll, close
        }
    }
    #[cfg(feature = "sources")]
    layout! {
        milieu_source_definition { name, summary, events, needs, parameters, parameter_count }
        milieu_source_terms { abi, format, content, rows }
    }
    #[cfg(feature = "http")]
    layout! {
        milieu_http_access { token, rights, measures }
        milieu_http_page { path, media_type, content }
        milieu_http_options {
            abi, for_others, address, accesses, access_count, hosts, host_count, origins,
            origin_count, pages, page_count, connections, queue_events, head_bytes, head_lines,
            body_bytes, body_depth, names, operators, patience_ns
        }
    }
    #[cfg(feature = "mqtt")]
    layout! {
        milieu_mqtt_input { filter, under, mode, whole_events, qos }
        milieu_mqtt_output {
            flow, topic, mode, whole_events, retained, with_private, qos, delivery
        }
        milieu_mqtt_option { name, value }
        milieu_mqtt_entity { id, platform, name, state_topic, options, option_count }
        milieu_mqtt_device { id, name, about, about_count, entities, entity_count }
        milieu_mqtt_options {
            abi, port, keep_alive_seconds, host, client_id, user, password, availability,
            discovery_prefix, inputs, input_count, outputs, output_count, devices, device_count,
            payload_bytes, payload_depth, names
        }
    }
    constants! { MILIEU_SAY, MILIEU_BUSY, MILIEU_PANIC }
    constants! { MILIEU_REFUSE_CONFLICT, MILIEU_OURS, MILIEU_THEIRS }
    constants! { MILIEU_RENAMED, MILIEU_DEPRECATED }
    constants! { MILIEU_TAKEN, MILIEU_OUTRANKED, MILIEU_NOT_ALLOWED }
    constants! { MILIEU_FIXED, MILIEU_FOLLOWING, MILIEU_CAPTURED }
    constants! { MILIEU_WITHOUT_LAYERS, MILIEU_WITHOUT_SHARING, MILIEU_WITHOUT_ASSIGNMENT }
    #[cfg(feature = "stream")]
    {
        constants! { MILIEU_ENDED, MILIEU_REFUSED, MILIEU_SYSTEM, MILIEU_NOW }
        constants! { MILIEU_I8, MILIEU_BYTES, MILIEU_JSON }
        constants! { MILIEU_STRUCT, MILIEU_EXPRESSION, MILIEU_FIELDS, MILIEU_FUNCTIONS }
        constants! { MILIEU_OPTIONAL }
        constants! { MILIEU_MODE_PRIVATE, MILIEU_MODE_WHOLE, MILIEU_MODE_BODY }
    }
    lines
}

/// The compilers for the machine that this is compiled for, which may be emulated.
fn compilers_for_this() -> Vec<&'static str> {
    const OTHERS: [&str; 4] = [
        "i686-linux-gnu-gcc",
        "arm-linux-gnueabihf-gcc",
        "aarch64-linux-gnu-gcc",
        "riscv64-linux-gnu-gcc",
    ];
    let machine = if cfg!(target_arch = "x86") {
        "i686"
    } else {
        std::env::consts::ARCH
    };
    let others = OTHERS.into_iter().filter(|it| has(it));
    let mut compilers: Vec<_> = compilers(Language::C).into_iter().chain(others).collect();
    compilers.retain(|it| {
        let told = Command::new(it).arg("-dumpmachine").output();
        told.is_ok_and(|it| it.stdout.starts_with(machine.as_bytes()))
    });
    if compilers.is_empty() {
        skipped(&format!("there is no C compiler for {machine}"));
    }
    compilers
}

#[test]
fn both_sides_lay_types_out_alike() {
    let folder = scratch("layout");
    let source = folder.join("layout.c");
    let mut streams = String::new();
    for (is_there, header) in [
        (cfg!(feature = "stream"), "rights"),
        (cfg!(feature = "stream"), "modes"),
        (cfg!(feature = "links"), "engines"),
        (cfg!(feature = "sources"), "sources"),
        (cfg!(any(feature = "http", feature = "mqtt")), "foreign"),
    ] {
        if is_there {
            streams += &format!("#include <milieu/{header}.h>\n");
        }
    }
    let text = format!(
        "#include <milieu.h>\n#include <milieu/files.h>\n{streams}#include <stddef.h>\n{}",
        assertions()
    );
    fs::write(&source, &text).expect("a file");
    let compile = |compiler| {
        let mut compile = Command::new(compiler);
        compile.args(["-std=c11", "-fsyntax-only", "-I"]);
        compile.arg(package().join("include")).arg(&source);
        compile.output().expect("it is there")
    };
    for compiler in compilers_for_this() {
        let output = compile(compiler);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{compiler}: {said}");
    }
    // Not by an accident: what does not hold is told.
    fs::write(&source, text.replacen("== ", "== 1 + ", 1)).expect("a file");
    for compiler in compilers_for_this() {
        assert!(!compile(compiler).status.success(), "{compiler}");
    }
}

/// A program may begin with any of them.
#[cfg(feature = "stream")]
#[test]
fn every_header_stands_by_itself() {
    let folder = package().join("include/milieu");
    let entries = fs::read_dir(&folder).expect("the folder can be listed");
    let headers = entries.map(|entry| entry.expect("an entry").path());
    let is_c = |path: &std::path::PathBuf| path.extension().is_some_and(|ending| ending == "h");
    let headers: Vec<_> = headers.filter(is_c).collect();
    assert!(headers.len() > 3);
    let scratch = scratch("headers");
    for (language, source) in [(Language::C, "first.c"), (Language::Cpp, "first.cpp")] {
        let source = scratch.join(source);
        for compiler in compilers(language) {
            for header in &headers {
                let header = header.display();
                fs::write(&source, format!("#include \"{header}\"\n")).expect("a file");
                let mut compile = Command::new(compiler);
                compile.args(["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"]);
                compile.arg(package().join("include")).arg(&source);
                let output = compile.output().expect("it is there");
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{compiler}: {header}: {said}");
            }
        }
    }
}
