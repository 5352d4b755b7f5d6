// From a source in C, through an operator in C++, to a layer and a contextual value.

#include "check.hpp"
#include "sensor.h"
#include "station.hpp"

#include <milieu/streams.hpp>

using namespace std::chrono_literals;

// The type that the source has defined in C, as a class.
struct Reading {
    double level;
    milieu::Text battery;
};
MILIEU_EVENT(Reading, level, battery)

// Seconds between two measurements, the more the less is left.
class Pace {
public:
    void event(milieu::Event event, milieu::Output &output) {
        const auto &reading = event.get<Reading>();
        ASSERT(reading.battery == "main");
        output.publish(10.0 * (10.0 - reading.level));
    }
};

int main() {
    milieu::Coordinator coordinator;
    milieu::define_operator<Pace>(coordinator,
        {"pace", "How long to wait.", {}, 1, MILIEU_OPERATOR_STATELESS});
    const milieu::Time start{};
    milieu::Streams streams(coordinator, start);
    auto effects = streams.apply("station.flow",
        "let pace = /battery | pace\n"
        "pace | set \"/station/%power%/interval\" value=int(value)\n"
        "/battery | activate power while=level < 8.0 value=battery\n");
    milieu_source *raw;
    ASSERT(sensor_open(streams.c(), "/battery", &raw) == MILIEU_OK);
    milieu::Source battery(raw);
    milieu::ThreadContext<station::Environment> tc(coordinator);

    streams.pass(start + 1s);
    tc.syncLayers();
    ASSERT(effects.failures() == 0);
    ASSERT(tc->station.interval.getName() == "/station/%/interval");
    ASSERT(tc->station.interval == 20);
    streams.pass(start + 4s);
    tc.syncLayers();
    ASSERT(tc->station.interval.getName() == "/station/main/interval");
    ASSERT(tc->station.interval == 50);
    std::puts("ok");
    return 0;
}
