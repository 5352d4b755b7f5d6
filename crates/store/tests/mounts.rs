//! Mount points: which file holds which part of the tree.

use std::fs;
use std::path::PathBuf;

use milieu_keys::{Name, Namespace};
use milieu_store::{Change, Locations, Mount, Mounts, Place, Store, Strategy, format};

/// A folder of this test's own, which goes with it.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Home {
        let path =
            std::env::temp_dir().join(format!("milieu-mounts-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("ws")).unwrap();
        Home(path)
    }

    fn locations(&self) -> Locations {
        Locations {
            user: Some(self.0.clone()),
            system: vec![self.0.join("system")],
            etc: self.0.join("etc"),
        }
    }

    fn open(&self) -> Store {
        Store::open("ws", &self.locations()).unwrap()
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.0.join("ws").join(file), text).unwrap();
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.0.join("ws").join(file)).unwrap()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn value(store: &Store, name: &str) -> Option<String> {
    store.keys().lookup(name).map(|key| key.value().to_owned())
}

fn mount(at: &str, file: &str) -> Mount {
    Mount {
        at: name(at),
        file: file.into(),
        format: None,
    }
}

#[test]
fn the_deepest_mount_point_holds_a_key() {
    let home = Home::new("deepest");
    home.write("ws.ini", "[/sw]\na = 1\n[/sw/pi]\nb = hidden\n");
    home.write("pi.ini", "b = 2\n[/deep]\nc = hidden too\n");
    home.write("deep.ini", "c = 3\n");
    home.write(
        "ws.mounts.ini",
        "[/sw/pi]\nfile = pi.ini\n[/sw/pi/deep]\nfile = deep.ini\n",
    );
    let mut store = home.open();
    let values = ["/sw/a", "/sw/pi/b", "/sw/pi/deep/c"].map(|name| value(&store, name).unwrap());
    assert_eq!(values, ["1", "2", "3"]);
    let hidden: Vec<&str> = store.hidden().iter().map(|key| key.name()).collect();
    assert_eq!(hidden, ["/sw/pi/deep/c", "/sw/pi/b"]);

    let changes =
        ["/sw/new", "/sw/pi/new", "/sw/pi/deep/new"].map(|key| Change::set(name(key), "x"));
    store
        .commit(Namespace::User, &changes, Strategy::Refuse)
        .unwrap();
    assert_eq!(
        home.read("ws.ini"),
        "[/sw]\na = 1\nnew = x\n[/sw/pi]\nb = hidden\n"
    );
    assert_eq!(
        home.read("pi.ini"),
        "b = 2\nnew = x\n[/deep]\nc = hidden too\n"
    );
    assert_eq!(home.read("deep.ini"), "c = 3\nnew = x\n");
    assert_eq!(store.hidden().len(), 2, "what is hidden is as before");
}

#[test]
fn a_mounted_file_that_is_missing_hides_what_is_below_it_and_is_made() {
    let home = Home::new("missing");
    home.write("ws.ini", "[/sw/pi]\nb = old\n");
    home.write("ws.mounts.ini", "[/sw/pi]\nfile = pi.ini\n");
    let mut store = home.open();
    assert_eq!(value(&store, "/sw/pi/b"), None);
    let change = Change::set(name("/sw/pi/b"), "new");
    store
        .commit(Namespace::User, &[change], Strategy::Refuse)
        .unwrap();
    assert_eq!(home.read("pi.ini"), "/b = new\n");
    assert_eq!(value(&store, "/sw/pi/b").as_deref(), Some("new"));
}

#[test]
fn a_key_at_the_mount_point_itself_is_refused_where_the_format_cannot_say_it() {
    let home = Home::new("root");
    home.write("ws.mounts.ini", "[/sw/pi]\nfile = pi.ini\n");
    let change = Change::set(name("/sw/pi"), "x");
    let error = home
        .open()
        .commit(Namespace::User, &[change], Strategy::Refuse)
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("cannot write `/sw/pi`: the root of an INI file has no value"),
        "{error}"
    );
}

#[test]
fn the_table_is_edited_like_any_file() {
    let home = Home::new("table");
    home.write("ws.mounts.ini", "# ours\n[/hw]\nfile = hw.ini\n");
    let place = home.locations().places("ws").unwrap().remove(0);
    let mut mounts = Mounts::of(&place).unwrap();
    let ini = format::by_name("ini");
    mounts
        .mount(&Mount {
            format: ini,
            ..mount("/sw", "sw.conf")
        })
        .unwrap();
    assert_eq!(
        home.read("ws.mounts.ini"),
        "# ours\n[/hw]\nfile = hw.ini\n\n[/sw]\nfile = sw.conf\nformat = ini\n"
    );
    mounts.mount(&mount("/sw", "sw.ini")).unwrap();
    assert!(mounts.unmount(&name("/hw")).unwrap());
    assert!(!mounts.unmount(&name("/hw")).unwrap());
    assert_eq!(mounts.rows().unwrap(), [mount("/sw", "sw.ini")]);
    let places = home.locations().mounted_places("ws").unwrap();
    assert_eq!(
        places[1],
        Place::new(Namespace::User, home.0.join("ws/sw.ini")).at(name("/sw"))
    );
}

#[test]
fn a_wrong_table_says_what_is_wrong_with_it() {
    let home = Home::new("wrong");
    home.write(
        "ws.mounts.ini",
        "[/a]\nformat = xml\n[/b]\nfile = b.ini\ncolour = red\n",
    );
    let error = Store::open("ws", &home.locations())
        .unwrap_err()
        .to_string();
    for part in [
        "error: there is no format `xml`",
        "ws.mounts.ini:2:10",
        "2 | format = xml",
        "error: `colour` says nothing about a mount",
        "ws.mounts.ini:5:10",
        "error: the mount at `/a` has no file",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn files_of_every_format_are_mounted_and_lose_arrays_element_by_element() {
    let home = Home::new("formats");
    home.write(
        "ws.mounts.ini",
        "[/t]\nfile = t.toml\n[/j]\nfile = j.json\n",
    );
    home.write(
        "t.toml",
        "# mine\nhosts = [\"a\", \"b\"] # two\nport = 80\n",
    );
    home.write("j.json", "{ \"hosts\": [\"a\", \"b\"], \"port\": 80 }\n");
    let mut store = home.open();
    let mut changes = Vec::new();
    for at in ["/t", "/j"] {
        assert_eq!(
            value(&store, &format!("{at}/hosts/#1")).as_deref(),
            Some("b")
        );
        changes.push(Change::remove(name(&format!("{at}/hosts/#0"))));
        changes.push(Change::set(name(&format!("{at}/port")), "8080"));
        changes.push(Change::remove(name(&format!("{at}/hosts/#1"))));
    }
    store
        .commit(Namespace::User, &changes, Strategy::Refuse)
        .unwrap();
    assert_eq!(home.read("t.toml"), "# mine\nport = 8080\n");
    assert_eq!(home.read("j.json"), "{ \"port\": 8080 }\n");
}

#[test]
fn mount_points_are_told_apart_whatever_they_are_called() {
    let home = Home::new("apart");
    home.write(
        "ws.mounts.ini",
        "[/a]\nfile = a.conf\nformat = ini\n[/a/filex]\nfile = x.ini\n",
    );
    let place = home.locations().places("ws").unwrap().remove(0);
    let rows = Mounts::of(&place).unwrap().rows().unwrap();
    let at: Vec<&str> = rows.iter().map(|row| row.at.as_str()).collect();
    assert_eq!(at, ["/a", "/a/filex"]);
    assert!(rows[0].format.is_some());
}
