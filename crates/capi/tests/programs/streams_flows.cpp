// Flows that are put together of values, written in other languages, and rehearsed, in C++.

#include "check.hpp"

#include <milieu/streams.hpp>

namespace app {

struct Reading {
    double value = 0;
    milieu::Text room;
};
MILIEU_EVENT(Reading, value, room)

} // namespace app

using namespace std::chrono_literals;
using app::Reading;
using milieu::Event;
using milieu::Flow;

// Says what it was told.
class Tell {
public:
    explicit Tell(const milieu::Arguments &arguments) : text_(arguments.text("text")) {}
    void event(Event, milieu::Output &output) { output.publish(milieu::Text(text_)); }

private:
    std::string text_;
};

static void define(const milieu::Coordinator &coordinator) {
    milieu::define_operator<Tell>(coordinator,
        {"tell", "Says what it was told.",
            {{"text", MILIEU_TEXT, "What it says.", "", true},
                {"after", MILIEU_SPAN, "It does not wait.", "0s", false},
                {"share", MILIEU_F64, "It says all.", "1", false},
                {"loud", MILIEU_BOOL, "It is quiet.", "false", false}},
            1, MILIEU_OPERATOR_STATELESS});
    milieu::define_function<Reading>(
        coordinator, "high", [](const Reading &reading) { return reading.value > 90; });
}

static void values() {
    milieu::Coordinator coordinator;
    define(coordinator);
    milieu::Streams streams(coordinator, milieu::Time());
    auto readings = streams.publisher<Reading>("/readings");
    for (std::string text : {"", "a | publish /p", "\"quoted\"", "two\nlines", "a=b, c", "$high"}) {
        const Flow flow = Flow(streams, "/readings").then("tell", {text});
        auto told = streams.subscribe(flow.text());
        readings.publish({1, "005"});
        ASSERT(told.take()->get<milieu::Text>() == text);
    }
    for (std::string room : {"005", "a\" || true || \"", "\n", "|"}) {
        auto flow = Flow(streams, "/readings").then("filter", {"room == " + milieu::literal(room)});
        auto there = streams.subscribe(flow.text());
        readings.publish({1, "elsewhere"});
        readings.publish({2, room});
        ASSERT(there.take()->get<Reading>().value == 2 && !there.take());
    }
    ASSERT(milieu::literal(2.0) == "2.0" && milieu::literal(true) == "true");
    ASSERT(milieu::literal(std::uint64_t(7)) == "7u" && milieu::literal(-7) == "-7");
    ASSERT(milieu::literal(90s) == "duration(\"90s\")");
    thrown(MILIEU_INVALID, [] { milieu::literal(1.0 / 0.0); });

    auto flow = Flow(streams, "/readings")
                    .then("tell", {"x", {"after", 90s}, {"share", 0.5}, {"loud", true}})
                    .then("aggregate", {"count", 10min});
    ASSERT(flow.text() == "/readings | tell x after=1m30s share=0.5 loud=true | aggregate count 10m");
    auto both = Flow(streams, "/readings").also(Flow(streams, "/roof | odd")).then("merge");
    ASSERT(both.text() == "/readings, \"/roof | odd\" | merge");
    both.then("filter", {"$high"});
    ASSERT(has(thrown(MILIEU_WRONG_FLOW, [&] { both.then("filter", {"value >"}); }), "value >"));
    ASSERT(both.text() == "/readings, \"/roof | odd\" | merge | filter $high");
    auto two = Flow(streams, "/a").also(both);
    thrown(MILIEU_WRONG_FLOW, [&] { two.text(); });
    thrown(MILIEU_WRONG_FLOW, [&] { Flow(streams, "no name"); });
}

static void languages() {
    milieu::Coordinator coordinator;
    define(coordinator);
    milieu::Streams streams(coordinator, milieu::Time());
    const std::string xml
        = streams.convert("a.flow", "/readings | filter $high | publish /high", MILIEU_XML);
    ASSERT(has(xml, "<filter"));
    ASSERT(streams.convert("a.xml", xml, MILIEU_PIPELINE)
        == "/readings | filter $high | publish /high\n");
    ASSERT(has(streams.convert("a.xml", xml, MILIEU_RUST), ".publish(\"/high\")"));
    ASSERT(has(thrown(MILIEU_WRONG_FLOW,
                   [&] { streams.convert("a.flow", "/r | flter", MILIEU_TOML); }),
        "a.flow:1:6"));
    ASSERT(has(streams.schema(), "tell"));
}

static void rehearsals() {
    milieu::Coordinator coordinator;
    define(coordinator);
    milieu::Streams streams(coordinator, milieu::Time());
    const auto cases = streams.rehearse("high.cases",
        "# high\n/readings | filter $high | transform {room: room}\n\n"
        "1 /readings {\"value\": 91.0, \"room\": \"005\"}\n@1 {\"room\": \"005\"}\n"
        "2 /readings {\"value\": 10.0, \"room\": \"007\"}\n"
        "---\n# told\n/n | tell hello\n\n1 /n 1.0\n@1 \"good bye\"\n");
    ASSERT(cases.size() == 2 && cases[0].passed && cases[0].difference.empty());
    ASSERT(cases[1].title == "told" && !cases[1].passed);
    ASSERT(has(cases[1].difference, "  - @1 \"good bye\"\n  + @1 \"hello\"\n"));
    ASSERT(has(cases[1].found, "hello") && has(cases[1].expected, "good bye"));
    thrown(MILIEU_WRONG_FLOW, [&] { streams.rehearse("odd.cases", "nothing"); });
    milieu_result inside = MILIEU_OK;
    auto numbers = streams.publisher<double>("/n");
    auto listener = streams.listen("/n", [&](Event) {
        try {
            streams.rehearse("high.cases", "# n\n/n\n\n1 /n 1.0\n@1 1.0\n");
        } catch (const milieu::Error &error) {
            inside = error.result();
        }
    });
    numbers.publish(1);
    ASSERT(inside == MILIEU_BUSY);
}

int main() {
    values();
    languages();
    rehearsals();
    std::puts("ok");
    return 0;
}
