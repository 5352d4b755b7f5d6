#include "generated/station.hpp"
#include <iostream>
#include <milieu/streams.hpp>

struct Weather {
    double temperature;
    milieu::Text room;
};
MILIEU_EVENT(Weather, temperature, room)

int main() {
    milieu::Coordinator coordinator;
    milieu::ThreadContext<station::Environment> tc(coordinator);
    milieu::Streams streams(coordinator);
    auto weather = streams.publisher<Weather>("/weather");
    auto hot = streams.subscribe("/weather | filter temperature > 30.0");
    auto effects = streams.apply("station.flow",
        "/weather | set \"/station/interval\" value=int(temperature) * 10\n");
    for (double temperature : {35.0, 21.0}) weather.publish({temperature, "005"});
    tc.sync();
    std::cout << tc->station.interval;
    while (auto event = hot.take()) {
        const Weather &seen = event->get<Weather>();
        std::cout << ' ' << event->name() << ' ' << seen.room << ' ' << seen.temperature;
    }
    std::cout << '\n';
}
