//! The connection: one thread that keeps it up.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use milieu_stream::{Status, Streams};
use rumqttc::{
    AsyncClient, ConnectionError, Event, EventLoop, LastWill, MqttOptions, Packet, Publish, QoS,
    SubscribeFilter, SubscribeReasonCode,
};
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};

use super::discovery;
use super::inbox::Inbox;
use super::outbox::{Outgoing, forward};
use super::settings::{CannotConnect, Settings};
use crate::component::{self, Component};

/// A connection to a broker, or the wish for one. It ends when this is dropped,
/// and says so to the broker.
#[must_use = "the connection ends when this is dropped"]
#[derive(Debug)]
pub struct Connection {
    component: Arc<Component>,
    withdraws: Arc<AtomicBool>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Between two attempts: the first wait, and the longest.
const PAUSE: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// How long the broker has to take the farewell.
const FAREWELL: Duration = Duration::from_secs(2);

/// Messages between us and the connection.
const CHANNEL: usize = 64;

/// Connects to a broker, and keeps at it; see the [module](super).
///
/// # Errors
/// If a topic, a filter, an id or a flow is wrong. A broker that is down is no
/// error: [`Connection::component`] says how it is.
pub fn connect(streams: &Streams, settings: Settings) -> Result<Connection, CannotConnect> {
    settings.check()?;
    let id = format!("mqtt://{}:{}", settings.host, settings.port);
    let component = settings.components.add(id, "mqtt_client");
    let outputs = settings.outputs.iter();
    let outgoing = outputs
        .map(|output| Outgoing::new(streams, output.clone(), &component))
        .collect::<Result<Vec<Outgoing>, CannotConnect>>()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(CannotConnect::System)?;
    let withdraws = Arc::new(AtomicBool::new(false));
    let worker = Worker {
        inbox: Inbox::new(streams, &component),
        component: Arc::clone(&component),
        withdraws: Arc::clone(&withdraws),
        settings,
    };
    let (end, ended) = oneshot::channel();
    let thread = thread::Builder::new().name("milieu-mqtt".to_owned());
    let fallen = Arc::clone(&component);
    let thread = thread.spawn(move || {
        let run = AssertUnwindSafe(|| runtime.block_on(worker.run(outgoing, ended)));
        // Whatever a broker has done to us, the status stays true.
        if catch_unwind(run).is_err() {
            let why = "the connection has ended by a mistake in this program; connect again";
            fallen.say(Status::Failing(why.into()));
        }
    });
    Ok(Connection {
        component,
        withdraws,
        end: Some(end),
        thread: Some(thread.map_err(CannotConnect::System)?),
    })
}

impl Connection {
    /// How it is, and what it has counted.
    #[must_use]
    pub fn component(&self) -> &Component {
        &self.component
    }

    /// Ends for good: the devices are taken back, so that Home Assistant forgets
    /// them.
    pub fn withdraw(self) {
        self.withdraws.store(true, Ordering::Relaxed);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        drop(self.end.take());
        component::await_end(self.thread.take());
    }
}

struct Worker {
    settings: Settings,
    component: Arc<Component>,
    inbox: Inbox,
    withdraws: Arc<AtomicBool>,
}

impl Worker {
    async fn run(self, outgoing: Vec<Outgoing>, mut ended: oneshot::Receiver<()>) {
        let capacity = CHANNEL + 2 * self.settings.devices.len();
        let (client, mut events) = AsyncClient::new(self.options(), capacity);
        let (holds, connected) = watch::channel(false);
        let component = Arc::clone(&self.component);
        let forwarding = tokio::spawn(forward(outgoing, client.clone(), component, connected));
        let mut pause = PAUSE;
        loop {
            let event = tokio::select! {
                _ = &mut ended => break,
                event = events.poll() => event,
            };
            let error = match event {
                Ok(Event::Incoming(packet)) => {
                    if let Packet::ConnAck(_) = packet {
                        pause = PAUSE;
                        self.greet(&client);
                        holds.send_replace(true);
                    }
                    self.take(&client, packet);
                    continue;
                }
                Ok(Event::Outgoing(_)) => continue,
                Err(error) => error,
            };
            holds.send_replace(false);
            self.fail(&error);
            tokio::select! {
                _ = &mut ended => break,
                () = sleep(pause) => pause = (pause * 2).min(PAUSE_MAX),
            }
        }
        forwarding.abort();
        if *holds.borrow() {
            let _ = timeout(FAREWELL, self.farewell(&client, &mut events)).await;
        }
        self.component.say(Status::Ended);
    }

    fn options(&self) -> MqttOptions {
        let settings = &self.settings;
        let broker = (settings.host.clone(), settings.port);
        let mut options = MqttOptions::new(settings.client_id.clone(), broker);
        options.set_keep_alive(settings.keep_alive_seconds);
        // The broker keeps what comes while we are away, and we what it has not
        // confirmed.
        options.set_clean_session(false);
        let most = settings.bounds.payload.bytes + 2048;
        options.set_max_packet_size(most, most);
        if let Some((name, password)) = &settings.credentials {
            options.set_credentials(name.clone(), password.clone());
        }
        let will = LastWill::new(&*settings.availability, "offline", QoS::AtLeastOnce, true);
        options.set_last_will(will);
        options
    }

    /// Says everything that a broker has to know after each connection.
    fn greet(&self, client: &AsyncClient) {
        let settings = &self.settings;
        let inputs = settings.inputs.iter();
        let mut filters: Vec<SubscribeFilter> = inputs
            .map(|input| SubscribeFilter::new(input.filter.clone(), input.qos))
            .collect();
        if !settings.devices.is_empty() {
            filters.push(SubscribeFilter::new(self.status_topic(), QoS::AtLeastOnce));
        }
        // What we announced in an earlier life, even if it is nothing now.
        let announced = discovery::topic(&settings.prefix, "+");
        filters.push(SubscribeFilter::new(announced, QoS::AtLeastOnce));
        if client.try_subscribe_many(filters).is_err() {
            self.component.count_error("queue");
        }
        self.announce(client);
        self.say(client, &settings.availability, b"online".to_vec());
    }

    fn announce(&self, client: &AsyncClient) {
        let Settings {
            prefix,
            devices,
            availability,
            ..
        } = &self.settings;
        for device in devices {
            let topic = discovery::topic(prefix, device.id());
            self.say(client, &topic, device.payload(availability, &[]));
        }
    }

    /// Publishes something retained.
    fn say(&self, client: &AsyncClient, topic: &str, payload: Vec<u8>) {
        let said = client.try_publish(topic, QoS::AtLeastOnce, true, payload);
        if said.is_err() {
            self.component.count_error("queue");
        }
    }

    fn status_topic(&self) -> String {
        format!("{}/status", self.settings.prefix)
    }

    fn take(&self, client: &AsyncClient, packet: Packet) {
        match packet {
            Packet::Publish(publish) if self.take_discovery(client, &publish) => {}
            Packet::Publish(publish) => {
                let Publish { topic, payload, .. } = publish;
                self.inbox.take(&self.settings, &topic, &payload);
            }
            Packet::SubAck(answer) => {
                let refused = |code| matches!(code, &SubscribeReasonCode::Failure);
                match answer.return_codes.iter().position(refused) {
                    // Without that we only see less of what we announced before.
                    Some(at) if at < self.settings.inputs.len() => {
                        let filter = &self.settings.inputs[at].filter;
                        let why = format!("the broker refuses `{filter}`; ask who grants rights");
                        self.component.count_error("right");
                        self.component.say(Status::Failing(why.into()));
                    }
                    _ => self.component.say(Status::Working),
                }
            }
            _ => {}
        }
    }

    /// Whether a message concerns discovery alone.
    fn take_discovery(&self, client: &AsyncClient, publish: &Publish) -> bool {
        let settings = &self.settings;
        let Ok(topic) = std::str::from_utf8(&publish.topic) else {
            return false;
        };
        if let Some(id) = discovery::id_of(&settings.prefix, topic) {
            let kept = (publish.retain && !publish.payload.is_empty()).then_some(&publish.payload);
            let correction = kept.and_then(|kept| {
                discovery::correction(&settings.devices, &settings.availability, id, kept)
            });
            if let Some(correction) = correction {
                self.say(client, topic, correction);
                self.announce(client);
            }
            return !self.is_asked_for(topic);
        }
        if topic == self.status_topic() && !settings.devices.is_empty() {
            if &*publish.payload == b"online" {
                self.announce(client);
            }
            return !self.is_asked_for(topic);
        }
        false
    }

    fn is_asked_for(&self, topic: &str) -> bool {
        let mut inputs = self.settings.inputs.iter();
        inputs.any(|input| super::topic::covers(&input.filter, topic))
    }

    fn fail(&self, error: &ConnectionError) {
        let why = match error {
            ConnectionError::ConnectionRefused(code) => {
                format!("it refuses us ({code:?}); look at name and password")
            }
            ConnectionError::Io(error) => format!("{error}; is the broker running there?"),
            other => other.to_string(),
        };
        self.component.count_error("connection");
        let text = format!("{}: {why}", self.component.id());
        self.component.say(Status::Failing(text.into()));
    }

    /// Says that we go, and waits until the broker has it.
    async fn farewell(&self, client: &AsyncClient, events: &mut EventLoop) {
        if self.withdraws.load(Ordering::Relaxed) {
            for device in &self.settings.devices {
                let topic = discovery::topic(&self.settings.prefix, device.id());
                self.say(client, &topic, Vec::new());
            }
        }
        self.say(client, &self.settings.availability, b"offline".to_vec());
        let _ = client.try_disconnect();
        while events.poll().await.is_ok() {}
    }
}
