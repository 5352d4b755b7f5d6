// On what terms streams run, from C++: a clock of the program, threads for what takes long, what
// operators remember as bytes, and the right to see private fields.

#include "check.hpp"

#include <milieu/streams.hpp>

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace app {

struct Patient {
    double degrees = 0;
    milieu::Optional<std::uint16_t> pulse;
};
MILIEU_EVENT(Patient, degrees, pulse)
void milieu_about(milieu::About<Patient> &about) { about(&Patient::pulse).is_private(); }

} // namespace app

using namespace std::chrono_literals;
using milieu::Event;
using milieu::Time;

static void clocks() {
    auto shown = std::make_shared<std::atomic<std::int64_t>>(1000);
    {
        milieu::Coordinator coordinator;
        milieu::Streams streams(coordinator, [shown]() -> Time {
            if (*shown < 0) throw std::runtime_error("it has stopped");
            return Time(std::chrono::seconds(*shown));
        });
        ASSERT(shown.use_count() == 2);
        ASSERT(streams.now() == Time(1000s));
        *shown = -1;
        ASSERT(streams.now() == Time(1000s));
        *shown = 1001;
        auto numbers = streams.publisher<double>("/n");
        auto sums = streams.subscribe("/n | aggregate sum 10s");
        auto all = streams.subscribe("/n");
        numbers.publish(2);
        ASSERT(all.take()->time() == Time(1001s));
        streams.drive();
        *shown = 1012;
        ASSERT(sums.wait()->field("sum").number() == 2);
        thrown(MILIEU_LATE, [&] { milieu::Streams(coordinator, [] { return Time(); }); });
    }
    ASSERT(shown.use_count() == 1);
}

static void terms() {
    milieu::Coordinator coordinator;
    std::mutex mutex;
    std::condition_variable changed;
    bool begun = false, may_end = false;
    milieu::define_function(
        coordinator, "slow",
        [&](Event) {
            std::unique_lock<std::mutex> lock(mutex);
            begun = true;
            changed.notify_all();
            changed.wait(lock, [&] { return may_end; });
            return true;
        },
        true);
    milieu::Streams streams(coordinator);
    ASSERT(has(thrown(MILIEU_INVALID, [&] { streams.drive({0, 1, 1s}); }), "threads"));
    streams.drive({1, 1, 100s});
    ASSERT(has(thrown(MILIEU_LATE, [&] { streams.drive(milieu::Blocking()); }), "1 threads"));
    auto numbers = streams.publisher<double>("/n");
    auto known = streams.subscribe("/n | filter $slow");
    numbers.publish(1);
    {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [&] { return begun; });
    }
    for (double number : {2, 3, 4}) numbers.publish(number);
    // Another thread may be at work with the streams, and take them in later: a look waits.
    (void)streams.graph();
    {
        std::lock_guard<std::mutex> lock(mutex);
        may_end = true;
    }
    changed.notify_all();
    ASSERT(known.wait()->get<double>() == 1);
    ASSERT(known.wait()->get<double>() == 4);
    ASSERT(!known.wait_for(20ms));
}

static void memories() {
    const char *const flow = "/n | aggregate sum count=3";
    std::string kept;
    {
        milieu::Coordinator coordinator;
        milieu::Streams streams(coordinator, Time());
        auto numbers = streams.publisher<double>("/n");
        auto sums = streams.subscribe(flow);
        numbers.publish(1);
        numbers.publish(2);
        kept = streams.snapshot();
        milieu_result inside = MILIEU_OK;
        auto listener = streams.listen("/n", [&](Event) {
            try {
                streams.snapshot();
            } catch (const milieu::Error &error) {
                inside = error.result();
            }
        });
        numbers.publish(3);
        ASSERT(inside == MILIEU_BUSY && listener.failures() == 0);
    }
    milieu::Coordinator coordinator;
    milieu::Streams streams(coordinator, Time());
    thrown(MILIEU_INVALID, [&] { streams.restore("nothing of the kind"); });
    streams.restore(kept);
    ASSERT(has(streams.losses(), "waits"));
    auto numbers = streams.publisher<double>("/n");
    auto sums = streams.subscribe(flow);
    ASSERT(streams.losses() == "[]");
    numbers.publish(4);
    ASSERT(sums.take()->field("sum").number() == 7);
}

static void rights() {
    milieu::Coordinator coordinator;
    milieu::Streams streams(coordinator, Time());
    auto patients = streams.publisher<app::Patient>("/ward");
    auto all = streams.subscribe("/ward");
    patients.publish({38.5, std::uint16_t(71)});
    auto event = all.take();
    ASSERT(event->json() == R"({"degrees":38.5,"pulse":null})");
    ASSERT(event->json(MILIEU_READ_PRIVATE) == R"({"degrees":38.5,"pulse":71})");
    ASSERT(!event->field("pulse"));
    ASSERT(event->field("pulse", MILIEU_READ_PRIVATE).whole() == 71);
    ASSERT(event->field("degrees", MILIEU_READ_PRIVATE).number() == 38.5);
    thrown(MILIEU_INVALID, [&] { event->json(8); });
}

int main() {
    clocks();
    terms();
    memories();
    rights();
    std::puts("ok");
    return 0;
}
