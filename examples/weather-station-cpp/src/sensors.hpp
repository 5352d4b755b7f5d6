/*
 * What the station measures, replays and watches. Sources publish it, ../station.flow says what
 * becomes of it, and pages show the last of it.
 */
#pragma once

#include "context.hpp"

#include <milieu/flow_file.hpp>
#include <milieu/folded.hpp>
#include <milieu/sampled.hpp>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <deque>
#include <filesystem>
#include <map>
#include <sstream>

enum class Airport : std::uint32_t { EWR, JFK, LGA };
MILIEU_VARIANTS(Airport, EWR, JFK, LGA)

/** A row of the recording. What was not measured is not a number. */
struct Observation {
    milieu::Time time;
    Airport station;
    double temperature_celsius;
    double wind_speed_metres_per_second;
    double pressure_hectopascal;
};
MILIEU_EVENT(Observation, time, station, temperature_celsius, wind_speed_metres_per_second,
    pressure_hectopascal)

struct Load {
    double one_minute;
};
MILIEU_EVENT(Load, one_minute)

struct Battery {
    double level_percent;
    bool is_discharging;
};
MILIEU_EVENT(Battery, level_percent, is_discharging)

/** What the tamper input of the hardware profile says. */
struct Contact {
    bool is_active;
};
MILIEU_EVENT(Contact, is_active)

/** What a page shows. */
struct Readings {
    std::map<Airport, Observation> weather;
    /** What the airports' thermometers agreed on, oldest first. */
    std::deque<double> temperatures;
    std::optional<Load> load;
    std::optional<Battery> battery;
};

using namespace std::chrono_literals;
using milieu::Event;
using milieu::Feed;
using station::Environment;

/** What a file begins with. */
inline std::string word(const std::filesystem::path &path) {
    std::ifstream file(path);
    std::string word;
    if (!(file >> word)) throw std::runtime_error(path.string() + ": cannot be read");
    return word;
}

inline milieu::Span look_at_load(const Feed &feed, const Environment &env) {
    const std::filesystem::path root = env.sw.pi.sensors.root.get();
    feed.publish(Load{std::stod(word(root / "proc/loadavg"))});
    return std::chrono::seconds(env.sw.pi.sensors.interval);
}

inline milieu::Span look_at_battery(const Feed &feed, const Environment &env) {
    const std::filesystem::path root = env.sw.pi.sensors.root.get();
    for (const auto &supply : std::filesystem::directory_iterator(root / "sys/class/power_supply")) {
        const auto &at = supply.path();
        // A mouse has a battery, too; its scope is the device.
        if (word(at / "type") != "Battery" || exists(at / "scope")) continue;
        feed.publish(Battery{std::stod(word(at / "capacity")), word(at / "status") == "Discharging"});
    }
    return std::chrono::seconds(env.sw.pi.sensors.interval);
}

/** Which file it looks at changes with the layer Profile. */
inline milieu::Span look_at_contact(const Feed &feed, const Environment &env) {
    const auto &gpio = env.hw.pi.gpio;
    auto path = std::filesystem::path(gpio.folder.get()) / gpio.tamper.get();
    if (is_directory(path)) path /= "value";
    feed.publish(Contact{!gpio.tamper.empty() && word(path) == "1"});
    return 100ms;
}

/** The recording, oldest first. */
inline std::vector<Observation> recorded() {
    std::ifstream file(RUST "/data/weather-2013.csv");
    std::vector<Observation> all;
    std::string line;
    for (std::getline(file, line); std::getline(file, line);) {
        std::vector<std::string> columns;
        std::istringstream rest(line);
        for (std::string column; std::getline(rest, column, ',');) columns.push_back(column);
        const auto number = [&](std::size_t at) {
            return columns.at(at).empty() ? NAN : std::stod(columns[at]);
        };
        std::tm time{};
        strptime(columns.at(0).c_str(), "%Y-%m-%dT%H:%M:%SZ", &time);
        all.push_back({milieu::Time(std::chrono::seconds(timegm(&time))),
            milieu::parse<Airport>(columns.at(1)).value(), number(2), number(6), number(8)});
    }
    if (all.empty()) throw std::runtime_error(RUST "/data/weather-2013.csv: cannot be read");
    return all;
}

/** Replays the recording, year after year, from the day that it is today. */
class Replay {
public:
    Replay() {
        const std::time_t today = std::time(nullptr);
        std::tm day{};
        gmtime_r(&today, &day);
        day.tm_year = 113;
        now_ = milieu::Time(std::chrono::seconds(timegm(&day)));
        // What was two days before comes at once, so that there is a curve.
        while (next_ + 1 < rows_.size() && rows_[next_].time < now_ - 48h) ++next_;
    }
    milieu::Span operator()(const Feed &feed, const Environment &env) {
        const std::int64_t speed = env.sw.pi.replay.speed;
        const auto elapsed = last_ ? std::min<milieu::Span>(feed.now() - *last_, 10s) : 0s;
        last_ = feed.now();
        now_ += elapsed * speed;
        while (rows_[next_].time <= now_) {
            feed.publish(rows_[next_]);
            if (++next_ < rows_.size()) continue;
            next_ = 0;
            now_ -= 365 * 24h;
        }
        // Another speed is noticed after a second.
        const auto left = (rows_[next_].time - now_) / std::max(speed, std::int64_t(1));
        return std::min<milieu::Span>(left, 1s);
    }

private:
    const std::vector<Observation> rows_ = recorded();
    std::size_t next_ = 0;
    /** The replayed time. */
    milieu::Time now_;
    std::optional<milieu::Time> last_;
};

class Sensors {
public:
    Sensors(const milieu::Coordinator &coordinator, const std::string &flow)
        : streams_(coordinator), flows_(streams_, flow.empty() ? SOURCE "/station.flow" : flow),
          control_(streams_.control()) {
        readings_.on(streams_, "/weather/observations", [](Readings &now, const Event &event) {
            const auto &observation = event.get<Observation>();
            now.weather[observation.station] = observation;
        });
        readings_.on(streams_, "/weather/temperature", [](Readings &now, const Event &event) {
            now.temperatures.push_back(event.field("value").number().value());
            if (now.temperatures.size() > 168) now.temperatures.pop_front();
        });
        readings_.on(streams_, "/machine/load",
            [](Readings &now, const Event &event) { now.load = event.get<Load>(); });
        readings_.on(streams_, "/machine/battery",
            [](Readings &now, const Event &event) { now.battery = event.get<Battery>(); });
        const auto source = [&](std::string_view name, auto look) {
            auto sampled = milieu::sampled<Environment>(coordinator, std::move(look));
            sources_.push_back(streams_.source(name, std::move(sampled)));
        };
        source("/weather/observations", Replay());
        source("/machine/load", look_at_load);
        source("/machine/battery", look_at_battery);
        source("/tamper/contact", look_at_contact);
    }
    /** Brings about what ../station.flow says now. */
    void reload() { flows_.reload(); }
    Readings readings() const { return readings_.get(); }

private:
    // They go in the opposite order: sources first.
    const milieu::Streams streams_;
    milieu::FlowFile flows_;
    /** `milieu stream` shows the streams of a program that allows it. */
    const milieu::Effect control_;
    milieu::Folded<Readings> readings_;
    std::vector<milieu::Source> sources_;
};
