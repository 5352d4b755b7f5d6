//! Load: how requests follow each other, and how long they take.
//!
//! In a *closed* loop a request starts when the one before has ended; a server
//! that stalls is spared the requests that would have come meanwhile, and what it
//! would have done to them goes unseen. In an *open* loop each request has an
//! intended start, whatever the server does. Two times tell what happened:
//!
//! - the *service time*, from the actual start to the end;
//! - the *response time*, from the intended start to the end: what whoever sent
//!   the request would have waited.
//!
//! Both are measured once and never corrected afterwards.
//!
//! A generator that cannot keep up measures itself. Its *own delay* is how late a
//! request starts although its turn has come and the one before has ended; where
//! that is more than [`OWN_DELAY_MAX`] of the time, the result means nothing
//! ([`Measured::verdict`]).

use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

/// The share of the time that the generator may be late of itself.
pub const OWN_DELAY_MAX: f64 = 0.01;

/// The longest time that is told from longer ones: more than an hour.
const TIME_NS_MAX: u64 = 4_000_000_000_000;

/// The time, and waiting for it.
pub trait Clock {
    /// How long it is since some moment in the past.
    fn now(&self) -> Duration;

    /// Waits until then.
    fn wait_until(&self, then: Duration);
}

/// The clock of this machine. It waits asleep, and the last moment awake.
pub struct SystemClock(Instant);

impl Default for SystemClock {
    fn default() -> SystemClock {
        SystemClock(Instant::now())
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn wait_until(&self, then: Duration) {
        // A sleeper is woken about so late.
        const AWAKE: Duration = Duration::from_micros(200);
        let left = then.saturating_sub(self.now());
        if left > AWAKE {
            thread::sleep(left - AWAKE);
        }
        while self.now() < then {
            std::hint::spin_loop();
        }
    }
}

/// How long requests took.
#[derive(Clone, Debug)]
pub struct Measured {
    /// From the actual start to the end, in nanoseconds.
    pub service: Histogram<u64>,
    /// From the intended start to the end, in nanoseconds; in a closed loop the
    /// same.
    pub response: Histogram<u64>,
    /// How many requests failed; they are in the histograms, too.
    pub failed: u64,
    /// How late requests started that could have started, in all.
    pub own_delay: Duration,
    /// How long the whole took.
    pub elapsed: Duration,
}

impl Measured {
    fn new() -> Measured {
        let histogram = Histogram::new_with_bounds(1, TIME_NS_MAX, 3);
        let histogram = histogram.expect("these are bounds that a histogram can have");
        Measured {
            service: histogram.clone(),
            response: histogram,
            failed: 0,
            own_delay: Duration::ZERO,
            elapsed: Duration::ZERO,
        }
    }

    fn add(&mut self, intended: Duration, started: Duration, ended: Duration, succeeded: bool) {
        let nanoseconds = |from: Duration| {
            let took = ended.saturating_sub(from).as_nanos();
            u64::try_from(took).unwrap_or(u64::MAX)
        };
        self.service.saturating_record(nanoseconds(started));
        self.response.saturating_record(nanoseconds(intended));
        self.failed += u64::from(!succeeded);
    }

    /// Requests in a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "results are doubles")]
        let count = self.service.len() as f64;
        count / self.elapsed.as_secs_f64()
    }

    /// Adds what another generator has measured at the same time.
    ///
    /// # Errors
    /// Never with histograms made here.
    pub fn merge(&mut self, other: &Measured) -> Result<(), String> {
        let add = |to: &mut Histogram<u64>, from: &Histogram<u64>| {
            to.add(from).map_err(|error| format!("{error:?}"))
        };
        add(&mut self.service, &other.service)?;
        add(&mut self.response, &other.response)?;
        self.failed += other.failed;
        self.own_delay = self.own_delay.max(other.own_delay);
        self.elapsed = self.elapsed.max(other.elapsed);
        Ok(())
    }

    /// Whether this measured the server and not the generator.
    ///
    /// # Errors
    /// Why it means nothing.
    pub fn verdict(&self) -> Result<(), String> {
        let share = self.own_delay.as_secs_f64() / self.elapsed.as_secs_f64();
        match share <= OWN_DELAY_MAX {
            true => Ok(()),
            false => Err(format!(
                "the generator could not keep up: for {:.1} % of the time it was late itself",
                share * 100.0
            )),
        }
    }
}

/// Requests one after the other, for so long. `request` gets the number of the
/// request and says whether it succeeded.
pub fn closed(
    clock: &dyn Clock,
    duration: Duration,
    mut request: impl FnMut(u64) -> bool,
) -> Measured {
    let mut measured = Measured::new();
    let begun = clock.now();
    let mut started = begun;
    let mut number = 0;
    while started - begun < duration {
        let succeeded = request(number);
        let ended = clock.now();
        measured.add(started, started, ended, succeeded);
        number += 1;
        started = ended;
    }
    measured.elapsed = started - begun;
    measured
}

/// So many requests a second, for so long, each at its time or, where the one
/// before has not ended, as soon as that has. `request` is as in [`closed`].
///
/// Nothing is left out: the requests that a stall has held up follow it.
///
/// # Panics
/// The rate is not above 0.
pub fn open(
    clock: &dyn Clock,
    rate: f64,
    duration: Duration,
    mut request: impl FnMut(u64) -> bool,
) -> Measured {
    assert!(rate > 0.0, "a rate is above 0");
    let mut measured = Measured::new();
    let begun = clock.now();
    let mut free = begun;
    for number in 0.. {
        #[expect(clippy::cast_precision_loss, reason = "places on a time line")]
        let offset = Duration::from_secs_f64(number as f64 / rate);
        if offset >= duration {
            break;
        }
        let intended = begun + offset;
        clock.wait_until(intended);
        let started = clock.now();
        measured.own_delay += started.saturating_sub(intended.max(free));
        let succeeded = request(number);
        let ended = clock.now();
        measured.add(intended, started, ended, succeeded);
        free = ended;
    }
    measured.elapsed = (free - begun).max(duration);
    measured
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Time that goes on where somebody says so.
    struct Virtual(Cell<Duration>);

    impl Virtual {
        fn new() -> Virtual {
            Virtual(Cell::new(Duration::from_secs(5)))
        }

        fn pass(&self, time: Duration) {
            self.0.set(self.0.get() + time);
        }
    }

    impl Clock for Virtual {
        fn now(&self) -> Duration {
            self.0.get()
        }

        fn wait_until(&self, then: Duration) {
            self.0.set(self.0.get().max(then));
        }
    }

    const SERVICE: Duration = Duration::from_millis(1);
    const STALL: Duration = Duration::from_secs(15);

    /// A server that answers after a millisecond, and once only after a stall,
    /// which begins at this time.
    fn stalling(clock: &Virtual, at: Duration) -> impl FnMut(u64) -> bool {
        let begun = clock.now();
        let mut has_stalled = false;
        move |_| {
            let stalls = !has_stalled && clock.now() - begun >= at;
            has_stalled |= stalls;
            clock.pass(if stalls { STALL } else { SERVICE });
            true
        }
    }

    fn seconds(nanoseconds: f64) -> f64 {
        nanoseconds / 1e9
    }

    fn is_near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 0.01 * b
    }

    #[test]
    fn an_open_loop_shows_a_stall_as_whoever_waits_sees_it() {
        let clock = Virtual::new();
        let server = stalling(&clock, Duration::from_secs(10));
        let measured = open(&clock, 100.0, Duration::from_secs(100), server);
        assert_eq!(measured.response.len(), 10_000);
        // Whoever comes in the 15 s waits for the rest of them, 7.5 s in the mean,
        // and then for those before: of 1500 requests every 10 ms, each takes 1 ms,
        // so the queue is empty after 15 / 9 further seconds.
        let held_up = 15.0 / (1.0 - 0.1) * 100.0;
        let in_queue = measured
            .response
            .iter_recorded()
            .filter(|it| it.value_iterated_to() > 2_000_000);
        let (count, sum) = in_queue.fold((0.0, 0.0), |(count, sum), it| {
            #[expect(clippy::cast_precision_loss, reason = "a test")]
            let (n, value) = (
                it.count_since_last_iteration() as f64,
                it.value_iterated_to() as f64,
            );
            (count + n, sum + n * value)
        });
        assert!(is_near(count, held_up), "{count}");
        assert!(
            is_near(seconds(sum / count), 7.5),
            "{}",
            seconds(sum / count)
        );
        // They are a sixth of all, and each time up to 15 s is as frequent.
        for (percentile, expected) in [(0.91667, 7.5), (0.95, 10.5), (0.9999, 14.99)] {
            #[expect(clippy::cast_precision_loss, reason = "a test")]
            let value = seconds(measured.response.value_at_quantile(percentile) as f64);
            assert!((value - expected).abs() < 0.1, "{percentile}: {value}");
        }
        assert!(is_near(
            seconds(measured.response.mean()),
            7.5 * held_up / 10_000.0 + 0.0008
        ));
        // The service time has it once.
        assert!(is_near(seconds(measured.service.max() as f64), 15.0));
        assert!(seconds(measured.service.value_at_quantile(0.999) as f64) < 0.002);
        assert_eq!(measured.verdict(), Ok(()));
    }

    #[test]
    fn a_closed_loop_sees_one_slow_request() {
        let clock = Virtual::new();
        let server = stalling(&clock, Duration::from_secs(10));
        let measured = closed(&clock, Duration::from_secs(100), server);
        assert_eq!(measured.service.len(), 85_001);
        assert!(is_near(seconds(measured.service.mean()), 100.0 / 85_001.0));
        assert!(seconds(measured.service.value_at_quantile(0.9999) as f64) < 0.002);
        assert_eq!(measured.response, measured.service);
    }

    #[test]
    fn a_generator_that_is_late_itself_makes_the_result_invalid() {
        /// Wakes up late.
        struct Sleepy(Virtual, Duration);
        impl Clock for Sleepy {
            fn now(&self) -> Duration {
                self.0.now()
            }
            fn wait_until(&self, then: Duration) {
                self.0.wait_until(then + self.1);
            }
        }
        let run = |late: Duration| {
            let clock = Sleepy(Virtual::new(), late);
            let measured = open(&clock, 100.0, Duration::from_secs(10), |_| {
                clock.0.pass(SERVICE);
                true
            });
            measured.verdict()
        };
        assert_eq!(run(Duration::from_micros(50)), Ok(()));
        let why = run(Duration::from_micros(500)).unwrap_err();
        assert!(why.contains("for 5.0 % of the time"), "{why}");
    }

    #[test]
    fn a_server_that_is_too_slow_is_slow_and_not_invalid() {
        let clock = Virtual::new();
        let measured = open(&clock, 100.0, Duration::from_secs(10), |number| {
            clock.pass(Duration::from_millis(20));
            number % 2 == 0
        });
        assert_eq!(measured.verdict(), Ok(()));
        assert_eq!(measured.failed, 500);
        assert!(is_near(measured.rate(), 50.0), "{}", measured.rate());
        // The last of 1000 ends after 20 s and should have begun after 10.
        assert!(is_near(seconds(measured.response.max() as f64), 10.01));
    }

    #[test]
    fn what_several_generators_measured_is_merged_exactly() {
        let run = |took: u64| {
            let clock = Virtual::new();
            closed(&clock, Duration::from_secs(1), |_| {
                clock.pass(Duration::from_millis(took));
                true
            })
        };
        let mut both = run(1);
        both.merge(&run(100)).unwrap();
        assert_eq!(both.service.len(), 1010);
        // The mean of their percentiles would be 50 ms.
        assert!(seconds(both.service.value_at_quantile(0.99) as f64) < 0.002);
        assert!(is_near(both.rate(), 1010.0));
    }

    #[test]
    fn the_real_clock_keeps_a_rate() {
        let measured = open(
            &SystemClock::default(),
            1000.0,
            Duration::from_millis(50),
            |_| true,
        );
        assert_eq!(measured.response.len(), 50);
        assert!(measured.elapsed >= Duration::from_millis(50));
    }
}
