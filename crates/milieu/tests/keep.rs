//! What streams remember survives the program.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use crate::support::Machine;
use milieu::Error;
use milieu::stream::{CannotRestore, Delivery, Flow, Published, Status};

/// Where the child is told what to do.
const TOLD: &str = "MILIEU_TEST_LIFE";
const NEVER: Duration = Duration::from_secs(100_000);
const HIGH: &str = "/weather/temperature | extreme highest window=1000d";

/// One life: publishes these, prints what is a new high, and ends somehow.
fn life(told: &str) {
    let mut words = told.split(' ');
    let mut next = || words.next().expect("a word");
    let (folder, end) = (Path::new(next()), next());
    let machine = Machine::new();
    let milieu = machine.open();
    let file = folder.join("kept/streams");
    let keeping = milieu.keep_streams(file, NEVER).expect("it is well");
    let high = milieu.flow(HIGH).expect("a flow");
    let mut high = high.subscribe(Delivery::default()).expect("it can be run");
    let weather = milieu
        .streams()
        .publisher::<f64>("/weather/temperature")
        .expect("free");
    for number in words {
        let published = weather.publish(number.parse().expect("a number"));
        assert!(matches!(published, Published::Accepted(_)));
    }
    while let Some(event) = high.try_next() {
        println!("high {}", event.get::<f64>().expect("a number"));
    }
    match end {
        "saves" => {
            keeping.save().expect("there is room");
            std::process::abort();
        }
        "aborts" => std::process::abort(),
        // Subscriptions go before what keeps them.
        _ => drop((high, keeping)),
    }
}

#[test]
fn a_new_high_of_the_day_survives_a_restart() {
    if let Ok(told) = std::env::var(TOLD) {
        return life(&told);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let lives = |end: &str, numbers: &str| {
        let told = format!("{} {end} {numbers}", folder.path().display());
        let output = Command::new(std::env::current_exe().expect("this test"))
            .args([
                "--exact",
                "keep::a_new_high_of_the_day_survives_a_restart",
                "--nocapture",
            ])
            .env(TOLD, told)
            .output()
            .expect("it starts");
        let text = String::from_utf8(output.stdout).expect("text");
        let highs = text.lines().filter_map(|line| line.split("high ").nth(1));
        highs.map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lives("saves", "20 25 22"), ["20", "25"]);
    assert_eq!(lives("ends", "24 26 25"), ["26"]);
    assert_eq!(lives("ends", "26 24"), [""; 0]);
    // What was not written is not known.
    assert_eq!(lives("aborts", "27"), ["27"]);
    assert_eq!(lives("saves", "27 28"), ["27", "28"]);
}

#[test]
fn the_file_is_written_now_and_then_and_what_is_wrong_with_it_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("streams");
    let machine = Machine::new();
    let milieu = machine.open();
    let keeping = milieu
        .keep_streams(&file, Duration::from_millis(5))
        .expect("a new file");
    while !file.exists() {
        std::thread::yield_now();
    }
    drop(keeping);
    let keeping = milieu
        .keep_streams(&file, NEVER)
        .expect("as it was written");
    keeping.save().expect("there is room");
    assert_eq!(keeping.status(), Status::Working);
    assert!(keeping.not_restored().is_empty());
    // A folder stands where the file was.
    std::fs::remove_file(&file).expect("it is there");
    std::fs::create_dir(&file).expect("there is room");
    assert!(matches!(keeping.save(), Err(Error::Store(_))));
    assert!(matches!(keeping.status(), Status::Failing(_)));
    drop(keeping);
    assert!(matches!(
        milieu.keep_streams(&file, NEVER).err(),
        Some(Error::Store(_))
    ));

    let foreign = folder.path().join("foreign.ini");
    std::fs::write(&foreign, "[/sw/keep]\n").expect("there is room");
    let wrong = milieu
        .keep_streams(&foreign, NEVER)
        .err()
        .expect("it is no snapshot");
    let shown = wrong.to_string();
    assert!(
        shown.contains("foreign.ini") && shown.contains("no snapshot"),
        "{shown}"
    );
    // And it is left alone.
    assert_eq!(
        std::fs::read_to_string(&foreign).expect("it is there"),
        "[/sw/keep]\n"
    );
}

#[test]
fn a_callback_that_saves_while_the_file_is_written_is_refused_and_waits_for_nobody() {
    let folder = tempfile::tempdir().expect("a folder");
    let machine = Machine::new();
    let milieu = machine.open();
    let keeping = milieu
        .keep_streams(folder.path().join("streams"), Duration::from_millis(1))
        .expect("a new file");
    let keeping = Arc::new(keeping);
    let (saves, saved) = mpsc::channel();
    let streams = milieu.streams().clone();
    let keeper = Arc::clone(&keeping);
    let says = thread::spawn(move || {
        let weather = Flow::Stream("/weather/temperature".into());
        let listening = streams.listen(&weather, move |_| {
            // Meanwhile the file is to be written, which waits for this to end.
            thread::sleep(Duration::from_millis(200));
            let _ = saves.send(keeper.save());
        });
        let listening = listening.expect("it can be run");
        let weather = streams.publisher::<f64>("/weather/temperature");
        let _ = weather.expect("free").publish(20.0);
        drop(listening);
    });
    let refused = saved
        .recv_timeout(Duration::from_secs(20))
        .expect("it waits for nobody");
    assert!(
        matches!(refused, Err(Error::Snapshot(_, CannotRestore::Inside))),
        "{refused:?}"
    );
    says.join().expect("nothing is wrong");
    keeping.save().expect("there is room");
}
