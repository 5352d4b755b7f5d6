//! Programs that have a piece of work and end.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use experiments::Failed;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::Signal;
use nix::sys::time::{TimeVal, TimeValLike as _};

use crate::side::{Environment, Process, Side, until};
use crate::{Program, Running};

/// One that is started for each portion of work.
#[derive(Clone)]
pub struct Batch {
    program: &'static str,
    arguments: Vec<OsString>,
    /// The same for a portion that lasts until nobody looks any more.
    long: Vec<OsString>,
    /// How many threads it has then, at least.
    threads: usize,
}

/// Compresses pictures, with four threads.
pub fn ffmpeg(frames: u64) -> Batch {
    let arguments = |frames: u64| {
        let text = format!(
            "-hide_banner -loglevel error -nostdin -f lavfi -i testsrc2=size=640x360:rate=25 \
             -frames:v {frames} -c:v mpeg4 -threads 4 -f null -"
        );
        text.split(' ').map(OsString::from).collect()
    };
    Batch {
        program: "ffmpeg",
        arguments: arguments(frames),
        long: arguments(100_000_000),
        threads: 5,
    }
}

/// Compresses a file, with four threads.
pub fn pigz(scratch: &Path, kilobytes: u64) -> Result<Batch, Failed> {
    // What is neither random nor all the same.
    let mut text = Vec::new();
    let mut numbers = fastrand::Rng::with_seed(1);
    while text.len() < usize::try_from(kilobytes)? * 1024 {
        text.extend_from_slice(numbers.u16(..).to_string().as_bytes());
        text.push(b' ');
    }
    let path = scratch.join("text");
    fs::write(&path, text)?;
    let arguments = |paths: usize| {
        let options = ["-p", "4", "-c"].map(OsString::from).into_iter();
        let paths = std::iter::repeat_n(path.clone().into_os_string(), paths);
        options.chain(paths).collect()
    };
    Ok(Batch {
        program: "pigz",
        arguments: arguments(1),
        long: arguments(5000),
        threads: 3,
    })
}

impl Program for Batch {
    fn start(&self, side: &Side) -> Result<Box<dyn Running>, Failed> {
        Ok(Box::new(Runs {
            batch: self.clone(),
            environment: side.environment()?,
            side: side.clone(),
        }))
    }
}

struct Runs {
    batch: Batch,
    side: Side,
    environment: Option<Environment>,
}

impl Running for Runs {
    fn work(&mut self) -> Result<f64, Failed> {
        let mut command = self
            .side
            .direct(self.batch.program, self.environment.as_ref())?;
        let begun = Instant::now();
        let status = command.args(&self.batch.arguments).status()?;
        let seconds = begun.elapsed().as_secs_f64();
        self.side.check()?;
        match status.success() {
            true => Ok(seconds),
            false => Err(self.side.failed(self.batch.program, status)),
        }
    }

    fn processor(&mut self) -> Result<f64, Failed> {
        // Nobody else has children that end meanwhile.
        let used = getrusage(UsageWho::RUSAGE_CHILDREN)?;
        let seconds = |it: TimeVal| Duration::from_micros(it.num_microseconds().unsigned_abs());
        Ok((seconds(used.user_time()) + seconds(used.system_time())).as_secs_f64())
    }

    fn during(&mut self, look: &mut dyn FnMut(u32) -> Result<(), Failed>) -> Result<(), Failed> {
        let mut command = self.side.command(self.batch.program)?;
        let mut process = Process::new(command.args(&self.batch.long).spawn()?);
        let number = process.child()?.id();
        let threads = format!("/proc/{number}/task");
        until("its threads do not begin", || {
            if let Some(status) = process.child()?.try_wait()? {
                return Err(self.side.failed(self.batch.program, status));
            }
            let there = fs::read_dir(&threads)?.count();
            Ok((there >= self.batch.threads).then_some(()))
        })?;
        // Those that it creates last have begun as well.
        std::thread::sleep(Duration::from_millis(200));
        look(number)?;
        process.tell(Signal::SIGKILL)?;
        process.wait()?;
        Ok(())
    }

    fn end(self: Box<Self>) -> Result<(), Failed> {
        Ok(())
    }
}
