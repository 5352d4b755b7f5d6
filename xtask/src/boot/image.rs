//! The disk of the machine: the least of Debian that has systemd, and a kernel that needs
//! no other to find its disks.
//!
//! It is made once, and anew when what it is made of changes.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::process;

/// The names of its disk and its kernel.
pub const ROOT: &str = "root.ext2";
pub const KERNEL: &str = "kernel";

/// What it was made of.
const MADE_OF: &str = "made-of";

/// systemd with users' managers, and what tests start and are started by.
const PACKAGES: &str =
    "usr-is-merged,systemd-sysv,dbus,dbus-user-session,libpam-systemd,passwd,procps";

/// The kernel of a release, and from where, if not from itself: slices of a thread's own
/// take Linux 6.12.
fn kernel(release: &str) -> (String, Option<String>) {
    let package = "linux-image-cloud-amd64";
    match release {
        "bookworm" => {
            let suite = format!("{release}-backports");
            (format!("{package}/{suite}"), Some(suite))
        }
        _ => (package.to_owned(), None),
    }
}

/// The release of Debian that this machine has: programs that are built here want a C
/// library that is not older.
pub fn release() -> Option<String> {
    release_in(&fs::read_to_string("/etc/os-release").ok()?)
}

fn release_in(text: &str) -> Option<String> {
    let of = |key: &str| {
        let value = text
            .lines()
            .find_map(|it| it.strip_prefix(key)?.strip_prefix('='));
        value.map(|it| it.trim_matches('"').to_owned())
    };
    (of("ID").as_deref() == Some("debian")).then(|| of("VERSION_CODENAME"))?
}

/// Where this machine has its packages from, as lines of `sources.list(5)`, and this suite
/// from where the release itself is.
fn sources(release: &str, suite: Option<&str>) -> Result<Vec<String>> {
    let mut apt = process::command("apt-get");
    apt.args(["indextargets", "--format", "$(SITE) $(RELEASE)"]);
    apt.args(["Created-By: Packages", "Component: main"]);
    let known = process::output(apt)?;
    let lines = sources_in(&known, release, suite);
    if lines.is_empty() {
        bail!("apt knows no packages of {release}; this line does it: sudo apt-get update");
    }
    Ok(lines)
}

fn sources_in(known: &str, release: &str, suite: Option<&str>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut add = |site: &str, suite: &str| {
        let line = format!("deb {site} {suite} main");
        if !lines.contains(&line) {
            lines.push(line);
        }
    };
    for (site, known) in known.lines().filter_map(|it| it.split_once(' ')) {
        let rest = known.strip_prefix(release);
        if rest.is_some_and(|it| it.is_empty() || it.starts_with('-')) {
            add(site, known);
        }
        if let (Some(suite), Some("")) = (suite, rest) {
            add(site, suite);
        }
    }
    lines
}

/// Makes it, if it is not there or is to be made anew.
pub fn make(folder: &Path, anew: bool) -> Result<()> {
    let release = release().context("this is no Debian")?;
    let (kernel, suite) = kernel(&release);
    let service = process::root().join("xtask/boot/milieu-boot.service");
    let mut make = process::command("mmdebstrap");
    make.args(["--variant=essential", "--format=tar"]);
    // Nor does the system have to be converted, which takes Perl.
    make.arg("--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr");
    make.arg(format!("--include={PACKAGES},{kernel}"));
    for without in ["doc", "man", "locale", "i18n"] {
        make.arg(format!("--dpkgopt=path-exclude=/usr/share/{without}/*"));
    }
    let hooks = [
        format!("copy-in '{}' /etc/systemd/system", service.display()),
        "chroot \"$1\" systemctl enable milieu-boot.service".to_owned(),
        "chroot \"$1\" systemctl mask apt-daily.timer apt-daily-upgrade.timer".to_owned(),
        "chroot \"$1\" useradd --create-home plain".to_owned(),
        format!("copy-out /boot '{}'", folder.display()),
        // The kernel needs none.
        "rm -f \"$1\"/boot/initrd.img-*".to_owned(),
    ];
    make.args(hooks.map(|it| format!("--customize-hook={it}")));
    let packed = folder.join("root.tar");
    make.arg(&release).arg(&packed);
    make.args(sources(&release, suite.as_deref())?);
    let shown = process::display(&make);
    let made_of = format!("{shown}\n{ROOM}\n{}", fs::read_to_string(&service)?);
    let is_there = [ROOT, KERNEL].iter().all(|it| folder.join(it).is_file());
    let is_same = fs::read_to_string(folder.join(MADE_OF)).is_ok_and(|it| it == made_of);
    if is_there && is_same && !anew {
        return Ok(());
    }
    let _ = fs::remove_file(folder.join(MADE_OF));
    eprintln!("$ {shown}");
    let made = make.output().context("`mmdebstrap` does not start")?;
    if !made.status.success() {
        eprintln!("{}", String::from_utf8_lossy(&made.stderr));
        bail!(
            "the machine's disk could not be made; it takes root, or uidmap: \
             sudo apt-get install -y --no-install-recommends uidmap"
        );
    }
    fill(&packed, &folder.join(ROOT))?;
    let boot = folder.join("boot");
    let kernels = fs::read_dir(&boot)?.map(|it| it.map(|it| it.path()));
    let kernels: Vec<_> = kernels.collect::<std::io::Result<_>>()?;
    let is_kernel = |it: &&std::path::PathBuf| {
        let name = it.file_name().and_then(|it| it.to_str());
        name.is_some_and(|it| it.starts_with("vmlinuz-"))
    };
    let found = kernels
        .iter()
        .find(is_kernel)
        .context("there is no kernel in /boot")?;
    fs::rename(found, folder.join(KERNEL))?;
    fs::remove_dir_all(&boot)?;
    fs::write(folder.join(MADE_OF), made_of)?;
    Ok(())
}

/// How many times as large as what is on it the disk is.
const ROOM: u64 = 2;

/// Makes a disk of what was packed, with room for more.
fn fill(packed: &Path, disk: &Path) -> Result<()> {
    let blocks = fs::metadata(packed)?.len() / 1024 * ROOM;
    let mut make = process::command("genext2fs");
    make.args([
        "-z",
        "-B",
        "1024",
        "-b",
        &blocks.to_string(),
        "-i",
        "16384",
        "-a",
    ]);
    if !make.arg(packed).arg(disk).status()?.success() {
        bail!("the machine's disk could not be filled");
    }
    Ok(fs::remove_file(packed)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_debians_and_no_other() {
        let debian = "PRETTY_NAME=\"Debian 12\"\nVERSION_CODENAME=bookworm\nID=debian\n";
        assert_eq!(release_in(debian).as_deref(), Some("bookworm"));
        assert_eq!(release_in(&debian.replace("=debian", "=other")), None);
        assert_eq!(release_in("ID=debian\n"), None);
    }

    #[test]
    fn packages_are_those_of_this_machine_and_one_more_suite_from_there() {
        let known = "http://here/debian bookworm\nhttp://here/debian bookworm\n\
                     http://here/security bookworm-security\nhttp://there tools-bookworm\n";
        assert_eq!(
            sources_in(known, "bookworm", Some("bookworm-backports")),
            [
                "deb http://here/debian bookworm main",
                "deb http://here/debian bookworm-backports main",
                "deb http://here/security bookworm-security main",
            ]
        );
        assert_eq!(sources_in(known, "trixie", None), [""; 0]);
    }
}
