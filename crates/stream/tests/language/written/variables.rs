// Written by Milieu.

use milieu_stream::language::build::{self, Builder};

/// Says these subscriptions.
#[allow(non_snake_case, reason = "flows are called as they were elsewhere")]
pub fn subscriptions(builder: &Builder<'_>) {
    let type_ = builder.stream("/a")
        .change(0.25_f64)
        .named("type");
    let self__ = type_.change(1e300_f64)
        .named("self");
    let self_ = type_
        .and(&self__)
        .vote(())
        .named("self_");
    let builder_ = builder.stream("/b")
        .change(-3_f64)
        .named("builder");
    let Big = builder_.aggregate((["mean", "count", "minimum"], build::hours(1), build::given("every", build::seconds(90)), build::given("count", 9223372036854775807_i64), build::given("of", "a"), build::given("by", "b")))
        .named("Big");
    let _ = builder.stream("/c")
        .named("unused");
    Big
        .and(&builder_)
        .and(&self_)
        .merge()
        .subscribe((build::given("capacity", 1_i64), build::given("overflow", "drop-newest"), build::given("name", "\"quoted\""), build::given("mode", "xml")));
    builder.stream("/d")
        .aggregate(("mean", build::nanoseconds(-1)))
        .subscribe(());
    builder.stream("/g")
            .and(&builder.stream("/f")
                .and(&builder.stream("/e")
                    .change(1_f64))
                .merge())
            .merge()
            .filter(build::function("hot"))
        .and(&builder.stream("/h"))
        .join(build::seconds(0))
        .subscribe(());
}
