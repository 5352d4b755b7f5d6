//! Profiles of stacks: they merge in any order, and nothing is lost.

use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use milieu_threads::stack::{
    BuildId, Entry, FileError, Key, Line, Lines, Module, Name, Place, Profile, ProfileError, Room,
    Site, append, load, update,
};
use proptest::prelude::*;

type Joined = (Vec<Entry>, Vec<String>, Vec<u8>);

/// Joins texts and gives what they say together: entries, messages, text.
fn joined(texts: &[&[u8]]) -> Result<Joined, ProfileError> {
    let rooms: Vec<Room> = texts.iter().map(|text| Room::of(text)).collect();
    let sum = |count: fn(&Room) -> usize| rooms.iter().map(count).sum();
    let mut entries = vec![Entry::EMPTY; sum(|it| it.entries)];
    let mut modules = vec![Module::EMPTY; sum(|it| it.modules)];
    let mut kept = vec![&b""[..]; sum(|it| it.lines)];
    let mut profile = Profile::new(&mut entries, &mut modules, &mut kept);
    let mut messages = Vec::new();
    for text in texts {
        profile.read(text, &mut |wrong| messages.push(wrong.to_string()))?;
    }
    let mut written = Vec::new();
    profile.write(&mut |part| written.extend_from_slice(part));
    Ok((profile.entries().to_vec(), messages, written))
}

fn text_of(entries: &[Entry]) -> Vec<u8> {
    let mut memory = vec![Entry::EMPTY; entries.len()];
    let mut profile = Profile::new(&mut memory, &mut [], &mut []);
    for entry in entries {
        profile.add(entry).unwrap();
    }
    let mut text = Vec::new();
    profile.write(&mut |part| text.extend_from_slice(part));
    text
}

fn places() -> impl Strategy<Value = Place> {
    (prop::collection::vec(0_u8..3, 1..3), 0_u64..3).prop_map(|(build, offset)| Place {
        build: BuildId::new(&build).unwrap(),
        offset,
    })
}

prop_compose! {
    fn entries()(
        start in places(),
        argument in prop::option::of(places()),
        runs in any::<u32>(),
        numbers in any::<[u64; 3]>(),
        is_set in any::<bool>(),
        overflow_bytes in prop_oneof![Just(0), any::<u64>()],
        role in ".{0,12}",
    ) -> Entry {
        Entry {
            runs,
            threads: numbers[0],
            peak_bytes: numbers[1],
            given_bytes: numbers[2],
            is_set,
            overflow_bytes,
            role: Name::new(role.as_bytes()),
            ..Entry::new(Key { start, argument })
        }
    }
}

fn profiles() -> impl Strategy<Value = Vec<Entry>> {
    prop::collection::vec(entries(), 0..12)
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(entries in profiles()) {
        let text = text_of(&entries);
        let (read, messages, written) = joined(&[&text]).unwrap();
        prop_assert_eq!(messages, Vec::<String>::new());
        prop_assert_eq!(&written, &text);
        let mut model = BTreeMap::<Key, Entry>::new();
        for entry in &entries {
            model.entry(entry.key).and_modify(|it| it.add(entry)).or_insert(*entry);
        }
        prop_assert_eq!(read, model.into_values().collect::<Vec<_>>());
    }

    #[test]
    fn joining_is_commutative_associative_and_idempotent(
        parts in [profiles(), profiles(), profiles()],
    ) {
        let [a, b, c] = parts.map(|entries| text_of(&entries));
        let join = |texts: &[&[u8]]| joined(texts).unwrap().2;
        prop_assert_eq!(join(&[&a, &b]), join(&[&b, &a]));
        prop_assert_eq!(join(&[&join(&[&a, &b]), &c]), join(&[&a, &join(&[&b, &c])]));
        prop_assert_eq!(join(&[&a, &b, &c]), join(&[&join(&[&a, &b]), &c]));
        prop_assert_eq!(join(&[&a, &a]), a.clone());
        prop_assert_eq!(join(&[&join(&[&a, &b]), &b]), join(&[&a, &b]));
    }

    #[test]
    fn what_was_seen_adds_up_in_any_order(
        before in profiles(),
        seen in profiles(),
    ) {
        let all: Vec<Entry> = before.iter().chain(&seen).copied().collect();
        let reversed: Vec<Entry> = before.iter().chain(seen.iter().rev()).copied().collect();
        prop_assert_eq!(text_of(&all), text_of(&reversed));
    }

    #[test]
    fn any_line_is_kept_and_told(lines in prop::collection::vec("[ -~\\x00]{0,40}", 0..6)) {
        let text = format!("milieu stacks 1\n{}\n", lines.join("\n"));
        let (_, messages, written) = joined(&[text.as_bytes()]).unwrap();
        let written = String::from_utf8(written).unwrap();
        for (index, line) in lines.iter().enumerate() {
            // Zeros are before a line where nothing was written yet.
            let line = line.trim_start_matches([' ', '\0']).trim_end();
            let is_told = messages.iter().any(|it| it.starts_with(&format!("line {}: ", index + 2)));
            let says = line.starts_with("thread") || line.starts_with("module");
            prop_assert!(is_told || says || line.is_empty() || line.starts_with('#'));
            if is_told {
                prop_assert!(written.lines().any(|it| it == line));
            }
        }
        let again = joined(&[written.as_bytes()]).unwrap();
        prop_assert_eq!(again.2, written.into_bytes());
        prop_assert_eq!(again.1.len(), messages.len());
    }

    #[test]
    fn names_and_paths_are_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let mut entry = Entry::new(Key::parse(b"ab+1").unwrap());
        entry.role = Name::new(&bytes);
        let (read, messages, _) = joined(&[&text_of(&[entry])]).unwrap();
        prop_assert_eq!(messages, Vec::<String>::new());
        prop_assert_eq!(read, vec![entry]);
        prop_assert!(entry.role.as_bytes().len() < 32);
        prop_assert!(bytes.starts_with(entry.role.as_bytes()));
    }
}

#[test]
fn a_name_is_cut_between_characters() {
    let name = Name::new("αβγδεζηθικλμνξοπρσ".as_bytes());
    assert_eq!(std::str::from_utf8(name.as_bytes()), Ok("αβγδεζηθικλμνξο"));
    assert_eq!(Name::new(&[0x80; 40]).as_bytes(), b"");
}

#[test]
fn messages_name_the_line_and_the_way_out() {
    let text = "milieu stacks 1\n\
                \n\
                thraed ab+1\n\
                thread ab1+1\n\
                thread ab+1 peak=a\n\
                thread ab+1 runs=4294967296\n\
                thread ab+1 peak=1 peak=2\n\
                thread ab+1 set=1\n\
                thread ab+1 depth=1\n\
                thread ab+1 role=a%2\n\
                module 0xab /a\n\
                module ab\n\
                module ab /a b\n\
                site ab\n\
                site ab+1\n\
                site ab+1 ab+2 ab\n";
    let (entries, messages, written) = joined(&[text.as_bytes()]).unwrap();
    assert_eq!(entries, []);
    assert_eq!(written, text.replace("\n\n", "\n").into_bytes());
    let end = "; mend the line or remove it: it is kept, but does not count";
    let expected = [
        "line 3: `thraed` is none of `thread`, `module` and `site`; put `#` before a remark",
        "line 4: `ab1+1` is no key of a thread, as in `ab12+1f0` or `ab12+1f0/ab12+9c8`",
        "line 5: `peak=a` is no number with its field, as in `peak=8192`",
        "line 6: `runs=4294967296` is no number with its field, as in `peak=8192`",
        "line 7: `peak=2` is no field, or there twice; there are runs, threads, peak, given, set, overflow and role",
        "line 8: `set=1` is no field, or there twice; there are runs, threads, peak, given, set, overflow and role",
        "line 9: `depth=1` is no field, or there twice; there are runs, threads, peak, given, set, overflow and role",
        "line 10: `role=a%2` is no field, or there twice; there are runs, threads, peak, given, set, overflow and role",
        "line 11: `0xab` is no build id, which has 2 to 40 hexadecimal digits",
        "line 12: `` is no path; write a space as `%20` and `%` as `%25`",
        "line 13: `b` is no path; write a space as `%20` and `%` as `%25`",
        "line 14: `ab` is no key of a thread, as in `ab12+1f0` or `ab12+1f0/ab12+9c8`",
        "line 15: `` is no place of a call, as in `ab12+1f0`",
        "line 16: `ab` is no place of a call, as in `ab12+1f0`",
    ];
    assert_eq!(messages, expected.map(|line| format!("{line}{end}")));
}

#[test]
fn where_threads_were_created_stays_once() {
    let text =
        b"milieu stacks 1\nsite ab+1/cd+2 ef+3 ab+4\nthread ab+1 runs=1 threads=0 peak=0 given=0\n";
    let (entries, messages, written) = joined(&[text, text]).unwrap();
    assert_eq!((entries.len(), messages), (1, vec![]));
    assert_eq!(written, text);
    let lines = Lines::of(text).unwrap().flatten();
    let sites = lines.filter_map(|it| match it {
        Line::Site(site) => Some(site),
        _ => None,
    });
    let sites: Vec<Site<'_>> = sites.collect();
    assert_eq!(sites[0].key.to_string(), "ab+1/cd+2");
    let calls: Vec<String> = sites[0].calls().map(|it| it.to_string()).collect();
    assert_eq!(calls, ["ef+3", "ab+4"]);
}

#[test]
fn what_is_no_profile_is_not_taken_for_one() {
    for (text, error) in [
        ("# remark\nmilieu stacks 1\n", ProfileError::Foreign),
        ("PNG\n", ProfileError::Foreign),
        ("milieu stacks\n", ProfileError::Foreign),
        ("milieu stacks 2\nthread ab+1\n", ProfileError::Version),
        ("milieu stacks 10\n", ProfileError::Version),
    ] {
        assert_eq!(joined(&[text.as_bytes()]), Err(error), "{text}");
    }
    for nothing in ["", "\n \n", "milieu stacks 1", "\n milieu stacks 1 \r\n"] {
        let (entries, messages, written) = joined(&[nothing.as_bytes()]).unwrap();
        assert_eq!((entries, messages), (vec![], vec![]));
        assert_eq!(written, b"milieu stacks 1\n");
    }
    let full = Profile::new(&mut [], &mut [], &mut []).add(&Entry::EMPTY);
    assert_eq!(full, Err(ProfileError::Full));
}

/// A folder that is removed when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("stack-profile-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn profile(&self) -> (PathBuf, CString) {
        let path = self.0.join("profile");
        let c = CString::new(path.as_os_str().as_bytes()).unwrap();
        (path, c)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn entry(offset: u64) -> Entry {
    let key = Key::parse(format!("ab+{offset:x}").as_bytes()).unwrap();
    Entry {
        runs: 1,
        threads: 1,
        peak_bytes: 4096 * (offset + 1),
        given_bytes: 8 << 20,
        ..Entry::new(key)
    }
}

const LONG_MILLISECONDS: u32 = 500_000;

fn silent(wrong: milieu_threads::stack::LineError<'_>) {
    panic!("{wrong}");
}

#[test]
fn a_file_is_made_and_grows_and_keeps_what_people_wrote() {
    let folder = Folder::new("grows");
    let (path, c) = folder.profile();
    load(&c, &mut |_| panic!("nothing is there"), &mut silent).unwrap();
    update(&c, 0, &[entry(1)], &mut silent).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        text,
        "milieu stacks 1\nthread ab+1 runs=1 threads=1 peak=8192 given=8388608\n"
    );
    // Somebody edits it, without a new line at its end.
    std::fs::write(&path, format!("{text}# mine\nbroken")).unwrap();
    let overflow = Entry {
        overflow_bytes: 65536,
        ..Entry::new(entry(1).key)
    };
    append(&c, 0, &overflow).unwrap();
    let mut wrong = Vec::new();
    update(&c, 0, &[entry(0), entry(1)], &mut |it| {
        wrong.push(it.number)
    })
    .unwrap();
    assert_eq!(wrong, [4]);
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        "milieu stacks 1\n# mine\nbroken\n\
         thread ab+0 runs=1 threads=1 peak=4096 given=8388608\n\
         thread ab+1 runs=2 threads=2 peak=8192 given=8388608 overflow=65536\n"
    );
    let mut found = Vec::new();
    load(&c, &mut |it| found.push(*it), &mut |_| ()).unwrap();
    assert_eq!(
        found.iter().map(|it| it.threads).collect::<Vec<_>>(),
        [1, 2]
    );
    let mut names: Vec<OsString> = std::fs::read_dir(&folder.0)
        .unwrap()
        .map(|it| it.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["profile", "profile.lock"]);
}

#[test]
fn a_file_of_others_is_left_as_it_is() {
    let folder = Folder::new("foreign");
    let (path, c) = folder.profile();
    for (text, error) in [
        ("[package]\n", ProfileError::Foreign),
        ("milieu stacks 2\n", ProfileError::Version),
    ] {
        std::fs::write(&path, text).unwrap();
        let update = update(&c, 0, &[entry(1)], &mut silent);
        assert_eq!(update, Err(FileError::Profile(error)));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        assert_eq!(
            load(&c, &mut |_| (), &mut silent),
            Err(FileError::Profile(error))
        );
    }
    let nowhere = CString::new(folder.0.join("no/profile").as_os_str().as_bytes()).unwrap();
    let error = update(&nowhere, 0, &[entry(1)], &mut silent).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the file `.lock` beside the profile cannot be opened: there is none (error 2); \
         name a profile in a folder that you may write"
    );
}

#[test]
fn paths_of_modules_are_found_by_the_program_itself() {
    extern "C" fn start(_: *mut std::ffi::c_void) {}
    let folder = Folder::new("modules");
    let (path, c) = folder.profile();
    let key = Key::of(start as *const () as usize, 0).expect("the linker wrote a build id");
    update(
        &c,
        0,
        &[Entry {
            runs: 1,
            threads: 1,
            ..Entry::new(key)
        }],
        &mut silent,
    )
    .unwrap();
    let text = std::fs::read(&path).unwrap();
    let modules: Vec<_> = Lines::of(&text)
        .unwrap()
        .filter_map(|line| match line.unwrap() {
            Line::Module(module) => Some((module.build, module.path().collect::<Vec<u8>>())),
            _ => None,
        })
        .collect();
    let own = std::env::current_exe().unwrap();
    assert_eq!(
        modules,
        [(key.start.build, own.as_os_str().as_bytes().to_vec())]
    );
}

/// Whether this is a child of the test, told what to do.
const PROFILE: &str = "STACK_PROFILE_TEST";

#[test]
fn processes_that_end_together_lose_nothing() {
    const PROCESSES: u64 = 8;
    const UPDATES: u64 = 6;
    if let Some(path) = std::env::var_os(PROFILE) {
        let c = CString::new(path.as_bytes()).unwrap();
        let number = u64::from(std::process::id());
        for _ in 0..UPDATES {
            update(
                &c,
                LONG_MILLISECONDS,
                &[entry(0), entry(number)],
                &mut silent,
            )
            .unwrap();
            let overflow = Entry {
                overflow_bytes: 4096,
                ..Entry::new(entry(number).key)
            };
            append(&c, LONG_MILLISECONDS, &overflow).unwrap();
        }
        return;
    }
    let folder = Folder::new("together");
    let (path, c) = folder.profile();
    let children: Vec<_> = (0..PROCESSES)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "processes_that_end_together_lose_nothing"])
                .env(PROFILE, &path)
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    let numbers: Vec<u64> = children.iter().map(|it| u64::from(it.id())).collect();
    // Readers need no lock: whatever they see is whole.
    let mut children = children;
    while children
        .iter_mut()
        .any(|it| it.try_wait().unwrap().is_none())
    {
        load(&c, &mut |_| (), &mut silent).unwrap();
    }
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let (entries, _, _) = joined(&[&std::fs::read(&path).unwrap()]).unwrap();
    assert_eq!(entries.len() as u64, PROCESSES + 1);
    for entry in entries {
        let offset = entry.key.start.offset;
        let times = if offset == 0 {
            PROCESSES * UPDATES
        } else {
            UPDATES
        };
        assert_eq!(entry.threads, times, "{entry:?}");
        assert_eq!(u64::from(entry.runs), times);
        assert_eq!(entry.overflow_bytes > 0, offset != 0);
        assert!(offset == 0 || numbers.contains(&offset));
    }
}

#[test]
fn a_lock_that_somebody_has_is_waited_for_only_so_long() {
    let folder = Folder::new("lock");
    let (path, c) = folder.profile();
    let lock = std::fs::File::create(format!("{}.lock", path.display())).unwrap();
    // SAFETY: no memory is involved.
    let said = unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX) };
    assert_eq!(said, 0);
    let held = Err(FileError::Lock(milieu_threads::stack::Errno(libc::EAGAIN)));
    assert_eq!(update(&c, 20, &[entry(1)], &mut silent), held);
    assert_eq!(append(&c, 0, &entry(1)), held);
    assert!(!path.exists());
    drop(lock);
    update(&c, 0, &[entry(1)], &mut silent).unwrap();
    assert!(path.exists());
}
