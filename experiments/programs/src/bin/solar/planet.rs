//! The planet: a source of random messages, which it fires at all subscribers as
//! fast as it can, each in the transfer mode that it wants.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

use experiments::{Failed, text, whole};
use milieu_bench::run::protocol::{Measurement, Start};
use milieu_transfer::{Event, Kind, Modes, Offer, Outlet, ReceiverId, Rights};

use super::forms::{Messages, header, stream};
use super::star::{Line, Request, ask};
use super::{Ready, at};

/// What the source is called.
pub const SOURCE: &str = "randomInstance";

pub fn run(start: &Start, ready: Ready<'_>) -> Result<Measurement, Failed> {
    let port = u16::try_from(whole(start, "data-port")?)?;
    let receivers = whole(start, "receivers")?;
    let iterations = whole(start, "iterations")?;
    let messages = Messages::random(whole(start, "randomInstance.stringLength")?);
    let buffer = usize::try_from(whole(start, "buffer")?)?;
    let shares = text(start, "shared")? == "true";
    let listener = TcpListener::bind(("0.0.0.0", port))?;
    let port = listener.local_addr()?.port();
    let (_stays, _) = ask(start, &Request::Publish(SOURCE.into(), port))?;
    ready(at(port))?;
    loop {
        let mut outlet = if shares {
            Outlet::default()
        } else {
            Outlet::unshared()
        };
        let mut subscribers = BTreeMap::new();
        for _ in 0..receivers {
            let (id, stream) = subscriber(&listener, &mut outlet)?;
            subscribers.insert(id, BufWriter::with_capacity(buffer, stream));
        }
        // A subscriber that has gone does not keep the others from theirs.
        fire(&messages, iterations, &mut outlet, &mut subscribers);
        for stream in subscribers.values_mut() {
            let _ = stream.flush();
            let _ = stream.get_ref().shutdown(Shutdown::Write);
        }
    }
}

fn subscriber(
    listener: &TcpListener,
    outlet: &mut Outlet,
) -> Result<(ReceiverId, TcpStream), Failed> {
    let (stream, _) = listener.accept()?;
    let mut line = Line::new(stream)?;
    let wanted: String = line.read()?;
    let modes = Modes::standard();
    let wanted: Offer = wanted.parse()?;
    let mode = modes
        .choose(&[wanted])
        .ok_or("no mode that is known here")?;
    let stream = line.into_stream();
    // Frames are small, and not one of them waits to be answered.
    stream.set_nodelay(false)?;
    Ok((outlet.join(mode, Rights::NONE), stream))
}

/// One event to start with, and then as many as were ordered.
fn fire(
    messages: &Messages,
    iterations: u64,
    outlet: &mut Outlet,
    subscribers: &mut BTreeMap<ReceiverId, BufWriter<TcpStream>>,
) {
    let (stream, kind) = (stream(), Kind::new());
    let mut out = Vec::new();
    for sequence in 1..=iterations + 1 {
        let event: Event = kind.event(header(&stream, sequence), messages.at(sequence));
        let mut gone = Vec::new();
        outlet.publish(&event, |id, frame| {
            let (Some(subscriber), Ok(frame)) = (subscribers.get_mut(&id), frame) else {
                return;
            };
            out.clear();
            #[expect(clippy::cast_possible_truncation, reason = "frames are short")]
            out.extend_from_slice(&(frame.len() as u32).to_le_bytes());
            out.extend_from_slice(frame);
            if subscriber.write_all(&out).is_err() {
                gone.push(id);
            }
        });
        for id in gone {
            outlet.leave(id);
            subscribers.remove(&id);
        }
    }
}
