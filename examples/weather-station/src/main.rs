//! `weather-station`: starts the station and prints its address.

use std::process::ExitCode;
use weather_station::{Configuration, start};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("weather-station: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut configuration = Configuration::default();
    for argument in std::env::args().skip(1) {
        let (option, value) = argument
            .split_once('=')
            .ok_or("options are written --option=value")?;
        match option {
            "--port" => configuration.port = value.parse()?,
            "--speed" => configuration.speed = value.parse()?,
            "--start" => configuration.start = weather_station::time::Time::parse(value),
            "--root" => configuration.root = value.into(),
            "--tamper" => {
                configuration.input = Some(weather_station::tamper::Input::File(value.into()))
            }
            _ => return Err(format!("there is no option {option}").into()),
        }
    }
    let mut station = start(configuration)?;
    println!("http://{}/", station.address());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut terminate, mut interrupt) = (
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
        );
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        Ok::<_, std::io::Error>(())
    })?;
    station.end();
    Ok(())
}
