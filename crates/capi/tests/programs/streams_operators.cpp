// Functions of bodies of one type, and operators that are told fields and functions, in C++.

#include "check.hpp"

#include <milieu/streams.hpp>

namespace app {

struct Weather {
    double temperature = 0;
    milieu::Text room;
};
MILIEU_EVENT(Weather, temperature, room)

struct Celsius {
    double degrees = 0;
};
MILIEU_EVENT(Celsius, degrees)

struct Report {
    milieu::Text said;
};
MILIEU_EVENT(Report, said)

} // namespace app

using app::Celsius;
using app::Weather;
using milieu::Event;

static void bodies() {
    milieu::Coordinator coordinator;
    auto least = std::make_shared<double>(90);
    milieu::define_function<Weather>(coordinator, "hot",
        [least](const Weather &weather) { return weather.temperature > *least; });
    milieu::define_function<Weather>(
        coordinator, "room", [](const Weather &weather) { return weather.room; });
    milieu::define_function<double>(coordinator, "twice", [](double number) { return number * 2; });
    milieu::define_function<bool>(coordinator, "not", [](bool it) { return !it; });
    milieu::define_transform<Weather>(coordinator, "celsius", [](const Weather &weather) {
        return Celsius{(weather.temperature - 32) / 1.8};
    });
    milieu::define_transform<Weather>(
        coordinator, "indoors", [](const Weather &weather) -> std::optional<Weather> {
            if (weather.room == "roof") return std::nullopt;
            if (weather.room.length == 0) throw std::runtime_error("it is nowhere");
            return weather;
        });
    // Of events as before.
    milieu::define_function(coordinator, "any", [](Event) { return true; });
    milieu::Streams streams(coordinator, milieu::Time());
    auto weather = streams.publisher<Weather>("/weather");
    auto numbers = streams.publisher<double>("/n");
    auto hot = streams.subscribe("/weather | filter $hot | filter $any | transform $celsius");
    auto rooms = streams.subscribe("/weather | transform $room");
    auto indoors = streams.subscribe("/weather | transform $indoors");
    auto twice = streams.subscribe("/n | transform $twice");
    auto others = streams.subscribe("/n | filter $hot");
    for (double temperature : {50, 95}) weather.publish({temperature, "005"});
    weather.publish({32, "roof"});
    weather.publish({33, ""});
    numbers.publish(4);
    ASSERT(hot.take()->get<Celsius>().degrees == 35 && !hot.take());
    ASSERT(rooms.take()->field("value").text() == "005");
    ASSERT(indoors.take()->get<Weather>().temperature == 50 && indoors.take() && !indoors.take());
    ASSERT(twice.take()->get<double>() == 8);
    // What is of another type, or has none, is no weather; what came without a type may be.
    ASSERT(!others.take());
    const std::string graph = streams.graph();
    ASSERT(has(graph, "it is nowhere") && has(graph, "\"fault\""));
    ASSERT(least.use_count() == 2);
}

// What is computed is told by the flow: functions of this operator's own, into named fields.
class Summary {
public:
    explicit Summary(const milieu::Arguments &arguments) : fields_(arguments.fields("into")) {
        for (const milieu::FunctionCall &call : arguments.functions("functions")) {
            std::string text = call.name;
            for (const milieu::Datum &datum : call.arguments)
                text += datum.whole() ? "/" + std::to_string(*datum.whole())
                                      : "/" + std::string(datum.text());
            functions_.push_back(text);
        }
        if (fields_.empty()) whole_.emplace(arguments.expression("into"));
    }
    void event(Event event, milieu::Output &output) {
        std::string said;
        for (const std::string &function : functions_) said += function + " ";
        for (const auto &[name, expression] : fields_)
            said += name + "=" + std::to_string(expression(event).whole().value()) + " ";
        if (whole_ && *whole_) said += std::to_string((*whole_)(event).whole().value());
        output.publish(app::Report{said});
    }

private:
    std::vector<std::string> functions_;
    std::vector<std::pair<std::string, milieu::Expression>> fields_;
    std::optional<milieu::Expression> whole_;
};

static void summaries() {
    milieu::Coordinator coordinator;
    milieu::define_operator<Summary>(coordinator,
        {"summary", "Says what it was told.",
            {{"functions", MILIEU_FUNCTIONS, "What is computed.", nullptr, true,
                 {"mean", "percentile"}},
                {"into", MILIEU_FIELDS, "What it becomes.", "", true}}});
    milieu::Streams streams(coordinator, milieu::Time());
    auto weather = streams.publisher<Weather>("/weather");
    auto fields = streams.subscribe(
        "/weather | summary mean, percentile(95, low) {t: int(temperature), n: size(room)}");
    auto whole = streams.subscribe("/weather | summary mean size(room)");
    auto nothing = streams.subscribe("/weather | summary mean");
    weather.publish({21, "005"});
    ASSERT(fields.take()->get<app::Report>().said == "mean percentile/95/low t=21 n=3 ");
    ASSERT(whole.take()->get<app::Report>().said == "mean 3");
    ASSERT(nothing.take()->get<app::Report>().said == "mean ");
}

int main() {
    bodies();
    summaries();
    std::puts("ok");
    return 0;
}
