// Written by Milieu.

use milieu_stream::language::build::{self, Builder};

/// Says these subscriptions.
pub fn subscriptions(builder: &Builder<'_>) {
    let cold = builder.stream("/a \"quoted\" & <escaped> name")
        .filter("value < 5 && value > -5")
        .transform(build::fields([("double", "value * 2"), ("odd `name`", "value < 1")]))
        .named("cold");
    cold.subscribe(build::given("name", "line\nbreak"));
    cold.activate(("cold", build::given("while", "value < 0"), build::given("for", build::minutes(30))));
}
