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

/* As much of what `aggregate sum` publishes as is wanted. */
struct Sum {
    double sum;
};
MILIEU_EVENT(Sum, sum)

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
    ASSERT(sum && sum->get<app::Sum>().sum == 3);
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

/** Goes on with a part of the way to each number. */
class Smooth {
public:
    explicit Smooth(const milieu::Arguments &arguments) : weight_(arguments.number("weight")) {
        if (weight_ <= 0) throw std::invalid_argument("`weight` is above 0");
    }
    void event(Event event, milieu::Output &output) {
        const double number = event.get<double>();
        if (number > 1000) throw std::range_error("no sensor says that");
        mean_ = mean_ ? *mean_ + weight_ * (number - *mean_) : number;
        output.publish(*mean_);
    }
    std::string snapshot() const { return mean_ ? std::to_string(*mean_) : std::string(); }
    void restore(std::string_view text) { mean_ = std::stod(std::string(text)); }

private:
    double weight_;
    std::optional<double> mean_;
};

/** Holds each event for a second. */
class Later {
public:
    void event(std::uint32_t, Event event, milieu::Output &output) {
        held_.push_back({output.now() + 1s, output.hold(event)});
        output.wake_at(held_.front().first);
    }
    void wake(milieu::Output &output) {
        while (!held_.empty() && held_.front().first <= output.now()) {
            output.pass(held_.front().second);
            held_.erase(held_.begin());
        }
        if (!held_.empty()) output.wake_at(held_.front().first);
    }

private:
    std::vector<std::pair<milieu::Time, milieu::KeptEvent>> held_;
};

static void operators_and_functions() {
    milieu::Coordinator coordinator;
    milieu::define_operator<Smooth>(coordinator,
        {"smooth", "Smooths numbers.",
            {{"weight", MILIEU_F64, "How much a number counts.", "0.5"}}});
    milieu::define_operator<Later>(coordinator, {"later", "Sends events on a second later."});
    milieu::define_function(
        coordinator, "hot", [](Event event) { return event.get<double>() > 32; });
    const milieu::Time start{};
    milieu::Streams streams(coordinator, start);
    auto numbers = streams.publisher<double>("/n");
    auto smooth = streams.subscribe("/n | smooth weight=0.25");
    auto later = streams.subscribe("/n | filter $hot | later");
    numbers.publish(8);
    numbers.publish(1200);
    numbers.publish(40);
    ASSERT(smooth.take()->get<double>() == 8);
    ASSERT(smooth.take()->get<double>() == 16);
    ASSERT(!smooth.take() && !later.take());
    streams.pass(start + 1s);
    ASSERT(later.take()->get<double>() == 1200);
    ASSERT(later.take()->get<double>() == 40);
    ASSERT(streams.graph().find("no sensor says that") != std::string::npos);
    bool thrown = false;
    try {
        streams.subscribe("/n | smooth weight=0.0");
    } catch (const milieu::Error &error) {
        thrown = error.result() == MILIEU_WRONG_FLOW
            && std::string(error.what()).find("`weight` is above 0") != std::string::npos;
    }
    ASSERT(thrown);
}

struct Heat {
    static constexpr std::string_view id() { return "heat"; }
    std::string operator()() const { return level; }
    std::string level;
};

static void streams_act_on_contexts() {
    milieu::Coordinator coordinator;
    const milieu::Time start{};
    milieu::Streams streams(coordinator, start);
    auto numbers = streams.publisher<double>("/n");
    std::vector<std::string> seen;
    auto on = coordinator.onLayerActivation<Heat>(
        [&](milieu::Activation &activation) { seen.emplace_back(activation.value()); });
    {
        auto heat = streams.activates<Heat>("/n", [](Event event) -> std::optional<std::string> {
            if (event.get<double>() < 0) throw std::range_error("below zero");
            if (event.get<double>() < 32) return std::nullopt;
            return "much";
        }, 10s);
        auto value = streams.assigns(
            "/n", "/shown/%heat%", [](Event event) { return event.get<double>(); });
        numbers.publish(40);
        numbers.publish(-1);
        ASSERT(heat.failures() == 1 && heat.failure() == "below zero");
    }
    ASSERT(seen == std::vector<std::string>{"much"});
    auto file = streams.apply("here.flow", "/n | filter value > 3 | publish /m\n/m | subscribe");
    auto m = file.subscribe();
    numbers.publish(4);
    ASSERT(m.take()->name() == "/n");
}

struct Tamper {
    static constexpr std::string_view id() { return "tamper"; }
    std::string operator()() const { return "active"; }
};

// What an action throws is a failure of the flow that has switched its layer, and of nobody else.
static void actions_that_throw() {
    milieu::Coordinator coordinator;
    milieu::Streams streams(coordinator, milieu::Time{});
    auto contact = streams.publisher<double>("/contact");
    auto flow = streams.apply("here.flow", "/contact | activate tamper while=value>0 value=value");
    std::vector<std::string> seen;
    auto on = coordinator.onLayerActivation<Tamper>([&](milieu::Activation &activation) {
        seen.emplace_back(activation.value());
        if (seen.back() != "3") throw std::range_error("the siren is off, " + seen.back());
    });
    const std::string what = "an action of layer `tamper` has failed: the siren is off, ";
    for (double number : {1, 2, 3}) contact.publish(number);
    ASSERT(seen == std::vector<std::string>{"1", "2", "3"});
    ASSERT(flow.failures() == 2 && flow.failure() == what + "2");
    contact.publish(0);
    contact.publish(4);
    ASSERT(flow.failures() == 3 && flow.failure() == what + "4");
    // Whoever switches the layer next, in the thread that has published, has an exception of its own.
    milieu_context *cx = nullptr;
    const milieu_layout nothing = {MILIEU_ABI, 0, nullptr, 0, 1};
    ASSERT(milieu_context_new(coordinator.c(), &nothing, nullptr, &cx, nullptr) == MILIEU_OK);
    const milieu::BasicContext<milieu::Threads> tc(cx);
    ASSERT(tc.layer("tamper") == "4");
    bool thrown = false;
    try {
        tc.activate<Tamper>();
    } catch (const std::range_error &error) {
        thrown = std::string(error.what()) == "the siren is off, active";
    }
    ASSERT(thrown && flow.failures() == 3);
    ASSERT(milieu_context_free(cx) == MILIEU_OK);
}

int main() {
    actions_that_throw();
    operators_and_functions();
    streams_act_on_contexts();
    publish_and_subscribe();
    plain_values_and_listeners();
    sources_in_virtual_time();
    sources_in_real_time();
    std::puts("ok");
    return 0;
}
