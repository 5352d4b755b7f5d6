//! `weather-station`: starts the station, prints its address, and ends it when
//! it is told to.

use milieu::{Milieu, Start};
use std::io::Write;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};
use weather_station::environment::Environment;
use weather_station::{NoStart, program, start};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("weather-station: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn run() -> Result<(), NoStart> {
    let milieu = Milieu::builder("weather-station").command_line::<Environment>(program());
    let milieu = match milieu.start()? {
        Start::Run(milieu) => *milieu,
        Start::Say(text) => {
            say(&text);
            return Ok(());
        }
    };
    let mut station = start(milieu)?;
    // Other programs of this user may look at the streams, which is not needed here.
    let control = station.milieu().map(Milieu::control);
    if let Some(Err(error)) = &control {
        eprintln!("weather-station: `milieu stream` does not reach it: {error}");
    }
    let no = |error: std::io::Error| NoStart::System(format!("signals: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(no)?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).map_err(no)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(no)?;
        // Whoever has read the address may send a signal.
        say(&format!("http://{}/", station.address()));
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        Ok::<(), NoStart>(())
    })?;
    drop(control);
    // Activates the layer `shutdown` in this thread's context.
    station.end();
    Ok(())
}

/// Prints a text. That nobody reads it any more is no reason not to run.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{}", text.trim_end());
    let _ = out.flush();
}
