//! Home Assistant's discovery: what a device says of itself, and what is left of
//! an earlier life of the program.
//!
//! A device is announced by one retained message with all of its entities. An
//! empty message takes it back; an entity that it no longer has is taken back by
//! naming nothing but its platform once.

use serde_json::{Map, Value, json};

/// A device with its entities.
#[derive(Clone, Debug)]
pub struct Device {
    id: String,
    about: Map<String, Value>,
    entities: Vec<Entity>,
}

/// What a device measures or can do: one thing that Home Assistant shows.
#[derive(Clone, Debug)]
pub struct Entity {
    id: String,
    platform: String,
    options: Map<String, Value>,
}

impl Device {
    /// A device by an id that stays the same.
    #[must_use]
    pub fn new(id: impl Into<String>, name: &str) -> Device {
        let id = id.into();
        let mut about = Map::new();
        about.insert("ids".to_owned(), json!([id]));
        about.insert("name".to_owned(), name.into());
        Device {
            id,
            about,
            entities: Vec::new(),
        }
    }

    /// More about it, by Home Assistant's names: `mf` for who made it, `mdl`
    /// for the model, `sw` for the version.
    #[must_use]
    pub fn about(mut self, key: &str, value: impl Into<Value>) -> Device {
        self.about.insert(key.to_owned(), value.into());
        self
    }

    /// Adds an entity.
    #[must_use]
    pub fn entity(mut self, entity: Entity) -> Device {
        self.entities.push(entity);
        self
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// The ids and words that become parts of topics.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        let entities = self.entities.iter();
        let words = entities.flat_map(|entity| [&*entity.id, &*entity.platform]);
        std::iter::once(&*self.id).chain(words)
    }

    /// The payload, in which entities that the device no longer has are taken
    /// back.
    pub(super) fn payload(&self, availability: &str, gone: &[(String, String)]) -> Vec<u8> {
        let mut entities = Map::new();
        for entity in &self.entities {
            let mut options = entity.options.clone();
            options.insert("p".to_owned(), entity.platform.clone().into());
            let unique = format!("{}_{}", self.id, entity.id);
            options.insert("unique_id".to_owned(), unique.into());
            entities.insert(entity.id.clone(), options.into());
        }
        for (id, platform) in gone {
            entities.insert(id.clone(), json!({ "p": platform }));
        }
        let payload = json!({
            "dev": self.about,
            "o": {"name": ORIGIN, "sw": env!("CARGO_PKG_VERSION")},
            "availability_topic": availability,
            "qos": 1,
            "cmps": entities,
        });
        payload.to_string().into_bytes()
    }
}

const ORIGIN: &str = "milieu";

impl Entity {
    /// An entity of a platform (`sensor`, `binary_sensor`) whose state is what
    /// comes under a topic.
    #[must_use]
    pub fn new(
        id: impl Into<String>,
        platform: impl Into<String>,
        name: &str,
        state_topic: &str,
    ) -> Entity {
        let mut options = Map::new();
        options.insert("name".to_owned(), name.into());
        options.insert("state_topic".to_owned(), state_topic.into());
        Entity {
            id: id.into(),
            platform: platform.into(),
            options,
        }
    }

    /// An option by Home Assistant's name: `unit_of_measurement`,
    /// `device_class`, `value_template`.
    #[must_use]
    pub fn option(mut self, key: &str, value: impl Into<Value>) -> Entity {
        self.options.insert(key.to_owned(), value.into());
        self
    }
}

/// Where a device is announced.
pub(super) fn topic(prefix: &str, id: &str) -> String {
    format!("{prefix}/device/{id}/config")
}

/// The id of the device that is announced under a topic.
pub(super) fn id_of<'a>(prefix: &str, topic: &'a str) -> Option<&'a str> {
    let rest = topic.strip_prefix(prefix)?.strip_prefix("/device/")?;
    rest.strip_suffix("/config").filter(|id| !id.contains('/'))
}

/// What has to be said because of an announcement that the broker has kept, if
/// it is one of ours: that with our availability topic.
pub(super) fn correction(
    devices: &[Device],
    availability: &str,
    id: &str,
    kept: &[u8],
) -> Option<Vec<u8>> {
    let kept: Value = serde_json::from_slice(kept).ok()?;
    if kept["o"]["name"] != ORIGIN || kept["availability_topic"] != availability {
        return None;
    }
    let Some(device) = devices.iter().find(|device| device.id == id) else {
        return Some(Vec::new());
    };
    let has = |id: &str| device.entities.iter().any(|entity| entity.id == id);
    let before = kept["cmps"].as_object()?;
    let gone = before.iter().filter(|(id, _)| !has(id));
    let gone: Vec<(String, String)> = gone
        .filter_map(|(id, entity)| Some((id.clone(), entity["p"].as_str()?.to_owned())))
        .collect();
    (!gone.is_empty()).then(|| device.payload(availability, &gone))
}
