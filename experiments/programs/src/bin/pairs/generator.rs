//! The programs that make load, and what they print.

use std::process::Command;
use std::str::FromStr;

use experiments::Failed;
use milieu_bench::run::protocol::Invalid;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// A connection for each request, so many a second.
    Httperf,
    /// A few connections, which ask again as soon as they are answered.
    Wrk,
}

impl FromStr for Program {
    type Err = String;

    fn from_str(text: &str) -> Result<Program, String> {
        match text {
            "httperf" => Ok(Program::Httperf),
            "wrk" => Ok(Program::Wrk),
            other => Err(format!("no generator is called `{other}`")),
        }
    }
}

/// A load that can be made again and again.
#[derive(Clone, Debug)]
pub struct Generator {
    pub program: Program,
    /// Connections a second, of httperf.
    pub rate: f64,
    pub seconds: f64,
    /// At once, of wrk.
    pub connections: u64,
    /// The page that is asked for.
    pub path: String,
}

/// What came of a load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Load {
    asked: f64,
    answered: f64,
    pub seconds: f64,
    pub errors: f64,
    /// Connections that httperf had no descriptor left for, or no port: nobody was asked.
    pub unmade: f64,
    /// The longest that anybody waited.
    pub worst_ms: f64,
}

impl Load {
    /// Requests a second.
    pub fn requests(&self) -> f64 {
        self.asked / self.seconds
    }

    /// Replies a second.
    pub fn replies(&self) -> f64 {
        self.answered / self.seconds
    }
}

impl Generator {
    /// Makes the load once.
    pub fn load(&self, host: &str, port: u16) -> Result<Load, Failed> {
        let path = &self.path;
        let mut command = match self.program {
            // Not with `--hog`: it then binds ports itself, which are taken until a minute
            // after their connections, and once it has met 64 such ports it looks at every
            // 64th only. For as long as those are taken it does nothing else.
            Program::Httperf => {
                let mut command = Command::new("httperf");
                let connections = (self.rate * self.seconds).ceil().max(1.0);
                command.args(["--timeout=20", "--server", host, "--uri", path]);
                command.arg(format!("--port={port}"));
                command.arg(format!("--num-conns={connections}"));
                command.arg(format!("--rate={}", self.rate));
                command
            }
            Program::Wrk => {
                let mut command = Command::new("wrk");
                // It measures whole seconds.
                command.args(["-t1", &format!("-d{}s", self.seconds.ceil())]);
                command.arg(format!("-c{}", self.connections));
                command.args(["--timeout", "20s"]);
                command.arg(format!("http://{host}:{port}{path}"));
                command
            }
        };
        let output = command.output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        let load = match self.program {
            Program::Httperf => httperf(&said),
            Program::Wrk => wrk(&said),
        };
        load.ok_or_else(|| {
            let why = String::from_utf8_lossy(&output.stderr);
            Invalid(format!("nobody was asked anything: {said}{why}")).into()
        })
    }
}

/// The number before or after a word, among words.
fn after(line: &str, word: &str) -> Option<f64> {
    let mut words = line.split_whitespace();
    words.find(|it| *it == word)?;
    words.next()?.parse().ok()
}

fn httperf(said: &str) -> Option<Load> {
    let line = |begins: &str| said.lines().find(|line| line.starts_with(begins));
    let total = line("Total:")?;
    let lacks = line("Errors: fd-unavail")?;
    let unmade = ["fd-unavail", "addrunavail", "ftab-full"].map(|what| after(lacks, what));
    let [descriptors, addresses, files] = unmade;
    let unmade = descriptors? + addresses? + files?;
    Some(Load {
        asked: after(total, "connections")?,
        answered: after(total, "replies")?,
        seconds: after(total, "test-duration")?,
        errors: after(line("Errors: total")?, "total")? - unmade,
        unmade,
        worst_ms: after(line("Connection time [ms]: min")?, "max")?,
    })
}

fn wrk(said: &str) -> Option<Load> {
    let line = |has: &str| said.lines().find(|line| line.contains(has));
    let total: Vec<&str> = line(" requests in ")?.split_whitespace().collect();
    let answered = total.first()?.parse().ok()?;
    let errors = line("Socket errors:").map_or(Some(0.0), |line| {
        let numbers = line
            .split([' ', ','])
            .filter_map(|word| word.parse::<f64>().ok());
        Some(numbers.sum())
    })?;
    let wrong = line("Non-2xx or 3xx responses:").and_then(|line| after(line, "responses:"));
    Some(Load {
        // Who is not answered does not ask again.
        asked: answered,
        answered,
        seconds: milliseconds(total.get(3)?.trim_end_matches(','))? / 1e3,
        errors: errors + wrong.unwrap_or(0.0),
        unmade: 0.0,
        worst_ms: milliseconds(line("Latency")?.split_whitespace().nth(3)?)?,
    })
}

/// A time as wrk writes it: `47.43us`, `2.33ms`, `2.10s`, `1.50m`.
fn milliseconds(text: &str) -> Option<f64> {
    let unit = text.find(|c: char| c.is_ascii_alphabetic())?;
    let number: f64 = text[..unit].parse().ok()?;
    let scale = match &text[unit..] {
        "us" => 1e-3,
        "ms" => 1.0,
        "s" => 1e3,
        "m" => 60e3,
        _ => return None,
    };
    Some(number * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_httperf_prints_is_read() {
        let said = "httperf --timeout=20\nMaximum connect burst length: 1\n\n\
            Total: connections 2000 requests 1990 replies 1980 test-duration 2.500 s\n\n\
            Connection rate: 1000.1 conn/s (1.0 ms/conn, <=5 concurrent connections)\n\
            Connection time [ms]: min 0.0 avg 0.1 max 5.8 median 0.5 stddev 0.2\n\
            Connection time [ms]: connect 0.0\n\n\
            Errors: total 27 client-timo 10 socket-timo 0 connrefused 10 connreset 0\n\
            Errors: fd-unavail 5 addrunavail 2 ftab-full 0 other 0\n";
        let load = httperf(said).unwrap();
        assert_eq!((load.requests(), load.replies()), (800.0, 792.0));
        assert_eq!((load.errors, load.unmade, load.worst_ms), (20.0, 7.0, 5.8));
        assert_eq!(httperf("httperf: no such host"), None);
    }

    #[test]
    fn what_wrk_prints_is_read() {
        let said = "Running 2s test @ http://127.0.0.1:41251/2\n  1 threads and 4 connections\n  \
            Thread Stats   Avg      Stdev     Max   +/- Stdev\n    \
            Latency    47.43us   62.77us   2.33ms   98.41%\n    \
            Req/Sec    78.31k    13.66k  112.01k    71.43%\n  \
            168000 requests in 2.10s, 22.80MB read\n";
        let load = wrk(said).unwrap();
        assert!((load.replies() - 80_000.0).abs() < 1e-6);
        assert_eq!((load.errors, load.worst_ms), (0.0, 2.33));
        let wrong = "  Socket errors: connect 1, read 2, write 0, timeout 3\n  \
            Non-2xx or 3xx responses: 4\n";
        assert_eq!(wrk(&format!("{said}{wrong}")).unwrap().errors, 10.0);
        assert_eq!(wrk("unable to connect"), None);
        assert_eq!(milliseconds("1.50m"), Some(90e3));
    }
}
