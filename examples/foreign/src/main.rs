//! What this machine is doing, for programs that know nothing of Milieu: a page
//! in a browser, a script, whoever reads an MQTT broker.

use std::error::Error;
use std::fmt::Write as _;
use std::io::Read as _;
use std::time::Duration;

use milieu::Milieu;
use milieu::stream::Flow;
use milieu::stream::names::Rights;
use milieu_adapters::component::Components;
use milieu_adapters::http::{self, Access, Page, Token};
use milieu_adapters::machine;
use milieu_adapters::mqtt::{self, Device, Entity, Output};

const HELP: &str = "\
Usage: foreign [BROKER]

Serves the load and the memory of this machine on a free port of loopback, and
prints the address with its token. With BROKER (a host, or HOST:PORT) publishes
the load there too, for Home Assistant to discover.
";

fn main() -> Result<(), Box<dyn Error>> {
    let broker = std::env::args().nth(1);
    if broker.as_deref() == Some("--help") {
        print!("{HELP}");
        return Ok(());
    }
    let milieu = Milieu::open("foreign")?;
    let streams = milieu.streams();
    let driving = milieu.driving()?;
    // `milieu stream` looks at it, too.
    let _control = milieu.control()?;
    let often = Duration::from_millis(500);
    let _load = driving.source("/machine/load", machine::load().every(often))?;
    let _memory = driving.source("/machine/memory", machine::memory().every(often))?;

    let components = Components::new();
    let token = token()?;
    let access = Access::new(Token::new(&token)?, Rights::all()).measuring();
    let content = include_bytes!("../page.html");
    let page = Page::new("/", "text/html; charset=utf-8", content);
    let settings = http::Settings::new(access)
        .page(page)
        .components(&components);
    let serving = http::serve(streams, settings)?;
    let _connection = match broker {
        Some(broker) => Some(mqtt::connect(streams, home(&broker, &components)?)?),
        None => None,
    };
    println!("http://{}/#{token}", serving.address());
    loop {
        std::thread::park();
    }
}

/// The load as a sensor of Home Assistant.
fn home(broker: &str, components: &Components) -> Result<mqtt::Settings, Box<dyn Error>> {
    let (host, port) = broker.split_once(':').unwrap_or((broker, "1883"));
    let topic = "foreign/load";
    let load = Entity::new("load", "sensor", "Load", topic)
        .option("value_template", "{{ value_json.one_minute }}");
    Ok(mqtt::Settings::new("foreign", host, port.parse()?)
        .components(components)
        .output(Output::new(Flow::Stream("/machine/load".into()), topic).retained())
        .device(Device::new("foreign", "This machine").entity(load)))
}

fn token() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let mut token = String::new();
    for byte in bytes {
        let _ = write!(token, "{byte:02x}");
    }
    Ok(token)
}
