// Written by Milieu.

use milieu_stream::language::build::{self, Builder};

/// Says these subscriptions.
pub fn subscriptions(builder: &Builder<'_>) {
    builder.stream("/a")
        .filter("unit == \"m\" && value > 1")
        .aggregate((["mean", "percentile(99.5)"], build::minutes(90), build::given("count", 16_i64)))
        .change(1000_f64)
        .subscribe(());
}
