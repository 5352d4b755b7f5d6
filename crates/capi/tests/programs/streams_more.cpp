// Streams from C++ beyond the plain ones: fields of all kinds, types that extend others, names,
// expressions, functions that make events, several threads.

#include "check.hpp"

#include <milieu/streams.hpp>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace app {

enum class Sky : std::uint32_t { clear, clouded };
MILIEU_VARIANTS(Sky, clear, clouded)

struct Gust {
    std::int32_t speed = 0;
    milieu::Text from;
};
MILIEU_EVENT(Gust, speed, from)

struct Temperature {
    double degrees = 0;
    milieu::Optional<float> humidity;
};
MILIEU_EVENT(Temperature, degrees, humidity)
void milieu_about(milieu::About<Temperature> &about) {
    about(&Temperature::degrees).id(1).unit("°C");
    about(&Temperature::humidity).unit("%");
}

struct Weather {
    Temperature temperature;
    milieu::Optional<milieu::Text> station;
    milieu::List<Gust> gusts;
    milieu::Optional<Gust> last;
    milieu::List<Sky> skies;
    milieu::Optional<std::uint16_t> pulse;
    milieu::Bytes raw;
};
MILIEU_EVENT(Weather, temperature, station, gusts, last, skies, pulse, raw)
void milieu_about(milieu::About<Weather> &about) {
    about(&Weather::temperature).extends();
    about(&Weather::pulse).is_private();
}

// What is wanted of other programs' readings, one of which calls its field otherwise.
struct Reading {
    double value = 0;
    milieu::Optional<std::int64_t> floor;
};
MILIEU_EVENT(Reading, value, floor)
void milieu_about(milieu::About<Reading> &about) { about(&Reading::value).id(1); }

struct Fahrenheit {
    double degrees = 0;
};
MILIEU_EVENT(Fahrenheit, degrees)
void milieu_about(milieu::About<Fahrenheit> &about) {
    about(&Fahrenheit::degrees).unit("°F");
}

// It speaks of a member that it does not name.
struct Odd {
    double named = 0, other = 0;
};
MILIEU_EVENT(Odd, named)
void milieu_about(milieu::About<Odd> &about) { about(&Odd::other).id(3); }

} // namespace app

using namespace std::chrono_literals;
using app::Gust;
using app::Temperature;
using app::Weather;
using milieu::Event;

static void fields() {
    milieu::Coordinator coordinator;
    milieu::Streams streams(coordinator);
    auto publisher = streams.publisher<Weather>("/weather");
    auto all = streams.subscribe("/weather");
    auto warm = streams.subscribe("/weather | filter temperature.degrees > 20");
    {
        const std::vector<Gust> gusts = {{7, "north"}, {9, "west"}};
        const std::vector<app::Sky> skies = {app::Sky::clouded};
        const unsigned char raw[] = {0, 255};
        Weather weather;
        weather.temperature = {21.5, std::nullopt};
        weather.station = milieu::Text("005");
        weather.gusts = gusts;
        weather.last = gusts[1];
        weather.skies = skies;
        weather.pulse = 71;
        weather.raw = milieu::Bytes(raw, sizeof raw);
        publisher.publish(weather);
    }
    auto event = all.take();
    ASSERT(event && warm.take());
    const Weather &seen = event->get<Weather>();
    ASSERT(seen.station && *seen.station == "005");
    ASSERT(seen.gusts.size() == 2 && seen.gusts[0].from == "north");
    ASSERT(seen.last && seen.last->speed == 9 && seen.skies[0] == app::Sky::clouded);
    ASSERT(seen.pulse.value_or(0) == 71 && !seen.temperature.humidity);
    ASSERT(seen.raw.size() == 2 && seen.raw.data()[1] == '\xff');
    ASSERT(std::optional<float>(seen.temperature.humidity) == std::nullopt);
    ASSERT(event->type() == "Weather");
    ASSERT(event->field("skies[0]").text() == "clouded");
    ASSERT(event->field("last.speed").whole() == 9);

    // It is a temperature as well, and lies in it.
    ASSERT(&event->get<Temperature>() == &seen.temperature);
    ASSERT(event->get_if<Temperature>()->degrees == 21.5);
    ASSERT(milieu::unit_of<Temperature>("degrees") == "°C");
    ASSERT(milieu::unit_of<Weather>("temperature.humidity") == "%");
    ASSERT(milieu::unit_of<Weather>("station").empty());

    // Another name, by the id; and another unit.
    auto temperatures = streams.publisher<Temperature>("/t");
    auto t = streams.subscribe("/t");
    temperatures.publish({4, 0.5F});
    auto read = t.take();
    ASSERT(read->get<app::Reading>().value == 4 && !read->get<app::Reading>().floor);
    ASSERT(!read->get_if<app::Fahrenheit>());
    ASSERT(has(thrown(MILIEU_UNFIT, [&] { read->get<app::Fahrenheit>(); }), "°C"));
    auto made = streams.subscribe("/t | transform {value: degrees, floor: 3}");
    temperatures.publish({5, std::nullopt});
    auto whole = made.take();
    ASSERT(whole->get<app::Reading>().floor.value_or(0) == 3 && whole->type().empty());
    bool refused = false;
    try {
        streams.publisher<app::Odd>("/odd");
    } catch (const std::logic_error &) {
        refused = true;
    }
    ASSERT(refused);
}

/** Publishes each new maximum of what an expression makes of events. */
class Most {
public:
    explicit Most(const milieu::Arguments &arguments)
        : of_(arguments.expression("of")), by_(arguments.expression("by")) {}
    void event(Event event, milieu::Output &output) {
        const double number = of_(event).number().value();
        if (most_ && number <= *most_) return output.drop();
        most_ = number;
        if (by_) return output.publish(milieu::Text(by_(event).text()));
        output.publish(number);
    }

private:
    milieu::Expression of_, by_;
    std::optional<double> most_;
};

static void expressions_and_functions() {
    milieu::Coordinator coordinator;
    milieu::define_operator<Most>(coordinator,
        {"most", "Publishes each new maximum.",
            {{"of", MILIEU_EXPRESSION, "What counts.", "value"},
                {"by", MILIEU_EXPRESSION, "What is published.", "", false}}});
    milieu::define_function(coordinator, "root", [](Event event) {
        if (event.get<double>() < 0) throw std::domain_error("no root of a negative number");
        return event.get<double>() == 4 ? 2.0 : event.get<double>();
    });
    milieu::define_function(
        coordinator, "age", [](Event event) { return event.time() - milieu::Time(); });
    milieu::define_transform(coordinator, "halves", [](Event event, milieu::Output &output) {
        const double half = event.get<double>() / 2;
        if (half < 0) throw std::domain_error("what is owed is not halved");
        output.publish(half);
        output.publish(half);
    });
    milieu::Streams streams(coordinator, milieu::Time() + 7s);
    auto numbers = streams.publisher<double>("/n");
    auto roots = streams.subscribe("/n | most $root");
    auto words = streams.subscribe("/n | most by=(value > 3.0 ? 'high' : 'low')");
    auto halves = streams.subscribe("/n | transform $halves");
    auto ages = streams.subscribe("/n | transform $age");
    numbers.publish(4);
    numbers.publish(-4);
    ASSERT(roots.take()->get<double>() == 2 && !roots.take());
    ASSERT(words.take()->get<milieu::Text>() == "high");
    ASSERT(halves.take()->get<double>() == 2 && halves.take()->get<double>() == 2);
    ASSERT(!halves.take() && ages.take()->get<milieu::Span>() == 7s);
    const std::string graph = streams.graph();
    ASSERT(has(graph, "`$root` has failed: no root of a negative number"));
    ASSERT(has(graph, "`$halves` has failed: what is owed is not halved"));
    ASSERT(has(thrown(MILIEU_WRONG_FLOW, [&] { streams.subscribe("/n | most $roof"); }), "$roof"));
}

static void names() {
    milieu::Coordinator coordinator;
    milieu::Streams streams(coordinator, milieu::Time());
    std::vector<std::string> told;
    auto served = streams.serve("/devices/23",
        {"ipp://printer-23/", {{"kind", "printer"}, {"colour", "no"}}, milieu::Time() + 10s});
    auto watch = streams.watch("/devices/**", [&](const milieu::NameChange &change) {
        std::string line(change.name());
        if (change.change() == MILIEU_LEFT) line += " left";
        if (change.change() == MILIEU_JOINED && change.kind() == MILIEU_NAME_SERVICE)
            line += " at " + std::string(change.endpoint());
        if (auto kind = change.attribute("kind")) line += ", a " + std::string(*kind);
        for (std::size_t i = 0; i < change.targets(); ++i)
            line += " for " + std::string(change.target(i));
        told.push_back(line);
        if (change.name() == "/devices/odd") throw std::runtime_error("what is this?");
    });
    auto bound = streams.bind("/devices/printer", {"/devices/23"});
    auto odd = streams.publisher<double>("/devices/odd");
    served.renew(milieu::Time() + 20s);
    streams.pass(milieu::Time() + 15s);
    ASSERT(told.size() == 3);
    streams.pass(milieu::Time() + 25s);
    ASSERT((told == std::vector<std::string>{"/devices/23 at ipp://printer-23/, a printer",
        "/devices/printer for /devices/23", "/devices/odd", "/devices/23 left"}));
    ASSERT(watch.failures() == 1 && watch.failure() == "what is this?");
    ASSERT(has(thrown(MILIEU_WRONG_NAME, [&] { served.renew(milieu::Time() + 30s); }), "23"));
    bound.rebind({"/devices/odd"});
    auto printer = streams.subscribe("/devices/printer", {1, MILIEU_DROP_NEWEST});
    for (double number : {1, 2, 3}) odd.publish(number);
    ASSERT(printer.take()->get<double>() == 1 && printer.dropped("overflow") == 2);
    streams.follow("room");
    ASSERT(streams.wait_for_sources(1s));
    thrown(MILIEU_INVALID, [&] { bound.path(); });
}

static void what_blocks() {
    milieu::Coordinator coordinator;
    std::mutex mutex;
    std::condition_variable let_go;
    bool may_end = false;
    std::thread::id where;
    milieu::define_function(
        coordinator, "slow",
        [&](Event event) {
            std::unique_lock<std::mutex> lock(mutex);
            where = std::this_thread::get_id();
            let_go.wait(lock, [&] { return may_end; });
            return event.get<double>() > 1;
        },
        true);
    milieu::Streams streams(coordinator);
    streams.drive();
    auto numbers = streams.publisher<double>("/n");
    auto known = streams.subscribe("/n | filter $slow");
    numbers.publish(5);
    ASSERT(!known.take());
    {
        std::lock_guard<std::mutex> lock(mutex);
        may_end = true;
    }
    let_go.notify_all();
    ASSERT(known.wait()->get<double>() == 5);
    ASSERT(where != std::this_thread::get_id());
}

static void callbacks_of_callbacks() {
    milieu::Coordinator coordinator;
    milieu::Streams streams(coordinator);
    auto numbers = streams.publisher<double>("/n");
    std::optional<milieu::Subscription> within;
    milieu_result waits = MILIEU_OK, binds = MILIEU_OK;
    auto listener = streams.listen("/n", [&](Event) {
        if (within) return;
        within = streams.subscribe("/n");
        try {
            within->wait();
        } catch (const milieu::Error &error) {
            waits = error.result();
        }
        try {
            auto bound = streams.bind("/b", {"/n"});
        } catch (const milieu::Error &error) {
            binds = error.result();
        }
    });
    numbers.publish(1);
    ASSERT(waits == MILIEU_BUSY && binds == MILIEU_BUSY && listener.failures() == 0);
    numbers.publish(2);
    ASSERT(within->take()->get<double>() == 2);
}

int main() {
    fields();
    expressions_and_functions();
    names();
    what_blocks();
    callbacks_of_callbacks();
    std::puts("ok");
    return 0;
}
