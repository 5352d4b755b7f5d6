// Machines in two processes, joined by an engine of the program's own over a socket; and machines
// of one process, joined by a hub, with rights.

#include "check.hpp"

#include "station.hpp"

#include <milieu/links.hpp>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace app {

struct Oven {
    double celsius = 0;
    milieu::Text room;
};
MILIEU_EVENT(Oven, celsius, room)

} // namespace app

using namespace std::chrono_literals;
using app::Oven;

namespace {

/** Writes numbers and bytes one behind the other. */
struct Written {
    std::string bytes;
    template <class T>
    Written &put(T number) {
        bytes.append(reinterpret_cast<const char *>(&number), sizeof number);
        return *this;
    }
    Written &put(std::string_view text) {
        put(static_cast<std::uint32_t>(text.size()));
        bytes.append(text);
        return *this;
    }
};

/** Reads them again. */
struct Reading {
    std::string_view rest;
    template <class T>
    T number() {
        T number;
        if (rest.size() < sizeof number) throw std::runtime_error("a message is too short");
        std::memcpy(&number, rest.data(), sizeof number);
        rest.remove_prefix(sizeof number);
        return number;
    }
    std::string text() {
        const auto length = number<std::uint32_t>();
        if (rest.size() < length) throw std::runtime_error("a message is too short");
        std::string text(rest.substr(0, length));
        rest.remove_prefix(length);
        return text;
    }
};

/** An engine over a socket that leads to one other machine. */
class Socket : public milieu::Carrier {
public:
    Socket(int socket, std::string_view name) : socket_(socket) {
        say(hello, Written().put(name));
        writer_ = std::thread([this] { write(); });
        reader_ = std::thread([this] { read(); });
    }
    ~Socket() override {
        close(MILIEU_LEFT_DONE);
        writer_.join();
        shutdown(socket_, SHUT_RDWR);
        reader_.join();
        ::close(socket_);
    }

    milieu_refusal submit(const milieu_parcel &parcel) override {
        std::lock_guard<std::mutex> lock(mutex_);
        if (parcel.peer != peer || left_) return MILIEU_GONE;
        Way &way = out_[parcel.channel];
        if (way.used == way.granted) {
            way.missed = true;
            return MILIEU_NO_CREDIT;
        }
        ++way.used;
        say(frame,
            Written()
                .put(parcel.channel)
                .put(parcel.mode)
                .put(parcel.schema)
                .put(parcel.incarnation)
                .put(parcel.sequence)
                .put(parcel.time_ns)
                .put(milieu::detail::view(parcel.payload)));
        return MILIEU_ACCEPTED;
    }
    std::uint64_t credit(std::uint64_t to, std::uint32_t channel) override {
        std::lock_guard<std::mutex> lock(mutex_);
        if (to != peer || left_) return 0;
        Way &way = out_[channel];
        way.missed |= way.used == way.granted;
        return way.granted - way.used;
    }
    void grant(std::uint64_t, std::uint32_t channel, std::uint64_t frames) override {
        std::lock_guard<std::mutex> lock(mutex_);
        say(granted, Written().put(channel).put(frames));
    }
    void shut(std::uint64_t, std::uint32_t) override {}
    void leave(std::uint64_t, std::uint32_t channel) override {
        std::lock_guard<std::mutex> lock(mutex_);
        out_.erase(channel);
    }
    milieu_refusal request(
        std::uint64_t to, std::uint64_t number, std::string_view question) override {
        std::lock_guard<std::mutex> lock(mutex_);
        if (to != peer || left_) return MILIEU_GONE;
        if (asked_.size() == capabilities().requests_max) return MILIEU_NO_CREDIT;
        asked_.insert(number);
        say(asks, Written().put(number).put(question));
        return MILIEU_ACCEPTED;
    }
    void reply(std::uint64_t, std::uint64_t number, std::string_view answer) override {
        std::lock_guard<std::mutex> lock(mutex_);
        say(answers, Written().put(number).put(answer));
    }
    void poll(const milieu::Arrivals &arrivals) override {
        std::lock_guard<std::mutex> lock(mutex_);
        while (!come_.empty()) {
            if (!tell(arrivals, Reading{come_.front()})) return;
            come_.pop_front();
        }
    }
    void close(milieu_close_reason reason) override {
        std::lock_guard<std::mutex> lock(mutex_);
        if (closed_) return;
        say(bye, Written().put(static_cast<std::uint32_t>(reason)));
        closed_ = true;
        written_.notify_all();
    }

private:
    enum Kind : std::uint8_t { hello, frame, granted, asks, answers, bye };
    static constexpr std::uint64_t peer = 1;
    struct Way {
        std::uint64_t granted = 0, used = 0;
        bool missed = false;
    };

    void say(Kind kind, const Written &message) {
        Written whole;
        whole.put(static_cast<std::uint32_t>(message.bytes.size() + 1)).put(kind);
        go_ += whole.bytes + message.bytes;
        written_.notify_all();
    }

    /** Whether it was told, or there is nothing to tell. */
    bool tell(const milieu::Arrivals &arrivals, Reading message) {
        switch (message.number<std::uint8_t>()) {
        case hello: return arrivals.joined(peer, message.text());
        case frame: {
            milieu_parcel parcel{};
            parcel.peer = peer;
            parcel.channel = message.number<std::uint32_t>();
            parcel.mode = message.number<std::uint32_t>();
            parcel.schema = message.number<std::uint32_t>();
            parcel.incarnation = message.number<std::uint64_t>();
            parcel.sequence = message.number<std::uint64_t>();
            parcel.time_ns = message.number<std::int64_t>();
            const std::string payload = message.text();
            parcel.payload = milieu::detail::text(payload);
            return arrivals.frame(parcel);
        }
        case granted: {
            const auto channel = message.number<std::uint32_t>();
            const auto frames = message.number<std::uint64_t>();
            Way &way = out_[channel];
            if (frames > way.granted) way.granted = frames;
            if (!way.missed || way.used == way.granted) return true;
            if (!arrivals.credit(peer, channel)) return false;
            way.missed = false;
            return true;
        }
        case asks: {
            const auto number = message.number<std::uint64_t>();
            return arrivals.request(peer, number, message.text());
        }
        case answers: {
            const auto number = message.number<std::uint64_t>();
            if (asked_.count(number) == 0) return true;
            if (!arrivals.reply(peer, number, message.text())) return false;
            asked_.erase(number);
            return true;
        }
        case bye: {
            while (!asked_.empty()) {
                if (!arrivals.reply(peer, *asked_.begin(), std::nullopt)) return false;
                asked_.erase(asked_.begin());
            }
            if (left_) return true;
            const auto reason = message.number<std::uint32_t>();
            left_ = arrivals.left(peer, static_cast<milieu_close_reason>(reason));
            return left_;
        }
        default: throw std::runtime_error("a message of no kind");
        }
    }

    void write() {
        std::unique_lock<std::mutex> lock(mutex_);
        while (true) {
            written_.wait(lock, [this] { return closed_ || !go_.empty(); });
            if (go_.empty()) return;
            const std::string now = std::move(go_);
            go_.clear();
            lock.unlock();
            for (std::size_t at = 0; at < now.size();) {
                const auto sent
                    = send(socket_, now.data() + at, now.size() - at, MSG_NOSIGNAL);
                if (sent < 0) return;
                at += static_cast<std::size_t>(sent);
            }
            lock.lock();
        }
    }

    void read() {
        const auto all = [this](void *into, std::size_t size) {
            return size == 0 || recv(socket_, into, size, MSG_WAITALL) == static_cast<ssize_t>(size);
        };
        std::uint32_t length;
        while (all(&length, sizeof length)) {
            std::string message(length, '\0');
            if (!all(message.data(), length)) break;
            has_come(std::move(message));
        }
        Written lost;
        lost.put(bye).put(static_cast<std::uint32_t>(MILIEU_LEFT_LOST));
        has_come(lost.bytes);
    }

    void has_come(std::string message) {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            come_.push_back(std::move(message));
        }
        wake();
    }

    int socket_;
    std::mutex mutex_;
    std::condition_variable written_;
    std::string go_;
    std::deque<std::string> come_;
    std::map<std::uint32_t, Way> out_;
    std::set<std::uint64_t> asked_;
    bool closed_ = false, left_ = false;
    std::thread writer_, reader_;
};

template <class Is>
void wait_until(Is is, const char *what) {
    for (int i = 0; !is(); ++i) {
        if (i > 20000) {
            std::fprintf(stderr, "never: %s\n", what);
            std::exit(1);
        }
        std::this_thread::sleep_for(1ms);
    }
}

/** The other process. */
int garden(int socket) {
    milieu::Coordinator coordinator;
    milieu::Streams streams(coordinator);
    milieu::Terms terms = milieu::Terms::with(
        [](const milieu::Peer &peer) -> milieu::Rights {
            ASSERT(peer.name == "kitchen" && !peer.is_here);
            return {{"/garden/**"}, {"/**"}, {}, {}};
        });
    terms.typed<Oven>();
    milieu::Link link(
        streams, milieu::make_engine<Socket>(socket, "garden"), std::move(terms));
    auto seen = streams.retaining_publisher<double>("/garden/seen");
    auto hot = streams.subscribe("/oven | filter celsius > 100");
    auto secret = streams.subscribe("/secret");
    seen.publish(0);
    for (double celsius : {180.0, 200.0, 220.0}) {
        auto event = hot.wait_for(20s);
        ASSERT(event && event->get<Oven>().celsius == celsius);
        ASSERT(event->get<Oven>().room == "kitchen");
    }
    ASSERT(!secret.take());
    ASSERT(!has(streams.names("/**"), "secret"));
    seen.publish(3);
    // Until the other has it: it is then told to go.
    auto go = streams.subscribe("/oven | filter celsius < 0");
    ASSERT(go.wait_for(20s));
    return 0;
}

void over_a_socket(const char *program) {
    int sockets[2];
    ASSERT(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    const pid_t child = fork();
    ASSERT(child >= 0);
    if (child == 0) {
        ::close(sockets[0]);
        const std::string number = std::to_string(sockets[1]);
        execl(program, program, "garden", number.c_str(), static_cast<char *>(nullptr));
        _exit(127);
    }
    ::close(sockets[1]);

    milieu::Coordinator coordinator;
    milieu::Streams streams(coordinator);
    auto oven = streams.publisher<Oven>("/oven");
    auto secret = streams.retaining_publisher<double>("/secret");
    secret.publish(42);
    milieu::Link link(streams, milieu::make_engine<Socket>(sockets[0], "kitchen"),
        milieu::Terms::with([](const milieu::Peer &peer) -> milieu::Rights {
            ASSERT(peer.name == "garden");
            return {{"/oven"}, {"/garden/**"}, {}, {}};
        }));
    auto seen = streams.subscribe("/garden/seen");
    auto first = seen.wait_for(20s);
    ASSERT(first && first->get<double>() == 0);
    ASSERT(has(link.peers(), R"("name":"garden")") && has(link.peers(), R"("presence":"here")"));
    // Events set out once somebody over there reads them.
    wait_until([&] { return has(streams.graph(), R"("way":"out")"); }, "the oven is read");
    for (double celsius : {90.0, 180.0, 200.0, 99.0, 220.0}) oven.publish({celsius, "kitchen"});
    auto last = seen.wait_for(20s);
    ASSERT(last && last->get<double>() == 3);
    wait_until(
        [&] {
            oven.publish({-1, "kitchen"});
            return has(link.peers(), R"("presence":"done")");
        },
        "the garden leaves");
    ASSERT(!has(streams.names("/**"), "garden"));
    int status;
    ASSERT(waitpid(child, &status, 0) == child && status == 0);
}

void by_a_hub(bool apart) {
    milieu::Coordinator at_home, outside;
    const milieu::Time now{};
    milieu::Streams kitchen(at_home, now), garden(outside, now);
    milieu::Hub hub(apart);
    bool here = false;
    milieu::Link home(kitchen, hub.join("kitchen"),
        milieu::Terms::with([&](const milieu::Peer &peer) -> milieu::Rights {
            here = peer.is_here;
            return {{"/oven"}, {}, {}, {}};
        }));
    milieu::Terms terms = milieu::Terms::open();
    terms.typed<Oven>().mode("data-stream").mode("json");
    milieu::Link out(garden, hub.join("garden"), std::move(terms));
    const auto settle = [&] {
        while (home.poll() || out.poll()) {
        }
    };
    auto oven = kitchen.publisher<Oven>("/oven");
    auto other = kitchen.publisher<Oven>("/other");
    auto read = garden.subscribe("/oven");
    auto denied = garden.subscribe("/other");
    settle();
    ASSERT(here == !apart);
    oven.publish({180, "kitchen"});
    other.publish({1, "kitchen"});
    settle();
    auto event = read.take();
    ASSERT(event && event->get<Oven>().celsius == 180 && !read.take() && !denied.take());
}

/** An engine whose every function throws. */
struct Broken : milieu::Carrier {
    [[noreturn]] static void no() { throw std::runtime_error("it is broken"); }
    milieu_refusal submit(const milieu_parcel &) override { no(); }
    std::uint64_t credit(std::uint64_t, std::uint32_t) override { no(); }
    void grant(std::uint64_t, std::uint32_t, std::uint64_t) override { no(); }
    void shut(std::uint64_t, std::uint32_t) override { no(); }
    void leave(std::uint64_t, std::uint32_t) override { no(); }
    milieu_refusal request(std::uint64_t, std::uint64_t, std::string_view) override { no(); }
    void reply(std::uint64_t, std::uint64_t, std::string_view) override { no(); }
    void poll(const milieu::Arrivals &arrivals) override {
        if (told) return;
        told = arrivals.joined(1, "nobody");
        wake();
    }
    void close(milieu_close_reason) override { no(); }
    bool told = false;
};

void what_throws_carries_nothing() {
    milieu::Coordinator coordinator;
    milieu::Streams streams(coordinator);
    auto oven = streams.publisher<Oven>("/oven");
    milieu::Link link(streams, milieu::make_engine<Broken>(), milieu::Terms::open());
    wait_until([&] { return has(link.peers(), R"("presence":"lost")"); }, "it is lost");
    oven.publish({180, "kitchen"});
}

/** What somebody may not read is not there for them. */
void rights_of_readers() {
    milieu::Coordinator coordinator;
    milieu::Streams streams(coordinator);
    milieu::ThreadContext<station::Environment> context(coordinator);
    auto one = streams.publisher<double>("/labs/1/heat");
    auto two = streams.publisher<double>("/labs/2/heat");
    auto guest = milieu::reader_with(streams, context, {{"/labs/1/**"}, {}, {}, {}});
    auto all = guest.subscribe("/labs/*/heat");
    one.publish(1);
    two.publish(2);
    auto event = all.take();
    ASSERT(event && event->get<double>() == 1 && !all.take());
    try {
        (void)milieu::reader_with(streams, context, {{"/labs/%room%/heat"}, {}, {}, {}});
        ASSERT(false);
    } catch (const milieu::Error &error) {
        ASSERT(error.result() == MILIEU_WRONG_NAME && has(error.what(), "`read`"));
    }
}

} // namespace

int main(int argc, char **argv) {
    if (argc == 3 && std::string_view(argv[1]) == "garden") return garden(std::atoi(argv[2]));
    over_a_socket(argv[0]);
    by_a_hub(false);
    by_a_hub(true);
    what_throws_carries_nothing();
    rights_of_readers();
    std::puts("ok");
    return 0;
}
