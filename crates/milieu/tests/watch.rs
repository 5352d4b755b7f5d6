//! What others write into the files, in contexts.

use std::{
    fs,
    os::unix::fs::symlink,
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

use crate::support::Machine;
use milieu::{
    Environment, Milieu, News, Text, Watching,
    keys::{Name, Namespace},
    store::{Change, Store, Strategy, watch::FileNews},
};

#[derive(Environment)]
#[environment(root = "/sw/hello")]
struct Settings {
    #[key(default = "en", was = ["/hello/language"])]
    language: Text,
    #[key(default = 1, range = "1-10")]
    times: i32,
}

fn watched(machine: &Machine) -> (Milieu, milieu::Context<Settings>, Receiver<News>, Watching) {
    let milieu = machine.open();
    let cx = milieu.context::<Settings>().unwrap();
    let (tell, news) = channel();
    let watching = milieu.watch(move |news| drop(tell.send(news))).unwrap();
    (milieu, cx, news, watching)
}

const SOON: Duration = Duration::from_secs(20);

fn elsewhere(machine: &Machine, name: &str, value: &str) {
    let mut store: Store = machine.store();
    let change = Change::set(Name::parse(name).unwrap(), value);
    store
        .commit(Namespace::User, &[change], Strategy::Ours)
        .unwrap();
}

#[test]
fn what_another_process_writes_is_there_at_the_next_synchronization() {
    let machine = Machine::new().user("/sw/hello/language = de\n");
    let (_milieu, mut cx, news, _watching) = watched(&machine);
    elsewhere(&machine, "/sw/hello/language", "fr");
    let News::Changed(changed) = news.recv_timeout(SOON).unwrap() else {
        panic!("no change");
    };
    assert_eq!(changed.len(), 1);
    assert_eq!(changed[0].before.as_ref().unwrap().text, "de");
    assert_eq!(changed[0].after.as_ref().unwrap().text, "fr");
    let origin = changed[0].after.as_ref().unwrap().origin.as_ref().unwrap();
    assert!(origin.to_string().ends_with("hello.ini:1"), "{origin}");
    assert_eq!(&*cx.language, "de", "nothing between synchronizations");
    cx.sync();
    assert_eq!(&*cx.language, "fr");
}

#[test]
fn whoever_waits_for_news_is_woken() {
    let machine = Machine::new().user("/sw/hello/times = 1\n");
    let (_milieu, mut cx, _news, _watching) = watched(&machine);
    let waiting = std::thread::spawn(move || {
        let deadline = Instant::now() + SOON;
        while cx.times == 1 && Instant::now() < deadline {
            cx.wait(deadline);
            cx.sync();
        }
        cx.times
    });
    fs::write(machine.user_file(), "# by hand\n[/sw/hello]\ntimes = 7\n").unwrap();
    assert_eq!(waiting.join().unwrap(), 7);
}

#[test]
fn a_wrong_value_keeps_the_good_ones_and_is_said_once() {
    let machine = Machine::new().user("[/sw/hello]\ntimes = 2\nlanguage = de\n");
    let (_milieu, mut cx, news, _watching) = watched(&machine);
    fs::write(
        machine.user_file(),
        "[/sw/hello]\ntimes = 99\nlanguage = fr\n",
    )
    .unwrap();
    let News::Refused(invalid) = news.recv_timeout(SOON).unwrap() else {
        panic!("it is wrong");
    };
    let text = invalid[0].to_string();
    assert!(
        text.contains("hello.ini:2: /sw/hello/times: `99` is out of range"),
        "{text}"
    );
    cx.sync();
    assert_eq!((cx.times, &*cx.language), (2, "de"));
    fs::write(machine.user_file(), "[/sw/hello]\nnonsense\n").unwrap();
    let News::File(FileNews::Invalid { error, .. }) = news.recv_timeout(SOON).unwrap() else {
        panic!("it cannot be understood");
    };
    assert!(error.to_string().contains("hello.ini:2"), "{error}");
    fs::write(machine.user_file(), "[/sw/hello]\ntimes = 3\n").unwrap();
    let mut changed = false;
    while !changed {
        changed = matches!(news.recv_timeout(SOON).unwrap(), News::Changed(_));
    }
    cx.sync();
    assert_eq!((cx.times, &*cx.language), (3, "en"));
}

#[test]
fn what_the_program_has_assigned_stays_in_force_until_it_is_persisted() {
    let machine = Machine::new().user("[/sw/hello]\ntimes = 2\n");
    let (milieu, mut cx, news, _watching) = watched(&machine);
    cx.set::<at::times>(5).unwrap();
    elsewhere(&machine, "/sw/hello/language", "it");
    assert!(matches!(news.recv_timeout(SOON).unwrap(), News::Changed(_)));
    cx.sync();
    assert_eq!((cx.times, &*cx.language), (5, "it"));
    milieu.persist().unwrap();
    elsewhere(&machine, "/sw/hello/times", "6");
    assert!(matches!(news.recv_timeout(SOON).unwrap(), News::Changed(_)));
    cx.sync();
    assert_eq!(cx.times, 6, "once it is persisted, it is the file's");
}

#[test]
fn a_swapped_link_counts_and_old_names_are_understood() {
    let machine = Machine::new().user("/hello/language = de\n");
    let (milieu, mut cx, news, _watching) = watched(&machine);
    assert_eq!(&*cx.language, "de");
    let told = milieu.notices()[0].diagnostics()[0].message.clone();
    assert_eq!(told, "`/hello/language` is now `/sw/hello/language`");
    // As a ConfigMap does it: another folder behind the same link.
    let file = machine.user_file();
    let folder = file.parent().unwrap();
    for (version, language) in [("v1", "fr"), ("v2", "it")] {
        fs::create_dir(folder.join(version)).unwrap();
        let text = format!("/hello/language = {language}\n");
        fs::write(folder.join(version).join("hello.ini"), text).unwrap();
    }
    symlink("v1", folder.join("..data")).unwrap();
    symlink("..data/hello.ini", folder.join("new")).unwrap();
    fs::rename(folder.join("new"), &file).unwrap();
    let wait_for = |cx: &mut milieu::Context<Settings>, language: &str| {
        while &*cx.language != language {
            assert!(matches!(news.recv_timeout(SOON).unwrap(), News::Changed(_)));
            cx.sync();
        }
    };
    wait_for(&mut cx, "fr");
    symlink("v2", folder.join("..data_tmp")).unwrap();
    fs::rename(folder.join("..data_tmp"), folder.join("..data")).unwrap();
    wait_for(&mut cx, "it");
    // Assigned, it is written under the name of today, and the old one goes.
    cx.set::<at::language>("es").unwrap();
    milieu.persist().unwrap();
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        "/sw/hello/language = es\n"
    );
}

#[test]
fn what_the_program_has_written_is_not_undone_by_a_file_that_was_read_before() {
    let machine = Machine::new();
    let (milieu, mut cx, _news, _watching) = watched(&machine);
    for turn in 0..150 {
        let times = 2 + turn % 9;
        cx.set::<at::times>(times).unwrap();
        milieu.persist().unwrap();
        // Meanwhile the watch reads what the turn before has written, or this one.
        let until = Instant::now() + Duration::from_millis(u64::from(turn.unsigned_abs() % 6));
        loop {
            cx.sync();
            assert_eq!(cx.times, times, "turn {turn}");
            if Instant::now() >= until {
                break;
            }
        }
    }
}

mod visits {
    use super::*;

    milieu::layer! {
        /// Who asks.
        struct Session(String) = "session";
    }

    #[derive(Environment)]
    #[environment(root = "/sw/hello")]
    struct Visits {
        #[key("/sw/hello/%session%/times", default = 0)]
        times: i32,
    }

    #[test]
    fn what_one_thread_has_written_another_one_reads() {
        let machine = Machine::new();
        let milieu = machine.open();
        let _watching = milieu.watch(|_| ()).unwrap();
        let mut writer = milieu.context::<Visits>().unwrap();
        let mut readers: Vec<_> = (0..3)
            .map(|_| milieu.context::<Visits>().unwrap())
            .collect();
        for turn in 1..200 {
            let who = format!("visitor{turn}");
            writer.sync();
            {
                let mut here = writer.enter(Session(who.clone()));
                here.set::<at::times>(turn).unwrap();
            }
            milieu.persist().unwrap();
            let pause = u64::from(turn.unsigned_abs() % 5);
            std::thread::sleep(Duration::from_millis(pause));
            for reader in &mut readers {
                reader.sync();
                let there = reader.enter(Session(who.clone()));
                assert_eq!(there.times, turn);
            }
        }
    }
}
