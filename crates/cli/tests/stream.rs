//! `milieu stream`, against a program that runs.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use milieu::transfer::{Limits, Modes, Private, Rights, Value};
use milieu::{Control, Milieu};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// A folder for control sockets, which goes with it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_milieu"));
        command
            .args(["stream"])
            .args(arguments)
            .env("XDG_RUNTIME_DIR", self.0.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn text(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn errors(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    }
}

/// This process as a program with a control socket. The variable that says where
/// sockets are is the process's own, so that the socket is named here.
fn program() -> (Milieu, Control, String) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let app = format!("stream-test{number}");
    let milieu = Milieu::builder(&app).files(Vec::new()).start().unwrap();
    let milieu::Start::Run(milieu) = milieu else {
        panic!("nobody asked for help");
    };
    let control = milieu.control().unwrap();
    let path = control.path().to_str().unwrap().to_owned();
    (*milieu, control, path)
}

#[test]
fn a_running_program_is_listed_tapped_fed_and_drawn() {
    let folder = Folder::new();
    let (milieu, _control, socket) = program();
    let at = ["--socket", &socket];
    let publisher = milieu
        .streams()
        .publisher::<f64>("/weather/temperature")
        .unwrap();
    let _here = milieu.bind("/here", ["/weather/temperature"]).unwrap();
    let names = folder.text(&["ls", at[0], at[1]]);
    assert_eq!(
        names,
        "/here  -> /weather/temperature\n/weather/temperature\n"
    );
    let json = folder.text(&["ls", "/weather/*", "--json", at[0], at[1]]);
    assert_eq!(
        json,
        "{\"kind\":\"stream\",\"name\":\"/weather/temperature\"}\n"
    );

    let flow = "/weather/temperature | filter value > 32";
    let mut tap = folder.command(&["subscribe", flow, "--count", "2", at[0], at[1]]);
    let mut tap = tap.stdout(Stdio::piped()).spawn().unwrap();
    // The tap is there when the graph has a filter; rates come a while later.
    let drawn = loop {
        let drawn = folder.text(&["graph", "--seconds", "0.2", at[0], at[1]]);
        if drawn.contains("filter value > 32  (0 in, 0 out, 0/s)") {
            break drawn;
        }
        thread::sleep(Duration::from_millis(10));
    };
    let expected = "\
/weather/temperature  (0 in, 0 out, 0/s)
  /weather/temperature  (0 in, 0 out, 0/s)
    filter value > 32  (0 in, 0 out, 0/s)
      -> ";
    assert!(drawn.starts_with(expected), "{drawn}");
    for value in [30.0, 33.5, 31.0, 40.25] {
        let _ = publisher.publish(value);
    }
    let lines = BufReader::new(tap.stdout.take().unwrap()).lines();
    let values: Vec<f64> = lines
        .map(|line| {
            let event: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            assert_eq!(event["name"], "/weather/temperature");
            event["value"].as_f64().unwrap()
        })
        .collect();
    assert_eq!(values, [33.5, 40.25]);
    assert!(tap.wait().unwrap().success());
    let dot = folder.text(&["graph", "--dot", at[0], at[1]]);
    assert!(
        dot.starts_with("digraph streams {") && dot.contains("n0"),
        "{dot}"
    );

    let mut events = milieu
        .flow("/fed")
        .unwrap()
        .subscribe(Default::default())
        .unwrap();
    let mut feed = folder.command(&["publish", "/fed", at[0], at[1]]);
    let mut feed = feed.stdin(Stdio::piped()).spawn().unwrap();
    feed.stdin
        .take()
        .unwrap()
        .write_all(b"{\"celsius\":21.5}\n7\n")
        .unwrap();
    assert!(feed.wait().unwrap().success());
    for _ in 0..2 {
        assert!(events.wait_for(Duration::from_secs(20)).is_some());
    }
    let wrong = folder.errors(&["subscribe", "/a | fliter value > 1", at[0], at[1]]);
    assert!(
        wrong.contains("`fliter`") && wrong.contains("filter"),
        "{wrong}"
    );
    let wrong = folder.errors(&["publish", "/weather/temperature", at[0], at[1]]);
    assert!(wrong.contains("has a publisher already"), "{wrong}");
}

#[test]
fn a_flow_runs_over_sources_of_its_own() {
    let folder = Folder::new();
    let load = "/machine/load=machine.load every=50ms";
    let text = folder.text(&[
        "subscribe",
        "/machine/load",
        "--count",
        "2",
        "--source",
        load,
    ]);
    assert_eq!(text.lines().count(), 2);
    for line in text.lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(event["name"], "/machine/load");
        assert!(event["value"]["one_minute"].is_number(), "{event}");
    }
    let wrong = folder.errors(&["subscribe", "/a", "--source", "/a=machine.lode"]);
    assert!(wrong.contains("machine.lode"), "{wrong}");
    // A source that sees nothing says so at once, and goes on trying.
    let missing = folder.0.path().join("later");
    let later = format!("/later=file.content path={}", missing.display());
    let mut tap = folder.command(&["subscribe", "/later", "--count", "1", "--source", &later]);
    let mut tap = tap
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut errors = BufReader::new(tap.stderr.take().unwrap());
    errors.read_line(&mut said).unwrap();
    assert!(
        said.starts_with("warning: /later: ") && said.contains("no such file"),
        "{said}"
    );
    std::fs::write(&missing, "42").unwrap();
    let output = tap.wait_with_output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("42"));
    assert!(folder.text(&["sources"]).contains("machine.load\n"));
    assert!(folder.text(&["operators"]).contains("aggregate\n"));
}

#[test]
fn a_file_is_checked_and_written_in_other_languages() {
    let folder = Folder::new();
    let file = folder.0.path().join("station.flow");
    std::fs::write(&file, "/t | filter value > 32 | subscribe name=heat\n").unwrap();
    let file = file.to_str().unwrap();
    let xml = folder.text(&["convert", file, "--to", "xml"]);
    let again = folder.0.path().join("again.xml");
    std::fs::write(&again, &xml).unwrap();
    let again = folder.text(&["convert", again.to_str().unwrap(), "--to", "pipeline"]);
    assert_eq!(again, folder.text(&["convert", file, "--to", "pipeline"]));
    let wrong = folder.0.path().join("wrong.flow");
    std::fs::write(&wrong, "/t | filter value >\n").unwrap();
    let wrong = folder.errors(&["convert", wrong.to_str().unwrap(), "--to", "toml"]);
    assert!(wrong.contains("wrong.flow:1:"), "{wrong}");
}

#[test]
fn who_cannot_be_reached_is_named() {
    let folder = Folder::new();
    let wrong = folder.errors(&["ls"]);
    assert!(
        wrong.contains("no program with a control socket runs"),
        "{wrong}"
    );
    let wrong = folder.errors(&["ls", "--socket", "/nowhere/x.sock"]);
    assert!(
        wrong.contains("/nowhere/x.sock cannot be reached"),
        "{wrong}"
    );
}

#[test]
fn cases_are_run_and_accepted() {
    let folder = Folder::new();
    let file = folder.0.path().join("heat.cases");
    let text = "# heat\n/t | filter value > 90\n\n1 /t 88.0\n2 /t 91.5\n@2 91.0\n";
    std::fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap();
    let output = folder.run(&["test", path]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(2));
    let expected =
        ": heat\n    1 /t 88.0\n    2 /t 91.5\n  - @2 91.0\n  + @2 91.5\n0 passed, 1 failed\n";
    assert!(said.ends_with(expected), "{said}");
    let output = folder.run(&["test", "--json", path]);
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&said["case"], &said["passed"]),
        (&"heat".into(), &false.into())
    );
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        folder.text(&["test", "--update", path]),
        "1 passed, 0 failed\n"
    );
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        text.replace("91.0", "91.5")
    );
    assert_eq!(folder.text(&["test", path]), "1 passed, 0 failed\n");
    std::fs::write(&file, text.replace("2 /t 91.5", "2 /t warm")).unwrap();
    let wrong = folder.errors(&["test", path]);
    assert!(
        wrong.contains("heat.cases:5:1") && wrong.contains("no JSON"),
        "{wrong}"
    );
}

/// What a command wrote in a mode, as the bodies of events.
fn decoded(mode: &str, bytes: &[u8]) -> Vec<Value> {
    let mode = Modes::standard().named(mode).unwrap().clone();
    let mut decoder = mode.decoder(Limits::default(), Rights::NONE);
    let mut frames: Vec<Vec<u8>> = Vec::new();
    match mode.name() {
        "json" | "xml" => {
            let lines = bytes.split_inclusive(|byte| *byte == b'\n');
            frames.extend(lines.map(|line| line.strip_suffix(b"\n").unwrap().to_vec()));
        }
        "data-stream" | "delta" => {
            let mut rest = bytes;
            while let Some((length, behind)) = rest.split_at_checked(4) {
                let length = u32::from_be_bytes(length.try_into().unwrap());
                let (frame, behind) = behind.split_at(length as usize);
                frames.push(frame.to_vec());
                rest = behind;
            }
            assert!(rest.is_empty());
        }
        // Each begins with the map that an event is.
        _ => {
            let first = bytes[0];
            let starts: Vec<usize> = (0..bytes.len())
                .filter(|at| {
                    bytes[*at] == first && bytes[at + 1..].windows(4).next() == Some(&bytes[1..5])
                })
                .collect();
            let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
            frames.extend(
                starts
                    .iter()
                    .zip(ends)
                    .map(|(start, end)| bytes[*start..end].to_vec()),
            );
        }
    }
    let frames = frames.iter();
    frames
        .map(|frame| decoder.decode(frame).unwrap().value(Rights::READ).unwrap())
        .collect()
}

#[test]
fn events_are_printed_in_every_mode() {
    let folder = Folder::new();
    let (milieu, _control, socket) = program();
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Patient {
        room: String,
        pulse: Private<u16>,
    }
    let publisher = milieu.streams().publisher::<Patient>("/patient").unwrap();
    for mode in ["json", "xml", "messagepack", "cbor", "data-stream", "delta"] {
        let arguments = ["subscribe", "/patient", "--mode", mode, "--count", "3"];
        let mut tap = folder.command(&arguments);
        let tap = tap.args(["--socket", &socket]).stdout(Stdio::piped());
        let tap = tap.spawn().unwrap();
        while milieu.streams().view().unwrap().subscribers.is_empty() {
            thread::sleep(Duration::from_millis(5));
        }
        for room in ["a", "two\nlines", "c"] {
            let pulse = Private::new(71);
            let _ = publisher.publish(Patient {
                room: room.into(),
                pulse,
            });
        }
        let output = tap.wait_with_output().unwrap();
        assert!(output.status.success());
        let bodies = decoded(mode, &output.stdout);
        let rooms: Vec<_> = bodies
            .iter()
            .map(|body| body.field("room").cloned())
            .collect();
        let expected = ["a", "two\nlines", "c"].map(|room| Some(Value::from(room)));
        assert_eq!(rooms, expected, "{mode}");
        // Whoever attaches may not read what is private.
        let hidden = |body: &Value| matches!(body.field("pulse"), None | Some(Value::Null));
        assert!(bodies.iter().all(hidden), "{mode}: {bodies:?}");
        while !milieu.streams().view().unwrap().subscribers.is_empty() {
            thread::sleep(Duration::from_millis(5));
        }
    }
    // The flow may say it, too; and a flow of its own is printed the same way.
    let timer = "/tick=timer.every interval=20ms";
    let flow = "/tick | subscribe mode=delta";
    let output = folder.run(&["subscribe", flow, "--count", "2", "--source", timer]);
    assert_eq!(decoded("delta", &output.stdout).len(), 2);
    let arguments = [
        "subscribe",
        "/tick",
        "--mode",
        "xml",
        "--count",
        "2",
        "--source",
        timer,
    ];
    assert_eq!(decoded("xml", &folder.run(&arguments).stdout).len(), 2);
    let wrong = folder.errors(&["subscribe", "/tick", "--mode", "jsn"]);
    assert!(
        wrong.contains("'json'") && wrong.contains("data-stream"),
        "{wrong}"
    );
}

#[test]
fn values_are_published_in_modes_that_say_them_alone() {
    let folder = Folder::new();
    let (milieu, _control, socket) = program();
    let mut events = milieu
        .flow("/fed")
        .unwrap()
        .subscribe(Default::default())
        .unwrap();
    let values = [
        Value::from(21.5),
        [1, 2].map(Value::Int).into_iter().collect(),
    ];
    for mode in ["json", "xml", "messagepack", "cbor"] {
        let of_mode = Modes::standard().named(mode).unwrap().clone();
        for value in &values {
            let mut bytes = Vec::new();
            of_mode
                .encode_value(value, Rights::NONE, &mut bytes)
                .unwrap();
            let mut feed =
                folder.command(&["publish", "/fed", "--mode", mode, "--socket", &socket]);
            let mut feed = feed.stdin(Stdio::piped()).spawn().unwrap();
            feed.stdin.take().unwrap().write_all(&bytes).unwrap();
            assert!(feed.wait().unwrap().success());
            let event = events.wait_for(Duration::from_secs(20)).unwrap();
            assert_eq!(event.value(Rights::NONE).unwrap(), *value, "{mode}");
        }
    }
    let mut feed = folder.command(&["publish", "/fed", "--socket", &socket]);
    let feed = feed.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut feed = feed.spawn().unwrap();
    feed.stdin.take().unwrap().write_all(b"1\nwarm\n").unwrap();
    let output = feed.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said.contains("line 2 of standard input cannot be read as json"),
        "{said}"
    );
}

#[test]
fn binary_modes_are_kept_from_terminals() {
    let folder = Folder::new();
    let device = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&device).unwrap();
    unlockpt(&device).unwrap();
    let path = ptsname(&device, Vec::new()).unwrap();
    let path = path.to_str().unwrap();
    let terminal = std::fs::File::options().write(true).open(path).unwrap();
    let timer = "/tick=timer.every interval=20ms";
    let mut command = folder.command(&["subscribe", "/tick", "--mode", "cbor", "--source", timer]);
    let command = command.stdout(terminal).stderr(Stdio::piped());
    let output = command.spawn().unwrap().wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("binary") && said.contains("xxd"), "{said}");
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let folder = Folder::new();
    let timer = "/tick=timer.every interval=5ms";
    let mut tap = folder.command(&["subscribe", "/tick", "--source", timer]);
    let mut tap = tap
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(tap.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let output = tap.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn programs_that_were_killed_leave_nothing_behind() {
    if std::env::var_os("STREAM_TEST_CHILD").is_some() {
        let (_milieu, control, _) = program();
        println!("at {}", control.path().display());
        thread::sleep(Duration::from_secs(60));
        return;
    }
    let folder = Folder::new();
    let child = || {
        let mut child = Command::new(std::env::current_exe().unwrap());
        let child = child
            .args([
                "--exact",
                "stream::programs_that_were_killed_leave_nothing_behind",
                "--nocapture",
            ])
            .env("STREAM_TEST_CHILD", "1")
            .env("XDG_RUNTIME_DIR", folder.0.path())
            .stdout(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let path = lines.find_map(|line| {
            let line = line.unwrap();
            Some(line.split_once("at ")?.1.to_owned())
        });
        (child, std::path::PathBuf::from(path.unwrap()))
    };
    let (mut living, alive) = child();
    let (mut killed, left) = child();
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(left.exists(), "it could not clean up");
    // The one that lives is meant, as if the other had never been.
    assert_eq!(folder.text(&["ls"]), "");
    assert!(!left.exists() && alive.exists());
    // One that is stopped lives, though it does not answer.
    let pid = living.id().to_string();
    let stop = |signal: &str| {
        assert!(
            Command::new("kill")
                .args([signal, pid.as_str()])
                .status()
                .unwrap()
                .success()
        )
    };
    stop("-STOP");
    let listed = folder.command(&["ls", "--pid", "1"]).output().unwrap();
    assert_eq!(listed.status.code(), Some(2));
    assert!(alive.exists());
    stop("-CONT");
    assert_eq!(folder.text(&["ls", "--pid", &pid]), "");
    let app = alive.file_stem().unwrap().to_str().unwrap();
    let (app, _) = app.rsplit_once('-').unwrap();
    assert_eq!(offered(&folder, &["ls", "--app", ""]), [app]);
    assert_eq!(offered(&folder, &["ls", "--pid", ""]), [&*pid]);
    let wrong = folder.errors(&["ls", "--app", &app.replace("test", "tset")]);
    assert!(wrong.contains(&format!("did you mean `{app}`?")), "{wrong}");
    living.kill().unwrap();
    living.wait().unwrap();
    assert!(
        folder
            .errors(&["ls"])
            .contains("no program with a control socket runs")
    );
    assert!(!alive.exists());
}

/// What a shell is offered for the last of these words.
fn offered(folder: &Folder, words: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_milieu"))
        .args(["--", "milieu", "stream"])
        .args(words)
        .env("MILIEU_COMPLETE", "fish")
        .env("XDG_RUNTIME_DIR", folder.0.path())
        .output()
        .unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let words = text
        .lines()
        .map(|line| line.split('\t').next().unwrap().to_owned());
    words.filter(|word| !word.starts_with('-')).collect()
}

#[test]
fn shells_complete_names_flows_and_sources() {
    let folder = Folder::new();
    let (milieu, _control, socket) = program();
    let _temperature = milieu
        .streams()
        .publisher::<f64>("/weather/temperature")
        .unwrap();
    let _wind = milieu.streams().publisher::<f64>("/weather/wind").unwrap();
    let at = |words: &[&str]| {
        offered(
            &folder,
            &[&["subscribe", "--socket", &socket], words].concat(),
        )
    };
    assert_eq!(at(&["/"]), ["/weather/"]);
    assert_eq!(
        at(&["/weather/"]),
        ["/weather/temperature", "/weather/wind"]
    );
    assert_eq!(at(&["/weather/wind | fil"]), ["/weather/wind | filter"]);
    assert_eq!(
        at(&["/weather/wind, /weather/t"]),
        ["/weather/wind, /weather/temperature"]
    );
    assert_eq!(at(&["--mode", "d"]), ["delta", "data-stream"]);
    let names = offered(&folder, &["ls", "--socket", &socket, "/weather/w"]);
    assert_eq!(names, ["/weather/wind"]);
    let sources = offered(&folder, &["subscribe", "--source", "/load=machine.l"]);
    assert_eq!(sources, ["/load=machine.load"]);
    // Of a flow that runs here, the names are those of its sources.
    let own = offered(
        &folder,
        &["subscribe", "--source", "/load=machine.load", "/"],
    );
    assert_eq!(own, ["/load"]);
    // Nobody runs, and nothing is said.
    assert_eq!(offered(&folder, &["ls", "/"]), Vec::<String>::new());
    assert_eq!(offered(&folder, &["ls", "--app", ""]), Vec::<String>::new());
}

#[test]
fn whoever_waits_for_nothing_is_told() {
    let folder = Folder::new();
    let (milieu, _control, socket) = program();
    let _wind = milieu.streams().publisher::<f64>("/weather/wind").unwrap();
    let said = |arguments: &[&str]| {
        let output = folder.run(arguments);
        assert!(output.status.success(), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let note = "note: nothing stands at `/weather/wnid` now; did you mean `/weather/wind`?\n";
    let at = ["--socket", &socket];
    let flow = "/weather/wnid | filter value > 3";
    assert_eq!(
        said(&["subscribe", flow, "--seconds", "0.01", at[0], at[1]]),
        note
    );
    assert_eq!(said(&["ls", "/weather/wnid", at[0], at[1]]), note);
    assert_eq!(
        said(&["subscribe", "/weather/*", "--seconds", "0.01", at[0], at[1]]),
        ""
    );
    let source = "/weather/wind=machine.load";
    assert_eq!(
        said(&["subscribe", flow, "--seconds", "0.01", "--source", source]),
        note
    );
    // Mistakes in flows are shown as they are for flows that run here.
    let wrong = "/weather/wind | fliter value > 3";
    let here = folder.errors(&["subscribe", wrong, "--source", source]);
    assert_eq!(folder.errors(&["subscribe", wrong, at[0], at[1]]), here);
    let wrong = folder.errors(&["subscribe", "/a", "--source", "/a=machine.laod"]);
    assert!(wrong.contains("did you mean `machine.load`?"), "{wrong}");
}

#[test]
fn what_a_tap_cannot_do_is_an_error() {
    let folder = Folder::new();
    let (_milieu, _control, socket) = program();
    for (flow, what) in [
        ("/t; /t | publish /u", "leave out `publish`"),
        ("/t | set /u", "leave out `set`"),
        ("/t | subscribe name=mine", "leave out its `name`"),
        ("/t; /u", "here are several"),
    ] {
        let own = ["subscribe", flow, "--source", "/t=load", "--seconds", "1"];
        let there = ["subscribe", flow, "--seconds", "1", "--socket", &socket];
        for arguments in [&own, &there] {
            let errors = folder.errors(arguments);
            assert!(errors.contains(what), "{arguments:?}: {errors}");
        }
    }
}

#[test]
fn what_links_carry_is_drawn() {
    use milieu::stream::engine::Hub;
    use milieu::stream::link::Terms;
    use milieu::stream::{Delivery, Flow, Streams, SystemClock, operators};
    use milieu::transfer::Origin;

    let folder = Folder::new();
    let (milieu, _control, socket) = program();
    let garden = Streams::new(operators::catalogue(), SystemClock, Origin("g".into()), 1);
    let hub = Hub::new().apart();
    let links = [
        milieu.streams().join(hub.join("kitchen"), Terms::open()),
        garden.join(hub.join("garden"), Terms::open()),
    ];
    let settle = || while links.iter().filter(|link| link.poll()).count() > 0 {};
    let flow = |name: &str| Flow::Stream(name.into());
    let _there = garden
        .subscribe(&flow("/oven"), Delivery::default())
        .unwrap();
    let _here = milieu
        .streams()
        .subscribe(&flow("/bed"), Delivery::default())
        .unwrap();
    let oven = milieu.streams().publisher::<f64>("/oven").unwrap();
    let bed = garden.publisher::<f64>("/bed").unwrap();
    settle();
    let _ = (oven.publish(180.0), bed.publish(12.5), bed.publish(12.0));
    settle();
    let at = ["--seconds", "0", "--socket", &socket];
    let text = folder.text(&[&["graph"], &at[..]].concat());
    assert!(text.contains("  => garden  (1 sent)\n"), "{text}");
    assert!(text.contains("  <= garden  (2 taken)\n"), "{text}");
    let json = folder.text(&[&["graph", "--json"], &at[..]].concat());
    let graph: serde_json::Value = serde_json::from_str(&json).unwrap();
    let ends = graph["ends"].as_array().unwrap();
    assert_eq!(ends.len(), 2, "{json}");
    assert_eq!(
        (&ends[0]["name"], &ends[0]["way"]),
        (&"/bed".into(), &"in".into())
    );
    assert_eq!(
        (&ends[1]["name"], &ends[1]["sent"]),
        (&"/oven".into(), &1.into())
    );
}
