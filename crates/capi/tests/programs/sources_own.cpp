// What a program brings along for sources that have names, from C++: formats, and recordings that lie
// in memory, which are stopped and moved within. The argument is an empty folder.

#include "streams_check.hpp"

#include <milieu/sources.hpp>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

using namespace std::chrono_literals;
using milieu::Event;

namespace app {

struct Weight {
    double grams = 0;
};
MILIEU_EVENT(Weight, grams)

struct Word {
    milieu::Text word;
};
MILIEU_EVENT(Word, word)

struct Row {
    milieu::Time time;
    double n = 0;
};
MILIEU_EVENT(Row, time, n)

} // namespace app

// A weight and its unit, as `3.5 g`.
struct Weigh {
    std::shared_ptr<std::atomic<int>> calls;

    void operator()(milieu::Feed &feed, std::string_view text) const {
        ++*calls;
        if (text == "any") throw 7;
        if (text == "tare") return;
        // A format waits for nothing.
        if (text == "look") return feed.descriptor(0);
        if (text == "empty") return feed.failing("nothing lies on it");
        const std::size_t blank = text.find(' ');
        const std::string number(text.substr(0, blank));
        char *end;
        const double grams = std::strtod(number.c_str(), &end);
        if (end == number.c_str()) throw std::invalid_argument("that is no weight");
        feed.publish(app::Weight{grams}, {feed.now() - 1s});
        if (blank != text.npos) feed.publish(app::Word{text.substr(blank + 1)});
    }
};

static void contents_become_events() {
    milieu::Coordinator coordinator;
    milieu::Streams streams(coordinator, milieu::Time(0ns));
    const auto calls = std::make_shared<std::atomic<int>>(0);
    write("weight", "3.5 g\n");
    auto all = streams.subscribe("/scale");
    {
        auto scale = streams.source("/scale", "file.content",
            {{"path", folder + "/weight"}, {"every", "1s"}}, Weigh{calls});
        ASSERT(calls.use_count() == 2);
        streams.pass(milieu::Time(0ns));
        ASSERT(next(all.take()).get<app::Weight>().grams == 3.5);
        {
            const Event unit = next(all.take());
            ASSERT(unit.get<app::Word>().word == "g" && unit.time() == milieu::Time(0ns));
        }
        ASSERT(scale.status() == MILIEU_WORKING && *calls == 1);
        milieu::Time now(0ns);
        for (const auto &[content, says] : {
                 std::pair{"heavy", "weight: `heavy`: that is no weight"},
                 std::pair{"any", "weight: `any`: an exception that is no std::exception"},
                 std::pair{"look", "its source sees to what it waits for"},
                 std::pair{"empty", "weight: `empty`: nothing lies on it"},
             }) {
            write("weight", content);
            streams.pass(now += 2s);
            ASSERT(scale.status() == MILIEU_FAILING && has(scale.failure(), says));
            ASSERT(!all.take());
        }
        write("weight", "4");
        streams.pass(now += 2s);
        const Event event = next(all.take());
        ASSERT(event.get<app::Weight>().grams == 4 && event.time() < now);
        ASSERT(scale.status() == MILIEU_WORKING && scale.failure().empty() && *calls == 6);
    }
    ASSERT(calls.use_count() == 1);
    // One that is refused goes as well.
    ASSERT(has(thrown(MILIEU_INVALID,
                   [&] { (void)streams.source("/a", "machine.load", {}, Weigh{calls}); }),
        "it reads no texts"));
    ASSERT(has(thrown(MILIEU_INVALID,
                   [&] {
                       (void)streams.source("/a", "command.shell",
                           {{"run", "true"}, {"format", "text"}}, Weigh{calls});
                   }),
        "the program has a format of its own"));
    thrown(MILIEU_NO_SUCH, [&] { (void)streams.source("/a", "machine.lode", {}, Weigh{calls}); });
    ASSERT(calls.use_count() == 1);
}

static void lines_become_events() {
    milieu::Coordinator coordinator;
    milieu::Streams streams(coordinator);
    auto lines = streams.subscribe("/lines | filter grams > 2");
    int count = 0;
    auto shell = streams.source("/lines", "command.shell",
        {{"run", "seq 3"}, {"once", "true"}},
        // A function that changes what it has.
        [count](milieu::Feed &feed, std::string_view text) mutable {
            feed.publish(app::Weight{std::stod(std::string(text)) + 10 * count++});
        });
    ASSERT(next(lines.wait_for(10s)).get<app::Weight>().grams == 12);
    ASSERT(next(lines.wait_for(10s)).get<app::Weight>().grams == 23);
    ASSERT(eventually([&] { return shell.status() == MILIEU_OVER; }));
}

static constexpr std::string_view rows = "time,n\n"
                                         "2013-01-01T00:26:40Z,1\n"
                                         "2013-01-01T00:26:50Z,2\n"
                                         "2013-01-01T00:27:20Z,3\n";
static const milieu::Time start(1357000000s);

static void recordings_are_stopped_and_moved_within() {
    milieu::Coordinator coordinator;
    milieu::Streams streams(coordinator, milieu::Time(0ns));
    auto all = streams.subscribe("/rows");
    milieu::Time now(0ns);
    const auto pass = [&](milieu::Span span) { streams.pass(now += span); };
    const auto row = [&] {
        const auto event = all.take();
        return event ? event->get<app::Row>().n : 0;
    };
    {
        auto copy = std::make_unique<std::string>(rows);
        const milieu::Replay replay = streams.replay("/rows", "replay.csv", {}, *copy);
        copy.reset();
        ASSERT(!replay.position());
        pass(4s);
        ASSERT(row() == 1 && row() == 0 && replay.position() == start + 4s);
        replay.pause();
        pass(100s);
        ASSERT(row() == 0 && replay.position() == start + 4s);
        replay.resume();
        replay.pace(2);
        pass(3s);
        ASSERT(row() == 2 && replay.position() == start + 10s);
        replay.seek(start + 5s);
        ASSERT(replay.position() == start + 5s);
        pass(0s);
        ASSERT(row() == 2);
        replay.pace(milieu::Replay::immediate);
        pass(0s);
        ASSERT(row() == 3 && replay.status() == MILIEU_OVER && !replay.position());
        thrown(MILIEU_INVALID, [&] { replay.pace(0); });
        thrown(MILIEU_INVALID, [&] { replay.pace(std::numeric_limits<double>::quiet_NaN()); });
    }
    write("rows.csv", rows);
    const std::string path = folder + "/rows.csv";
    {
        auto replay = streams.replay("/rows", "replay.csv", {{"path", path}, {"lead", "15s"}});
        // A callback stops it at what it was looking for.
        auto stopping
            = streams.listen("/rows | filter n == 2.0", [&](const Event &) { replay.pause(); });
        pass(100s);
        ASSERT(row() == 1 && row() == 2 && row() == 0 && replay.position() == start + 10s);
        ASSERT(stopping.failures() == 0);
        replay.seek(start + 20s);
        pass(0s);
        ASSERT(row() == 2 && replay.position() == start + 20s);
        auto moved = std::move(replay);
        moved.resume();
        pass(20s);
        ASSERT(row() == 3);
    }
    {
        // Whoever asks for the type has no work with it; of a row that lacks something it is none.
        auto typed = streams.subscribe("/typed");
        const auto replay = streams.replay<app::Row>(
            "/typed", "replay.csv", {}, std::string(rows) + "2013-01-01T00:27:21Z,\n");
        replay.pace(milieu::Replay::immediate);
        pass(0s);
        for (double n : {1, 2, 3}) {
            const auto event = typed.take();
            ASSERT(!event->type().empty() && event->get<app::Row>().n == n);
            ASSERT(event->get<app::Row>().time == event->time());
        }
        ASSERT(!typed.take());
        const auto file = streams.replay<app::Row>("/file", "replay.csv", {{"path", path}});
        auto from_file = streams.subscribe("/file");
        pass(0s);
        ASSERT(!from_file.take()->type().empty());
        ASSERT(has(thrown(MILIEU_INVALID, [&] {
            (void)streams.replay<app::Row>("/a", "replay.nmea", {{"path", path}});
        }), "it replays no rows"));
    }
    // A source becomes one; whether it is one is told when it is stopped.
    const milieu::Replay again(streams.source("/rows", "replay.csv", {{"path", path}}));
    again.seek(start + 40s);
    pass(0s);
    ASSERT(row() == 3);
    const milieu::Replay load(streams.source("/load", "machine.load"));
    ASSERT(has(thrown(MILIEU_INVALID, [&] { load.pause(); }), "this source replays no recording"));
    thrown(MILIEU_INVALID, [&] { (void)load.position(); });
    // One without anything in it is one too.
    const milieu::Replay nothing = streams.replay("/nothing", "replay.csv", {}, {});
    pass(0s);
    ASSERT(nothing.status() == MILIEU_OVER);
    ASSERT(has(thrown(MILIEU_INVALID,
                   [&] { (void)streams.replay("/a", "file.content", {{"path", path}}, rows); }),
        "it replays no recording"));
}

int main(int argc, char **argv) {
    ASSERT(argc == 2);
    folder = argv[1];
    contents_become_events();
    lines_become_events();
    recordings_are_stopped_and_moved_within();
    std::puts("ok");
}
