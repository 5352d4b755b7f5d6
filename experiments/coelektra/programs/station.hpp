// The whole page of a station, as examples/weather-station-cpp draws one: what a browser
// is shown in the paper's case study, around the few lines that its section IV.A prints.
#pragma once

#include "site.hpp"

#include <array>
#include <iomanip>
#include <ostream>

/** Temperatures of a day, one for each half of an hour. */
using Temperatures = std::array<double, 48>;

inline void draw_languages(std::ostream &out, const site::Environment &environment) {
    const auto &pi = environment.sw.pi;
    out << "<form method='post' action='/language'><select name='language'>";
    for (const char *language : {"en", "de", "fr", "es"}) {
        out << "<option value='" << language << "'"
            << (std::string_view(pi.language) == language ? " selected" : "") << ">" << language
            << "</option>";
    }
    out << "</select><button>" << pi.language << "</button></form>\n";
}

inline void draw_curve(
    std::ostream &out, const site::Environment &environment, const Temperatures &temperatures) {
    const double width = environment.sw.pi.width;
    const double step = width / static_cast<double>(temperatures.size());
    out << "<svg viewBox='0 0 " << width << " 40'><polyline points='" << std::fixed
        << std::setprecision(1);
    for (std::size_t i = 0; i < temperatures.size(); ++i) {
        out << static_cast<double>(i) * step << ',' << 40 - temperatures[i] << ' ';
    }
    out << "'/></svg>\n<table>";
    for (std::size_t i = 0; i < temperatures.size(); i += 6) {
        out << "<tr><td>" << i / 2 << ":00</td><td>" << temperatures[i] << " °C</td></tr>\n";
    }
    out << "</table>\n";
}

inline void draw_machine(std::ostream &out, const site::Environment &environment) {
    const auto &gpio = environment.hw.pi.gpio;
    out << "<dl><dt>GPIO</dt><dd>" << gpio.folder << gpio.tamper << "</dd><dt>poll</dt><dd>"
        << gpio.poll << " ms</dd><dt>clock</dt><dd>" << environment.hw.pi.clock
        << " MHz</dd><dt>log</dt><dd>" << environment.log.file << "</dd></dl>\n";
}

/** Draws the page in the context as it is. */
inline void draw_station(std::ostream &out, const site::Environment &environment,
    const Temperatures &temperatures, bool tampered) {
    const auto &pi = environment.sw.pi;
    out << "<!DOCTYPE html>\n<html lang='" << pi.language << "'><head><meta charset='utf-8'>"
        << "<meta name='viewport' content='width=device-width'>"
        << "<meta http-equiv='refresh' content='" << pi.refresh << "'>"
        << "<link rel='stylesheet' href='/assets/style.css'><title>" << pi.title
        << "</title></head><body>\n<h1>" << pi.hello << "</h1>\n";
    if (tampered) out << "<p role='alert'>tamper!!!</p>\n";
    draw_languages(out, environment);
    draw_curve(out, environment, temperatures);
    draw_machine(out, environment);
    out << "<p>" << pi.goodbye << " (" << pi.visits << ")</p></body></html>\n";
}
