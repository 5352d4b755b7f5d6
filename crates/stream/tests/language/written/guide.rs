// Written by Milieu.

use milieu_stream::language::build::{self, Builder};

/// Says these subscriptions.
pub fn subscriptions(builder: &Builder<'_>) {
    let hot = builder.stream("/roof/temperature")
        .and(&builder.stream("/weather/temperature"))
        .merge()
        .filter("value > 32")
        .named("hot");
    hot.aggregate((["mean", "percentile(95)"], build::minutes(10)))
        .publish("/weather/heat");
    hot.subscribe(("latest", build::given("name", "heat"), build::given("mode", "json")));
    builder.stream("/labs/%room%/temperature")
        .filter(build::function("unusual"))
        .subscribe((build::given("capacity", 64_i64), build::given("overflow", "close")));
    builder.stream("/device/battery")
        .activate(("battery_low", build::given("while", "value < 15")));
}
