/*
 * The page, of what a context says in the layers that it is in.
 */
#pragma once

#include "sensors.hpp"

#include <ostream>

using Pi = station::Sw::Pi;

/** As HTML has it. */
inline std::string escaped(std::string_view text) {
    std::string html;
    for (const char c : text) {
        switch (c) {
        case '&': html += "&amp;"; break;
        case '<': html += "&lt;"; break;
        case '\'': html += "&#39;"; break;
        default: html += c;
        }
    }
    return html;
}

/** A text whose place is filled: `{value} °C`. */
inline std::string filled(std::string_view text, std::string_view place, std::string_view with) {
    std::string whole(text);
    const auto at = whole.find(place);
    if (at != std::string::npos) whole.replace(at, place.size(), with);
    return escaped(whole);
}

inline std::string number(double value, int digits) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return text;
}

/** What was not measured is not a number. */
inline std::string reading(
    double value, int digits, std::string_view unit, const Pi::Text &text) {
    return std::isnan(value) ? escaped(text.no_reading)
                             : filled(unit, "{value}", number(value, digits));
}

inline std::string date(milieu::Time time) {
    const auto now = std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch());
    const std::time_t seconds = now.count();
    std::tm utc{};
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", gmtime_r(&seconds, &utc));
    return text;
}

inline void draw_weather(std::ostream &out, const Pi::Text &text, const Readings &readings) {
    out << "<table><tr><th></th><th>" << escaped(text.temperature) << "</th><th>"
        << escaped(text.wind) << "</th><th>" << escaped(text.pressure) << "</th></tr>\n";
    for (const auto &[airport, now] : readings.weather) {
        const auto &[time, station, temperature, wind, pressure] = now;
        out << "<tr><th>" << milieu::to_string(station) << "<time>" << date(time)
            << "</time></th><td>" << reading(temperature, 1, text.celsius, text) << "</td><td>"
            << reading(wind, 1, text.metres_a_second, text) << "</td><td>"
            << reading(pressure, 0, text.hectopascal, text) << "</td></tr>\n";
    }
    out << "</table>\n";
}

/** What the paper calculates with an accuracy (III-D): a curve of so many temperatures. */
inline void draw_curve(
    std::ostream &out, const Pi::Algorithm::Accuracy &accuracy, const std::deque<double> &all) {
    // Whoever asked for the page has synchronized; until the page is drawn this is a constant.
    const auto count = std::min<std::ptrdiff_t>(accuracy, static_cast<std::ptrdiff_t>(all.size()));
    if (count < 2) return;
    const auto first = all.end() - count;
    const auto [low, high] = std::minmax_element(first, all.end());
    const double scale = 100 / std::max(*high - *low, 1.0);
    out << "<svg viewBox='-5 -5 610 110' data-points='" << count << "'><polyline points='";
    for (auto it = first; it != all.end(); ++it) {
        out << number(600.0 * double(it - first) / double(count - 1), 1) << ','
            << number((*high - *it) * scale, 1) << ' ';
    }
    out << "'/></svg>\n";
}

inline void draw_machine(std::ostream &out, const Pi::Text &text, const Readings &readings) {
    const double load = readings.load ? readings.load->one_minute : NAN;
    const double level = readings.battery ? readings.battery->level_percent : NAN;
    out << "<dl><dt>" << escaped(text.load) << "</dt><dd id='load'>"
        << reading(load, 2, "{value}", text) << "</dd><dt>" << filled(text.battery, " {name}", "")
        << "</dt><dd id='battery'>" << reading(level, 0, text.percent, text) << "</dd></dl>\n";
}

/** As in the paper (II): a function takes the one value that it needs. */
inline void print_watchdog_status(std::ostream &out, const station::Watchdog::Enable &enable) {
    if (enable) out << "<p id='watchdog'><code>" << enable.getName() << "</code></p>\n";
}

/** Each language calls itself as it does where it is entered. */
inline void draw_languages(std::ostream &out, const Context &tc) {
    const auto current = tc.layer<Language>();
    out << "<form method='post' action='/language'>";
    for (const std::string_view code : Pi::Language::texts) {
        if (code == to_string(Pi::LanguageChoice::Browser)) continue;
        tc.with<Language>(code)([&] {
            out << "<button name='language' value='" << code << '\''
                << (code == current ? " aria-current='true'>" : ">") << escaped(tc->sw.pi.text.name)
                << "</button>";
        });
    }
    out << "</form>\n";
}

inline void draw_profile(std::ostream &out, const Context &tc) {
    const auto &text = tc->sw.pi.text;
    const auto &gpio = tc->hw.pi.gpio;
    const auto profile = tc.layer<Profile>();
    out << "<footer>"
        << (profile ? filled(text.profile, "{name}", *profile) : escaped(text.profile_none))
        << " <code>" << escaped(gpio.folder) << ' ' << escaped(gpio.tamper) << "</code></footer>\n";
}

/** Draws what the visitor sees whose session and language are entered. */
inline void draw_page(std::ostream &out, const Context &tc, const Readings &readings) {
    const Pi &pi = tc->sw.pi;
    const auto title = escaped(pi.text.title);
    out << "<!DOCTYPE html>\n<html lang='" << escaped(*tc.layer<Language>()) << "' dir='"
        << escaped(pi.text.direction) << "'><head><meta charset='utf-8'>"
        << "<meta name='viewport' content='width=device-width'>"
        << "<meta http-equiv='refresh' content='" << std::ceil(pi.web.refresh) << "'>"
        << "<link rel='stylesheet' href='/assets/style.css'><title>" << title
        << "</title></head><body>\n<h1>" << title << "</h1>\n";
    if (pi.tamper) out << "<p role='alert'>" << escaped(pi.text.tamper_alarm) << "</p>\n";
    draw_languages(out, tc);
    draw_weather(out, pi.text, readings);
    draw_curve(out, pi.algorithm.accuracy, readings.temperatures);
    draw_machine(out, pi.text, readings);
    print_watchdog_status(out, tc->watchdog.enable);
    draw_profile(out, tc);
    out << "</body></html>\n";
}
