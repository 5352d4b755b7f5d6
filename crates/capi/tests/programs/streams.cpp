// Streams from C++, over the C interface.

#include "check.hpp"

#include <milieu/streams.hpp>

#include <atomic>
#include <string>
#include <thread>

namespace app {

enum class Sky : std::uint32_t { clear, clouded };
MILIEU_VARIANTS(Sky, clear, clouded)

struct Weather {
    double temperature;
    milieu::Text room;
    Sky sky;
    milieu::List<std::int32_t> gusts;
};
MILIEU_EVENT(Weather, temperature, room, sky, gusts)

} // namespace app

using namespace std::chrono_literals;
using app::Sky;
using app::Weather;
using milieu::Event;

static void publish_and_subscribe() {
    milieu::Coordinator coordinator;
    milieu::Streams streams(coordinator);
    auto weather = streams.publisher<Weather>("/weather");
    auto hot = streams.subscribe("/weather | filter temperature > 32 && sky == 'clouded'");
    const std::vector<std::int32_t> gusts = {3, 7};
    {
        std::string room = "005";
        ASSERT(weather.publish({33.5, room, Sky::clouded, gusts}));
        ASSERT(weather.publish({33.5, room, Sky::clear, {}}));
        room = "xxx";
    }
    auto event = hot.take();
    ASSERT(event);
    const Weather &seen = event->get<Weather>();
    ASSERT(seen.temperature == 33.5 && seen.room == "005" && seen.sky == Sky::clouded);
    ASSERT(seen.gusts.size() == 2 && seen.gusts[1] == 7);
    ASSERT(event->field("room").text() == "005");
    ASSERT(event->field("gusts[1]").number() == 7.0);
    ASSERT(!event->field("humidity"));
    ASSERT(event->name() == "/weather" && event->sequence() == 1);
    ASSERT(event->json()
        == R"({"temperature":33.5,"room":"005","sky":"clouded","gusts":[3,7]})");
    auto kept = event->keep();
    ASSERT(!event->get_if<double>());
    ASSERT(!hot.take());
    ASSERT(kept.get<Weather>().room == "005");
    ASSERT(hot.tally().taken == 1);
}

static void plain_values_and_listeners() {
    milieu::Coordinator coordinator;
    milieu::Streams streams(coordinator);
    auto temperature = streams.publisher<double>("/t");
    double last = 0;
    {
        auto listener = streams.listen("/t | filter value > 3", [&](Event event) {
            last = event.get<double>();
            if (last > 10) throw std::runtime_error("too hot");
        });
        temperature.publish(2);
        ASSERT(last == 0);
        temperature.publish(4);
        ASSERT(last == 4);
        temperature.publish(11);
        ASSERT(listener.failures() == 1 && listener.failure() == "too hot");
    }
    temperature.publish(5);
    ASSERT(last == 11);
}

static void sources_in_virtual_time() {
    milieu::Coordinator coordinator;
    const milieu::Time start{};
    milieu::Streams streams(coordinator, start);
    int count = 0;
    auto source = streams.source("/ticks", [&](milieu::Feed &feed) {
        feed.publish(std::int64_t{++count});
        feed.working();
        if (count == 5) throw std::runtime_error("the bus is off");
        return milieu::Wait::until(feed.now() + 10s);
    });
    auto sums = streams.subscribe("/ticks | aggregate sum 20s");
    streams.pass(start + 25s);
    ASSERT(count == 3 && source.status() == MILIEU_WORKING);
    auto sum = sums.take();
    ASSERT(sum && sum->get<std::int64_t>() == 3);
    streams.pass(start + 60s);
    ASSERT(count == 5 && source.status() == MILIEU_FAILING);
    ASSERT(source.failure().find("the bus is off") != std::string::npos);
}

static void sources_in_real_time() {
    milieu::Coordinator coordinator;
    milieu::Streams streams(coordinator);
    auto ticks = streams.subscribe("/ticks");
    auto source = streams.source("/ticks", [n = std::int64_t{0}](milieu::Feed &feed) mutable {
        feed.publish(++n);
        return milieu::Wait::until(feed.now() + 1ms);
    });
    for (int want = 1; want < 4; want++) {
        auto tick = ticks.wait();
        ASSERT(tick && tick->get<std::int64_t>() == want);
    }
}

int main() {
    publish_and_subscribe();
    plain_values_and_listeners();
    sources_in_virtual_time();
    sources_in_real_time();
    std::puts("ok");
    return 0;
}
