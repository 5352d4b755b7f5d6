//! The application of the paper's example: subscribes to the source of a planet,
//! and measures how many messages it gets a second.

use std::io::{BufReader, Read};
use std::net::TcpStream;
use std::time::Instant;

use experiments::{Failed, text, whole};
use milieu_bench::run::protocol::{Invalid, Measured, Measurement, Start};
use milieu_transfer::{Limits, Modes, Offer, Rights, Type};

use super::Ready;
use super::forms::MessageEvent;
use super::planet::SOURCE;
use super::star::{Line, Request, ask};

pub fn run(start: &Start, _: Ready<'_>) -> Result<Measurement, Failed> {
    let iterations = whole(start, "iterations")?;
    let length = whole(start, "randomInstance.stringLength")?;
    let modes = Modes::standard();
    let name = text(start, "transferMode")?;
    let mode = modes
        .named(&name)
        .ok_or_else(|| format!("there is no transfer mode {name}"))?;
    let (_, planet) = ask(start, &Request::Find(SOURCE.into()))?;
    let mut line = Line::new(TcpStream::connect(planet)?)?;
    let offer = Offer {
        name: mode.name().into(),
        version: mode.version(),
    };
    line.write(&offer.to_string())?;
    let mut stream = BufReader::with_capacity(1 << 16, line.into_stream());
    let mut decoder = mode.decoder(Limits::default(), Rights::NONE);
    decoder.expect(Type::of::<MessageEvent>());
    let mut frame = Vec::new();
    let mut begun = Instant::now();
    for sequence in 1..=iterations + 1 {
        let mut size = [0; 4];
        if stream.read_exact(&mut size).is_err() {
            let came = sequence.saturating_sub(2);
            return Err(Invalid(format!("{came} of {iterations} messages came")).into());
        }
        frame.resize(u32::from_le_bytes(size) as usize, 0);
        stream.read_exact(&mut frame)?;
        let event = decoder.decode(&frame)?;
        // Modes that name everything have bodies without a type.
        let message = match event.get::<MessageEvent>() {
            Some(body) => body.message.len(),
            None => event
                .value(Rights::NONE)?
                .to::<MessageEvent>(Rights::NONE)?
                .message
                .len(),
        };
        if event.header().sequence != sequence || message as u64 != length {
            return Err(Invalid(format!("message {sequence} is another")).into());
        }
        if sequence == 1 {
            begun = Instant::now();
        }
    }
    let took = begun.elapsed();
    if stream.read(&mut [0])? > 0 {
        return Err(Invalid(format!("more than {iterations} messages came")).into());
    }
    #[expect(clippy::cast_precision_loss, reason = "results are doubles")]
    let rate = iterations as f64 / took.as_secs_f64();
    Ok(Measurement::One(Measured::Number(rate)))
}
