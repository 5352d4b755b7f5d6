/*
 * What the station measures, replays and watches. Sources publish it, ../station.flow says what
 * becomes of it, and pages show the last of it.
 */
#pragma once

#include "context.hpp"

#include <milieu/streams.hpp>

#include <deque>
#include <map>
#include <mutex>

enum class Airport : std::uint32_t { EWR, JFK, LGA };
MILIEU_VARIANTS(Airport, EWR, JFK, LGA)
constexpr std::string_view AIRPORTS[] = {"EWR", "JFK", "LGA"};

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

class Sensors {
public:
    explicit Sensors(const milieu::Coordinator &coordinator);
    /** Brings about what ../station.flow says, instead of what it said before. */
    void apply();
    /** Lets the command `milieu stream` look at them. */
    milieu::Effect control() const { return streams_.control(); }
    Readings readings() const;

private:
    template <class Show>
    void show(std::string_view flow, Show show);

    const milieu::Streams streams_;
    mutable std::mutex mutex_;
    Readings readings_;
    /** They go in the opposite order: sources first. */
    std::vector<milieu::Listener> shown_;
    std::string flow_;
    std::optional<milieu::Effect> applied_;
    std::vector<milieu::Source> sources_;
};
