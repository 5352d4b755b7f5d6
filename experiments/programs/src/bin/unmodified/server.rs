//! Servers, each with its own load: memcached under a client of ours, Redis under its
//! benchmark, MariaDB under sysbench. They listen at sockets in folders of their own.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use experiments::Failed;
use nix::sys::signal::Signal;

use crate::side::{PATIENCE, Process, Side, succeeded, until};
use crate::{Program, Running};

/// A server that answers.
struct Server<L> {
    name: &'static str,
    side: Side,
    process: Process,
    load: L,
}

impl<L: FnMut() -> Result<f64, Failed> + 'static> Server<L> {
    /// Starts it, and waits until somebody can be connected.
    fn start(
        name: &'static str,
        side: &Side,
        mut command: Command,
        connect: &mut dyn FnMut() -> bool,
        load: L,
    ) -> Result<Box<dyn Running>, Failed> {
        let mut process = Process::new(command.spawn()?);
        until(&format!("{name} does not answer"), || {
            if let Some(status) = process.child()?.try_wait()? {
                return Err(side.failed(name, status));
            }
            Ok(connect().then_some(()))
        })?;
        Ok(Box::new(Server {
            name,
            side: side.clone(),
            process,
            load,
        }))
    }
}

impl<L: FnMut() -> Result<f64, Failed>> Running for Server<L> {
    fn work(&mut self) -> Result<f64, Failed> {
        (self.load)()
    }

    fn processor(&mut self) -> Result<f64, Failed> {
        self.process.processor()
    }

    fn during(&mut self, look: &mut dyn FnMut(u32) -> Result<(), Failed>) -> Result<(), Failed> {
        (self.load)()?;
        look(self.process.child()?.id())
    }

    fn end(mut self: Box<Self>) -> Result<(), Failed> {
        self.process.tell(Signal::SIGTERM)?;
        let status = self.process.wait()?;
        match status.success() {
            true => Ok(()),
            false => Err(self.side.failed(self.name, status)),
        }
    }
}

/// `SIGTERM` is how its users end it.
pub struct Memcached {
    pub size: u64,
}

/// Connections of the client.
const CONNECTIONS: usize = 16;
/// Requests that are on their way at once, of each.
const AT_ONCE: usize = 8;

impl Program for Memcached {
    fn start(&self, side: &Side) -> Result<Box<dyn Running>, Failed> {
        let socket = side.folder.join("memcached.sock");
        let mut command = side.command("memcached")?;
        command.args(["-t", "8", "-m", "64", "-s"]).arg(&socket);
        // It refuses to be root's unless it is told.
        if nix::unistd::geteuid().is_root() {
            command.args(["-u", "root"]);
        }
        let (size, at) = (self.size, socket.clone());
        let mut connections = Vec::new();
        let load = move || {
            while connections.len() < CONNECTIONS {
                let stream = UnixStream::connect(&at)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                connections.push(BufReader::new(stream));
            }
            let begun = Instant::now();
            for round in 0..size {
                exchange(&mut connections, round)?;
            }
            Ok(begun.elapsed().as_secs_f64())
        };
        let mut connect = || UnixStream::connect(&socket).is_ok();
        Server::start("memcached", side, command, &mut connect, load)
    }
}

/// Everybody writes values and reads them, several at once.
fn exchange(connections: &mut [BufReader<UnixStream>], round: u64) -> Result<(), Failed> {
    let value = format!("{round:0>100}");
    for (index, connection) in connections.iter_mut().enumerate() {
        let mut requests = String::new();
        for number in 0..AT_ONCE {
            let key = format!("key-{index}-{number}");
            requests += &format!("set {key} 0 0 100\r\n{value}\r\nget {key}\r\n");
        }
        connection.get_mut().write_all(requests.as_bytes())?;
    }
    for connection in connections {
        for _ in 0..AT_ONCE {
            let mut lines = String::new();
            // STORED, VALUE …, the value, END.
            for _ in 0..4 {
                connection.read_line(&mut lines)?;
            }
            if !lines.starts_with("STORED\r\nVALUE ") || !lines.contains(&value) {
                return Err(format!("memcached answers {lines:?}").into());
            }
        }
    }
    Ok(())
}

/// With the threads that it has for the disk and for memory.
pub struct Redis {
    pub size: u64,
}

impl Program for Redis {
    fn start(&self, side: &Side) -> Result<Box<dyn Running>, Failed> {
        let socket = side.folder.join("redis.sock");
        let mut command = side.command("redis-server")?;
        command.args(["--port", "0", "--save", "", "--appendonly", "no"]);
        command.arg("--dir").arg(&side.folder);
        command.arg("--unixsocket").arg(&socket);
        let (requests, at) = (self.size.to_string(), socket.clone());
        let load = move || {
            let begun = Instant::now();
            let mut benchmark = Command::new("redis-benchmark");
            benchmark
                .arg("-s")
                .arg(&at)
                .args(["-t", "set,get", "-c", "16", "-P", "4"]);
            succeeded(benchmark.args(["-q", "-n", &requests]))?;
            Ok(begun.elapsed().as_secs_f64())
        };
        let mut connect = || UnixStream::connect(&socket).is_ok();
        Server::start("redis-server", side, command, &mut connect, load)
    }
}

/// With a table that is made once, of which each run has a copy.
pub struct MariaDb {
    server: PathBuf,
    data: PathBuf,
    size: u64,
}

impl MariaDb {
    pub fn new(scratch: &Path, size: u64) -> Result<MariaDb, Failed> {
        let data = scratch.join("data");
        let mut install = Command::new("mariadb-install-db");
        install.args(["--no-defaults", "--auth-root-authentication-method=normal"]);
        install.args(["--skip-test-db", "--skip-name-resolve"]);
        install.arg(format!("--datadir={}", data.display()));
        if nix::unistd::geteuid().is_root() {
            install.arg("--user=root");
        }
        succeeded(&mut install)?;
        // Debian has it where only root looks for programs.
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&folders).chain(["/usr/sbin".into()]);
        let mut servers = folders.map(|it| it.join("mariadbd"));
        let server = servers.find(|it| it.is_file());
        Ok(MariaDb {
            server: server.ok_or("mariadbd is not installed (Debian: mariadb-server)")?,
            data,
            size,
        })
    }
}

impl Program for MariaDb {
    fn start(&self, side: &Side) -> Result<Box<dyn Running>, Failed> {
        let data = side.folder.join("data");
        copy(&self.data, &data)?;
        let socket = side.folder.join("mariadb.sock");
        let mut command = side.command(&self.server)?;
        command.args(["--no-defaults", "--skip-networking", "--skip-grant-tables"]);
        command.args(["--innodb-buffer-pool-size=32M", "--innodb-log-file-size=8M"]);
        command.args(["--innodb-flush-method=fsync", "--innodb-use-native-aio=0"]);
        command.arg(format!("--datadir={}", data.display()));
        command.arg(format!("--socket={}", socket.display()));
        command.arg(format!("--pid-file={}", data.join("pid").display()));
        if nix::unistd::geteuid().is_root() {
            command.arg("--user=root");
        }
        let (transactions, at) = (self.size, socket.clone());
        let sysbench = move |verb: &str, size: u64| {
            let mut sysbench = Command::new("sysbench");
            sysbench.args(["oltp_read_only", "--db-driver=mysql", "--mysql-user=root"]);
            sysbench.args([
                "--mysql-db=measured",
                "--table-size=1000",
                "--threads=8",
                "--time=0",
            ]);
            sysbench.arg(format!("--mysql-socket={}", at.display()));
            sysbench.arg(format!("--events={size}"));
            let begun = Instant::now();
            succeeded(sysbench.arg(verb))?;
            Ok(begun.elapsed().as_secs_f64())
        };
        let prepare = sysbench.clone();
        let load = move || sysbench("run", transactions);
        let mut connect = || UnixStream::connect(&socket).is_ok();
        let running = Server::start("mariadbd", side, command, &mut connect, load)?;
        let mut client = Command::new("mariadb");
        client.args([
            "--no-defaults",
            "-u",
            "root",
            "-e",
            "create database measured",
        ]);
        succeeded(client.arg(format!("--socket={}", socket.display())))?;
        prepare("prepare", 0)?;
        Ok(running)
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), Failed> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &to)?,
            false => _ = fs::copy(entry.path(), to)?,
        }
    }
    Ok(())
}
