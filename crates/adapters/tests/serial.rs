//! Serial lines, at the other end of which is a pseudo-terminal.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::support::Live;
use milieu_adapters::serial::{self, Bytes, Parity};
use milieu_adapters::{Format, Number, Text};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{ControlModes, LocalModes, tcgetattr};
use tempfile::tempdir;

/// The device's end of a line, and the path of the other.
fn device() -> (OwnedFd, PathBuf) {
    let device = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&device).unwrap();
    unlockpt(&device).unwrap();
    let name = ptsname(&device, Vec::new()).unwrap().into_bytes();
    (device, std::ffi::OsString::from_vec(name).into())
}

fn send(device: &OwnedFd, bytes: &[u8]) {
    assert_eq!(rustix::io::write(device, bytes), Ok(bytes.len()));
}

#[track_caller]
fn says(source: &mut Live, expected: &str) {
    assert_eq!(source.bodies::<Text>(1)[0].text, expected);
}

#[test]
fn lines_are_events_however_they_come() {
    let (device, path) = device();
    let mut source = Live::new(serial::lines(&path).baud(115_200));
    source.working();
    send(&device, b"21.5\r\n22");
    says(&mut source, "21.5");
    send(&device, b".0\r\n");
    says(&mut source, "22.0");
    // Nothing that comes means anything to the terminal.
    send(&device, b"\x03\x04\x1a\x13 still here\n");
    assert!(source.bodies::<Text>(1)[0].text.ends_with("still here"));
}

#[test]
fn the_line_is_set_up_as_it_was_asked_for() {
    let (_device, path) = device();
    let line = serial::lines(&path).baud(57_600).parity(Parity::Odd);
    let mut source = Live::new(line.two_stop_bits().flow_control());
    source.working();
    let flags = OFlags::RDWR | OFlags::NOCTTY;
    // The superuser may open what is open for one program alone.
    if let Ok(opened) = rustix::fs::open(&path, flags, Mode::empty()) {
        let settings = tcgetattr(&opened).unwrap();
        assert_eq!(settings.input_speed(), 57_600);
        assert_eq!(settings.output_speed(), 57_600);
        let asked = ControlModes::PARODD | ControlModes::CSTOPB | ControlModes::CRTSCTS;
        assert!(settings.control_modes.contains(asked));
        assert!(
            !settings
                .local_modes
                .intersects(LocalModes::ICANON | LocalModes::ECHO)
        );
    }
}

#[test]
fn bytes_are_events_as_they_come() {
    let (device, path) = device();
    let mut source = Live::new(serial::bytes(&path));
    source.working();
    let sent = [0, 255, b'\n', 3, b'\r'];
    send(&device, &sent);
    let mut seen = Vec::new();
    while seen.len() < sent.len() {
        seen.extend(source.bodies::<Bytes>(1).remove(0).bytes);
    }
    assert_eq!(seen, sent);
}

fn link(path: &Path, link_path: &Path) {
    let _ = fs::remove_file(link_path);
    symlink(path, link_path).unwrap();
}

#[test]
fn a_device_may_come_later_go_and_return_as_another() {
    let folder = tempdir().unwrap();
    let by_id = folder.path().join("scale");
    let format = Format::number();
    let mut source = Live::new(serial::lines(&by_id).format(format));
    let failure = source.failure("connect it");
    assert!(
        failure.contains("scale: there is no such device"),
        "{failure}"
    );
    let (first, path) = device();
    link(&path, &by_id);
    source.working();
    send(&first, b"1\n2");
    assert_eq!(source.bodies::<Number>(1)[0].value, 1.0);
    drop(first);
    source.failure("opened again when it returns");
    let (second, path) = device();
    link(&path, &by_id);
    source.working();
    // What was begun before is not part of what follows.
    send(&second, b"3\n");
    assert_eq!(source.bodies::<Number>(1)[0].value, 3.0);
    send(&second, b"x\n");
    let failure = source.failure("is not a number");
    assert!(failure.contains("scale: line 2"), "{failure}");
    send(&second, b"4\n");
    source.working();
}

#[test]
fn what_is_no_serial_line_is_told() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "1\n").unwrap();
    Live::new(serial::lines(&path)).failure("not a serial line");
    Live::new(serial::lines("/dev/null")).failure("not a serial line");
    let folder = folder.path();
    Live::new(serial::lines(folder)).failure("cannot be opened");
}
