//! Streams from an MQTT broker and to it.

use milieu::transfer::Modes;
use milieu_adapters::mqtt::{
    self, Bounds, CannotConnect, Device, Entity, Input, Output, Payload, QoS, Settings,
};
use serde_json::Value;

use super::{Foreign, Kept, components_of, invalid, milieu_component};
use crate::{
    abi::{MILIEU_INVALID, MILIEU_SYSTEM, MILIEU_WRONG_FLOW, milieu_result, milieu_text},
    call::{Failure, call, null, out},
    handle,
    layout::check_abi,
    streams::{
        Opened, Streams,
        abi::{milieu_datum, milieu_delivery},
        milieu_streams,
        mode::named,
        subscription::delivery,
    },
    text::read_slice,
};

/// What is to be known of a device or an entity, as `foreign.h` lays it out.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy)]
pub struct milieu_mqtt_option {
    /// Home Assistant's name of it.
    pub name: milieu_text,
    /// What it is.
    pub value: milieu_datum,
}

/// One thing that Home Assistant shows, as `foreign.h` lays it out.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy)]
pub struct milieu_mqtt_entity {
    /// A word that stays the same.
    pub id: milieu_text,
    /// What it is: `sensor`.
    pub platform: milieu_text,
    /// What people call it.
    pub name: milieu_text,
    /// Where its state comes.
    pub state_topic: milieu_text,
    /// More about it.
    pub options: *const milieu_mqtt_option,
    /// How many there are.
    pub option_count: usize,
}

/// A device for Home Assistant, as `foreign.h` lays it out.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy)]
pub struct milieu_mqtt_device {
    /// A word that stays the same.
    pub id: milieu_text,
    /// What people call it.
    pub name: milieu_text,
    /// More about it.
    pub about: *const milieu_mqtt_option,
    /// How many there are.
    pub about_count: usize,
    /// What it measures or can do.
    pub entities: *const milieu_mqtt_entity,
    /// How many there are.
    pub entity_count: usize,
}

/// Topics that become events, as `foreign.h` lays it out.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_mqtt_input {
    /// Which topics.
    pub filter: milieu_text,
    /// Below which name.
    pub under: milieu_text,
    /// In which mode payloads are.
    pub mode: milieu_text,
    /// Whether they are whole events.
    pub whole_events: bool,
    /// How surely they come.
    pub qos: u32,
}

/// A flow whose events are sent, as `foreign.h` lays it out.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_mqtt_output {
    /// Which events.
    pub flow: milieu_text,
    /// Where to.
    pub topic: milieu_text,
    /// In which mode.
    pub mode: milieu_text,
    /// Whether as whole events.
    pub whole_events: bool,
    /// Whether the broker keeps the latest.
    pub retained: bool,
    /// Whether with private fields.
    pub with_private: bool,
    /// How surely they come.
    pub qos: u32,
    /// What waits for a broker that is down.
    pub delivery: *const milieu_delivery,
}

/// How a connection is made, as `foreign.h` lays it out.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy)]
pub struct milieu_mqtt_options {
    /// `MILIEU_ABI`
    pub abi: u32,
    /// The broker's port.
    pub port: u16,
    /// After how much silence the other side is looked after.
    pub keep_alive_seconds: u16,
    /// The broker's host.
    pub host: milieu_text,
    /// Who this is.
    pub client_id: milieu_text,
    /// A name for the broker.
    pub user: milieu_text,
    /// The password that goes with it.
    pub password: milieu_text,
    /// Where `online` and `offline` are said.
    pub availability: milieu_text,
    /// Home Assistant's prefix.
    pub discovery_prefix: milieu_text,
    /// What comes.
    pub inputs: *const milieu_mqtt_input,
    /// How many there are.
    pub input_count: usize,
    /// What goes.
    pub outputs: *const milieu_mqtt_output,
    /// How many there are.
    pub output_count: usize,
    /// What Home Assistant is to discover.
    pub devices: *const milieu_mqtt_device,
    /// How many there are.
    pub device_count: usize,
    /// How many bytes a payload may have.
    pub payload_bytes: u32,
    /// How deep it may be.
    pub payload_depth: u32,
    /// How many topics become names.
    pub names: u32,
}

/// Connects to a broker.
///
/// # Safety
///
/// As `foreign.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_mqtt_connect(
    streams: *const milieu_streams,
    options: *const milieu_mqtt_options,
    connection: *mut *mut milieu_component,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Streams(opened), options, connection) = unsafe {
            (
                handle::shared(streams)?,
                options.as_ref().ok_or_else(|| null("options"))?,
                out(connection, "connection")?,
            )
        };
        check_abi(options.abi, "options")?;
        // SAFETY: as the caller vouches.
        let settings = unsafe { settings(opened, options)? };
        let settings = settings.components(&components_of(&opened.milieu));
        let made = mqtt::connect(opened.graph(), settings).map_err(|error| {
            let result = match error {
                CannotConnect::Text(_) => MILIEU_INVALID,
                CannotConnect::Flow(_) => MILIEU_WRONG_FLOW,
                CannotConnect::System(_) => MILIEU_SYSTEM,
            };
            Failure::new(result, error)
        })?;
        *connection = Foreign::new(Kept::Connection(made), opened);
        Ok(())
    })
}

/// Ends a connection for good.
///
/// # Safety
///
/// As `foreign.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_mqtt_withdraw(connection: *mut milieu_component) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let foreign = unsafe {
            let is_connection = matches!(handle::using(connection)?.kept, Kept::Connection(_));
            if !is_connection {
                return Err(invalid(
                    "this is no connection to a broker; milieu_mqtt_connect makes one",
                ));
            }
            handle::take(connection)?
        };
        if let Some(foreign) = foreign {
            foreign.end(|kept| match kept {
                Kept::Connection(connection) => connection.withdraw(),
                #[cfg(feature = "http")]
                Kept::Serving(_) => {}
                Kept::Own(_) => {}
            });
        }
        Ok(())
    })
}

/// # Safety
///
/// Everything that the options lead to can be read.
unsafe fn settings(opened: &Opened, options: &milieu_mqtt_options) -> Result<Settings, Failure> {
    // SAFETY: as the caller vouches.
    let [id, host, user, password, availability, prefix] = unsafe {
        [
            options.client_id.read("client_id")?,
            options.host.read("host")?,
            options.user.read("user")?,
            options.password.read("password")?,
            options.availability.read("availability")?,
            options.discovery_prefix.read("discovery_prefix")?,
        ]
    };
    if host.is_empty() {
        return Err(invalid("`host` is empty; say on which host the broker is"));
    }
    let port = if options.port == 0 {
        1883
    } else {
        options.port
    };
    let mut settings = Settings::new(id, host, port);
    if !user.is_empty() {
        settings = settings.credentials(user, password);
    }
    if !availability.is_empty() {
        settings = settings.availability(availability);
    }
    if !prefix.is_empty() {
        settings = settings.discovery_prefix(prefix);
    }
    if options.keep_alive_seconds > 0 {
        settings = settings.keep_alive_seconds(options.keep_alive_seconds);
    }
    let modes = opened.milieu.modes();
    // SAFETY: as the caller vouches.
    unsafe {
        for given in read_slice(options.inputs, options.input_count, "inputs")? {
            settings = settings.input(input(&modes, given)?);
        }
        for given in read_slice(options.outputs, options.output_count, "outputs")? {
            settings = settings.output(output(opened, &modes, given)?);
        }
        for given in read_slice(options.devices, options.device_count, "devices")? {
            settings = settings.device(device(given)?);
        }
    }
    Ok(settings.bounds(bounds(options)))
}

/// What is not given is as it is by default.
fn bounds(options: &milieu_mqtt_options) -> Bounds {
    let mut bounds = Bounds::default();
    let set = |bound: &mut usize, given: u32| {
        if given > 0 {
            *bound = usize::try_from(given).unwrap_or(usize::MAX);
        }
    };
    set(&mut bounds.payload.bytes, options.payload_bytes);
    set(&mut bounds.payload.depth, options.payload_depth);
    set(&mut bounds.names, options.names);
    bounds
}

fn qos(given: u32) -> Result<QoS, Failure> {
    match given {
        0 => Ok(QoS::AtMostOnce),
        1 => Ok(QoS::AtLeastOnce),
        2 => Ok(QoS::ExactlyOnce),
        _ => Err(invalid(format_args!(
            "there is no quality of service {given}; there are 0, 1 and 2"
        ))),
    }
}

/// How events are written: as JSON where nothing is said.
fn payload(modes: &Modes, mode: &str, whole_events: bool) -> Result<Payload, Failure> {
    let mode = named(modes, if mode.is_empty() { "json" } else { mode })?;
    Ok(match whole_events {
        true => Payload::Event(mode),
        false => Payload::Body(mode),
    })
}

/// # Safety
///
/// Its texts can be read.
unsafe fn input(modes: &Modes, given: &milieu_mqtt_input) -> Result<Input, Failure> {
    // SAFETY: as the caller vouches.
    let (filter, under, mode) = unsafe {
        (
            given.filter.read("filter")?,
            given.under.read("under")?,
            given.mode.read("mode")?,
        )
    };
    let input = Input::new(filter, under).qos(qos(given.qos)?);
    if mode.is_empty() && !given.whole_events {
        return Ok(input);
    }
    Ok(input.payload(payload(modes, mode, given.whole_events)?))
}

/// # Safety
///
/// Everything that it leads to can be read.
unsafe fn output(
    opened: &Opened,
    modes: &Modes,
    given: &milieu_mqtt_output,
) -> Result<Output, Failure> {
    // SAFETY: as the caller vouches.
    let (flow, topic, mode, delivery) = unsafe {
        (
            given.flow.read("flow")?,
            given.topic.read("topic")?,
            given.mode.read("mode")?,
            delivery(given.delivery)?,
        )
    };
    let flow = opened.milieu.flow(flow)?.as_flow().clone();
    let mut output = Output::new(flow, topic)
        .payload(payload(modes, mode, given.whole_events)?)
        .qos(qos(given.qos)?)
        .delivery(delivery);
    if given.retained {
        output = output.retained();
    }
    if given.with_private {
        output = output.private();
    }
    Ok(output)
}

/// # Safety
///
/// Everything that it leads to can be read.
unsafe fn device(given: &milieu_mqtt_device) -> Result<Device, Failure> {
    // SAFETY: as the caller vouches.
    unsafe {
        let mut device = Device::new(given.id.read("id")?, given.name.read("name")?);
        for (name, value) in options(given.about, given.about_count, "about")? {
            device = device.about(name, value);
        }
        for given in read_slice(given.entities, given.entity_count, "entities")? {
            let mut entity = Entity::new(
                given.id.read("id")?,
                given.platform.read("platform")?,
                given.name.read("name")?,
                given.state_topic.read("state_topic")?,
            );
            for (name, value) in options(given.options, given.option_count, "options")? {
                entity = entity.option(name, value);
            }
            device = device.entity(entity);
        }
        Ok(device)
    }
}

/// # Safety
///
/// So many can be read, with all that they lead to.
unsafe fn options<'a>(
    given: *const milieu_mqtt_option,
    count: usize,
    what: &str,
) -> Result<Vec<(&'a str, Value)>, Failure> {
    // SAFETY: as the caller vouches.
    let given: &[milieu_mqtt_option] = unsafe { read_slice(given, count, what)? };
    let read = |it: &milieu_mqtt_option| {
        // SAFETY: as the caller vouches.
        unsafe { Ok((it.name.read("name")?, value(&it.value)?)) }
    };
    given.iter().map(read).collect()
}

/// # Safety
///
/// Its text can be read.
unsafe fn value(datum: &milieu_datum) -> Result<Value, Failure> {
    // SAFETY: the kind says which of them it has, and as the caller vouches.
    unsafe {
        Ok(match datum.kind {
            1 => datum.content.boolean.into(),
            4 => datum.content.whole.into(),
            7 => datum.content.natural.into(),
            9 => datum.content.number.into(),
            10 => datum.content.text.read("value")?.into(),
            kind => {
                return Err(invalid(format_args!(
                    "an option cannot be of kind {kind}; it is a text, a number, true or false"
                )));
            }
        })
    }
}
