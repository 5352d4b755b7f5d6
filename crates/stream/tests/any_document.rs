//! Any document is written in every language and read as the same again, and
//! comes out of the builder as it went in.

use std::num::NonZeroU32;
use std::process::Command;
use std::sync::Arc;

use crate::support::{self, catalogue};
use milieu_diagnostics::{Source, render};
use milieu_keys::{Name, Pattern};
use milieu_stream::language::build::{Builder, FlowBuilder, Told, given};
use milieu_stream::language::{Language, schema};
use milieu_stream::{
    Binding, Catalogue, Delivery, Document, Flow, Inputs, Kind, Overflow, Parameter, Publication,
    Subscription, Target,
};
use milieu_transfer::Span;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// Texts with whatever some language uses for itself.
fn text() -> impl Strategy<Value = String> {
    let odd = " ,|;()\"'`#%\\<>&=\n\r\t{}[]$:*/.-_~!?@+\u{85}\u{2028}\u{feff}é°😀aZ09";
    vec(select(odd.chars().collect::<Vec<_>>()), 1..12)
        .prop_map(|chars| chars.into_iter().collect())
}

fn word() -> impl Strategy<Value = String> {
    "[A-Za-z_][A-Za-z0-9_]{0,8}".prop_filter("taken", |word| word != "let" && word != "_")
}

/// A name of the naming tree.
fn plain_name() -> impl Strategy<Value = Arc<str>> {
    vec(text(), 1..4).prop_map(|levels| {
        let levels = levels
            .iter()
            .filter(|level| !matches!(level.as_str(), "*" | "**"));
        let name = levels.fold(Name::root().join("x"), |name, level| name.join(level));
        name.as_str().into()
    })
}

fn name() -> impl Strategy<Value = Arc<str>> {
    let canonical = |name: &str| Pattern::parse(name).expect("a pattern").as_str().into();
    prop_oneof![
        plain_name(),
        "/[a-z]{1,5}(/[a-z]{1,5}){0,3}".prop_map(move |name| canonical(&name)),
        select(vec![
            "/labs/%room%/devices",
            "/labs/*/x",
            "/%a b%/c",
            "/a/**",
            "/%x%y/z"
        ])
        .prop_map(canonical),
    ]
}

/// Expressions that any language has to leave alone, as they are kept.
fn expression() -> impl Strategy<Value = Arc<str>> {
    let leaf = prop_oneof![
        select(vec![
            "value", "a.b", "1", "2.5e-3", "0x1Fu", "true", "x[\"k\"]", "_y1"
        ])
        .prop_map(str::to_owned),
        "[ ,|;()#%<>&=a-z{}\\[\\]$:é°]{0,8}".prop_map(|text| format!("\"{text}\"")),
        "[ ,|;()#\"a-z]{0,5}".prop_map(|text| format!("'{text}'")),
    ];
    let any = leaf.prop_recursive(4, 16, 3, |inner| {
        let pair = (inner.clone(), inner.clone());
        let operator = select(vec![
            "||", "&&", "==", "!=", "<", "<=", ">=", "+", "%", "in",
        ]);
        prop_oneof![
            (pair.clone(), operator).prop_map(|((a, b), o)| format!("({a}) {o} ({b})")),
            pair.clone().prop_map(|(a, b)| format!("size([{a}, {b}])")),
            pair.clone().prop_map(|(a, b)| format!("[{a}, {b}]")),
            pair.clone()
                .prop_map(|(a, b)| format!("{{\"k\": {a}, 'l': {b}}}")),
            pair.prop_map(|(a, b)| format!("x ? ({a}) : ({b})")),
            inner.prop_map(|a| format!("!({a})")),
        ]
    });
    any.prop_map(|text| kept(&text))
}

/// An expression as a flow keeps it.
fn kept(expression: &str) -> Arc<str> {
    let source = Source::new("expression", format!("/a | filter {expression}"));
    let read = Language::Pipeline.parse(&source, &catalogue());
    let document = read.unwrap_or_else(|found| panic!("{}", render(&source, &found, false)));
    match &document.subscriptions[0].flow {
        Flow::Operation(operation) => match &operation.parameters[0].1 {
            Parameter::Expression(text) => text.clone(),
            other => panic!("{other:?}"),
        },
        Flow::Stream(_) => panic!("{expression}"),
    }
}

fn expression_or_function() -> impl Strategy<Value = Parameter> {
    prop_oneof![
        4 => expression().prop_map(Parameter::Expression),
        1 => word().prop_map(|name| Parameter::Function(name.into())),
    ]
}

fn span() -> impl Strategy<Value = Span> {
    prop_oneof![
        any::<i64>(),
        (1_i64..100).prop_map(|minutes| minutes * 60_000_000_000)
    ]
    .prop_map(Span::from_nanoseconds)
}

fn number() -> impl Strategy<Value = Arc<str>> {
    let finite =
        any::<f64>().prop_filter("a number", |number| number.is_finite() && *number != 0.0);
    prop_oneof![finite, (1_i32..1000).prop_map(f64::from)].prop_map(|number| {
        let text = format!("{number:?}");
        text.strip_suffix(".0").unwrap_or(&text).into()
    })
}

fn function(known: &'static [&'static str]) -> impl Strategy<Value = Parameter> {
    let argument = prop_oneof![
        any::<i64>().prop_map(Parameter::Integer),
        word().prop_map(|word| Parameter::Text(word.into())),
        Just(Parameter::Number("99.5".into())),
    ];
    prop_oneof![
        select(known).prop_map(|name| Parameter::Text(name.into())),
        (select(known), vec(argument, 1..3))
            .prop_map(|(name, arguments)| Parameter::Call(name.into(), arguments)),
    ]
}

/// A value of a kind.
fn parameter(kind: Kind) -> BoxedStrategy<Parameter> {
    match kind {
        Kind::Flag => any::<bool>().prop_map(Parameter::Flag).boxed(),
        Kind::Integer => any::<i64>().prop_map(Parameter::Integer).boxed(),
        Kind::Number => number().prop_map(Parameter::Number).boxed(),
        Kind::Span => span().prop_map(Parameter::Span).boxed(),
        Kind::Text => text().prop_map(|text| Parameter::Text(text.into())).boxed(),
        Kind::Choice(words) => select(words)
            .prop_map(|word| Parameter::Text(word.into()))
            .boxed(),
        Kind::Expression => expression_or_function().boxed(),
        Kind::Fields => prop_oneof![
            expression_or_function(),
            btree_map(prop_oneof![text(), word()], expression(), 1..4).prop_map(|fields| {
                let fields = fields.into_iter();
                Parameter::Fields(fields.map(|(name, text)| (name.into(), text)).collect())
            }),
        ]
        .boxed(),
        Kind::Functions(known) => vec(function(known), 1..4).prop_map(Parameter::List).boxed(),
    }
}

/// Whether it is what the declaration says where nothing is given.
fn is_default(default: Option<&str>, parameter: &Parameter) -> bool {
    match (default, parameter) {
        (Some(default), Parameter::Flag(flag)) => default == flag.to_string(),
        (Some(default), Parameter::Integer(number)) => default == number.to_string(),
        (Some("1m"), Parameter::Span(span)) => span.seconds() == 60.0,
        (Some(default), Parameter::Number(text) | Parameter::Text(text))
        | (Some(default), Parameter::Expression(text)) => default == &**text,
        _ => false,
    }
}

type Argument = Option<(Arc<str>, Parameter)>;

/// An operator over flows.
fn operation(inner: BoxedStrategy<Flow>) -> BoxedStrategy<Flow> {
    let catalogue = catalogue();
    let each: Vec<BoxedStrategy<Flow>> = catalogue
        .iter()
        .map(|definition| {
            let parameters: Vec<BoxedStrategy<Argument>> = definition
                .parameters
                .iter()
                .map(|declared| {
                    let value = parameter(declared.kind).prop_map(move |value| {
                        let is_given = !is_default(declared.default, &value);
                        is_given.then(|| (declared.name.into(), value))
                    });
                    match declared.default {
                        None => value.boxed(),
                        Some(_) => prop_oneof![Just(None), value].boxed(),
                    }
                })
                .collect();
            let inputs = match definition.inputs {
                Inputs::One => vec(inner.clone(), 1..=1),
                Inputs::Unordered => vec(inner.clone(), 1..=3),
                Inputs::Ordered(least) => vec(inner.clone(), least..=least + 1),
            };
            let name = definition.name;
            (parameters, inputs)
                .prop_map(move |(parameters, inputs)| {
                    let catalogue = support::catalogue();
                    let definition = catalogue.get(name).expect("an operator");
                    let parameters = parameters.into_iter().flatten().collect();
                    catalogue.operation(definition, parameters, inputs)
                })
                .boxed()
        })
        .collect();
    select(each).prop_flat_map(|one| one).boxed()
}

fn flow() -> BoxedStrategy<Flow> {
    let stream = name().prop_map(Flow::Stream);
    stream.prop_recursive(4, 12, 3, operation).boxed()
}

fn delivery() -> impl Strategy<Value = Delivery> {
    prop_oneof![
        Just(Delivery::Latest),
        Just(Delivery::default()),
        (1_u32.., select(&Overflow::ALL[..])).prop_map(|(capacity, overflow)| Delivery::Every {
            capacity: NonZeroU32::new(capacity).expect("not 0"),
            overflow,
        }),
    ]
}

fn target() -> impl Strategy<Value = Target> {
    let layer = (
        "[a-zA-Z0-9_-]{1,8}",
        proptest::option::of(expression_or_function()),
        proptest::option::of(expression_or_function()),
        proptest::option::of(span()),
    );
    prop_oneof![
        layer.prop_map(|(layer, value, condition, duration)| Target::Layer {
            layer: layer.into(),
            value,
            condition,
            duration,
        }),
        (name(), expression_or_function()).prop_map(|(name, value)| Target::Value { name, value }),
    ]
}

fn document() -> impl Strategy<Value = Document> {
    let subscription = (flow(), delivery(), proptest::option::of(text()));
    // Later flows contain the earlier ones: they are written by their names.
    let named = btree_map(word(), flow(), 0..4);
    (
        named,
        vec((subscription, proptest::option::of(text())), 0..3),
        btree_map(plain_name(), flow(), 0..2),
        proptest::option::of((plain_name(), flow())),
        vec((flow(), target()), 0..2),
        any::<bool>(),
    )
        .prop_map(
            |(named, subscriptions, published, bound, bindings, shared)| {
                let mut document = Document::default();
                for (name, flow) in named {
                    document.flows.push((name.into(), flow));
                }
                for ((mut flow, delivery, mode), name) in subscriptions {
                    if let (true, Some((_, known))) = (shared, document.flows.last()) {
                        let catalogue = catalogue();
                        let merge = catalogue.get("merge").expect("an operator");
                        flow = catalogue.operation(merge, Vec::new(), vec![known.clone(), flow]);
                        document
                            .flows
                            .push((format!("f{}", document.flows.len()).into(), flow.clone()));
                    }
                    let same = |known: &Subscription| known.name.as_deref() == name.as_deref();
                    let is_taken = document.subscriptions.iter().any(same);
                    document.subscriptions.push(Subscription {
                        name: name.filter(|_| !is_taken).map(Into::into),
                        flow,
                        delivery,
                        mode: mode.map(Into::into),
                    });
                }
                for (name, flow) in published {
                    document.publications.push(Publication { name, flow });
                }
                if let Some((name, flow)) = bound {
                    if document.publications.iter().all(|known| known.name != name) {
                        let target = Target::Name { name };
                        document.bindings.push(Binding { flow, target });
                    }
                }
                for (flow, target) in bindings {
                    document.bindings.push(Binding { flow, target });
                }
                // Another flow may have got the name of a random one.
                let mut names = std::collections::BTreeSet::new();
                document
                    .flows
                    .retain(|(name, _)| names.insert(name.clone()));
                document
            },
        )
}

fn read(language: Language, source: &Source) -> Document {
    let read = language.parse(source, &catalogue());
    read.unwrap_or_else(|found| panic!("{}\n{}", source.text, render(source, &found, false)))
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: ProptestConfig::default().cases.div_ceil(4),
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_document_is_read_as_it_was_written(document in document()) {
        let catalogue = catalogue();
        for language in Language::ALL {
            let source = Source::new("written", language.write(&document, &catalogue));
            let again = read(language, &source);
            prop_assert_eq!(&again, &document, "{}", source.text);
        }
    }

    #[test]
    fn any_document_comes_out_of_the_builder_as_it_went_in(document in document()) {
        let catalogue = catalogue();
        let builder = Builder::new(&catalogue);
        for (name, flow) in &document.flows {
            let _ = build(&builder, flow).named(name);
        }
        for subscription in &document.subscriptions {
            let mut told = match subscription.delivery {
                Delivery::Latest => vec![Told::from("latest")],
                Delivery::Every { capacity, overflow } => vec![
                    given("capacity", capacity.get()),
                    given("overflow", overflow.as_str()),
                ],
            };
            told.extend(subscription.name.iter().map(|name| given("name", &**name)));
            told.extend(subscription.mode.iter().map(|mode| given("mode", &**mode)));
            build(&builder, &subscription.flow).subscribe(told);
        }
        for publication in &document.publications {
            build(&builder, &publication.flow).publish(&publication.name);
        }
        for binding in &document.bindings {
            let flow = build(&builder, &binding.flow);
            match binding.target.clone() {
                Target::Layer { layer, value, condition, duration } => {
                    let mut told = vec![Told::from(&*layer)];
                    told.extend(value.map(|value| given("value", value)));
                    told.extend(condition.map(|condition| given("while", condition)));
                    told.extend(duration.map(|duration| given("for", duration)));
                    flow.activate(told);
                }
                Target::Name { name } => flow.bind(&name),
                Target::Value { name, value } => flow.set((&*name, value)),
            }
        }
        let built = builder.finish();
        prop_assert_eq!(built.as_ref(), Ok(&document));
    }

    #[test]
    fn no_text_panics(text in "[-a-z0-9_/|,;()=\"'#<>&\\[\\]{}$.\n \\\\!?é]{0,80}") {
        for language in Language::ALL {
            let source = Source::new("any", text.as_str());
            if let Err(found) = language.parse(&source, &catalogue()) {
                prop_assert!(!found.is_empty());
                for label in found.iter().flat_map(|found| &found.labels) {
                    let span = label.span.start..label.span.end;
                    prop_assert!(text.get(span).is_some(), "{:?}", found);
                }
                prop_assert!(!render(&source, &found, false).is_empty());
            }
        }
    }
}

/// Says a flow by the builder.
fn build<'b, 'c>(builder: &'b Builder<'c>, flow: &Flow) -> FlowBuilder<'b, 'c> {
    match flow {
        Flow::Stream(name) => builder.stream(name),
        Flow::Operation(operation) => {
            let mut inputs = operation.inputs.iter().map(|input| build(builder, input));
            let first = inputs.next().expect("an input");
            let inputs = inputs.fold(first, |all, input| all.and(&input));
            let told = operation.parameters.iter();
            let told = told.map(|(name, parameter)| given(name, parameter.clone()));
            inputs.apply(&operation.operator, told.collect::<Vec<_>>())
        }
    }
}

#[test]
fn any_document_keeps_to_the_schema() {
    let folder = std::env::temp_dir().join(format!("milieu-any-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let catalogue: Catalogue = catalogue();
    std::fs::write(folder.join("schema.xsd"), schema(&catalogue)).expect("a file");
    let mut runner = TestRunner::deterministic();
    let paths: Vec<_> = (0..100)
        .map(|at| {
            let document = document().new_tree(&mut runner).expect("a document");
            let written = Language::Xml.write(&document.current(), &catalogue);
            let path = folder.join(format!("{at}.xml"));
            std::fs::write(&path, written).expect("a file");
            path
        })
        .collect();
    let validated = Command::new("xmllint")
        .args(["--noout", "--nonet", "--schema"])
        .arg(folder.join("schema.xsd"))
        .args(&paths)
        .output();
    // Where there is no validator, `tests/schema.rs` compares what is declared.
    if let Ok(output) = validated {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }
    std::fs::remove_dir_all(&folder).expect("a folder");
}
