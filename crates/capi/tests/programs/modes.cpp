// Events as bytes, by hand and in transfer modes of the program's own, in C++.

#include "check.hpp"

#include <milieu/links.hpp>
#include <milieu/modes.hpp>

#include <cstring>
#include <memory>
#include <string>

namespace app {

struct Room {
    double celsius = 0;
    milieu::Text name;
};
MILIEU_EVENT(Room, celsius, name)

} // namespace app

using app::Room;

namespace {

const milieu::Time start = milieu::Time(milieu::Span(1000));

/** What a mode throws is why there is no event. */
struct Torn : std::runtime_error {
    Torn() : std::runtime_error("the envelope is torn") {}
};

/** Counts the frames of a stream in front of what CBOR makes of them. */
class Enveloping {
public:
    explicit Enveloping(std::shared_ptr<int> alive) : alive_(std::move(alive)) { ++*alive_; }
    Enveloping(Enveloping &&) = default;
    ~Enveloping() {
        if (alive_) --*alive_;
    }
    void operator()(const milieu::Event &event, milieu::Encoding &encoding) {
        if (event.field("celsius").number().value_or(0) > 99) throw Torn();
        encoding.put(std::to_string(++*count_) + ";");
        encoding.put(event, "cbor");
    }

private:
    std::shared_ptr<int> alive_;
    // Encoders are moved, and need not be copied.
    std::unique_ptr<int> count_ = std::make_unique<int>(0);
};

void envelope(const milieu::Coordinator &coordinator, const std::shared_ptr<int> &alive) {
    milieu::define_mode(
        coordinator, {"enveloped", 1, "application/x-enveloped"},
        [alive] { return Enveloping(alive); },
        [] {
            return [](std::string_view bytes, milieu::Decoding &decoding) {
                const std::size_t at = bytes.find(';');
                if (at == bytes.npos) throw Torn();
                decoding.event("cbor", bytes.substr(at + 1));
            };
        });
}

/** A room in its own bytes: with another body alone than with a header. */
void plain(const milieu::Coordinator &coordinator) {
    milieu::define_mode(
        coordinator, {"plain", 2, "application/x-plain"},
        [] {
            return [](const milieu::Event &event, milieu::Encoding &encoding) {
                ASSERT(!encoding.whole() && !encoding.with_private());
                if (!encoding.is_body()) encoding.put("room ");
                encoding.put(event.json());
            };
        },
        [] {
            return [](std::string_view bytes, milieu::Decoding &decoding) {
                if (decoding.is_body()) return decoding.json(bytes);
                ASSERT(!decoding.with_private());
                milieu::EventHeader header;
                header.name = "/room";
                header.origin = "plain";
                header.quality.time = start;
                decoding.header(header);
                if (bytes == "cold") return decoding.body(Room{-10, "cellar"});
                decoding.json(bytes.substr(5));
            };
        });
}

struct Machine {
    milieu::Coordinator coordinator;
    milieu::Streams streams{coordinator, start};
};

void by_hand() {
    Machine machine;
    auto alive = std::make_shared<int>(0);
    envelope(machine.coordinator, alive);
    plain(machine.coordinator);
    auto rooms = machine.streams.publisher<Room>("/room");
    auto read = machine.streams.subscribe("/room");
    for (const char *mode : {"delta", "cbor", "xml", "enveloped", "plain"}) {
        milieu::Encoder encoder(machine.streams, mode);
        milieu::Decoder decoder(machine.streams, mode);
        for (double celsius : {20.5, 21.0, 22.5}) {
            rooms.publish({celsius, "kitchen"});
            const auto event = read.take();
            const milieu::KeptEvent again = decoder.decode(encoder.encode(*event));
            ASSERT(again.name() == "/room" && again.time() == start);
            ASSERT(again.get<Room>().celsius == celsius);
            ASSERT(again.get<Room>().name == "kitchen");
            const auto body = decoder.decode_body(encoder.encode_body(*event));
            ASSERT(body.get<Room>().celsius == celsius);
        }
        ASSERT(*alive == (std::strcmp(mode, "enveloped") == 0));
    }
    ASSERT(*alive == 0);
    ASSERT(milieu::Decoder(machine.streams, "plain").decode("cold").get<Room>().name == "cellar");

    milieu::Encoder encoder(machine.streams, "enveloped");
    milieu::Decoder decoder(machine.streams, "enveloped");
    rooms.publish({100, "oven"});
    const auto hot = read.take();
    ASSERT(thrown(MILIEU_UNFIT, [&] { encoder.encode(*hot); })
        == "enveloped: the envelope is torn");
    ASSERT(thrown(MILIEU_UNFIT, [&] { decoder.decode("12"); })
        == "enveloped: the envelope is torn");

    // Frames of a stream build on each other, and one of them stands alone.
    milieu::Encoder deltas(machine.streams, "delta");
    milieu::Decoder late(machine.streams, "delta");
    late.expect<Room>();
    rooms.publish({1, "cellar"});
    (void)deltas.encode(*read.take());
    rooms.publish({2, "cellar"});
    const auto second = read.take();
    const std::string frame(deltas.encode(*second));
    (void)thrown(MILIEU_LATE, [&] { late.decode(frame); });
    ASSERT(late.decode(deltas.encode_whole(*second)).get<Room>().celsius == 2);
    milieu::Decoder small(machine.streams, "cbor", false, {10, 0});
    ASSERT(has(
        thrown(MILIEU_UNFIT, [&] { small.decode(std::string(11, 'a')); }), "larger than 10"));
    ASSERT(has(
        thrown(MILIEU_NO_SUCH, [&] { milieu::Encoder(machine.streams, "smoke"); }), "plain"));
}

void over_a_link() {
    Machine kitchen, garden;
    auto alive = std::make_shared<int>(0);
    envelope(kitchen.coordinator, alive);
    envelope(garden.coordinator, alive);
    milieu::Hub hub(true);
    milieu::Terms terms = milieu::Terms::open();
    terms.mode("enveloped");
    milieu::Link in(kitchen.streams, hub.join("kitchen"), terms);
    milieu::Link out(garden.streams, hub.join("garden"), terms);
    auto settle = [&] {
        for (bool busy = true; busy;) {
            busy = in.poll();
            busy = out.poll() || busy;
        }
    };
    auto rooms = kitchen.streams.publisher<Room>("/room");
    auto read = garden.streams.subscribe("/room");
    settle();
    for (double celsius : {18.0, 19.0}) {
        rooms.publish({celsius, "kitchen"});
        settle();
        const auto event = read.take();
        ASSERT(event && event->get<Room>().celsius == celsius);
    }
    ASSERT(*alive == 1);
}

} // namespace

int main() {
    by_hand();
    over_a_link();
    std::puts("ok");
}
