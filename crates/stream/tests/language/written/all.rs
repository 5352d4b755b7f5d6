// Written by Milieu.

use milieu_stream::language::build::{self, Builder};

/// Says these subscriptions.
pub fn subscriptions(builder: &Builder<'_>) {
    let temperature = builder.stream("/roof/temperature")
        .and(&builder.stream("/weather/temperature"))
        .merge()
        .named("temperature");
    let hot = temperature.filter("quality < 0.5 || value > 32")
        .named("hot");
    let ratio = hot.aggregate(("count", build::hours(1)))
        .and(&temperature.aggregate(("count", build::hours(1))))
        .join((build::hours(1), build::given("to", build::fields([("ratio", "left.count / right.count"), ("odd name", "\"a, b | c\"")]))))
        .named("ratio");
    hot.aggregate((["mean", "percentile(95)", "maximum"], build::minutes(10), build::given("every", build::minutes(1)), build::given("of", "body.value"), build::given("by", "event.name")))
        .publish("/weather/heat");
    ratio.subscribe(());
    hot.subscribe(("latest", build::given("name", "heat"), build::given("mode", "json")));
    hot.subscribe((build::given("capacity", 16_i64), build::given("overflow", "refuse"), build::given("name", "hot days; all")));
    builder.stream("/labs/%room%/devices")
        .deduplicate(build::given("sequence", false))
        .subscribe((build::given("capacity", 1024_i64), build::given("overflow", "close")));
    builder.stream("/a name/with blanks")
        .transform((build::function("celsius"), build::given("type", "my type")))
        .subscribe(());
    builder.stream("/labs/*/temperature")
        .and(&builder.stream("/a")
            .change(-0.5_f64))
        .and(&temperature)
        .vote(("median", build::given("quorum", 3_i64)))
        .subscribe(());
    hot.subscribe(());
    builder.stream("/x")
        .aggregate(("minimum", build::given("count", 100_i64)))
        .subscribe(());
    builder.stream("/y")
        .aggregate(("mean", build::given("session", build::milliseconds(1500))))
        .subscribe(());
    builder.stream("/b")
        .transform("value * 2")
        .subscribe(());
    builder.stream("/b")
        .transform("({a: 1})")
        .subscribe(());
    builder.stream("/b")
        .filter("text.contains(\"|\") && unit == \"°C\"")
        .subscribe(());
    builder.stream("/device/battery")
        .hysteresis((build::given("on", "value < 15"), build::given("off", "value > 20")))
        .activate(("battery_low", build::given("while", "value < 15"), build::given("value", "\"low\""), build::given("for", build::minutes(90))));
    builder.stream("/user/presence")
        .activate("present");
    hot.set(("/sw/%session%/heat", "value / 2"));
    builder.stream("/device/language")
        .set("/sw/language");
}
