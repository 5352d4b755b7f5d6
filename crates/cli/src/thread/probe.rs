//! By which means threads can be served on this machine.

use clap::Args;
use milieu_threads::lock;
use milieu_threads::rung::{self, Report, Return, Rung, scheduling};
use milieu_threads::stack::{self, Way};
use serde_json::{Value, json};

use super::{Outcome, print};

/// Say by which means threads can be served here, and what would make the rest work
///
/// The means are tried, in a child that is gone afterwards, best first. Programs
/// use the first that works and from which lazy threads can return.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu thread probe
  milieu thread probe --json")]
pub(super) struct Probe {
    /// Print it as JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Something that works here or does not.
struct Finding {
    name: &'static str,
    /// What it is good for.
    purpose: &'static str,
    /// What limits it, or why it does not work.
    verdict: Result<Option<String>, String>,
    /// What would make it work, or better.
    remedy: Option<String>,
}

impl Probe {
    pub(super) fn run(&self) -> Outcome {
        let reports = rung::probe();
        let best = rung::best(&reports);
        let rungs: Vec<Finding> = reports.iter().map(of_rung).collect();
        let others = [boost(), limited_space()];
        let ways = ways();
        if self.json {
            let listed = |found: &[Finding]| found.iter().map(Finding::json).collect::<Vec<_>>();
            return print(&format!(
                "{}\n",
                json!({
                    "rungs": listed(&rungs),
                    "best": best.map(Rung::name),
                    "stacks": listed(&ways),
                    "others": listed(&others),
                    "privileged": scheduling::has_privilege(),
                })
            ));
        }
        let mut text = "Processor time, best first:\n".to_owned();
        for (finding, report) in rungs.iter().zip(reports) {
            text += &finding.text(Some(report.rung) == best);
        }
        text += "\nDepths of stacks, cheapest first:\n";
        text.extend(ways.iter().map(|it| it.text(false)));
        text += "\nBeside them:\n";
        text.extend(others.iter().map(|it| it.text(false)));
        print(&text)
    }
}

impl Finding {
    fn text(&self, is_best: bool) -> String {
        let (mark, verdict, why) = match &self.verdict {
            Ok(None) => ('+', "works", None),
            Ok(Some(limit)) => ('~', "works", Some(limit)),
            Err(why) => ('-', "does not work", Some(why)),
        };
        let used = if is_best { ", and is used" } else { "" };
        let mut text = format!(
            "  {mark} {:<9} {verdict}{used}: {}\n",
            self.name, self.purpose
        );
        for line in [why, self.remedy.as_ref()].into_iter().flatten() {
            text += &format!("              {line}\n");
        }
        text
    }

    fn json(&self) -> Value {
        let (works, why) = match &self.verdict {
            Ok(limit) => (true, limit),
            Err(why) => (false, &Some(why.clone())),
        };
        json!({
            "name": self.name,
            "purpose": self.purpose,
            "works": works,
            "why": why,
            "remedy": self.remedy,
        })
    }
}

fn of_rung(report: &Report) -> Finding {
    let told = match &report.verdict {
        Ok(Return::Always) => String::new(),
        Ok(Return::Never) => Return::Never.to_string().replacen("works, but ", "", 1),
        Err(obstacle) => obstacle.to_string(),
    };
    let (why, remedy) = match told.split_once("; ") {
        Some((why, remedy)) => (why.to_owned(), Some(remedy.to_owned())),
        None => (told, None),
    };
    Finding {
        name: report.rung.name(),
        purpose: match report.rung {
            Rung::Realtime => "critical threads in real time, round robin",
            Rung::Cgroup => "the others in an idle control group",
            Rung::Idle => "the others scheduled as SCHED_IDLE",
            Rung::Nice => "the others with nice value 19",
        },
        verdict: match report.verdict {
            Ok(_) => Ok((!why.is_empty()).then_some(why)),
            Err(_) => Err(why),
        },
        remedy,
    }
}

fn ways() -> Vec<Finding> {
    let process = stack::Process::own();
    let here = 0_u8;
    let address = std::ptr::from_ref(&here) as usize as u64;
    let own = process.and_then(|it| {
        let stack = it.stack_around(address, stack::Hint::default())?;
        Ok((it, stack))
    });
    let of = |way| {
        let depth = own
            .as_ref()
            .map_err(|errno| *errno)
            .and_then(|(process, stack)| process.depth_by(way, stack));
        let (name, purpose, remedy) = match way {
            Way::Scan => (
                "scan",
                "the control PAGEMAP_SCAN, also of other processes",
                "it takes Linux 6.7",
            ),
            Way::Pagemap => (
                "pagemap",
                "/proc/PID/pagemap, also of other processes",
                "mount /proc, and allow programs to read their own files there",
            ),
            Way::Mincore => (
                "mincore",
                "only of a program's own stacks, without pages that were swapped out",
                "mount /proc",
            ),
        };
        let verdict = match depth {
            Ok(_) => Ok(None),
            Err(errno) => Err(errno.to_string()),
        };
        let remedy = verdict.is_err().then(|| remedy.to_owned());
        Finding {
            name,
            purpose,
            verdict,
            remedy,
        }
    };
    Way::ALL.map(of).into()
}

fn boost() -> Finding {
    let is_known = lock::are_owners_known();
    Finding {
        name: "boost",
        purpose: "who has a mutex is urgent while a critical thread waits for it",
        verdict: if is_known {
            Ok(Some("mutexes of the C library only".to_owned()))
        } else {
            Err("mutexes of this C library do not tell who has them".to_owned())
        },
        remedy: (!is_known).then(|| "link the program against glibc".to_owned()),
    }
}

fn limited_space() -> Finding {
    let is_limited = stack::is_space_limited();
    Finding {
        name: "stacks",
        purpose: "learned sizes of stacks are applied",
        verdict: Ok(Some(
            if is_limited {
                "by default, once an eighth of the limited address space is used"
            } else {
                "on request only, as address space is ample here"
            }
            .to_owned(),
        )),
        remedy: (!is_limited).then(|| "`milieu thread run --mode forced` applies them".to_owned()),
    }
}
