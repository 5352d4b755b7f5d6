//! The standalone cases: messages over sockets, without anything else (section
//! 5.1).

use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use experiments::{Failed, text, whole};
use hdrhistogram::Histogram;
use milieu_bench::run::protocol::{Distribution, Invalid, Measured, Measurement, Start};

use super::forms::{Form, Messages, Packer, Unpacker};
use super::{Ready, at, numbers};

fn form(start: &Start) -> Result<Form, Failed> {
    Ok(text(start, "form")?.parse()?)
}

fn connect(start: &Start, service: &str) -> Result<TcpStream, Failed> {
    let port = u16::try_from(whole(start, &format!("{service}.port"))?)?;
    Ok(TcpStream::connect((&*text(start, "host")?, port))?)
}

fn reader(stream: &TcpStream) -> Result<BufReader<TcpStream>, Failed> {
    Ok(BufReader::with_capacity(1 << 16, stream.try_clone()?))
}

/// Sends each message back that comes.
pub fn bounce(start: &Start, ready: Ready<'_>) -> Result<Measurement, Failed> {
    let form = form(start)?;
    let listener = TcpListener::bind(("0.0.0.0", 0))?;
    ready(at(listener.local_addr()?.port()))?;
    loop {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let (mut packer, mut unpacker) = (Packer::new(form), Unpacker::new(form));
        let (mut input, mut out) = (reader(&stream)?, Vec::new());
        while let Some(message) = unpacker.read(&mut input)? {
            packer.pack(&message, &mut out)?;
            stream.write_all(&out)?;
        }
    }
}

/// Sends messages to the bouncer, the next one when the one before is back.
pub fn round_trips(start: &Start, _: Ready<'_>) -> Result<Measurement, Failed> {
    let (form, iterations) = (form(start)?, whole(start, "iterations")?);
    let messages = Messages::random(whole(start, "length")?);
    let mut stream = connect(start, "bouncer")?;
    stream.set_nodelay(true)?;
    let (mut packer, mut unpacker) = (Packer::new(form), Unpacker::new(form));
    let (mut input, mut out) = (reader(&stream)?, Vec::new());
    let mut times = Histogram::<u64>::new(2)?;
    let mut all = Duration::ZERO;
    for number in 0..iterations {
        let message = messages.text(number);
        let begun = Instant::now();
        packer.pack(message, &mut out)?;
        stream.write_all(&out)?;
        let back = unpacker.read(&mut input)?;
        let took = begun.elapsed();
        if back.as_deref() != Some(message) {
            return Err(Invalid(format!("message {number} did not come back")).into());
        }
        all += took;
        times.record(u64::try_from(took.as_nanos())?)?;
    }
    #[expect(clippy::cast_precision_loss, reason = "results are doubles")]
    let mean = all.as_secs_f64() / iterations as f64;
    Ok(Measurement::Several(
        [
            ("latency".to_owned(), Measured::Number(mean)),
            (
                "each".to_owned(),
                Measured::Distribution(Distribution::new(&times, 1e-9)?),
            ),
        ]
        .into(),
    ))
}

/// Sends messages to all receivers, one after the other, when all have come. What
/// fits into the buffer of a receiver is written at once; with 0 bytes that is
/// each message by itself.
pub fn send(start: &Start, ready: Ready<'_>) -> Result<Measurement, Failed> {
    let (form, iterations) = (form(start)?, whole(start, "iterations")?);
    let receivers = whole(start, "receivers")?;
    let buffer = usize::try_from(whole(start, "buffer")?)?;
    let shares = text(start, "shared")? == "true";
    let messages = Messages::random(whole(start, "length")?);
    let listener = TcpListener::bind(("0.0.0.0", 0))?;
    ready(at(listener.local_addr()?.port()))?;
    loop {
        let mut streams = Vec::new();
        for _ in 0..receivers {
            let (stream, _) = listener.accept()?;
            let stream = BufWriter::with_capacity(buffer, stream);
            streams.push((stream, Packer::new(form)));
        }
        let mut shared = Packer::new(form);
        let mut out = Vec::new();
        // One to start with.
        for number in 0..=iterations {
            let message = messages.text(number);
            if shares {
                shared.pack(message, &mut out)?;
            }
            for (stream, packer) in &mut streams {
                if !shares {
                    packer.pack(message, &mut out)?;
                }
                stream.write_all(&out)?;
            }
        }
        for (stream, _) in &mut streams {
            stream.flush()?;
            stream.get_ref().shutdown(Shutdown::Write)?;
        }
    }
}

/// Receives them, with so many connections, a thread each.
pub fn receive(start: &Start, _: Ready<'_>) -> Result<Measurement, Failed> {
    let (form, iterations) = (form(start)?, whole(start, "iterations")?);
    let length = whole(start, "length")?;
    let mut threads = Vec::new();
    for _ in 0..whole(start, "receivers")? {
        let stream = connect(start, "sender")?;
        // Errors of applications do not leave their thread; their texts do.
        threads.push(thread::spawn(move || {
            one(&stream, form, iterations, length).map_err(|error| {
                match error.downcast::<Invalid>() {
                    Ok(invalid) => (true, invalid.0),
                    Err(error) => (false, error.to_string()),
                }
            })
        }));
    }
    let mut rates = Vec::new();
    for thread in threads {
        let took = thread.join().map_err(|_| "a receiver has panicked")?;
        let took = took.map_err(|(is_invalid, why)| match is_invalid {
            true => Failed::from(Invalid(why)),
            false => why.into(),
        })?;
        #[expect(clippy::cast_precision_loss, reason = "results are doubles")]
        rates.push(iterations as f64 / took.as_secs_f64());
    }
    #[expect(clippy::cast_precision_loss, reason = "a few receivers")]
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let slowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
    Ok(numbers([("throughput", mean), ("slowest", slowest)]))
}

/// How long it takes from the first message to the last.
fn one(stream: &TcpStream, form: Form, iterations: u64, length: u64) -> Result<Duration, Failed> {
    let mut input = reader(stream)?;
    let took = messages(&mut input, form, iterations, length);
    if took.is_err() {
        // A connection that is closed before all of it was read is reset, and the
        // sender would fail before it is known that the messages are invalid.
        io::copy(&mut input, &mut io::sink())?;
    }
    took
}

fn messages(
    input: &mut impl BufRead,
    form: Form,
    iterations: u64,
    length: u64,
) -> Result<Duration, Failed> {
    let mut unpacker = Unpacker::new(form);
    let mut begun = Instant::now();
    for number in 0..=iterations {
        match unpacker.read(input)? {
            Some(message) if message.len() as u64 == length => {}
            Some(_) => return Err(Invalid(format!("message {number} is another")).into()),
            None => {
                let came = number.saturating_sub(1);
                return Err(Invalid(format!("{came} of {iterations} messages came")).into());
            }
        }
        if number == 0 {
            begun = Instant::now();
        }
    }
    let took = begun.elapsed();
    match unpacker.read(input)? {
        None => Ok(took),
        Some(_) => Err(Invalid(format!("more than {iterations} messages came")).into()),
    }
}
