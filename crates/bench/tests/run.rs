//! Runs with an executor and a clock that the test decides about.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use milieu_bench::Value;
use milieu_bench::catalogue::Catalogue;
use milieu_bench::description::{Group, Language, parse};
use milieu_bench::plan::Step;
use milieu_bench::result::{Outcome, Results, StepResult};
use milieu_bench::run::journal::Journal;
use milieu_bench::run::protocol::Measured;
use milieu_bench::run::{Clock, Executor, Failed, Keeper, Observer, Order, Progress, Run, Runner};
use milieu_diagnostics::Source;

/// A clock that goes on by a second with each look.
#[derive(Default)]
struct Ticks(Cell<u64>);

impl Clock for Ticks {
    fn now(&self) -> String {
        format!("second {}", self.0.get())
    }

    fn elapsed(&self) -> Duration {
        self.0.set(self.0.get() + 1);
        Duration::from_secs(self.0.get())
    }
}

/// Does what it is told to, step by step; `n` is what is measured otherwise.
struct Told<F>(F, Vec<Order>);

impl<F: FnMut(usize, &Order) -> Result<Vec<Run>, Failed>> Executor for Told<F> {
    fn step(&mut self, order: &Order, _: Duration) -> Result<Vec<Run>, Failed> {
        self.1.push(order.clone());
        (self.0)(self.1.len(), order)
    }
}

fn measures(_: usize, order: &Order) -> Result<Vec<Run>, Failed> {
    let run = |application: &milieu_bench::run::Ordered| {
        let n = application.parameters["n"].number().unwrap();
        Run {
            application: application.name.clone(),
            results: BTreeMap::from([("value".to_owned(), Measured::Number(n))]),
            ..Run::default()
        }
    };
    Ok(order.applications.iter().map(run).collect())
}

fn group(more: &str) -> Group {
    let text = format!(
        "[[test]]\n{more}\nparameters = {{ m = 1, deep = 1 }}\n\
         variable = {{ name = \"n\", values = [1, 2, 3] }}\n\
         server = [{{ parameters = {{ m = 2, deep = 2 }}, application = [\
         {{ name = \"a\", kind = \"k\" }}, {{ name = \"b\", kind = \"k\", parameters.deep = 3 }}] }}]\n"
    );
    let source = Source::new("test", text);
    parse(Language::Toml, &source, &Catalogue::default())
        .unwrap()
        .0
}

fn run(
    group: &Group,
    executor: &mut dyn Executor,
    observer: &mut dyn Observer,
    keeper: &mut dyn Keeper,
) -> Result<Results, String> {
    let clock = &Ticks::default();
    let mut runner = Runner {
        executor,
        clock,
        observer,
        keeper,
    };
    runner.run(group)
}

#[test]
fn the_innermost_parameter_holds() {
    let mut executor = Told(measures, Vec::new());
    run(&group(""), &mut executor, &mut (), &mut ()).unwrap();
    let told = |order: &Order| -> Vec<[Value; 3]> {
        let applications = order.applications.iter();
        let names = ["n", "m", "deep"];
        applications
            .map(|it| names.map(|name| it.parameters[name].clone()))
            .collect()
    };
    let value = Value::Integer;
    assert_eq!(
        told(&executor.1[1]),
        [
            [value(2), value(2), value(2)],
            [value(2), value(2), value(3)]
        ]
    );
}

#[test]
fn warm_ups_are_kept_and_count_for_nothing() {
    let warm = |_: usize, order: &Order| {
        let mut runs = measures(0, order)?;
        if order.step.is_warm_up {
            runs[0]
                .results
                .insert("value".into(), Measured::Number(1e9));
        }
        Ok(runs)
    };
    let group = group("warm-up = 2\nrepetitions = 2");
    let results = run(&group, &mut Told(warm, Vec::new()), &mut (), &mut ()).unwrap();
    let test = &results.tests[0];
    assert_eq!(test.steps.len(), 12);
    assert_eq!(test.points.len(), 3);
    for (point, value) in test.points.iter().zip([1.0, 2.0, 3.0]) {
        let statistics = &point.metrics["value"];
        assert_eq!((statistics.count, statistics.mean), (4, value));
        assert_eq!(statistics.confidence, Some((value, value)));
    }
    let ratio = test
        .ratio("value", &test.points[2], &test.points[0])
        .unwrap();
    assert!((ratio.ratio - 3.0).abs() < 1e-12);
    assert_eq!(ratio.pairs, 2);
}

#[test]
fn a_warm_up_that_is_too_short_shows() {
    let cold_for = |rounds: u32| {
        move |nth: usize, order: &Order| {
            let mut runs = measures(nth, order)?;
            let noise = 1.0 + (nth * 7 % 5) as f64 / 1000.0;
            let cold = if order.step.round < rounds { 1.5 } else { 1.0 };
            for run in &mut runs {
                if let Some(Measured::Number(value)) = run.results.get_mut("value") {
                    *value *= noise * cold;
                }
            }
            Ok(runs)
        }
    };
    let first_round = |cold| {
        let group = group("warm-up = 1\nrepetitions = 6");
        let mut executor = Told(cold_for(cold), Vec::new());
        let results = run(&group, &mut executor, &mut (), &mut ()).unwrap();
        results.tests[0].first_round("value").unwrap()
    };
    assert!(!first_round(1).differs(), "{:?}", first_round(1));
    let cold = first_round(2);
    assert!(
        cold.differs() && (1.49..1.51).contains(&cold.ratio),
        "{cold:?}"
    );
}

#[test]
fn what_fails_or_means_nothing_is_in_the_result() {
    let troubled = |nth: usize, order: &Order| {
        let mut runs = measures(nth, order)?;
        match nth {
            1 => runs[0].error = Some("boom".into()),
            2 => runs[1].invalid = Some("the generator fell behind".into()),
            _ => {}
        }
        Ok(runs)
    };
    let results = run(
        &group(""),
        &mut Told(troubled, Vec::new()),
        &mut (),
        &mut (),
    )
    .unwrap();
    let test = &results.tests[0];
    let outcomes: Vec<Outcome> = test.steps.iter().map(|step| step.outcome).collect();
    assert_eq!(
        outcomes,
        [Outcome::Failed, Outcome::Invalid, Outcome::Measured]
    );
    assert_eq!(results.outcome(), Outcome::Failed);
    assert_eq!(test.points[0].failures[0].message, "boom");
    // What another application measured in that step is counted, and said beside.
    assert_eq!(test.points[0].metrics["value"].count, 1);
    assert_eq!(test.points[1].failures[0].application, "b");
}

#[test]
fn a_lost_host_is_retried_left_out_or_the_end() {
    let lost = |times: usize| {
        move |nth: usize, order: &Order| match (2..2 + times).contains(&nth) {
            true => Err(Failed::Lost("c24".into(), "no answer".into())),
            false => measures(nth, order),
        }
    };
    let with = |policy: &str, times| {
        let group = group(&format!("lost-host = \"{policy}\""));
        run(&group, &mut Told(lost(times), Vec::new()), &mut (), &mut ())
    };
    let retried = with("retry", 3).unwrap();
    let step = &retried.tests[0].steps[1];
    assert_eq!(step.outcome, Outcome::Measured);
    assert_eq!(step.lost, ["c24: no answer"; 3]);
    assert_eq!(
        with("retry", 4).unwrap_err(),
        "the host c24 is lost: no answer"
    );
    let skipped = with("skip", 1).unwrap();
    assert_eq!(skipped.tests[0].steps[1].outcome, Outcome::Lost);
    assert_eq!(skipped.outcome(), Outcome::Lost);
    assert_eq!(
        skipped.tests[0].points[1].failures[0].message,
        "c24: no answer"
    );
    assert_eq!(
        with("fail", 1).unwrap_err(),
        "the host c24 is lost: no answer"
    );
}

#[test]
fn an_interrupted_run_goes_on_where_it_was_and_gives_the_same_result() {
    struct Stops(u64);
    impl Observer for Stops {
        fn stops(&mut self) -> bool {
            self.0 = self.0.saturating_sub(1);
            self.0 == 0
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.steps");
    let group = group("repetitions = 4\norder = \"random\"");
    let whole = run(&group, &mut Told(measures, Vec::new()), &mut (), &mut ()).unwrap();
    let mut ran = 0;
    let resumed = loop {
        let mut executor = Told(measures, Vec::new());
        let mut journal = Journal::open(&path, &group).unwrap();
        assert_eq!(journal.len(), ran);
        let ended = run(&group, &mut executor, &mut Stops(4), &mut journal);
        ran += executor.1.len();
        match ended {
            Ok(results) => break results,
            Err(why) => assert_eq!(why, format!("stopped after {ran} of 12 steps")),
        }
        // A line that was written in part is a step that did not end.
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{\"test\":0,\"resul");
        std::fs::write(&path, text).unwrap();
    };
    assert_eq!(ran, 12);
    assert_eq!(resumed.started, resumed.tests[0].steps[0].started);
    let steps = |results: &Results| -> Vec<Step> {
        results.tests[0]
            .steps
            .iter()
            .map(|it| it.step.clone())
            .collect()
    };
    assert_eq!(steps(&resumed), steps(&whole));
    assert_eq!(resumed.tests[0].points, whole.tests[0].points);
    let other = self::group("repetitions = 5");
    let error = Journal::open(&path, &other).err().unwrap().to_string();
    assert!(error.contains("steps of another description"), "{error}");
}

#[test]
fn progress_tells_how_much_is_left() {
    #[derive(Default)]
    struct Heard(Vec<(u64, u64, Option<Duration>)>);
    impl Observer for Heard {
        fn begins(&mut self, progress: &Progress<'_>) {
            self.0.push((progress.done, progress.steps, progress.left));
        }

        fn ended(&mut self, progress: &Progress<'_>, result: &StepResult) {
            assert_eq!(progress.done, result.step.index + 1);
            let nothing = Some(Duration::ZERO);
            assert_eq!(progress.left == nothing, progress.done == progress.steps);
        }
    }
    let mut heard = Heard::default();
    run(
        &group(""),
        &mut Told(measures, Vec::new()),
        &mut heard,
        &mut (),
    )
    .unwrap();
    let left = |seconds| Some(Duration::from_secs_f64(seconds));
    // A step looks at the clock four times: 5 s for the first, 9 s for two.
    assert_eq!(
        heard.0,
        [(0, 3, None), (1, 3, left(10.0)), (2, 3, left(4.5))]
    );
}

#[test]
fn results_are_read_as_they_are_written() {
    let group = group("repetitions = 2");
    let results = run(&group, &mut Told(measures, Vec::new()), &mut (), &mut ()).unwrap();
    assert_eq!(Results::parse(&results.to_json()).unwrap(), results);
    let xml = Results::parse(&results.to_xml()).unwrap();
    assert_eq!(xml.tests[0].points.len(), 3);
    for (read, written) in xml.tests[0].points.iter().zip(&results.tests[0].points) {
        assert_eq!(read.metrics, written.metrics);
    }
    assert_eq!(xml.to_xml(), results.to_xml());
    let future = results
        .to_json()
        .replacen("\"format\": 1", "\"format\": 2", 1);
    let error = Results::parse(&future).unwrap_err();
    assert_eq!(error, "results of format 2; this version reads 1");
    for wrong in [
        "",
        "{}",
        "<a/>",
        "<test-group><test name='x'><result/></test></test-group>",
    ] {
        assert!(Results::parse(wrong).is_err(), "{wrong}");
    }
}

/// A test that searches `n` among so many values, beside `m`, which has two.
fn searching(count: usize, condition: &str, more: &str) -> Group {
    let text = format!(
        "[[test]]\n{more}\nvariable = [{{ name = \"n\", start = 1, end = {count}, while = \"{condition}\" }}, \
         {{ name = \"m\", values = [1, 2] }}]\n\
         server = [{{ application = [{{ name = \"a\", kind = \"k\" }}] }}]\n"
    );
    let source = Source::new("test", text);
    let read = parse(Language::Toml, &source, &Catalogue::default());
    read.unwrap_or_else(|found| panic!("{found:?}")).0
}

/// The time that a request takes at a rate: from `m` times 10 on it is too long.
fn slows_down(_: usize, order: &Order) -> Result<Vec<Run>, Failed> {
    let of = |name: &str| order.applications[0].parameters[name].number().unwrap();
    let time = if of("n") >= of("m") * 10.0 { 9.0 } else { 1.0 };
    Ok(vec![Run {
        application: "a".into(),
        results: BTreeMap::from([("time".to_owned(), Measured::Number(time))]),
        ..Run::default()
    }])
}

#[test]
fn a_search_finds_the_last_value_for_which_its_condition_holds() {
    let search = |count, condition: &str, more: &str| {
        let mut executor = Told(slows_down, Vec::new());
        let group = searching(count, condition, more);
        let results = run(&group, &mut executor, &mut (), &mut ()).unwrap();
        (results.tests[0].found.clone(), executor.1.len())
    };
    let (found, steps) = search(
        1_000_000 / 4,
        "time.mean < 5.0 && failed == 0",
        "repetitions = 2",
    );
    let values: Vec<_> = found.iter().map(|it| it.value.clone().unwrap()).collect();
    assert_eq!(values, [9, 19].map(Value::Integer));
    assert!(
        found
            .iter()
            .all(|it| it.is_bounded && it.is_sure && it.undecided.is_empty())
    );
    assert_eq!(
        found[1].others,
        BTreeMap::from([("m".to_owned(), Value::Integer(2))])
    );
    // Twice the ends, 18 halves and both neighbours again, for two combinations.
    assert!(steps <= 2 * 2 * 22, "{steps}");

    let (found, _) = search(5, "time.p50 < 5.0", "");
    assert!(
        found
            .iter()
            .all(|it| it.value == Some(Value::Integer(5)) && !it.is_bounded)
    );
    let (found, _) = search(5, "time.mean < 0.5", "");
    assert!(
        found
            .iter()
            .all(|it| it.value.is_none() && it.is_bounded && it.is_sure)
    );
    let (found, _) = search(1, "time.mean < 5.0", "");
    assert!(
        found
            .iter()
            .all(|it| it.value == Some(Value::Integer(1)) && !it.is_bounded)
    );
    // What cannot be decided does not hold.
    let (found, _) = search(5, "tmie.mean < 5.0", "");
    assert_eq!(found[0].value, None);
    assert!(
        found[0].undecided[0].contains("tmie"),
        "{:?}",
        found[0].undecided
    );
}

#[test]
fn a_search_that_met_noise_is_not_sure() {
    // The second look at the value that was found says something else.
    let mut looks = 0;
    let noisy = move |nth: usize, order: &Order| {
        let mut runs = slows_down(nth, order)?;
        if order.applications[0].parameters["n"] == Value::Integer(9) {
            looks += 1;
            if looks == 2 {
                runs[0]
                    .results
                    .insert("time".into(), Measured::Number(100.0));
            }
        }
        Ok(runs)
    };
    let group = searching(100, "time.mean < 5.0", "");
    let results = run(&group, &mut Told(noisy, Vec::new()), &mut (), &mut ()).unwrap();
    let sure: Vec<bool> = results.tests[0].found.iter().map(|it| it.is_sure).collect();
    assert_eq!(sure, [false, true]);
}

#[test]
fn a_search_is_resumed_and_its_steps_are_results() {
    struct Stops(u64);
    impl Observer for Stops {
        fn begins(&mut self, progress: &Progress<'_>) {
            assert!(progress.done < progress.steps);
        }

        fn stops(&mut self) -> bool {
            self.0 = self.0.saturating_sub(1);
            self.0 == 0
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.steps");
    let group = searching(1000, "time.mean < 5.0", "warm-up = 1");
    let whole = run(&group, &mut Told(slows_down, Vec::new()), &mut (), &mut ()).unwrap();
    let resumed = loop {
        let mut journal = Journal::open(&path, &group).unwrap();
        let mut executor = Told(slows_down, Vec::new());
        match run(&group, &mut executor, &mut Stops(8), &mut journal) {
            Ok(results) => break results,
            Err(why) => assert!(why.starts_with("stopped after"), "{why}"),
        }
    };
    assert_eq!(resumed.tests[0].found, whole.tests[0].found);
    assert_eq!(resumed.tests[0].points, whole.tests[0].points);
    // Points that were measured, and no others.
    assert!((20..40).contains(&whole.tests[0].points.len()));
    let warm = whole.tests[0]
        .steps
        .iter()
        .filter(|step| step.step.is_warm_up)
        .count();
    assert_eq!(warm * 2, whole.tests[0].steps.len());
}
