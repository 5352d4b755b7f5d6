// Sources that have names, from C++. The argument is an empty folder.

#include "streams_check.hpp"

#include <milieu/sources.hpp>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

using namespace std::chrono_literals;
using milieu::Event;

namespace app {

// Some of the machine's load, in an order of its own.
struct Load {
    milieu::Optional<std::uint32_t> threads;
    double fifteen_minutes = 0;
};
MILIEU_EVENT(Load, threads, fifteen_minutes)

enum class Charge : std::uint32_t { charging, discharging, full };
MILIEU_VARIANTS(Charge, charging, discharging, full)

struct Battery {
    milieu::Text supply;
    Charge charge = Charge::full;
    double level_percent = 0;
    milieu::Optional<double> power_watts;
};
MILIEU_EVENT(Battery, supply, charge, level_percent, power_watts)

struct Tick {
    std::uint64_t missed = 0;
};
MILIEU_EVENT(Tick, missed)

struct Row {
    milieu::Time time;
    milieu::Text station;
    milieu::Optional<double> degrees;
};
MILIEU_EVENT(Row, time, station, degrees)

struct BatteryLow {
    static constexpr std::string_view id() { return "power"; }
    std::string operator()() const { return "low"; }
};

} // namespace app

static void all_are_known() {
    const auto &all = milieu::sources();
    ASSERT(all.size() >= 21 && &all == &milieu::sources());
    const auto named = [&](std::string_view name) {
        return std::find_if(all.begin(), all.end(), [&](const auto &it) { return it.name == name; });
    };
    ASSERT(named("machine.lode") == all.end());
    const milieu::SourceInfo &shell = *named("command.shell");
    ASSERT(has(shell.summary, "Output lines of a program") && has(shell.events, "Number"));
    ASSERT(shell.needs == "what the program needs" && named("machine.load")->needs.empty());
    const milieu::Parameter &run = shell.parameters.at(0), &format = shell.parameters.at(1);
    ASSERT(run.name == std::string_view("run") && !run.otherwise && run.positional);
    ASSERT(format.kind == MILIEU_ENUM && format.choices.size() == 4 && !format.positional);
    ASSERT(format.choices[3] == std::string_view("positions"));
    ASSERT(format.otherwise == std::string_view("text"));
}

static void the_machine_is_read_in_virtual_time() {
    std::filesystem::create_directories(folder + "/proc");
    std::filesystem::create_directories(folder + "/sys/class/power_supply/BAT0");
    write("proc/loadavg", "0.25 1.50 4.75 2/345 6789\n");
    write("sys/class/power_supply/BAT0/type", "Battery\n");
    write("sys/class/power_supply/BAT0/capacity", "14\n");
    write("sys/class/power_supply/BAT0/status", "Discharging\n");
    milieu::Coordinator coordinator;
    milieu::Streams streams(coordinator, milieu::Time(0ns));
    auto load = streams.source("/machine/load", "machine.load", {{"every", "10s"}, {"root", folder}});
    const std::string name = "/machine/battery";
    auto battery = streams.source(name, "machine.battery", {{"root", folder}});
    auto all = streams.subscribe("/machine/load");
    auto low = streams.subscribe("/machine/battery | filter level_percent < 15");
    streams.pass(milieu::Time(0ns));

    Event event = next(all.take());
    ASSERT(event.field("fifteen_minutes").number() == 4.75 && !event.field("processors"));
    ASSERT(has(event.json(), "\"runnable_threads\":2,\"threads\":345"));
    ASSERT(event.type().empty());
    ASSERT(event.get<app::Load>().fifteen_minutes == 4.75);
    ASSERT(*event.get<app::Load>().threads == 345);
    ASSERT(!event.get_if<app::Battery>());
    const app::Battery &seen = next(low.take()).get<app::Battery>();
    ASSERT(seen.supply == "BAT0" && seen.charge == app::Charge::discharging);
    ASSERT(seen.level_percent == 14 && !seen.power_watts);

    ASSERT(load.status() == MILIEU_WORKING && load.failure().empty());
    ASSERT(std::filesystem::remove(folder + "/proc/loadavg"));
    streams.pass(milieu::Time(10s));
    ASSERT(load.status() == MILIEU_FAILING && has(load.failure(), "loadavg"));
    ASSERT(!all.take());
}

static void timers_and_recordings_go_by_virtual_time() {
    milieu::Coordinator coordinator;
    milieu::Streams streams(coordinator, milieu::Time(7s));
    auto timer = streams.source("/tick", "timer.every", {{"interval", "10s"}});
    auto ticks = streams.subscribe("/tick");
    streams.pass(milieu::Time(25s));
    for (milieu::Span at : {10s, 20s}) {
        const Event event = next(ticks.take());
        ASSERT(event.time() == milieu::Time(at) && event.get<app::Tick>().missed == 0);
    }
    ASSERT(!ticks.take());

    write("weather.csv", "time,station,degrees\n"
                         "2013-01-01T00:26:40Z,JFK,3.5\n"
                         "2013-01-01T00:26:45Z,LGA,\n");
    const milieu::Time start(1357000000s);
    // Parameters that are only known now.
    std::vector<std::pair<std::string_view, std::string_view>> parameters;
    const std::string path = folder + "/weather.csv";
    parameters.emplace_back("path", path);
    parameters.emplace_back("pace", "immediate");
    auto recording = streams.source("/weather", "replay.csv", parameters);
    auto rows = streams.subscribe("/weather");
    streams.pass(milieu::Time(26s));
    {
        const Event event = next(rows.take());
        const app::Row &row = event.get<app::Row>();
        ASSERT(row.time == start && row.station == "JFK" && *row.degrees == 3.5);
        ASSERT(event.time() == start);
    }
    const app::Row &row = next(rows.take()).get<app::Row>();
    ASSERT(row.time == start + 5s && row.station == "LGA" && !row.degrees);
    ASSERT(!rows.take() && recording.status() == MILIEU_OVER);
}

// A level in a file switches a layer, by way of a flow.
static void a_file_switches_a_layer() {
    write("level", "21\n");
    milieu::Coordinator coordinator;
    milieu::Streams streams(coordinator);
    auto level = streams.source(
        "/level", "file.content", {{"path", folder + "/level"}, {"format", "number"}});
    std::atomic<int> seen{0};
    std::atomic<bool> is_low{false};
    auto acted = coordinator.onLayerActivation<app::BatteryLow>(
        [&](milieu::Activation &) { is_low = true; });
    auto counting = streams.listen("/level", [&](const Event &) { ++seen; });
    auto acting = streams.activates<app::BatteryLow>("/level | filter value < 15",
        [](const Event &) { return std::optional<app::BatteryLow>(app::BatteryLow{}); });
    ASSERT(eventually([&] { return seen > 0; }) && !is_low);
    write("level", "14\n");
    ASSERT(eventually([&] { return is_low.load(); }) && acting.failures() == 0);

    auto lines = streams.subscribe("/lines");
    auto shell = streams.source("/lines", "command.shell", {{"run", "echo one"}, {"once", "true"}});
    ASSERT(next(lines.wait_for(10s)).field("text").text() == "one");
    ASSERT(eventually([&] { return shell.status() == MILIEU_OVER; }));
    // Without parameters, and gone at once.
    ASSERT(streams.source("/memory", "machine.memory").status() <= MILIEU_FAILING);
    // A poll of the program's is still one.
    auto own = streams.source("/own", [](milieu::Feed &feed) {
        feed.publish(1.5);
        return milieu::Wait::ended();
    });
    ASSERT(streams.wait_for_sources(10s));
    ASSERT(next(streams.subscribe("/own").take()).get<double>() == 1.5);
}

static void what_is_wrong_is_thrown() {
    milieu::Coordinator coordinator;
    milieu::Streams streams(coordinator, milieu::Time(0ns));
    ASSERT(has(thrown(MILIEU_NO_SUCH, [&] { (void)streams.source("/a", "machine.lode"); }),
        "there is no such source; there are machine.load, machine.pressure"));
    ASSERT(has(thrown(MILIEU_INVALID,
                   [&] { (void)streams.source("/a", "machine.load", {{"every", "ten"}}); }),
        "`ten` is no span"));
    ASSERT(has(thrown(MILIEU_INVALID, [&] { (void)streams.source("/a", "timer.every"); }),
        "parameter `interval`: this must be given"));
    thrown(MILIEU_WRONG_NAME, [&] { (void)streams.source("no name", "machine.load"); });
    auto load = streams.source("/a", "machine.load");
    thrown(MILIEU_WRONG_NAME, [&] { (void)streams.source("/a", "machine.load"); });
}

int main(int argc, char **argv) {
    ASSERT(argc == 2);
    folder = argv[1];
    all_are_known();
    the_machine_is_read_in_virtual_time();
    timers_and_recordings_go_by_virtual_time();
    a_file_switches_a_layer();
    what_is_wrong_is_thrown();
    std::puts("ok");
}
