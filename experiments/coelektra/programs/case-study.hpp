// The paper's case study, whatever carries its requests: pages of sessions, and the loops
// that run beside them. See context-server.cpp.
#pragma once

#include "site.hpp"
#include "station.hpp"

#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <string>
#include <thread>

using namespace std::chrono_literals;
using site::layer::Language;
using site::layer::Session;
using site::layer::Tamper;

constexpr auto HELD = 10ms;
constexpr int SESSIONS = 100;
const char *const LANGUAGES[] = {"en", "de", "fr", "es"};
const char *const HELLOS[] = {"Hello", "Grüß Gott", "Bonjour", "Hola"};

struct Options {
    std::string contexts = "milieu", server = "web", host = "127.0.0.1", loop = "no";
    int threads = 4;
    long pages = 0;
    std::chrono::nanoseconds time{0};
    bool closes = false, when_asked = false;
};

/** Contexts as programs have them. */
struct Milieu {
    using Policy = milieu::Threads;
    static constexpr bool locks = false;
};
/** No contexts. */
struct None {
    using Policy = milieu::NoContext;
    static constexpr bool locks = false;
};
/** Contexts behind one lock. */
struct Mutex {
    using Policy = milieu::Threads;
    static constexpr bool locks = true;
};

/** Loops run while they are told to. */
class Turnstile {
public:
    void set(bool open) {
        std::lock_guard lock(mutex_);
        open_.store(open, std::memory_order_relaxed);
        opened_.notify_all();
    }
    void pass() {
        if (open_.load(std::memory_order_relaxed)) return;
        std::unique_lock lock(mutex_);
        opened_.wait(lock, [this] { return open_.load(std::memory_order_relaxed); });
    }

private:
    std::mutex mutex_;
    std::condition_variable opened_;
    std::atomic<bool> open_{false};
};

inline long processor_ns() {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1'000'000'000L + now.tv_nsec;
}

/** Appends to a text what a stream would print. */
struct Appending {
    std::string &text;
    Appending &operator<<(std::string_view more) {
        text += more;
        return *this;
    }
};

template <class Kind>
class CaseStudy {
public:
    using Context = milieu::ThreadContext<site::Environment, typename Kind::Policy>;

    const Options options;

    CaseStudy(const Options &options, const milieu_options &folders)
        : options(options), coordinator_("site", folders) {
        coordinator_.assign("/sw/pi/tamper/active", "true");
        for (int i = 0; i < 4; ++i) {
            coordinator_.assign(std::string("/sw/pi/") + LANGUAGES[i] + "/hello", HELLOS[i]);
        }
        for (int i = 0; i < SESSIONS; ++i) {
            coordinator_.assign("/sw/pi/" + std::to_string(i) + "/language", LANGUAGES[i % 4]);
        }
        for (std::size_t i = 0; i < temperatures_.size(); ++i) {
            temperatures_[i] = 20 + 8 * std::sin(static_cast<double>(i) / 8);
        }
    }

    /** A context for a thread that answers requests. */
    Context context() const { return Context(coordinator_, "/web"); }

    /** Starts the loop beside the requests, which may have to wait until it is asked for. */
    void start() {
        if (!options.when_asked) loops_.set(true);
        if (options.loop == "switch") std::thread([this] { switches(); }).detach();
        if (options.loop == "hold") std::thread([this] { holds(); }).detach();
        if (options.loop == "serialize") std::thread([this] { serializes(); }).detach();
    }

    /** Starts the loop, and counts from now on. */
    void begin() {
        loops_.set(true);
        switched_ = replies_ = 0;
        begun_ns_ = processor_ns();
    }

    /** Stops the loop; what has been used and done since. */
    std::string end() {
        // On a machine that does much else the loop may not have had its turn yet.
        while (options.loop == "switch" && switched_ == 0) std::this_thread::sleep_for(1ms);
        loops_.set(false);
        return "processor_ns=" + std::to_string(processor_ns() - begun_ns_)
            + " replies=" + std::to_string(replies_) + " switches=" + std::to_string(switched_)
            + "\n";
    }

    /**
     * Whether somebody tampers. A program without contexts keeps that in a variable, so that
     * its pages say the same.
     */
    bool tampered(const Context &tc) const {
        if constexpr (Kind::Policy::layers) return tc->sw.pi.tamper;
        else return tampered_.load(std::memory_order_acquire);
    }

    /** The page of a session: the listing of the paper's section IV.A. */
    template <class Out>
    void page(const Context &tc, const std::string &session, Out &out) {
        synchronize(tc);
        const auto &pi = tc->sw.pi;
        tc.template with<Session>(session)([&] {
            out << "<html>\n<body>\n<p>Language: " << pi.language << "</p>";
            tc.template with<Language>(std::string(pi.language))([&] {
                out << "<p>" << pi.hello << "</p>";
            });
            if (tampered(tc)) out << "tamper!!!";
            out << "</body>\n</html>\n";
        });
        replies_.fetch_add(1, std::memory_order_relaxed);
    }

    /** The whole page that a browser is shown. */
    void station(const Context &tc, const std::string &session, std::ostream &out) {
        synchronize(tc);
        tc.template with<Session>(session)([&] {
            tc.template with<Language>(std::string(tc->sw.pi.language))(
                [&] { draw_station(out, *tc, temperatures_, tampered(tc)); });
        });
        replies_.fetch_add(1, std::memory_order_relaxed);
    }

    /** Makes pages and sends them nowhere. */
    void render() {
        Context tc(coordinator_, "/web"), other(coordinator_, "/tamper");
        std::string page;
        Appending out{page};
        const long begun_ns = processor_ns();
        for (long i = 0; i < options.pages; ++i) {
            if (options.loop == "switch") tamper(other, i % 2 == 0);
            page.clear();
            this->page(tc, "2", out);
        }
        const auto used_ns = static_cast<double>(processor_ns() - begun_ns);
        std::printf("page_ns=%f\n", used_ns / static_cast<double>(options.pages));
        std::fflush(stdout);
    }

private:
    std::unique_lock<std::mutex> turn() {
        return Kind::locks ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
    }

    void synchronize(const Context &tc) {
        auto lock = turn();
        tc.sync();
    }

    /** Somebody tampers from now on, or nobody. */
    void tamper(const Context &tc, bool tampers) {
        auto lock = turn();
        if constexpr (!Kind::Policy::layers) {
            tampered_.store(tampers, std::memory_order_release);
        } else if (tampers) {
            tc.template activate<Tamper>();
        } else {
            tc.template deactivate<Tamper>();
        }
    }

    void pause() const {
        if (options.time > 0ns) std::this_thread::sleep_for(options.time);
    }

    void switches() {
        Context tc(coordinator_, "/tamper");
        for (;;) {
            loops_.pass();
            tamper(tc, true);
            pause();
            tamper(tc, false);
            pause();
            switched_.fetch_add(2, std::memory_order_relaxed);
        }
    }

    void holds() {
        Context tc(coordinator_, "/holder");
        for (;;) {
            pause();
            loops_.pass();
            auto lock = turn();
            tc.sync();
            auto held = coordinator_.requireLock();
            std::this_thread::sleep_for(HELD);
        }
    }

    void serializes() {
        for (unsigned long i = 0;; ++i) {
            loops_.pass();
            coordinator_.assign("/sw/pi/0/visits", std::to_string(i));
            auto lock = turn();
            auto held = coordinator_.requireLock();
            coordinator_.persist();
            switched_.fetch_add(1, std::memory_order_relaxed);
        }
    }

    milieu::Coordinator coordinator_;
    // Away from what each reply counts.
    std::atomic<bool> tampered_{false};
    Temperatures temperatures_;
    std::mutex mutex_;
    Turnstile loops_;
    std::atomic<unsigned long> switched_{0}, replies_{0};
    std::atomic<long> begun_ns_{0};
};
