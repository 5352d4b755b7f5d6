//! The file itself: written, replaced, removed, and what a watcher is asked for.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use milieu_store::watch::{Files, Pace};

use super::{PATIENCE, Watched, folder, patient, pause, shell};

#[test]
fn a_file_that_is_written_in_place() {
    let file = folder("in-place").join("f");
    fs::write(&file, "old").unwrap();
    let watched = Watched::at(patient(), &[&file]);
    watched.nothing();
    fs::write(&file, "new").unwrap();
    watched.until_whole(&file, "new");
    shell(file.parent().unwrap(), "echo -n er >> f");
    watched.until_whole(&file, "newer");
    watched.settle();
    watched.nothing();
}

#[test]
fn a_file_that_is_written_slowly_is_not_seen_half() {
    let file = folder("slowly").join("f");
    fs::write(&file, "old").unwrap();
    let watched = Watched::at(patient(), &[&file]);
    let mut writer = fs::File::create(&file).unwrap();
    for part in ["a", "b", "c"] {
        pause();
        writer.write_all(part.as_bytes()).unwrap();
    }
    pause();
    drop(writer);
    watched.until_whole(&file, "abc");
}

#[test]
fn a_file_that_stays_open_is_seen_when_the_writer_pauses() {
    let file = folder("open").join("f");
    let watched = Watched::new(&[&file]);
    let mut writer = fs::File::create(&file).unwrap();
    for content in ["a", "ab"] {
        writer
            .write_all(&content.as_bytes()[content.len() - 1..])
            .unwrap();
        watched.until(&file, Some(content));
    }
}

#[test]
fn writing_without_end_is_seen_all_the_same() {
    let file = folder("without-end").join("f");
    fs::write(&file, "").unwrap();
    let pace = Pace {
        at_most: Duration::from_millis(100),
        ..Pace::default()
    };
    let watched = Watched::at(pace, &[&file]);
    let mut writer = fs::File::create(&file).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while watched.news.try_recv().is_err() {
        assert!(
            Instant::now() < deadline,
            "nothing is told while the file is written"
        );
        writer.write_all(b".").unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_file_that_is_replaced() {
    let folder = folder("replaced");
    let file = folder.join("f");
    fs::write(&file, "old").unwrap();
    let watched = Watched::new(&[&file]);
    for turn in 0..3 {
        fs::write(folder.join("new"), format!("{turn}")).unwrap();
        fs::rename(folder.join("new"), &file).unwrap();
        watched.until_whole(&file, &turn.to_string());
    }
    shell(&folder, "sed -i s/2/3/ f");
    watched.until(&file, Some("3"));
    shell(&folder, "printf 4 > g; mv g f");
    watched.until(&file, Some("4"));
    shell(&folder, "printf 5 > g; ln -f g f");
    watched.until(&file, Some("5"));
}

#[test]
fn editors_that_move_the_old_file_away_first() {
    let folder = folder("editors");
    let file = folder.join("f");
    fs::write(&file, "0").unwrap();
    let watched = Watched::at(patient(), &[&file]);
    for turn in 1..10 {
        let text = turn.to_string();
        fs::rename(&file, folder.join("f~")).unwrap();
        pause();
        let mut writer = fs::File::create_new(&file).unwrap();
        pause();
        writer.write_all(text.as_bytes()).unwrap();
        writer.sync_all().unwrap();
        drop(writer);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        fs::remove_file(folder.join("f~")).unwrap();
        watched.until_whole(&file, &text);
    }
}

#[test]
fn a_file_that_is_removed_and_written_anew() {
    let file = folder("anew").join("f");
    fs::write(&file, "0").unwrap();
    let watched = Watched::at(patient(), &[&file]);
    for turn in 1..10 {
        // As version control does: nothing of this is seen but the end.
        let text = turn.to_string();
        fs::remove_file(&file).unwrap();
        if turn % 2 == 0 {
            pause();
        }
        let mut writer = fs::File::create_new(&file).unwrap();
        pause();
        writer.write_all(text.as_bytes()).unwrap();
        drop(writer);
        watched.until_whole(&file, &text);
    }
}

#[test]
fn a_file_that_is_removed_and_comes_back() {
    let file = folder("back").join("f");
    fs::write(&file, "0").unwrap();
    let watched = Watched::new(&[&file]);
    fs::remove_file(&file).unwrap();
    watched.until(&file, None);
    fs::write(&file, "again").unwrap();
    watched.until(&file, Some("again"));
    // A link is as good as a file, and complete at once.
    let watched = Watched::at(patient(), &[&file]);
    fs::rename(&file, file.with_file_name("g")).unwrap();
    pause();
    symlink("g", &file).unwrap();
    let start = Instant::now();
    watched.until(&file, Some("again"));
    // So is a file that is moved here.
    fs::remove_file(&file).unwrap();
    pause();
    fs::rename(file.with_file_name("g"), &file).unwrap();
    watched.until(&file, Some("again"));
    assert!(
        start.elapsed() < patient().unfinished,
        "it was waited for more"
    );
}

#[test]
fn paths_are_looked_at_again_when_asked() {
    let folder = folder("again");
    let (told, news) = channel();
    let path = folder.join("f");
    let mut left = 3;
    let files = Files::start(Pace::default(), move |turn| {
        for path in turn.paths().map(Path::to_owned).collect::<Vec<_>>() {
            left -= 1;
            if left > 0 {
                turn.again(&path, Duration::from_millis(5));
            }
            told.send(left).unwrap();
        }
    })
    .unwrap();
    files.add(&path).unwrap();
    files.again(&path, Duration::ZERO);
    for expected in [2, 1, 0] {
        assert_eq!(news.recv_timeout(PATIENCE), Ok(expected));
    }
    assert_eq!(
        news.recv_timeout(Duration::from_millis(50)),
        Err(RecvTimeoutError::Timeout)
    );
}

#[test]
fn the_thread_ends_with_its_watcher() {
    let file = folder("drop").join("f");
    let watched = Watched::new(&[&file]);
    drop(watched.files);
    // The thread has dropped the handler, and with it the sender.
    assert!(
        watched
            .news
            .recv_timeout(Duration::ZERO)
            .is_err_and(|error| error == RecvTimeoutError::Disconnected)
    );

    // Also where the handler itself drops the watcher.
    let (hand_over, handed) = channel::<Files>();
    let (told, news) = channel();
    let files = Files::start(Pace::default(), move |_| {
        drop(handed.recv().unwrap());
        told.send(()).unwrap();
    })
    .unwrap();
    files.add(&file).unwrap();
    hand_over.send(files).unwrap();
    fs::write(&file, "1").unwrap();
    assert_eq!(news.recv_timeout(PATIENCE), Ok(()));
    assert_eq!(
        news.recv_timeout(PATIENCE),
        Err(RecvTimeoutError::Disconnected)
    );
}
