//! What a connection is told.

use std::fmt;
use std::sync::Arc;

use milieu_diagnostics::Diagnostic;
use milieu_stream::{Delivery, Flow};
use milieu_transfer::{Json, Limits, Mode, Rights};
use rumqttc::QoS;

use super::discovery::Device;
use super::topic::{is_filter, is_topic, name};
use crate::component::Components;

/// How events are written as payloads.
#[derive(Clone, Debug)]
pub enum Payload {
    /// The body alone, in a mode: `21.5`, `{"celsius":21.5}`.
    Body(Arc<dyn Mode>),
    /// The whole event, with its name, time and quality.
    Event(Arc<dyn Mode>),
    /// To be written: as JSON. To be read: JSON, numbers included; else text;
    /// else bytes. For devices whose payloads are of all kinds.
    Any,
}

impl Payload {
    /// The body alone.
    pub fn body(mode: impl Mode + 'static) -> Payload {
        Payload::Body(Arc::new(mode))
    }

    /// The whole event.
    pub fn event(mode: impl Mode + 'static) -> Payload {
        Payload::Event(Arc::new(mode))
    }
}

/// Topics that become events.
#[derive(Clone, Debug)]
pub struct Input {
    pub(super) filter: String,
    pub(super) under: String,
    pub(super) payload: Payload,
    pub(super) qos: QoS,
}

impl Input {
    /// What this filter covers becomes events below a name: the topic
    /// `kitchen/heat` those of `/mqtt/kitchen/heat` if the name is `/mqtt`.
    /// Payloads may be of any kind, the quality of service is *at least once*:
    /// what is sent twice is there twice.
    #[must_use]
    pub fn new(filter: impl Into<String>, under: impl Into<String>) -> Input {
        Input {
            filter: filter.into(),
            under: under.into(),
            payload: Payload::Any,
            qos: QoS::AtLeastOnce,
        }
    }

    /// What payloads are. Those that are something else are counted as errors.
    #[must_use]
    pub fn payload(mut self, payload: Payload) -> Input {
        self.payload = payload;
        self
    }

    /// Another quality of service.
    #[must_use]
    pub fn qos(mut self, qos: QoS) -> Input {
        self.qos = qos;
        self
    }
}

/// A flow whose events are published.
#[derive(Clone, Debug)]
pub struct Output {
    pub(super) flow: Flow,
    pub(super) topic: String,
    pub(super) payload: Payload,
    pub(super) retained: bool,
    pub(super) qos: QoS,
    pub(super) delivery: Delivery,
    pub(super) rights: Rights,
}

impl Output {
    /// Publishes the bodies of a flow's events as JSON, not retained, *at least
    /// once*. Up to 1024 wait for a broker that is down; then the oldest are
    /// dropped.
    #[must_use]
    pub fn new(flow: Flow, topic: impl Into<String>) -> Output {
        Output {
            flow,
            topic: topic.into(),
            payload: Payload::body(Json),
            retained: false,
            qos: QoS::AtLeastOnce,
            delivery: Delivery::default(),
            rights: Rights::NONE,
        }
    }

    /// How events are written.
    #[must_use]
    pub fn payload(mut self, payload: Payload) -> Output {
        self.payload = payload;
        self
    }

    /// The broker keeps the latest for those who come later.
    #[must_use]
    pub fn retained(mut self) -> Output {
        self.retained = true;
        self
    }

    /// Another quality of service.
    #[must_use]
    pub fn qos(mut self, qos: QoS) -> Output {
        self.qos = qos;
        self
    }

    /// Which events arrive when they come faster than the broker takes them, or
    /// while it is down.
    #[must_use]
    pub fn delivery(mut self, delivery: Delivery) -> Output {
        self.delivery = delivery;
        self
    }

    /// Private fields too. Whoever may read the topic can read them.
    #[must_use]
    pub fn private(mut self) -> Output {
        self.rights = Rights::READ;
        self
    }
}

/// How much a broker can make us hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// A payload, in bytes, and how deep it may be.
    pub payload: Limits,
    /// Topics that become names.
    pub names: usize,
}

impl Default for Bounds {
    /// 1 MiB and 64 levels, 4096 names.
    fn default() -> Bounds {
        Bounds {
            payload: Limits {
                bytes: 1 << 20,
                depth: 64,
            },
            names: 4096,
        }
    }
}

/// What a connection is told; [`connect`](super::connect) is given it.
#[derive(Clone)]
pub struct Settings {
    pub(super) client_id: String,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) credentials: Option<(String, String)>,
    pub(super) availability: String,
    pub(super) keep_alive_seconds: u16,
    pub(super) inputs: Vec<Input>,
    pub(super) outputs: Vec<Output>,
    pub(super) prefix: String,
    pub(super) devices: Vec<Device>,
    pub(super) bounds: Bounds,
    pub(super) components: Components,
}

impl Settings {
    /// A connection to a broker, by a client id that is this program's alone and
    /// the same after a restart: the broker keeps for it what it has missed.
    #[must_use]
    pub fn new(client_id: impl Into<String>, host: impl Into<String>, port: u16) -> Settings {
        let client_id = client_id.into();
        Settings {
            availability: format!("milieu/{client_id}/status"),
            client_id,
            host: host.into(),
            port,
            credentials: None,
            keep_alive_seconds: 30,
            inputs: Vec::new(),
            outputs: Vec::new(),
            prefix: "homeassistant".to_owned(),
            devices: Vec::new(),
            bounds: Bounds::default(),
            components: Components::new(),
        }
    }

    /// By name and password.
    #[must_use]
    pub fn credentials(mut self, name: impl Into<String>, password: impl Into<String>) -> Settings {
        self.credentials = Some((name.into(), password.into()));
        self
    }

    /// Where `online` and `offline` are said, retained; without it
    /// `milieu/<client id>/status`.
    #[must_use]
    pub fn availability(mut self, topic: impl Into<String>) -> Settings {
        self.availability = topic.into();
        self
    }

    /// After how many seconds of silence the other side is looked after; 30
    /// without it, and 5 at least.
    #[must_use]
    pub fn keep_alive_seconds(mut self, seconds: u16) -> Settings {
        self.keep_alive_seconds = seconds.max(5);
        self
    }

    /// Makes events of topics.
    #[must_use]
    pub fn input(mut self, input: Input) -> Settings {
        self.inputs.push(input);
        self
    }

    /// Publishes events.
    #[must_use]
    pub fn output(mut self, output: Output) -> Settings {
        self.outputs.push(output);
        self
    }

    /// Lets Home Assistant discover a device.
    #[must_use]
    pub fn device(mut self, device: Device) -> Settings {
        self.devices.push(device);
        self
    }

    /// Home Assistant's prefix for discovery; `homeassistant` without it.
    #[must_use]
    pub fn discovery_prefix(mut self, prefix: impl Into<String>) -> Settings {
        self.prefix = prefix.into();
        self
    }

    /// Other bounds.
    #[must_use]
    pub fn bounds(mut self, bounds: Bounds) -> Settings {
        self.bounds = bounds;
        self
    }

    /// Where the connection enters itself, for `/ready` and `/metrics`.
    #[must_use]
    pub fn components(mut self, components: &Components) -> Settings {
        self.components = components.clone();
        self
    }

    /// Looks at everything that is text.
    pub(super) fn check(&self) -> Result<(), CannotConnect> {
        let refuse = |what: &str, text: &str, help: &str| {
            let text = text.escape_debug();
            Err(CannotConnect::Text(format!("{what} `{text}`: {help}")))
        };
        if !is_word(&self.client_id) {
            return refuse("the client id", &self.client_id, WORD);
        }
        for topic in [&self.availability, &self.prefix] {
            if !is_topic(topic) {
                return refuse("the topic", topic, TOPIC);
            }
        }
        for input in &self.inputs {
            if !is_filter(&input.filter) {
                let help = "`+` is a level, `#` the last level";
                return refuse("the filter", &input.filter, help);
            }
            if let Err(refusal) = name(&input.under, "x") {
                return Err(CannotConnect::Text(refusal.to_string()));
            }
        }
        for output in &self.outputs {
            if !is_topic(&output.topic) {
                return refuse("the topic", &output.topic, TOPIC);
            }
        }
        for (at, device) in self.devices.iter().enumerate() {
            if let Some(wrong) = device.words().find(|word| !is_word(word)) {
                return refuse("the id", wrong, WORD);
            }
            let before = &self.devices[..at];
            if before.iter().any(|other| other.id() == device.id()) {
                return refuse("the device", device.id(), "it is there twice");
            }
        }
        Ok(())
    }
}

const WORD: &str = "write 1 to 64 letters, digits, `-` and `_`";
const TOPIC: &str = "write a topic without wildcards and control characters";

fn is_word(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=64).contains(&text.len()) && text.bytes().all(plain)
}

/// Why a connection was not begun. A broker that is down is no reason.
#[derive(Debug)]
pub enum CannotConnect {
    /// Something is not what it should be: a topic, a filter, an id, a name.
    Text(String),
    /// A flow cannot be run.
    Flow(Box<Diagnostic>),
    /// The system has no thread left.
    System(std::io::Error),
}

impl fmt::Display for CannotConnect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CannotConnect::Text(message) => f.write_str(message),
            CannotConnect::Flow(diagnostic) => f.write_str(&diagnostic.message),
            CannotConnect::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CannotConnect {}
