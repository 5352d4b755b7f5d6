//! How a program is started so that its threads are served: by a preload, which some
//! programs cannot have. Those are refused with a clear word rather than broken.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use milieu_threads::loader::is_of_glibc;
use milieu_threads::run::{FOLDER_VARIABLE, LIBRARY};
use object::elf::{EM_386, EM_AARCH64, EM_ARM, EM_RISCV, EM_X86_64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::{Endianness, elf};

/// Why a program cannot be served, with the way out.
#[derive(Debug)]
pub enum Refusal {
    /// There is no such program.
    NotFound(OsString),
    /// It cannot be executed.
    NotExecutable(PathBuf, io::Error),
    /// It is no program that this knows.
    Foreign(PathBuf),
    /// It has no loader that could load anything into it.
    Static(PathBuf),
    /// Its C library is another, for which the preload was not made.
    OtherLibrary(PathBuf, String),
    /// The loader ignores preloads, as it gets rights that its user has not.
    Privileged(PathBuf, &'static str),
    /// There is no preload at all.
    NoPreload(Vec<PathBuf>),
    /// There is none for this kind of machine.
    OtherMachine(PathBuf, &'static str, PathBuf),
    /// The preload's folder cannot be written in a list of preloads.
    Unwritable(PathBuf),
}

impl Refusal {
    /// The exit code, as shells have it.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self {
            Refusal::NotFound(_) => 127,
            Refusal::NotExecutable(..) => 126,
            _ => 2,
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Refusal::NotFound(_) => "write its path, or look at PATH".to_owned(),
            Refusal::NotExecutable(..) => "`chmod +x` makes a file a program".to_owned(),
            Refusal::Foreign(_) => "name a program for Linux, or a script with `#!`".to_owned(),
            Refusal::Static(_) => "link it dynamically against glibc, or have it use the library \
                 (milieu/threads.h, or the crate `milieu`); a mediator of the device serves it by \
                 rules as well"
                .to_owned(),
            Refusal::OtherLibrary(..) => "use a build for glibc, or have it use the library; a \
                 mediator of the device serves it by rules as well"
                .to_owned(),
            Refusal::Privileged(..) => "start it as the user whose rights it gets, from a copy \
                 without them, or have a mediator of the device serve it by rules"
                .to_owned(),
            Refusal::NoPreload(_) => format!(
                "install Milieu with `cargo xtask dist`, build it with `cargo build -p \
                 milieu-preload --profile preload`, or name its folder in {}",
                FOLDER_VARIABLE.to_string_lossy()
            ),
            Refusal::OtherMachine(..) => {
                "install the preload for it beside the other, or use a program of this kind"
                    .to_owned()
            }
            Refusal::Unwritable(_) => "move it to a folder without them".to_owned(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NotFound(name) => {
                write!(f, "there is no program {}", name.to_string_lossy())
            }
            Refusal::NotExecutable(path, error) => {
                write!(f, "{} cannot be executed: {error}", path.display())
            }
            Refusal::Foreign(path) => write!(f, "{} is no program for Linux", path.display()),
            Refusal::Static(path) => write!(
                f,
                "{} is statically linked, so nothing can be loaded into it",
                path.display()
            ),
            Refusal::OtherLibrary(path, loader) => write!(
                f,
                "{} is for another C library than glibc: its loader is {loader}",
                path.display()
            ),
            Refusal::Privileged(path, how) => write!(
                f,
                "{} gets rights that you have not ({how}), so its loader ignores preloads",
                path.display()
            ),
            Refusal::NoPreload(looked) => {
                let looked: Vec<String> =
                    looked.iter().map(|it| it.display().to_string()).collect();
                write!(f, "{LIBRARY} is in none of {}", looked.join(", "))
            }
            Refusal::OtherMachine(path, machine, folder) => write!(
                f,
                "{} is for {machine}, and {} has no {LIBRARY} for that",
                path.display(),
                folder.display()
            ),
            Refusal::Unwritable(folder) => write!(
                f,
                "{} has a blank, a colon or a dollar sign in its path, which lists of preloads \
                 cannot have",
                folder.display()
            ),
        }
    }
}

impl std::error::Error for Refusal {}

/// What is to be executed, and with which preloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// The value of `LD_PRELOAD`.
    pub preload: OsString,
}

/// Folders in which the preload is looked for, the first one first.
#[must_use]
pub fn folders() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    if let Some(folder) = env::var_os(OsStr::from_bytes(FOLDER_VARIABLE.to_bytes())) {
        folders.push(PathBuf::from(folder));
    }
    let program = env::current_exe().and_then(fs::canonicalize);
    let Some(folder) = program.ok().and_then(|it| Some(it.parent()?.to_owned())) else {
        return folders;
    };
    if let Some(prefix) = folder.parent() {
        folders.push(prefix.join("lib/milieu"));
        folders.push(prefix.join("lib64/milieu"));
        let machine = env::consts::ARCH;
        folders.push(prefix.join(format!("lib/{machine}-linux-gnu/milieu")));
    }
    // In a checkout this is `target/PROFILE/milieu`, or a test below it.
    let is_target = |it: &&Path| it.join(".rustc_info.json").exists();
    let target = folder.ancestors().skip(1).take(2).find(is_target);
    folders.extend(target.map(|it| it.join("preload")));
    folders
}

/// Finds out how a program is started, or why it cannot be served.
///
/// # Errors
/// Why it cannot be served.
pub fn prepare(program: &OsStr, folders: &[PathBuf]) -> Result<Launch, Refusal> {
    let program = find(program)?;
    let kind = Kind::of(&program)?;
    let folder = folders
        .iter()
        .find(|it| {
            directly(it).exists()
                || PLACES
                    .iter()
                    .any(|place| it.join(place).join(LIBRARY).exists())
        })
        .ok_or_else(|| Refusal::NoPreload(folders.to_vec()))?;
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
    if folder
        .as_os_str()
        .as_bytes()
        .iter()
        .any(|it| b" \t:$".contains(it))
    {
        return Err(Refusal::Unwritable(folder));
    }
    let library = if machine_of(&directly(&folder)) == Some(kind.machine) {
        directly(&folder)
    } else {
        let has_it =
            |place: &&&str| machine_of(&folder.join(place).join(LIBRARY)) == Some(kind.machine);
        if PLACES.iter().find(has_it).is_none() {
            return Err(Refusal::OtherMachine(program, kind.machine.name(), folder));
        }
        // The loader of each program puts its own there, so that those of 64 bits may
        // start others of 32.
        folder.join("$LIB").join(LIBRARY)
    };
    let mut preload = OsString::new();
    // Sanitizers insist on being the first.
    for before in kind.sanitizers {
        preload.push(before);
        preload.push(":");
    }
    preload.push(library);
    if let Some(others) = env::var_os("LD_PRELOAD").filter(|it| !it.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    Ok(Launch { program, preload })
}

/// What loaders put in the place of `$LIB`.
const PLACES: [&str; 9] = [
    "lib/x86_64-linux-gnu",
    "lib/i386-linux-gnu",
    "lib/aarch64-linux-gnu",
    "lib/arm-linux-gnueabihf",
    "lib/riscv64-linux-gnu",
    "lib64",
    "lib64/lp64d",
    "lib32",
    "lib",
];

fn directly(folder: &Path) -> PathBuf {
    folder.join(LIBRARY)
}

/// The file of a program, looked for as shells do.
fn find(name: &OsStr) -> Result<PathBuf, Refusal> {
    if name.as_bytes().contains(&b'/') {
        return checked(PathBuf::from(name));
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let mut error = Refusal::NotFound(name.to_owned());
    for folder in env::split_paths(&path) {
        match checked(folder.join(name)) {
            Err(Refusal::NotFound(_)) => {}
            Err(other) => error = other,
            found => return found,
        }
    }
    Err(error)
}

fn checked(path: PathBuf) -> Result<PathBuf, Refusal> {
    match fs::metadata(&path) {
        Ok(there) if !there.is_file() => {
            let error = io::Error::from(io::ErrorKind::IsADirectory);
            Err(Refusal::NotExecutable(path, error))
        }
        Ok(_) => match rustix::fs::access(&path, rustix::fs::Access::EXEC_OK) {
            Ok(()) => Ok(path),
            Err(error) => Err(Refusal::NotExecutable(path, error.into())),
        },
        Err(_) => Err(Refusal::NotFound(path.into_os_string())),
    }
}

/// A kind of machine that programs are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Machine {
    number: u16,
    is_64: bool,
}

impl Machine {
    fn name(self) -> &'static str {
        match (self.number, self.is_64) {
            (EM_X86_64, true) => "x86-64",
            (EM_X86_64, false) => "x32",
            (EM_386, _) => "i386",
            (EM_AARCH64, _) => "aarch64",
            (EM_ARM, _) => "arm",
            (EM_RISCV, true) => "riscv64",
            (EM_RISCV, false) => "riscv32",
            _ => "another machine",
        }
    }
}

/// What counts of a program.
struct Kind {
    machine: Machine,
    sanitizers: Vec<String>,
}

impl Kind {
    fn of(path: &Path) -> Result<Kind, Refusal> {
        let mut path = path.to_owned();
        // A script's interpreter may be a script.
        for _ in 0..5 {
            privileged(&path)?;
            match interpreter(&path).map_err(|it| Refusal::NotExecutable(path.clone(), it))? {
                Some(next) => path = checked(next)?,
                None => return Kind::of_binary(path),
            }
        }
        Err(Refusal::Foreign(path))
    }

    fn of_binary(path: PathBuf) -> Result<Kind, Refusal> {
        let bytes = fs::read(&path).map_err(|it| Refusal::NotExecutable(path.clone(), it))?;
        let linked = match bytes.get(4) {
            Some(1) => linked::<elf::FileHeader32<Endianness>>(&bytes),
            Some(2) => linked::<elf::FileHeader64<Endianness>>(&bytes),
            _ => None,
        };
        let linked = linked.ok_or_else(|| Refusal::Foreign(path.clone()))?;
        let Some(loader) = linked.loader else {
            return Err(Refusal::Static(path));
        };
        if !is_of_glibc(loader.as_bytes()) {
            return Err(Refusal::OtherLibrary(path, loader));
        }
        let is_sanitizer = |it: &String| {
            let names = ["libasan", "libtsan", "liblsan", "libubsan", "libhwasan"];
            names.iter().any(|name| it.starts_with(name))
        };
        Ok(Kind {
            machine: linked.machine,
            sanitizers: linked.needed.into_iter().filter(is_sanitizer).collect(),
        })
    }
}

/// The rights that the kernel gives a program and that its user has not.
fn privileged(path: &Path) -> Result<(), Refusal> {
    let refused = |how| Err(Refusal::Privileged(path.to_owned(), how));
    let Ok(there) = fs::metadata(path) else {
        return Ok(());
    };
    let is_other = there.uid() != rustix::process::geteuid().as_raw();
    if there.mode() & 0o4000 != 0 && is_other {
        return refused("setuid");
    }
    let is_other = there.gid() != rustix::process::getegid().as_raw();
    if there.mode() & 0o2010 == 0o2010 && is_other {
        return refused("setgid");
    }
    let mut space = [0_u8; 64];
    let capabilities = rustix::fs::getxattr(path, "security.capability", &mut space[..]);
    if capabilities.is_ok_and(|it| it > 0) && !rustix::process::geteuid().is_root() {
        return refused("file capabilities");
    }
    Ok(())
}

/// What a script is run by.
fn interpreter(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut line = Vec::new();
    let file = File::open(path)?;
    let mut file = BufReader::new(io::Read::take(file, 512));
    file.read_until(b'\n', &mut line)?;
    let Some(rest) = line.strip_prefix(b"#!") else {
        return Ok(None);
    };
    let mut words = rest
        .split(|it| it.is_ascii_whitespace())
        .filter(|it| !it.is_empty());
    let word = words.next().unwrap_or_default();
    Ok(Some(PathBuf::from(OsStr::from_bytes(word))))
}

/// What a program's headers say of how it is linked.
struct Linked {
    machine: Machine,
    loader: Option<String>,
    needed: Vec<String>,
}

fn linked<H: FileHeader<Endian = Endianness>>(bytes: &[u8]) -> Option<Linked> {
    let header = H::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let machine = Machine {
        number: header.e_machine(endian),
        is_64: header.is_class_64(),
    };
    let segments = header.program_headers(endian, bytes).ok()?;
    let text = |bytes: &[u8]| {
        let end = bytes.iter().position(|it| *it == 0);
        String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
    };
    let loader = segments
        .iter()
        .find(|it| it.p_type(endian) == elf::PT_INTERP)
        .and_then(|it| it.data(endian, bytes).ok())
        .map(text);
    let entries = segments
        .iter()
        .find_map(|it| it.dynamic(endian, bytes).ok().flatten())
        .unwrap_or_default();
    let value = |tag: u32| {
        let entry = entries.iter().find(|it| it.tag32(endian) == Some(tag))?;
        Some(entry.d_val(endian).into())
    };
    // Names are in a table whose address is that of memory.
    let table: Option<u64> = value(elf::DT_STRTAB);
    let names = table.and_then(|address| {
        segments.iter().find_map(|it| {
            let start: u64 = it.p_vaddr(endian).into();
            let data = it.data(endian, bytes).ok()?;
            let offset = usize::try_from(address.checked_sub(start)?).ok()?;
            (it.p_type(endian) == elf::PT_LOAD).then(|| data.get(offset..))?
        })
    });
    let needed = entries
        .iter()
        .filter(|it| it.tag32(endian) == Some(elf::DT_NEEDED))
        .filter_map(|it| {
            let offset: u64 = it.d_val(endian).into();
            names?.get(usize::try_from(offset).ok()?..).map(text)
        })
        .collect();
    Some(Linked {
        machine,
        loader,
        needed,
    })
}

/// For which machine a file is; none where it is not there, or no such file.
fn machine_of(path: &Path) -> Option<Machine> {
    let mut header = [0; 64];
    let mut file = File::open(path).ok()?;
    io::Read::read_exact(&mut file, &mut header).ok()?;
    match header.get(4)? {
        1 => of_header::<elf::FileHeader32<Endianness>>(&header),
        _ => of_header::<elf::FileHeader64<Endianness>>(&header),
    }
}

fn of_header<H: FileHeader<Endian = Endianness>>(bytes: &[u8]) -> Option<Machine> {
    let header = H::parse(bytes).ok()?;
    Some(Machine {
        number: header.e_machine(header.endian().ok()?),
        is_64: header.is_class_64(),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    use super::*;

    fn program(folder: &Path, name: &str, text: &[u8]) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, text).expect("it is written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
        path
    }

    /// This test stands for a program and, as it is for the same machine, for the
    /// preload.
    fn preload(folder: &Path, place: &str) -> PathBuf {
        let folder = folder.join(place);
        fs::create_dir_all(&folder).expect("a folder");
        fs::copy(env::current_exe().expect("a test"), folder.join(LIBRARY)).expect("it is copied");
        folder
    }

    fn refused(program: &Path, folders: &[PathBuf]) -> Refusal {
        prepare(program.as_os_str(), folders).expect_err("it is refused")
    }

    #[track_caller]
    fn told(refusal: &Refusal, word: &str, code: u8) {
        let text = refusal.to_string();
        assert!(text.contains(word) && !refusal.help().is_empty(), "{text}");
        assert_eq!(refusal.code(), code);
    }

    #[test]
    fn a_program_gets_the_preload_for_its_machine() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = env::current_exe().expect("a test");
        let none = refused(&own, &[folder.path().to_owned()]);
        assert!(matches!(none, Refusal::NoPreload(_)), "{none}");
        let place = if cfg!(target_pointer_width = "64") {
            "lib64"
        } else {
            "lib32"
        };
        preload(folder.path(), place);
        let found = prepare(own.as_os_str(), &[folder.path().to_owned()]).expect("it is there");
        let expected = folder.path().join("$LIB").join(LIBRARY);
        assert!(
            found
                .preload
                .as_bytes()
                .starts_with(expected.as_os_str().as_bytes())
        );
        assert_eq!(found.program, own);
        let direct = [preload(folder.path(), "direct")];
        let found = prepare(own.as_os_str(), &direct).expect("it is there");
        let expected = direct[0].join(LIBRARY);
        assert!(
            found
                .preload
                .as_bytes()
                .starts_with(expected.as_os_str().as_bytes())
        );
        // It is found in PATH, and a script is what it is run by.
        assert!(prepare(OsStr::new("sh"), &direct).is_ok());
        let script = program(folder.path(), "script", b"#! /bin/sh -e\nexit\n");
        assert!(prepare(script.as_os_str(), &direct).is_ok());
        let strange = preload(folder.path(), "a b");
        let refusal = refused(&own, &[strange]);
        assert!(matches!(refusal, Refusal::Unwritable(_)), "{refusal}");
    }

    #[test]
    fn what_cannot_be_served_is_refused_with_a_clear_word() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        let preloads = [preload(path, "preload")];
        let own = fs::read(env::current_exe().expect("a test")).expect("it is there");
        told(
            &refused(&path.join("none"), &preloads),
            "there is no program",
            127,
        );
        let name = OsStr::new("no-such-program-anywhere");
        let error = prepare(name, &preloads).expect_err("it is not there");
        told(&error, "there is no program", 127);
        let text = path.join("text");
        fs::write(&text, "hello").expect("it is written");
        if !rustix::process::geteuid().is_root() {
            told(&refused(&text, &preloads), "cannot be executed", 126);
        }
        told(&refused(path, &preloads), "cannot be executed", 126);
        let foreign = program(path, "foreign", b"MZ\x90\0\x03");
        told(&refused(&foreign, &preloads), "is no program for Linux", 2);
        // musl's loader has a name as long as this one with zeros behind it.
        let mut musl = own.clone();
        let at = own
            .windows(15)
            .position(|it| it == b"/lib64/ld-linux")
            .expect("glibc's");
        musl[at..at + 13].copy_from_slice(b"/lib/ld-musl-");
        let musl = program(path, "musl", &musl);
        told(&refused(&musl, &preloads), "its loader is /lib/ld-musl-", 2);
        let script = format!("#!{}\n", musl.display());
        let script = program(path, "script", script.as_bytes());
        told(
            &refused(&script, &preloads),
            "its loader is /lib/ld-musl-",
            2,
        );
        let endless = program(path, "endless", b"");
        fs::write(&endless, format!("#!{}\n", endless.display())).expect("it is written");
        told(&refused(&endless, &preloads), "is no program for Linux", 2);
        // The same bytes for another machine: i386 or x86-64 is at the 18th byte.
        let mut other = own.clone();
        other[18] = if other[18] == 40 { 62 } else { 40 };
        let other = program(path, "other", &other);
        told(
            &refused(&other, &preloads),
            "has no libmilieu_preload.so for that",
            2,
        );
    }

    /// The loader would leave the preload out.
    #[test]
    fn a_program_with_rights_of_another_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let preloads = [preload(folder.path(), "preload")];
        let own = fs::read(env::current_exe().expect("a test")).expect("it is there");
        let path = program(folder.path(), "privileged", &own);
        let (nobody, ours) = (65534, preloads.as_slice());
        if std::os::unix::fs::chown(&path, Some(nobody), Some(nobody)).is_err() {
            eprintln!("skipped: only root gives files away");
            return;
        }
        for (mode, how) in [(0o4755, "setuid"), (0o2755, "setgid")] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it is root's");
            told(&refused(&path, ours), how, 2);
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is root's");
        assert!(prepare(path.as_os_str(), ours).is_ok());
    }

    /// With a compiler: what it links statically, and with a sanitizer.
    #[test]
    fn what_a_compiler_makes_is_told_apart() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        let preloads = [preload(path, "preload")];
        fs::write(path.join("a.c"), "int main(void) { return 0; }").expect("it is written");
        let compile = |name: &str, flag: &str| {
            let done = Command::new("gcc")
                .args([flag, "-o", name, "a.c"])
                .current_dir(path)
                .output();
            done.is_ok_and(|it| it.status.success())
                .then(|| path.join(name))
        };
        if let Some(alone) = compile("alone", "-static") {
            let refusal = refused(&alone, &preloads);
            assert!(matches!(refusal, Refusal::Static(_)), "{refusal}");
        } else {
            eprintln!("skipped, gcc does not link statically here");
        }
        if let Some(checked) = compile("checked", "-fsanitize=address") {
            let launch = prepare(checked.as_os_str(), &preloads).expect("it is served");
            assert!(
                launch.preload.as_bytes().starts_with(b"libasan.so"),
                "{launch:?}"
            );
        } else {
            eprintln!("skipped, gcc has no address sanitizer here");
        }
    }
}
