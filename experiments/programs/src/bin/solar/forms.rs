//! The forms in which messages travel over sockets (section 5.1, *transfer mode*).
//!
//! | form | |
//! |---|---|
//! | `byte` | the bytes, as they are |
//! | `string` | characters, encoded and decoded one by one |
//! | `serialized-string` | a value that says by itself what it is |
//! | `serialized-object` | an event, in the data-stream mode: name, time, origin, sequence, body |
//!
//! All have their length before them.

use std::io::{self, Read};
use std::str::FromStr;
use std::sync::Arc;

use experiments::Failed;
use milieu_transfer::{
    DataStream, Event, Header, Kind, Limits, Mode, Name, Origin, Receiver, Rights, Sender, Stream,
    Time, Type, Value,
};
use milieu_transfer::{Decode as _, Encode as _};
use serde::{Deserialize, Serialize};

/// The paper's event whose payload is a string.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageEvent {
    pub message: String,
}

/// The stream of an experiment.
pub fn stream() -> Arc<Stream> {
    Arc::new(Stream {
        name: Name::parse("/random/instance").expect("this is a name"),
        origin: Origin("planet".into()),
        incarnation: 1,
    })
}

/// The header of an event of it.
pub fn header(stream: &Arc<Stream>, sequence: u64) -> Header {
    Header {
        stream: Arc::clone(stream),
        time: Time::from_seconds(0),
        sequence,
        quality: None,
    }
}

/// Random messages of one length, made before anything is measured.
pub struct Messages(Vec<String>);

impl Messages {
    pub fn random(length: u64) -> Messages {
        // The same in each run.
        let mut random = fastrand::Rng::with_seed(2002);
        let message = |_| (0..length).map(|_| random.alphanumeric()).collect();
        Messages((0..64).map(message).collect())
    }

    pub fn text(&self, number: u64) -> &str {
        &self.0[usize::try_from(number).unwrap_or_default() % self.0.len()]
    }

    pub fn at(&self, number: u64) -> MessageEvent {
        MessageEvent {
            message: self.text(number).to_owned(),
        }
    }
}

/// A form of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Byte,
    Text,
    SerializedText,
    SerializedObject,
}

impl FromStr for Form {
    type Err = String;

    fn from_str(text: &str) -> Result<Form, String> {
        Ok(match text {
            "byte" => Form::Byte,
            "string" => Form::Text,
            "serialized-string" => Form::SerializedText,
            "serialized-object" => Form::SerializedObject,
            _ => return Err(format!("there is no form `{text}`")),
        })
    }
}

/// Writes messages in a form.
pub struct Packer {
    form: Form,
    stream: Arc<Stream>,
    kind: Kind<MessageEvent>,
    sender: Sender,
    sequence: u64,
}

impl Packer {
    pub fn new(form: Form) -> Packer {
        Packer {
            form,
            stream: stream(),
            kind: Kind::new(),
            sender: DataStream::default().sender(Rights::NONE),
            sequence: 0,
        }
    }

    /// The next message, with its length before it, in place of what was there.
    pub fn pack(&mut self, message: &str, out: &mut Vec<u8>) -> Result<(), Failed> {
        out.clear();
        out.extend_from_slice(&[0; 4]);
        match self.form {
            Form::Byte => out.extend_from_slice(message.as_bytes()),
            Form::Text => {
                let mut utf8 = [0; 4];
                for character in message.chars() {
                    out.extend_from_slice(character.encode_utf8(&mut utf8).as_bytes());
                }
            }
            Form::SerializedText => {
                DataStream::default().encode_value(&Value::from(message), Rights::NONE, out)?;
            }
            Form::SerializedObject => {
                self.sequence += 1;
                let message = message.to_owned();
                let header = header(&self.stream, self.sequence);
                let event: Event = self.kind.event(header, MessageEvent { message });
                self.sender.encode(&event, out)?;
            }
        }
        let length = u32::try_from(out.len() - 4)?;
        out[..4].copy_from_slice(&length.to_le_bytes());
        Ok(())
    }
}

/// Reads messages in a form.
pub struct Unpacker {
    form: Form,
    receiver: Receiver,
    frame: Vec<u8>,
    sequence: u64,
}

impl Unpacker {
    pub fn new(form: Form) -> Unpacker {
        let mut receiver = DataStream::default().receiver(Limits::default(), Rights::NONE);
        receiver.expect(Type::of::<MessageEvent>());
        Unpacker {
            form,
            receiver,
            frame: Vec::new(),
            sequence: 0,
        }
    }

    /// The next message; none where the stream has ended before it.
    pub fn read(&mut self, input: &mut impl Read) -> Result<Option<String>, Failed> {
        let mut size = [0; 4];
        match input.read_exact(&mut size) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        self.frame.resize(u32::from_le_bytes(size) as usize, 0);
        input.read_exact(&mut self.frame)?;
        self.unpack().map(Some)
    }

    fn unpack(&mut self) -> Result<String, Failed> {
        match self.form {
            // Bytes are not looked at; the text is for who compares.
            Form::Byte => Ok(String::from_utf8(self.frame.clone())?),
            Form::Text => {
                let mut text = String::with_capacity(self.frame.len());
                for character in std::str::from_utf8(&self.frame)?.chars() {
                    text.push(character);
                }
                Ok(text)
            }
            Form::SerializedText => {
                let mode = DataStream::default();
                match mode.decode_value(&self.frame, &Limits::default(), Rights::NONE)? {
                    Value::Text(text) => Ok(text.to_string()),
                    _ => Err("this is no text".into()),
                }
            }
            Form::SerializedObject => {
                self.sequence += 1;
                let event = self.receiver.decode(&self.frame)?;
                let body = event
                    .get::<MessageEvent>()
                    .ok_or("an event of another type")?;
                match event.header().sequence == self.sequence {
                    true => Ok(body.message.clone()),
                    false => Err("an event was lost".into()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_brings_the_messages_as_they_are() {
        for (name, bytes) in [
            ("byte", 7),
            ("string", 7),
            ("serialized-string", 8),
            ("serialized-object", 20),
        ] {
            let form: Form = name.parse().unwrap();
            let (mut packer, mut unpacker) = (Packer::new(form), Unpacker::new(form));
            let (mut wire, mut frame) = (Vec::new(), Vec::new());
            for message in ["", "a string", "Zürich", "ünï"] {
                packer.pack(message, &mut frame).unwrap();
                wire.extend_from_slice(&frame);
            }
            assert!(
                frame.len() - 4 >= 5 && frame.len() <= 4 + 2 * bytes,
                "{name}: {}",
                frame.len()
            );
            let mut input = &*wire;
            for message in ["", "a string", "Zürich", "ünï"] {
                assert_eq!(
                    unpacker.read(&mut input).unwrap().as_deref(),
                    Some(message),
                    "{name}"
                );
            }
            assert_eq!(unpacker.read(&mut input).unwrap(), None, "{name}");
        }
    }

    #[test]
    fn what_is_another_form_is_refused() {
        let mut frame = Vec::new();
        Packer::new(Form::Byte)
            .pack("a string", &mut frame)
            .unwrap();
        for form in [Form::SerializedText, Form::SerializedObject] {
            assert!(Unpacker::new(form).read(&mut &*frame).is_err(), "{form:?}");
        }
        assert!("bytes".parse::<Form>().is_err());
    }
}
