//! The socket of a mediator, and the loop that serves it.
//!
//! Packets (`SOCK_SEQPACKET`), from programs and from tools of the mediator's own user,
//! of root, and, for programs, of those users that its rules name. What programs say is in
//! [`packet`]; tools say `status`, which is answered with a line of
//! JSON, then one for each thread, then `.`, in as many packets as it takes.
//!
//! A connection that ends ends the service: the program has ended, or mediates itself.
//! Sockets that a program has handed over, and whose other end it closes, end what it has
//! asked for by them.

use std::collections::HashMap;
use std::ffi::CString;
use std::fs;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use milieu_threads::attributes::Priority;
use milieu_threads::packet::{self, Answer, Packet};
use milieu_threads::table::{Region, View};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{
    Timeout, set_socket_timeout, socket_domain, socket_peercred, socket_type,
};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, Shutdown,
    SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen, recv, recvmsg,
    send, shutdown, socket_with,
};
use serde_json::json;

use super::{Device, News, Status, Visit, now_ns};

/// More than so many connections are for nobody's good.
const CLIENTS_MAX: usize = 4096;

/// As many threads of a program may be where it wants them at a time, because it says so.
const VISITS_MAX: u32 = 256;

/// How long somebody who asks waits for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A packet of what a mediator does is sent when it has so many.
const STATUS_BYTES: usize = 16 << 10;

/// Where the mediator of this user, or of the device, has its socket and its journal.
#[must_use]
pub fn folder() -> PathBuf {
    let user = rustix::process::geteuid();
    if user.is_root() {
        return PathBuf::from("/run/milieu");
    }
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|it| !it.is_empty()) {
        Some(run) => Path::new(&run).join("milieu"),
        None => std::env::temp_dir().join(format!("milieu-{}", user.as_raw())),
    }
}

/// Sockets at which a program of this user may be served, the first one first.
#[must_use]
pub fn sockets() -> Vec<PathBuf> {
    let mut found = vec![folder().join("mediator")];
    let device = PathBuf::from("/run/milieu/mediator");
    if found[0] != device {
        found.push(device);
    }
    found
}

/// Makes the folder of a socket or journal, if it is not there.
///
/// # Errors
/// It cannot be made, or somebody else could change what is in it.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    let user = rustix::process::geteuid();
    // Programs of other users reach the socket of root's mediator.
    let mode = if user.is_root() { 0o755 } else { 0o700 };
    match fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(folder)
    {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let there = fs::metadata(folder)?;
    let is_sticky = there.mode() & 0o1000 != 0;
    let is_ours = there.uid() == user.as_raw() && there.mode() & 0o022 == 0;
    if is_ours || is_sticky {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        "others can write there, or it is somebody else's; name another folder",
    ))
}

/// A socket at which programs are waited for; removed in the end.
pub struct Listener {
    socket: OwnedFd,
    path: PathBuf,
}

impl Listener {
    /// Listens there, in the place of one that nobody listens at.
    ///
    /// # Errors
    /// `AddrInUse` if somebody does, or why it cannot be made.
    pub fn open(path: &Path) -> io::Result<Listener> {
        if dial(path).is_ok() {
            return Err(io::Error::new(
                io::ErrorKind::AddrInUse,
                "another mediator listens there",
            ));
        }
        match fs::symlink_metadata(path) {
            Ok(there) if there.file_type().is_socket() => fs::remove_file(path)?,
            Ok(_) => {
                return Err(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    "something else than a socket is there",
                ));
            }
            Err(_) => {}
        }
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        // Who may connect is decided by who it is.
        fs::set_permissions(path, fs::Permissions::from_mode(0o666))?;
        listen(&socket, 128)?;
        Ok(Listener {
            socket,
            path: path.to_owned(),
        })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Somebody who has connected, or whom a program has handed over.
struct Client {
    socket: OwnedFd,
    process: u32,
    user: u32,
    is_program: bool,
    /// What it is there for, and of which program's connection, if it was handed over.
    visit: Option<(Visit, i32)>,
    /// How many it has handed over.
    visits: u32,
}

/// What has become of a client that had something to say.
enum Heard {
    Stays,
    Goes,
    /// It has handed over another.
    Brings(Client),
}

/// Mediates until it is told to end, and tells what happens.
///
/// # Errors
/// The socket has failed.
pub fn serve(
    device: &mut Device<'_>,
    listener: &Listener,
    is_over: &AtomicBool,
    tell: &mut dyn FnMut(News),
) -> io::Result<()> {
    let mut clients: HashMap<i32, Client> = HashMap::new();
    let mut next = device.look(now_ns());
    while !is_over.load(Ordering::Relaxed) {
        device.take_news().into_iter().for_each(&mut *tell);
        let (is_dialled, ready) = wait(listener, &clients, next)?;
        if is_dialled {
            answer_dials(listener, &mut clients);
        }
        for descriptor in ready {
            let has_room = clients.len() < CLIENTS_MAX;
            let heard = match clients.get_mut(&descriptor) {
                Some(client) => client.hear(device, has_room),
                None => Heard::Stays,
            };
            match heard {
                Heard::Stays => {}
                Heard::Goes => lose(&mut clients, descriptor, device),
                Heard::Brings(client) => {
                    clients.insert(client.socket.as_raw_fd(), client);
                }
            }
        }
        let now = now_ns();
        if now >= next || device.is_to_look() {
            next = device.look(now);
        }
    }
    device.take_news().into_iter().for_each(tell);
    // Whoever is left calls again, and shall not reach this one.
    let _ = shutdown(&listener.socket, Shutdown::Both);
    Ok(())
}

/// Somebody is there no more.
fn lose(clients: &mut HashMap<i32, Client>, descriptor: i32, device: &mut Device<'_>) {
    let Some(client) = clients.remove(&descriptor) else {
        return;
    };
    if client.is_program {
        device.unregister(client.process);
    }
    if let Some((visit, of)) = client.visit {
        device.leave(visit);
        let program = clients.get_mut(&of);
        if let Some(program) = program.filter(|it| it.process == client.process) {
            program.visits = program.visits.saturating_sub(1);
        }
    }
}

/// Waits for somebody, or for the time; whether somebody dials, and who has something
/// to say.
fn wait(
    listener: &Listener,
    clients: &HashMap<i32, Client>,
    next: u64,
) -> io::Result<(bool, Vec<i32>)> {
    let left = next.saturating_sub(now_ns());
    let time = Timespec {
        tv_sec: (left / 1_000_000_000) as _,
        tv_nsec: (left % 1_000_000_000) as _,
    };
    let mut waiting = vec![PollFd::new(&listener.socket, PollFlags::IN)];
    let order: Vec<&Client> = clients.values().collect();
    waiting.extend(
        order
            .iter()
            .map(|it| PollFd::new(&it.socket, PollFlags::IN)),
    );
    match poll(&mut waiting, Some(&time)) {
        Ok(_) => {}
        // A signal, perhaps one that ends it.
        Err(Errno::INTR) => return Ok((false, Vec::new())),
        Err(error) => return Err(error.into()),
    }
    let is_ready = |it: &PollFd<'_>| !it.revents().is_empty();
    let ready = waiting.iter().skip(1).zip(&order);
    let mut ready: Vec<&Client> = ready
        .filter_map(|(it, client)| is_ready(it).then_some(*client))
        .collect();
    // A program that has become another has nobody who could go back.
    ready.sort_by_key(|it| it.visit.is_some());
    Ok((
        is_ready(&waiting[0]),
        ready.iter().map(|it| it.socket.as_raw_fd()).collect(),
    ))
}

fn answer_dials(listener: &Listener, clients: &mut HashMap<i32, Client>) {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    while let Ok(socket) = accept_with(&listener.socket, flags) {
        let Ok(peer) = socket_peercred(&socket) else {
            continue;
        };
        if clients.len() >= CLIENTS_MAX {
            continue;
        }
        clients.insert(
            socket.as_raw_fd(),
            Client {
                socket,
                process: peer.pid.as_raw_nonzero().get() as u32,
                user: peer.uid.as_raw(),
                is_program: false,
                visit: None,
                visits: 0,
            },
        );
    }
}

impl Client {
    /// Hears one packet. Nobody is waited for: whoever has handed over a socket has it, too.
    fn hear(&mut self, device: &mut Device<'_>, has_room: bool) -> Heard {
        let mut bytes = [0; packet::BYTES_MAX];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = recvmsg(
            &self.socket,
            &mut [IoSliceMut::new(&mut bytes)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT,
        );
        let length = match received {
            Ok(received) => received.bytes,
            Err(Errno::INTR | Errno::AGAIN) => return Heard::Stays,
            Err(_) => return Heard::Goes,
        };
        // Whatever else was handed over is closed here.
        let handed = ancillary.drain().find_map(|it| match it {
            RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        });
        // Nothing is expected by a socket that was handed over.
        if length == 0 || self.visit.is_some() {
            return Heard::Goes;
        }
        let bytes = &bytes[..length];
        let process = self.process;
        let is_there = match (Packet::read(bytes), handed) {
            (Some(Packet::Register), Some(memory)) => match self.register(device, &memory) {
                Ok(()) => say(&self.socket, Answer::Yes.text().as_bytes()),
                Err(why) => say(&self.socket, Answer::No(&why).text().as_bytes()),
            },
            (Some(packet), handed) if self.is_program && packet != Packet::Register => {
                match (packet, handed.filter(is_socket)) {
                    (Packet::Changed, _) => device.look_at(process),
                    (Packet::Waits { waiter, owner }, _) => device.waits(process, waiter, owner),
                    (Packet::Served { waiter }, _) => device.served(process, waiter),
                    (Packet::Begun { thread, creator }, _) => {
                        device.begun(process, thread, creator);
                    }
                    (Packet::Own { thread }, Some(socket)) => {
                        let own = device.own(process, thread);
                        let answer = own.map_or(NOT_ITS_OWN, Answer::Own);
                        say(&socket, answer.text().as_bytes());
                    }
                    (Packet::Home { thread, creator }, Some(socket)) => {
                        return self.bring(device, (thread, creator), socket, has_room);
                    }
                    _ => {}
                }
                true
            }
            _ if bytes == b"status" => {
                let own = rustix::process::geteuid().as_raw();
                if self.user == own || self.user == 0 {
                    self.tell_status(device)
                } else {
                    say(&self.socket, b"no it tells only its own user and root")
                }
            }
            _ => say(
                &self.socket,
                b"no that is not understood; is this another version of Milieu?",
            ),
        };
        match is_there {
            true => Heard::Stays,
            false => Heard::Goes,
        }
    }

    /// A thread of the program is to be where that wants it, for as long as the other end of
    /// this socket is open.
    fn bring(
        &mut self,
        device: &mut Device<'_>,
        (thread, creator): (u32, Option<u32>),
        socket: OwnedFd,
        has_room: bool,
    ) -> Heard {
        if !has_room || self.visits >= VISITS_MAX {
            say(&socket, Answer::No("there are too many").text().as_bytes());
            return Heard::Stays;
        }
        let visit = match device.home(self.process, thread, creator) {
            Ok(visit) => visit,
            Err(_) => {
                say(&socket, NOT_ITS_OWN.text().as_bytes());
                return Heard::Stays;
            }
        };
        say(&socket, Answer::Yes.text().as_bytes());
        let Some(visit) = visit else {
            return Heard::Stays;
        };
        self.visits += 1;
        Heard::Brings(Client {
            socket,
            process: self.process,
            user: self.user,
            is_program: false,
            visit: Some((visit, self.socket.as_raw_fd())),
            visits: 0,
        })
    }

    fn register(&mut self, device: &mut Device<'_>, memory: &OwnedFd) -> Result<(), String> {
        let path = format!("/proc/self/fd/{}", memory.as_raw_fd());
        let path = CString::new(path).unwrap_or_default();
        let view = View::open(&path).map_err(|error| error.to_string())?;
        device.register(self.process, self.user, view)?;
        self.is_program = true;
        Ok(())
    }

    fn tell_status(&self, device: &Device<'_>) -> bool {
        let settings = device.settings();
        let status = device.status();
        let head = json!({
            "rung": device.rung().name(),
            "programs": device.registered(),
            "threads": status.len(),
            "fast": device.fast_count(),
            "lazy_wait_ms_max": settings.lazy_wait_ns_max.map(|it| it / 1_000_000),
            "turn_percent": settings.turn_percent,
            "turn_percent_max": settings.turn_percent_max,
            "spin_ms_max": settings.spin_ns_max / 1_000_000,
            "leaves_while_blocked": settings.leaves_while_blocked,
        });
        let lines = std::iter::once(head).chain(status.iter().map(document));
        let mut packet = String::new();
        for line in lines {
            packet += &format!("{line}\n");
            if packet.len() > STATUS_BYTES && !self.say_slowly(&std::mem::take(&mut packet)) {
                return false;
            }
        }
        packet.push_str(".\n");
        self.say_slowly(&packet)
    }

    /// As [`say`], for what may be more than the socket holds. Only the
    /// mediator's own user and root are waited for, and not for long.
    fn say_slowly(&self, packet: &str) -> bool {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let patience = Timespec {
            tv_sec: 0,
            tv_nsec: 100_000_000,
        };
        for _ in 0..5 {
            match send(&self.socket, packet.as_bytes(), flags) {
                Err(Errno::AGAIN) => {
                    let mut room = [PollFd::new(&self.socket, PollFlags::OUT)];
                    let _ = poll(&mut room, Some(&patience));
                }
                Err(Errno::INTR) => {}
                result => return result.is_ok(),
            }
        }
        false
    }
}

const NOT_ITS_OWN: Answer<'_> = Answer::No("that is no thread of this program");

/// Whether somebody is still there. Nobody is waited for: who does not read what it has
/// asked for is left.
fn say(socket: &OwnedFd, packet: &[u8]) -> bool {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    loop {
        match send(socket, packet, flags) {
            Err(Errno::INTR) => {}
            result => return result.is_ok(),
        }
    }
}

/// Whether a file that was handed over is a socket of this machine's, of packets: nothing
/// else is asked whether it is ready.
fn is_socket(file: &OwnedFd) -> bool {
    socket_domain(file) == Ok(AddressFamily::UNIX) && socket_type(file) == Ok(SocketType::SEQPACKET)
}

/// What is told of a thread.
fn document(status: &Status) -> serde_json::Value {
    let attributes = &status.attributes;
    json!({
        "process": status.process,
        "thread": status.thread,
        "program": status.program,
        "group": status.group.name(),
        "role": (!attributes.role().is_none()).then(|| attributes.role().as_str().to_owned()),
        "is_time_critical": attributes.is_time_critical(),
        "priority": attributes.priority().nice(),
        "region": match status.region {
            Region::Own => "own",
            Region::Fast => "fast",
            Region::Lazy => "lazy",
        },
        "is_demoted": status.is_demoted,
        "returns_to": status.own.map(|it| json!({
            "policy": it.policy,
            "nice": it.nice,
        })),
    })
}

fn dial(path: &Path) -> io::Result<OwnedFd> {
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// Whether a mediator listens there.
#[must_use]
pub fn listens(path: &Path) -> bool {
    dial(path).is_ok()
}

/// What a mediator says of itself: a line of JSON, then one for each thread.
///
/// # Errors
/// Nobody listens there, or it refuses.
pub fn status(path: &Path) -> io::Result<Vec<String>> {
    let socket = dial(path)?;
    // One that hangs shall not make others hang.
    set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
    set_socket_timeout(&socket, Timeout::Send, Some(PATIENCE))?;
    send(&socket, b"status", SendFlags::NOSIGNAL)?;
    let mut lines = Vec::new();
    let mut packet = vec![0; 4 * STATUS_BYTES];
    loop {
        let (length, _) = recv(&socket, &mut packet, RecvFlags::empty())?;
        let text = String::from_utf8_lossy(&packet[..length]).into_owned();
        if let Some(why) = text.strip_prefix("no ") {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        if text.is_empty() {
            let why = "it has ended meanwhile; try again";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
        }
        for line in text.lines() {
            if line == "." {
                return Ok(lines);
            }
            lines.push(line.to_owned());
        }
    }
}

/// Where a mediator has put threads, by their numbers.
///
/// # Errors
/// As [`status`].
pub fn regions(path: &Path) -> io::Result<HashMap<u32, Placed>> {
    let lines = status(path)?;
    let placed = |line: &String| {
        let it: serde_json::Value = serde_json::from_str(line).ok()?;
        let region = match it["region"].as_str()? {
            "fast" => Region::Fast,
            "lazy" => Region::Lazy,
            _ => Region::Own,
        };
        let priority = it["priority"].as_i64().and_then(|it| it.try_into().ok());
        let priority = priority.and_then(|it| Priority::new(it).ok());
        let placed = Placed {
            region,
            critical: priority.filter(|_| it["is_time_critical"] == true),
            is_demoted: it["is_demoted"] == true,
        };
        Some((it["thread"].as_u64()?.try_into().ok()?, placed))
    };
    Ok(lines.iter().skip(1).filter_map(placed).collect())
}

/// Where a mediator has put a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// Its region.
    pub region: Region,
    /// Its priority, if it is critical.
    pub critical: Option<Priority>,
    /// Whether it has run away.
    pub is_demoted: bool,
}
