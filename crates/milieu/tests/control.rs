//! Clients of the control socket that do what they should not.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use milieu::transfer::{self, Decode, Encode, Event, Json, Limits, Mode, Rights, Value};
use milieu::{Control, Milieu, Start};

fn program(app: &str) -> (Milieu, Control) {
    let start = Milieu::builder(app).files(Vec::new()).start().unwrap();
    let Start::Run(milieu) = start else {
        panic!("nobody asked for help");
    };
    let control = milieu.control().unwrap();
    (*milieu, control)
}

fn connect(path: &Path) -> UnixStream {
    let stream = UnixStream::connect(path).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    stream
}

/// What the program answers to these bytes, until it closes or one line is there.
fn answer(path: &Path, bytes: &[u8]) -> String {
    let mut stream = connect(path);
    // It may close before all is written.
    let _ = stream.write_all(bytes);
    let mut line = String::new();
    let _ = BufReader::new(&stream).read_line(&mut line);
    line
}

#[test]
fn whatever_a_client_says_it_is_told_or_left_and_others_are_served() {
    let (milieu, control) = program("control-hostile");
    let path = control.path();
    let publisher = milieu.streams().publisher::<u64>("/numbers").unwrap();
    let mut tap = BufReader::new(connect(path));
    let ask = b"{\"ask\":\"stream.subscribe\",\"flow\":\"/numbers\"}\n";
    tap.get_mut().write_all(ask).unwrap();
    let mut line = String::new();
    tap.read_line(&mut line).unwrap();
    assert!(line.contains("\"ok\":true"), "{line}");

    let deep = format!("{}{}\n", "[".repeat(100_000), "]".repeat(100_000));
    let long = format!(
        "{{\"ask\":\"stream.list\",\"query\":\"/{}\"}}\n",
        "a".repeat(500_000)
    );
    let climbing = "{\"ask\":\"stream.publish\",\"name\":\"/a/../b\\nc\"}\n";
    let flow = |flow: &str| format!("{{\"ask\":\"stream.subscribe\",\"flow\":{flow}}}\n");
    let many = flow(&format!("\"/a{}\"", " | change".repeat(20_000)));
    for (number, bytes) in [
        "\n",
        "nothing\n",
        "{}\n",
        "[]\n",
        "\"about\"\n",
        "{\"ask\":7}\n",
        "{\"ask\":\"stream.remove\"}\n",
        "{\"ask\":\"stream.list\",\"query\":\"/a/../b\"}\n",
        "{\"ask\":\"stream.list\",\"query\":\"no name\"}\n",
        "{\"ask\":\"stream.publish\"}\n",
        "{\"ask\":\"stream.publish\",\"name\":[]}\n",
        "{\"ask\":\"stream.publish\",\"name\":\"/numbers\"}\n",
        "{\"ask\":\"stream.publish\",\"name\":\"/a\",\"mode\":\"morse\"}\n",
        climbing,
        &flow("7"),
        &flow("\"\""),
        &flow("\"/a | nothing\""),
        &flow("\"/a | filter ((((\""),
        &deep,
        &long,
    ]
    .into_iter()
    .enumerate()
    {
        let said = answer(path, bytes.as_bytes());
        let shown: String = bytes.chars().take(60).collect();
        assert!(said.starts_with("{\"error\":"), "{shown}: {said}");
        // It harms nobody else.
        let _ = publisher.publish(number as u64);
        line.clear();
        tap.read_line(&mut line).unwrap();
        assert!(line.contains(&format!("\"value\":{number}")), "{line}");
    }
    for (text, what) in [
        ("/numbers; /numbers | publish /b", "leave out `publish`"),
        ("/numbers | activate low", "leave out `activate`"),
        ("/numbers | subscribe name=mine", "leave out its `name`"),
    ] {
        let said = answer(path, flow(&format!("\"{text}\"")).as_bytes());
        assert!(said.contains(what), "{said}");
    }
    // It may be run or refused, but it is answered.
    assert!(!answer(path, many.as_bytes()).is_empty());
    // Bytes that are no text, a line without end, and clients that just go.
    assert!(answer(path, b"\xff\xfe\x00\n").contains("error"));
    let endless = vec![b'a'; 3 << 20];
    assert_eq!(answer(path, &endless), "");
    drop(connect(path));
    let _ = connect(path).write_all(b"{\"ask\":\"stream.sub");
    assert!(answer(path, b"{\"ask\":\"about\"}\n").contains("control-hostile"));
}

#[test]
fn there_is_room_for_some_tools_and_again_when_they_have_gone() {
    let (_milieu, control) = program("control-many");
    let path = control.path();
    let ask = b"{\"ask\":\"about\"}\n";
    let talk = |mut stream: UnixStream| {
        stream.write_all(ask).ok()?;
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).ok()?;
        Some((stream, line))
    };
    let mut connected: Vec<UnixStream> = Vec::new();
    loop {
        let Some((stream, line)) = talk(connect(path)) else {
            break;
        };
        if line.contains("too many tools") {
            break;
        }
        assert!(line.contains("control-many"), "{line}");
        connected.push(stream);
        assert!(connected.len() < 1000, "there is no bound");
    }
    let others = connected.len();
    assert!(others > 10, "{others}");
    drop(connected);
    // Their threads see it soon.
    let again = (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        talk(connect(path)).is_some_and(|(_, line)| line.contains("control-many"))
    });
    assert!(again, "nobody is let in any more");
}

/// JSON, spelled otherwise.
#[derive(Clone, Copy, Debug)]
struct Shouting(&'static str);

impl Encode for Shouting {
    fn encode(&mut self, event: &Event, out: &mut Vec<u8>) -> Result<(), transfer::Error> {
        let json = Json.encode(event, Rights::NONE)?;
        out.extend(json.to_ascii_uppercase());
        Ok(())
    }
}

impl Decode for Shouting {
    fn decode(&mut self, _: &[u8]) -> Result<Event, transfer::Error> {
        let (mode, what) = (self.0, "it is not heard".to_owned());
        Err(transfer::Error::Mode { mode, what })
    }
}

impl Mode for Shouting {
    fn name(&self) -> &'static str {
        self.0
    }
    fn version(&self) -> u32 {
        1
    }
    fn media_type(&self) -> &'static str {
        "text/x-shouting"
    }
    fn encoder(&self, _: Rights) -> Box<dyn Encode> {
        Box::new(*self)
    }
    fn decoder(&self, _: Limits, _: Rights) -> Box<dyn Decode> {
        Box::new(*self)
    }
    fn encode_value(
        &self,
        value: &Value,
        rights: Rights,
        out: &mut Vec<u8>,
    ) -> Result<(), transfer::Error> {
        Json.encode_value(value, rights, out)
    }
    fn decode_value(
        &self,
        bytes: &[u8],
        limits: &Limits,
        rights: Rights,
    ) -> Result<Value, transfer::Error> {
        Json.decode_value(bytes, limits, rights)
    }
}

/// Subscribes `/words`, with this in the request besides, and is promised this mode.
fn subscribed(control: &Control, more: &str, mode: &str) -> BufReader<UnixStream> {
    let mut tap = BufReader::new(connect(control.path()));
    let ask = format!("{{\"ask\":\"stream.subscribe\",\"flow\":\"/words\"{more}}}\n");
    tap.get_mut().write_all(ask.as_bytes()).unwrap();
    let mut line = String::new();
    tap.read_line(&mut line).unwrap();
    assert!(line.contains(&format!("\"mode\":\"{mode}\"")), "{line}");
    tap
}

#[test]
fn tools_choose_modes_of_the_program() {
    let (milieu, control) = program("control-modes");
    milieu.add_mode(Shouting("shouting")).unwrap();
    let again = milieu
        .add_mode(Shouting("shouting"))
        .expect_err("there is one");
    assert!(
        again
            .to_string()
            .contains("there is a mode `shouting` already"),
        "{again}"
    );
    assert!(milieu.modes().named("shouting").is_some());
    assert!(milieu.modes().named("cbor").is_some());
    assert_eq!(milieu.own_modes().len(), 1);
    let none = milieu
        .replace_mode(Shouting("shouting"))
        .expect_err("it is no mode of Milieu");
    assert!(
        none.to_string().contains("Milieu has no mode `shouting`"),
        "{none}"
    );

    let words = milieu.streams().publisher::<String>("/words").unwrap();
    let mut tap = subscribed(&control, ",\"mode\":\"shouting\"", "shouting");
    let _ = words.publish("hello".to_owned());
    let mut length = [0; 4];
    tap.read_exact(&mut length).unwrap();
    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
    tap.read_exact(&mut frame).unwrap();
    let frame = String::from_utf8(frame).unwrap();
    assert!(
        frame.contains("HELLO") && frame.contains("/WORDS"),
        "{frame}"
    );
}

#[test]
fn tools_are_told_json_as_milieu_writes_it_whatever_stands_in_its_place() {
    let (milieu, control) = program("control-replaced");
    milieu.replace_mode(Shouting("json")).unwrap();
    let modes = milieu.modes();
    let known = modes.iter().filter(|it| it.name() == "json");
    let media_types: Vec<_> = known.map(|it| it.media_type()).collect();
    assert_eq!(media_types, ["text/x-shouting"]);
    // What it has replaced has left its media type to others, and it has taken its own.
    let taken = milieu.add_mode(Shouting("shouting")).expect_err("has one");
    assert!(
        taken.to_string().contains("the mode `json` makes"),
        "{taken}"
    );

    let words = milieu.streams().publisher::<String>("/words").unwrap();
    let mut tap = subscribed(&control, "", "json");
    let _ = words.publish("hello".to_owned());
    let mut line = String::new();
    tap.read_line(&mut line).unwrap();
    assert!(line.contains("hello") && line.contains("/words"), "{line}");
}
