//! Stacks of programs that know nothing of Milieu: how much of them is used and how
//! much given (Figures 3 and 11), how many threads there can be (Figure 12), and what
//! becomes of a thread that is suddenly deep.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Instant;

use experiments::{Failed, text, whole};
use milieu_bench::run::protocol::Start;
use serde_json::json;

use super::crowd::{Crowd, Limits, Profile, Shown, served, shown};
use super::{Numbers, number};

/// The paper counts 273 threads; of so many something is learned.
const LEARNING: [&str; 2] = ["hold", "273"];

/// Lower than any peak: sizes are those of peaks and margins.
const NO_FLOOR: [&str; 2] = ["--floor", "16K"];

/// The default of Milieu, 64 bits.
const FLOOR_KIB: f64 = 256.0;

/// How stacks come to their sizes.
enum Sizes {
    /// The C library's, and nobody is served.
    Default,
    Served(Profile, &'static [&'static str]),
}

impl Sizes {
    fn of(name: &str) -> Result<Sizes, Failed> {
        let learned = |options| -> Result<Sizes, Failed> {
            Ok(Sizes::Served(
                Profile::learned("crowd", &LEARNING)?,
                options,
            ))
        };
        match name {
            "default" => Ok(Sizes::Default),
            "learned" => learned(&NO_FLOOR),
            "floor" => learned(&[]),
            other => Err(format!("`{other}` are no sizes").into()),
        }
    }

    fn start(&self, arguments: &[&str]) -> Result<Crowd, Failed> {
        let served = match self {
            Sizes::Default => None,
            Sizes::Served(profile, options) => Some(profile.serves("forced", options)),
        };
        Crowd::start("crowd", arguments, served.as_deref(), Limits::NONE)
    }
}

/// Figure 3: each thread of a program, with its role, as `milieu thread top` shows it.
pub fn use_of_each(start: &Start) -> Result<Numbers, Failed> {
    let threads = whole(start, "threads")?;
    let mut roles = tempfile::NamedTempFile::new()?;
    roles.write_all(b"start * => kitchen\n")?;
    let path = roles.path().display().to_string();
    let served = served(["--mode", "learn", "--no-profile", "--roles", &path]);
    let count = threads.to_string();
    let crowd = Crowd::start("crowd", &["hold", &count], Some(&served), Limits::NONE)?;
    let all = shown(crowd.process())?;
    let told = crowd.end()?;
    let (mut out, mut used) = (std::io::stdout().lock(), Vec::new());
    for thread in &all {
        let line = json!({"thread": {"used": thread.peak_kib, "given": thread.stack_kib}});
        writeln!(out, "{line}")?;
        used.push(thread.peak_kib);
    }
    used.sort_by(f64::total_cmp);
    let given: f64 = all.iter().map(|it| it.stack_kib).sum();
    let sum: f64 = used.iter().sum();
    let with_role = all.iter().filter(|it| it.role == "kitchen").count();
    Ok(vec![
        ("shown", number(used.len() as u64)),
        ("begun", of(&told, "begun")?),
        ("with_role", number(with_role as u64)),
        ("least_kib", used.first().copied().unwrap_or(f64::NAN)),
        ("median_kib", super::percentile(&used, 0.5)),
        ("most_kib", used.last().copied().unwrap_or(f64::NAN)),
        ("used_kib", sum),
        ("given_kib", given),
        ("used_percent", sum / given * 100.0),
    ])
}

/// Figure 11: the stacks of so many threads at once, by where their sizes come from.
pub fn space(start: &Start) -> Result<Numbers, Failed> {
    let (threads, name) = (whole(start, "threads")?, text(start, "sizes")?);
    let sizes = Sizes::of(if name == "used" { "default" } else { &name })?;
    let empty = sizes.start(&["hold", "0"])?;
    let without = empty.space_kib()?;
    empty.end()?;
    let crowd = sizes.start(&["hold", &threads.to_string()])?;
    let (space, all) = (crowd.space_kib()? - without, shown(crowd.process())?);
    let told = crowd.end()?;
    if all.len() as u64 != threads {
        return Err(format!("{} of {threads} threads are shown", all.len()).into());
    }
    let sum = |each: &dyn Fn(&Shown) -> f64| all.iter().map(each).sum::<f64>();
    let used = sum(&|it| it.peak_kib);
    let stacks = if name == "used" {
        used
    } else {
        sum(&|it| it.stack_kib)
    };
    let least = sum(&|it| it.peak_kib.max(FLOOR_KIB.min(it.stack_kib)));
    Ok(vec![
        ("begun", of(&told, "begun")?),
        ("used_kib", used),
        ("stacks_kib", stacks),
        ("space_kib", if name == "used" { used } else { space }),
        ("times_used", stacks / used),
        ("times_used_or_floor", stacks / least),
        ("space_times_used_or_floor", space / least),
    ])
}

/// A long run: so many threads, one after the other. What is used at its begin and at
/// its end, each the most in a tenth of the run.
pub fn creations(start: &Start) -> Result<Numbers, Failed> {
    let (threads, alive) = (whole(start, "creations")?, whole(start, "alive")?);
    let sizes = Sizes::of(&text(start, "sizes")?)?;
    let begun = Instant::now();
    let crowd = sizes.start(&["churn", &threads.to_string(), &alive.to_string()])?;
    let told = crowd.end()?;
    let seconds = begun.elapsed().as_secs_f64();
    let growth = |what: &str| -> Result<f64, Failed> {
        Ok(of(&told, &format!("{what}9"))? - of(&told, &format!("{what}0"))?)
    };
    Ok(vec![
        ("begun", of(&told, "begun")?),
        ("failures", of(&told, "failed")?),
        ("space_kib", of(&told, "space9")?),
        ("resident_kib", of(&told, "resident9")?),
        ("space_growth_kib", growth("space")?),
        ("resident_growth_kib", growth("resident")?),
        ("each_us", seconds / number(threads) * 1e6),
    ])
}

/// Figure 12: how many of so many threads cannot begin, with stacks of this size, in
/// limited address space.
pub fn failures(start: &Start) -> Result<Numbers, Failed> {
    let program = text(start, "program")?;
    let threads = whole(start, "threads")?;
    // So deep that the smallest of the sizes is enough.
    let hold = |threads| ["hold", threads, "1500"];
    let limits = Limits {
        stack_bytes: whole(start, "stack")? << 20,
        space_bytes: Some(whole(start, "space")? << 20).filter(|it| *it > 0),
        has_3_gb: program.ends_with("-32"),
    };
    let served = match text(start, "sizes")?.as_str() {
        "default" => None,
        "tuned" => Some(Profile::learned(&program, &hold(LEARNING[1]))?),
        other => return Err(format!("`{other}` are no sizes").into()),
    };
    // Nothing is asked for: that space is limited is why learned sizes are applied.
    let words = served.as_ref().map(|it| it.serves("tuned", &[]));
    let count = threads.to_string();
    let told = Crowd::start(&program, &hold(&count), words.as_deref(), limits)?.end()?;
    Ok(vec![
        ("begun", of(&told, "begun")?),
        ("failures", of(&told, "failed")?),
        ("first_failure", of(&told, "first")?),
    ])
}

/// Threads that are light while something is learned of them, and deep afterwards.
pub fn light_then_heavy(start: &Start) -> Result<Numbers, Failed> {
    let program = text(start, "program")?;
    let (light, heavy) = (whole(start, "light")?, whole(start, "heavy")?);
    let runs = whole(start, "runs")?;
    let profile = Profile::learned(&program, &["deep", &light.to_string(), "3"])?;
    // The program alone uses more than an eighth of what is short, and a whole stack finds
    // room there; `milieu`, which starts it, may need more.
    let short = format!("--as={}", 24 << 20);
    let (mode, space_bytes, by) = match text(start, "applied")?.as_str() {
        "nowhere" => ("tuned", None, &[][..]),
        "limited" => ("tuned", Some(1 << 30), &[][..]),
        "short" => ("tuned", None, &["prlimit", &short][..]),
        "forced" => ("forced", None, &[][..]),
        other => return Err(format!("`{other}` is not where sizes are applied").into()),
    };
    let served = profile.serves(mode, &[]);
    let limits = Limits {
        space_bytes,
        ..Limits::NONE
    };
    let run = |depth: u64| {
        let depth = depth.to_string();
        let words = [by, &[&program, "deep", &depth, "3"]].concat();
        Crowd::start(words[0], &words[1..], Some(&served), limits)?.ended()
    };
    // As light as before.
    let taken = of(&run(light)?.told, "taken")?;
    let mut crashes = 0_u32;
    for _ in 0..runs {
        let ended = run(heavy)?;
        let is_well = ended.status.success() && ended.told.get("ended") == Some(&3.0);
        crashes += u32::from(!is_well);
    }
    Ok(vec![("crashes", f64::from(crashes)), ("taken_kib", taken)])
}

/// A number that a program has said.
pub fn of(told: &BTreeMap<String, f64>, name: &str) -> Result<f64, Failed> {
    let found = told.get(name).copied();
    found.ok_or_else(|| format!("it does not say `{name}`").into())
}
