//! Schemas hold for what is written, and refuse what is wrong.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::generated;
use boon::{Compiler, SchemaIndex, Schemas};
use milieu_bench::catalogue::Catalogue;
use milieu_bench::description::{Group, Language, parse, write};
use milieu_bench::result::Results;
use milieu_bench::schema;
use milieu_diagnostics::Source;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

const FIGURE_3: &str = include_str!("data/figure3.xml");
const FIGURE_4: &str = include_str!("data/figure4.xml");

/// Everything that a description can have.
const ALL: &str = r#"
name = "all of it"
properties = { os = "Debian 12", category-axis = "Size (bytes)" }

[[test]]
name = "first"
repetitions = 3
warm-up = 1
order = "random"
seed = 7
timeout = 12.5
lost-host = "skip"
parameters = { starHost = ["c24", 8080], nested.deeply.named = true }
variable = [
    { name = "a", values = [1, 2.5, "x"] },
    { name = "b", start = 0, end = -10, step = -5, while = "c.mean < 1.0" },
    { name = "c", values = "1,2" },
]

[[test.server]]
host = "c24"
port = 9000
parameters.x = 1
application = [{ kind = "star" }, { name = "b", kind = "k", parameters = { y = 2 } }]

[[test]]
server = { application = { kind = "k" } }
variable = { name = "a", start = 1, end = 3 }
"#;

fn samples<T>(strategy: impl Strategy<Value = T>, count: usize) -> Vec<T> {
    let mut runner = TestRunner::deterministic();
    let mut next = || strategy.new_tree(&mut runner).unwrap().current();
    (0..count).map(|_| next()).collect()
}

fn group(language: Language, text: &str) -> Result<Group, String> {
    let source = Source::new("test", text);
    let read = parse(language, &source, &Catalogue::default());
    read.map(|(group, _)| group)
        .map_err(|found| format!("{found:?}"))
}

/// A schema that is one itself.
struct Validator {
    schemas: Schemas,
    schema: SchemaIndex,
}

impl Validator {
    fn of(schema: &str) -> Validator {
        let place = "memory:schema";
        let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
        let schema = serde_json::from_str(schema).unwrap();
        compiler.add_resource(place, schema).unwrap();
        let schema = compiler.compile(place, &mut schemas);
        let schema = schema.unwrap_or_else(|error| panic!("{error:#}"));
        Validator { schemas, schema }
    }

    fn is_valid(&self, value: &serde_json::Value) -> bool {
        self.schemas.validate(value, self.schema).is_ok()
    }
}

/// A description in TOML as those see it who check it with a schema of JSON.
fn as_json(toml: &str) -> serde_json::Value {
    toml::from_str(toml).unwrap_or_else(|error| panic!("{error}:\n{toml}"))
}

fn holds(validator: &Validator, value: &serde_json::Value) {
    if let Err(error) = validator.schemas.validate(value, validator.schema) {
        panic!("{error:#}\n{value:#}");
    }
}

/// The descriptions of this repository, in a language.
fn descriptions(ending: &str, folder: &Path, into: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            descriptions(ending, &path, into);
        } else if path.extension().is_some_and(|it| it == ending) && !path.ends_with("Cargo.toml") {
            let text = fs::read_to_string(&path).unwrap();
            if text.contains("[[test]]") || text.contains("<test-group") {
                into.push(text);
            }
        }
    }
}

fn shown(ending: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    for folder in ["experiments", "examples", "crates/bench/tests/data"] {
        descriptions(ending, &root.join(folder), &mut found);
    }
    found
}

#[test]
fn descriptions_in_toml_are_as_the_schema_says() {
    let validator = Validator::of(schema::DESCRIPTION);
    assert!(group(Language::Toml, ALL).is_ok());
    holds(&validator, &as_json(ALL));
    for text in shown("toml") {
        holds(&validator, &as_json(&text));
    }
    let figure = group(Language::Xml, FIGURE_3).unwrap();
    let groups = samples(generated::group(), 200);
    for group in groups.iter().chain([&figure]) {
        holds(&validator, &as_json(&write(Language::Toml, group)));
    }
}

#[test]
fn wrong_descriptions_are_refused_by_the_schema_and_by_us() {
    let validator = Validator::of(schema::DESCRIPTION);
    for (from, to) in [
        ("repetitions = 3", "repetitions = 0"),
        ("repetitions = 3", "repetition = 3"),
        ("warm-up = 1", "warm-up = -1"),
        ("\"random\"", "\"odd\""),
        ("timeout = 12.5", "timeout = 0"),
        ("\"skip\"", "\"wait\""),
        ("port = 9000", "port = 90000"),
        ("host = \"c24\"", "host = \"\""),
        ("{ kind = \"star\" }", "{ name = \"star\" }"),
        ("values = [1, 2.5, \"x\"]", "values = []"),
        ("values = [1, 2.5, \"x\"]", "values = [[1]]"),
        ("values = [1, 2.5, \"x\"]", "value = [1]"),
        (
            "values = [1, 2.5, \"x\"]",
            "values = [1], start = 1, end = 2",
        ),
        ("start = 0, end = -10, step = -5", "start = 0, step = -5"),
        (
            "start = 0, end = -10, step = -5",
            "start = 0, end = 10, step = 0",
        ),
        ("start = 0", "start = \"zero\""),
        ("name = \"a\", values", "values"),
        ("starHost = [\"c24\", 8080]", "starHost = [[1]]"),
        ("server = { application = { kind = \"k\" } }", ""),
        ("parameters = { starHost", "parameter = { starHost"),
    ] {
        let wrong = ALL.replacen(from, to, 1);
        assert_ne!(wrong, ALL, "{from}");
        assert!(!validator.is_valid(&as_json(&wrong)), "{from} → {to}");
        assert!(group(Language::Toml, &wrong).is_err(), "{from} → {to}");
    }
    assert!(!validator.is_valid(&as_json("name = \"x\"")));
}

#[test]
fn results_in_json_are_as_the_schema_says() {
    let validator = Validator::of(schema::RESULT);
    let figure = Results::parse(FIGURE_4).unwrap();
    let results = samples(generated::results(), 100);
    for results in results.iter().chain([&figure]) {
        holds(
            &validator,
            &serde_json::from_str(&results.to_json()).unwrap(),
        );
    }
    let json = figure.to_json();
    for (from, to) in [
        ("\"format\": 1", "\"format\": 2"),
        ("\"started\": \"\"", "\"started\": 5"),
        ("\"hosts\": {}", "\"hosts\": []"),
        ("\"repetitions\": 1", "\"repetitions\": 0"),
        ("\"interleaved\"", "\"odd\""),
        ("\"value\": 290.697", "\"value\": \"290.697\""),
        ("\"application\": \"throughput1\",\n", ""),
        ("\"round\": 0", "\"round\": -1"),
        ("\"minimum\": 290.697", "\"minimum\": null"),
        ("\"kind\": \"star\"", "\"kind\": 5"),
    ] {
        let wrong = json.replacen(from, to, 1);
        assert_ne!(wrong, json, "{from}");
        let wrong = serde_json::from_str(&wrong).unwrap();
        assert!(!validator.is_valid(&wrong), "{from} → {to}");
    }
}

/// Which of these are no documents of the schema, by xmllint; nothing where it is
/// not here.
fn refused(documents: &[String]) -> Option<Vec<usize>> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("schema.xsd"), schema::XML).unwrap();
    let names: Vec<String> = (0..documents.len())
        .map(|index| format!("{index}.xml"))
        .collect();
    for (name, document) in names.iter().zip(documents) {
        fs::write(folder.path().join(name), document).unwrap();
    }
    let checked = Command::new("xmllint")
        .args(["--noout", "--nonet", "--schema", "schema.xsd"])
        .args(&names)
        .current_dir(folder.path())
        .output();
    let Ok(checked) = checked else {
        eprintln!("not run: there is no xmllint; apt-get install libxml2-utils");
        return None;
    };
    let said = String::from_utf8(checked.stderr).unwrap();
    let is_refused = |name: &String| {
        let fails =
            said.contains(&format!("\n{name} fails")) || said.starts_with(&format!("{name} fails"));
        let holds = said.contains(&format!("{name} validates\n"));
        assert_ne!(fails, holds, "{name}: {said}");
        fails
    };
    let refused = names
        .iter()
        .enumerate()
        .filter(|(_, name)| is_refused(name));
    Some(refused.map(|(index, _)| index).collect())
}

#[test]
fn xml_is_as_the_schema_says() {
    let mut documents = vec![FIGURE_3.to_owned(), FIGURE_4.to_owned()];
    documents.push(write(Language::Xml, &group(Language::Toml, ALL).unwrap()));
    documents.extend(shown("xml"));
    let groups = samples(generated::group(), 100);
    documents.extend(groups.iter().map(|group| write(Language::Xml, group)));
    let results = samples(generated::results(), 60);
    documents.extend(results.iter().map(Results::to_xml));
    if let Some(refused) = refused(&documents) {
        let first = refused.first().map(|index| &documents[*index]);
        assert_eq!(first, None);
    }
}

#[test]
fn wrong_xml_is_refused_by_the_schema_and_by_us() {
    let cases = [
        ("test-group", "group"),
        (
            "<test name=\"Solar\">",
            "<test name=\"Solar\" repetitions=\"0\">",
        ),
        (
            "<test name=\"Solar\">",
            "<test name=\"Solar\" repetition=\"2\">",
        ),
        (
            "<test name=\"Solar\">",
            "<test name=\"Solar\" order=\"odd\">",
        ),
        (
            "<test name=\"Solar\">",
            "<test name=\"Solar\" timeout=\"-1\">",
        ),
        (
            "<test name=\"Solar\">",
            "<test name=\"Solar\" lost-host=\"x\">",
        ),
        ("port=\"8108\"", "port=\"70000\""),
        ("host=\"agentc24.cs.dartmouth.edu\"", "host=\"\""),
        ("class=\"solar.test.cases.SolarThroughput\"", "clas=\"x\""),
        (
            "<var name=\"randomInstance.stringLength\" start",
            "<var start",
        ),
        ("start=\"0\"", "start=\"zero\""),
        ("step=\"100\"", "stop=\"100\""),
        (
            "<param name=\"iterations\" value=\"1000\"/>",
            "<param value=\"1000\"/>",
        ),
        ("value=\"1000\"", "value=\"1000\" type=\"number\""),
        ("<star", "<comet"),
        ("error=\"false\"", "error=\"maybe\""),
        (
            "app-name=\"throughput1\" error=\"false\"",
            "app-name=\"t\" error=\"false\" round=\"-1\"",
        ),
        (
            "<var name=\"randomInstance.stringLength\" value=\"0.0\"/>",
            "<var value=\"0.0\"/>",
        ),
    ];
    let wrong: Vec<String> = cases
        .iter()
        .map(|(from, to)| {
            let wrong = FIGURE_4.replace(from, to);
            assert_ne!(wrong, FIGURE_4, "{from}");
            assert!(Results::parse(&wrong).is_err(), "{from} → {to}");
            wrong
        })
        .collect();
    if let Some(refused) = refused(&wrong) {
        let accepted = (0..cases.len()).filter(|index| !refused.contains(index));
        let accepted: Vec<_> = accepted.map(|index| cases[index]).collect();
        assert!(accepted.is_empty(), "{accepted:?}");
    }
}
