use std::fs;

use milieu_stream::drive::Stepped;
use milieu_stream::{Source, Status};
use milieu_transfer::{Event, Origin, Span, Stream, Time};

use super::watch::Watch;
use super::{Change, FolderChange, content, folder};
use crate::Text;

/// What a source publishes in each of three seconds, before each of which
/// something happens.
fn seconds(source: impl Source + 'static, happens: [&dyn Fn(); 3]) -> [Vec<Event>; 3] {
    let stream = Stream {
        name: "/test".parse().expect("that is a name"),
        origin: Origin("test".into()),
        incarnation: 1,
    };
    let mut sources = Stepped::new(Time::from_seconds(1_000));
    let id = sources.add(stream, source);
    let seen = happens.map(|happens| {
        happens();
        let mut all = Vec::new();
        let until = sources.now() + Span::from_seconds(1);
        sources.run(until, |_, events, _| all.extend(events));
        all
    });
    assert_eq!(sources.status(id), Some(&Status::Working));
    seen
}

#[test]
fn without_news_from_the_kernel_files_are_looked_at() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("mode");
    let mut source = content(&path);
    source.watch = Watch::blind();
    let write = |text: &str| fs::write(&path, text).unwrap();
    let [one, two, three] = seconds(source, [&|| write("day"), &|| {}, &|| write("night")]);
    let texts = |events: &[Event]| -> Vec<String> {
        let text = |event: &Event| event.get::<Text>().unwrap().text.clone();
        events.iter().map(text).collect()
    };
    assert_eq!(texts(&one), ["day"]);
    assert!(two.is_empty());
    assert_eq!(texts(&three), ["night"]);
}

#[test]
fn without_news_from_the_kernel_folders_are_looked_at() {
    let root = tempfile::tempdir().unwrap();
    let mut source = folder(root.path());
    source.watch = Watch::blind();
    let path = root.path().join("new");
    let [_, created, removed] = seconds(
        source,
        [&|| {}, &|| fs::write(&path, "1").unwrap(), &|| {
            fs::remove_file(&path).unwrap()
        }],
    );
    let change = |events: &[Event]| events[0].get::<FolderChange>().unwrap().change;
    assert_eq!(change(&created), Change::Created);
    assert_eq!(change(&removed), Change::Removed);
}
