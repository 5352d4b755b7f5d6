// Every listing of the CoElektra paper, in C++: M. Raab, Global and Thread-Local Activation of
// Contextual Program Execution Environments, 2015.
//
// Each function is one listing, under the section that prints it, with the paper's assertions.
// Where the paper slips, the function does what was meant; `kdb`, the store, is part of the
// coordinator here, and values live in the environment of their context.

#include "check.hpp"

#include "algorithm.hpp"
#include "device.hpp"
#include "http.hpp"
#include "profile.hpp"
#include "server.hpp"
#include "value.hpp"
#include "version.hpp"
#include "watchdog.hpp"
#include "workers.hpp"

#include <atomic>
#include <csignal>
#include <fstream>
#include <mutex>
#include <pthread.h>
#include <sstream>
#include <sys/select.h>
#include <thread>
#include <unistd.h>

using namespace std::chrono_literals;
using milieu::Coordinator;
using milieu::ThreadContext;

// II, class Security: a layer by hand.
class Security : public milieu::Layer {
public:
    Security(std::string level) : level(level) {}
    std::string id() const { return "security"; }
    std::string operator()() const { return level; }

private:
    std::string level;
};

struct BatteryLow : milieu::Layer {
    static constexpr std::string_view id() { return "battery_low"; }
    std::string_view operator()() const { return "yes"; }
};

namespace ii {

using watchdog::Watchdog;

void printWatchdogStatus(std::ostream &cout, Watchdog::Enable const &e) {
    if (e) { cout << "Watchdog is enabled"; }
}

void enableWatchdogInSecurityContext(Watchdog::Enable &e) {
    bool originallyEnabled = e;
    ASSERT(e.getName() == "/watchdog/%/enable");
    e.context().with<Security>("A")([&] {
        e = true; // security context "A" active here
        ASSERT(e.getName() == "/watchdog/A/enable");
    }); // end of security context "A"
    ASSERT(e == originallyEnabled);
    ASSERT(e.getName() == "/watchdog/%/enable");
}

void run() {
    Coordinator c;
    ThreadContext<watchdog::Environment> tc(c);
    std::ostringstream out;
    printWatchdogStatus(out, tc->watchdog.enable);
    ASSERT(out.str().empty());
    tc->watchdog.enable = true;
    printWatchdogStatus(out, tc->watchdog.enable);
    ASSERT(out.str() == "Watchdog is enabled");

    tc->watchdog.enable = false;
    enableWatchdogInSecurityContext(tc->watchdog.enable);
    auto lock = c.requireLock();
    auto keys = lock.keys();
    ASSERT(keys.size() == 2);
    ASSERT(keys[0].name == "/watchdog/%/enable" && keys[0].value == "false");
    ASSERT(keys[1].name == "/watchdog/A/enable" && keys[1].value == "true");
}

} // namespace ii

namespace iii_a {

void enableWatchdog(watchdog::Watchdog::Enable const &e) {
    ASSERT(e.getName() == "/watchdog/%/enable");
    e.context().activate<Security>("A");
    ASSERT(e.getName() == "/watchdog/A/enable");
    ASSERT(e == true);
} // Security Layer A stays active

void run() {
    Coordinator c;
    c.assign("/watchdog/A/enable", "true");
    ThreadContext<watchdog::Environment> tc(c);
    enableWatchdog(tc->watchdog.enable);
    ASSERT(tc.layer("security") == "A");
    ThreadContext<watchdog::Environment> other(c);
    ASSERT(other->watchdog.enable);
    // Its id is said by a layer that is there, which its value is of no account for.
    other.without<Security>("A")([&] { ASSERT(!other->watchdog.enable); });
    int switches = 0;
    auto on = c.onLayerActivation<Security>([&] { ++switches; }, "A");
    auto off = c.onLayerDeactivation<Security>([&] { ++switches; }, "A");
    other.deactivate<Security>("A");
    other.activate<Security>("A");
    ASSERT(switches == 2 && other->watchdog.enable);
}

// c1.deactivate beside c2.activate: `cv` already considers the inactive layer BatteryLow.
void deactivateBesideActivate() {
    Coordinator c;
    c.assign("/device/yes/cv", "B");
    ThreadContext<device::Environment> c1(c);
    c1.activate<BatteryLow>();
    ThreadContext<device::Environment> c2(c);
    auto &cv = c2->device.cv;
    ASSERT(cv == "B");
    std::thread([&] {
        c1.deactivate<BatteryLow>(); // Security unchanged
        ASSERT(c1.layers().empty());
    }).join();
    std::thread([&] {
        ASSERT(cv == "B");
        c2.activate<Security>(cv); // BatteryLow inactive
        ASSERT(c2.layers().size() == 1 && c2.layer("security") == "A");
        ASSERT(c2->device.locked.getName() == "/device/A/locked");
    }).join();
    // A contextual value as a layer goes on following the value.
    c2.activate(milieu::follow(cv));
    c2.activate<BatteryLow>();
    ASSERT(c2.layer("security") == "B");
}

void activateBesideSync() {
    Coordinator c;
    ThreadContext<algorithm::Environment> c1(c), c2(c);
    std::thread left([&] { c1.activate<BatteryLow>(); });
    std::thread right([&] {
        c2.wait();
        ASSERT(c2.layers().empty());
        c2.syncLayers(); // BatteryLow active
    });
    left.join();
    right.join();
    ASSERT(c1.layers() == c2.layers() && c2.layer("battery_low") == "yes");
}

} // namespace iii_a

namespace iii_c {

void run() {
    Coordinator c;
    ThreadContext<value::Environment> env(c);
    value::Value &value = env->value;
    value = 8;
    ASSERT(value == 8);
    value -= 2;
    ASSERT(value == 6);

    value = 5;
    ThreadContext<value::Environment> tc(c);
    value::Value &newValue = tc->value;
    ASSERT(newValue == 5);
}

} // namespace iii_c

namespace iii_d {

void calculateTask(algorithm::Algorithm::Accuracy const &accuracy, std::vector<long> &steps) {
    accuracy.context().syncLayers(); // sync accuracy
    for (long i = 0; i < accuracy; ++i) {
        // calculate Task with given accuracy
        steps.push_back(i);
        // values will not change within loop
    }
}

void run() {
    Coordinator c;
    c.assign("/algorithm/%/accuracy", "100");
    c.assign("/algorithm/yes/accuracy", "10");
    ThreadContext<algorithm::Environment> tc(c), sensor(c);
    std::vector<long> steps;
    sensor.activate<BatteryLow>();
    ASSERT(tc->algorithm.accuracy == 100);
    calculateTask(tc->algorithm.accuracy, steps);
    ASSERT(steps.size() == 10);
    sensor.deactivate<BatteryLow>();
    calculateTask(tc->algorithm.accuracy, steps);
    ASSERT(steps.size() == 110);
}

} // namespace iii_d

namespace iii_e {

// As the paper has it: compares the current thread with the selected one.
class Thread : public milieu::ThreadLayer {
public:
    Thread(pthread_t selected) : selected(selected) {}
    std::string id() const { return "thread"; }
    std::string operator()() const {
        if (pthread_equal(pthread_self(), selected)) return "active";
        return "";
    };

private:
    pthread_t selected;
};

// A pool: by the role that contexts were given.
struct Background : milieu::ThreadLayer {
    static constexpr std::string_view id() { return "background"; }
    std::string_view operator()(const milieu::Scope &scope) const {
        return scope.role().substr(0, 6) == "/pool/" ? "active" : "";
    }
};

void run() {
    Coordinator c;
    c.assign("/worker/active/verbose", "true");
    c.assign("/worker/active/batch", "5");
    ThreadContext<workers::Environment> tc(c);
    std::atomic<int> ready{0}, verbose{0};
    std::atomic<bool> go{false};
    std::vector<pthread_t> ids(3);
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
        threads.emplace_back([&, i] {
            ThreadContext<workers::Environment> mine(c);
            ids[i] = pthread_self();
            ++ready;
            while (!go) std::this_thread::yield();
            mine.sync();
            if (mine->worker.verbose) verbose += 1 + i;
        });
    }
    while (ready < 3) std::this_thread::yield();
    tc.activate<Thread>(ids[1]);
    go = true;
    for (auto &thread : threads) thread.join();
    ASSERT(verbose == 2);
    ASSERT(!tc->worker.verbose);

    tc.activate<Background>();
    ThreadContext<workers::Environment> pool(c, "/pool/3"), http(c, "/http");
    ASSERT(pool->worker.batch == 5 && http->worker.batch == 100 && tc->worker.batch == 100);
}

} // namespace iii_e

namespace iii_f {

struct Tamper : milieu::Layer {
    static constexpr std::string_view id() { return "tamper"; }
    std::string_view operator()() const { return "active"; }
};

struct Shutdown : milieu::Layer {
    static constexpr std::string_view id() { return "shutdown"; }
    std::string_view operator()() const { return "active"; }
};

void startupcode() {
    Coordinator c;
    int privateKeys = 2;
    auto removePrivateKeys = [&] { privateKeys = 0; };
    auto registration = c.onLayerActivation<Tamper>([&]() { removePrivateKeys(); });
    ThreadContext<http::Environment> tc(c);
    tc.with<Tamper>()([&] { ASSERT(privateKeys == 2); }); // not by local with statements
    tc.activate<Tamper>();
    ASSERT(privateKeys == 0);
}

void shutdown() {
    // Without a handler the signal would end the process.
    struct sigaction handler = {};
    handler.sa_handler = [](int) {};
    ASSERT(sigaction(SIGHUP, &handler, nullptr) == 0);
    int pipes[2];
    ASSERT(pipe(pipes) == 0);
    Coordinator c;
    c.assign("/server/active/timeout", "0");
    ThreadContext<server::Environment> tc(c);
    std::atomic<bool> waiting{false}, past{false};
    int timeout = -1;
    std::thread server([&] {
        ThreadContext<server::Environment> mine(c);
        pthread_t tid = pthread_self();
        // When the registration goes it waits for the action, so the thread is there for it.
        auto registration = c.onLayerActivation<Shutdown>([tid, &past] {
            while (!past) {
                pthread_kill(tid, SIGHUP);
                std::this_thread::sleep_for(1ms);
            }
        });
        char byte;
        waiting = true;
        while (mine->server.timeout > 0) {
            ASSERT(read(pipes[0], &byte, 1) < 0 && errno == EINTR);
            mine.sync();
        }
        timeout = mine->server.timeout;
        past = true;
    });
    while (!waiting) std::this_thread::yield();
    tc.activate<Shutdown>();
    server.join();
    ASSERT(timeout == 0);
    close(pipes[0]);
    close(pipes[1]);

    int resources = 1;
    auto cleanup = c.onLayerDeactivation<Shutdown>([&] { resources = 0; });
    tc.deactivate<Shutdown>();
    ASSERT(resources == 0);
}

} // namespace iii_f

namespace iii_g {

// The policies are types, and cost nothing: a context of any has the size of any other.
struct Alone : milieu::SingleThread {}; // one of the user's own

template <class Policy>
using WatchdogContext = ThreadContext<watchdog::Environment, Policy>;

void policies() {
    Coordinator c;
    c.assign("/watchdog/A/enable", "true");
    auto sees = [&](auto &tc) {
        return tc.template with<Security>("A")([&] { return bool(tc->watchdog.enable); });
    };
    WatchdogContext<milieu::Threads> threads(c);
    WatchdogContext<milieu::SingleThread> single(c);
    WatchdogContext<milieu::NoContext> without(c);
    WatchdogContext<milieu::ReadOnly<>> readOnly(c);
    WatchdogContext<milieu::ReadOnly<milieu::SingleThread>> both(c);
    WatchdogContext<Alone> own(c);
    ASSERT(sees(threads) && sees(single) && sees(readOnly) && sees(both) && sees(own));
    ASSERT(!sees(without));
    without.activate<Security>("A");
    ASSERT(threads.layers().empty() && !threads.has_news());
    threads.activate<Security>("A");
    single.sync();
    own.sync();
    readOnly.sync();
    ASSERT(!single->watchdog.enable && !own->watchdog.enable && readOnly->watchdog.enable);
    static_assert(sizeof(threads) == sizeof(without), "a policy is no member");
    static_assert(std::is_assignable_v<decltype((threads->watchdog.enable)), bool>);
    static_assert(!std::is_assignable_v<decltype((readOnly->watchdog.enable)), bool>);
    static_assert(sizeof(watchdog::Watchdog::Enable) == sizeof(bool), "a value is its type");
}

int main_(int argc, const char *const *argv) {
    auto options = milieu::Options::command_line<version::Environment>(argc, argv);
    Coordinator c("version", options);
    ThreadContext<version::Environment, milieu::ReadOnly<>> env(c);
    ASSERT(env->version.getOrigin() == (argc > 1 ? "option -V" : ""));
    return env->version ? 1 : 0;
}

void run() {
    policies();
    const char *arguments[] = {"version", "-V"};
    ASSERT(main_(1, arguments) == 0);
    ASSERT(main_(2, arguments) == 1);
    const char *help[] = {"version", "--help"};
    try {
        main_(2, help);
        ASSERT(false);
    } catch (const milieu::Error &said) {
        ASSERT(said.result() == MILIEU_SAY);
        ASSERT(std::string_view(said.what()).substr(0, 14) == "Usage: version");
    }
}

} // namespace iii_g

namespace iv_a {

struct Session : milieu::Layer {
    Session(std::string id) : value(id) {}
    static constexpr std::string_view id() { return "session"; }
    const std::string &operator()() const { return value; }
    std::string value;
};

struct Language : milieu::Layer {
    Language(std::string name) : value(name) {}
    static constexpr std::string_view id() { return "language"; }
    const std::string &operator()() const { return value; }
    std::string value;
};

using Tamper = iii_f::Tamper;

class Server {
public:
    explicit Server(Coordinator const &c) : tc(c) {}
    std::string reply(std::string sessionId) {
        std::ostringstream out;
        auto &language = tc->sw.pi.language;
        auto &hello = tc->sw.pi.hello;
        tc.with<Session>(sessionId)([&, this]() {
            out << "<html>\n"
                   "<body>\n";
            out << "<p>Language: " << language << "</p>";
            tc.with<Language>(language)([&]() { out << "<p>" << hello << "</p>"; });
            out << "</body>\n"
                   "</html>\n";
        });
        return out.str();
    }
    ThreadContext<http::Environment> tc;
};

void session() {
    Coordinator c;
    c.assign("/sw/pi/german/hello", "Hallo");
    c.assign("/sw/pi/%/hello", "Hello");
    c.assign("/sw/pi/4711/language", "german");
    Server server(c);
    ASSERT(server.reply("4711")
        == "<html>\n<body>\n<p>Language: german</p><p>Hallo</p></body>\n</html>\n");
    ASSERT(server.reply("1").find("<p>Hello</p>") != std::string::npos);
}

void persist(const std::string &folder) {
    milieu::Options options;
    options.user_folder = options.system_folder = folder;
    {
        Coordinator c("http", options);
        ThreadContext<http::Environment> tc(c);
        tc.with<Session>("4711")([&] { tc->sw.pi.language = "german"; });
        auto l = c.requireLock();
        ASSERT(c.persist("/") == 1);
    }
    Coordinator c("http", options);
    ThreadContext<http::Environment> tc(c);
    tc.with<Session>("4711")([&] { ASSERT(tc->sw.pi.language == "german"); });
}

void tamper() {
    int fds[2];
    ASSERT(pipe(fds) == 0);
    Coordinator c;
    c.assign("/sw/pi/tamper/active", "yes");
    ThreadContext<http::Environment> page(c);
    auto &t = page->sw.pi.tamper;
    std::thread sensor([&] {
        ThreadContext<http::Environment> tc(c);
        auto &t = tc->sw.pi.tamper;
        fd_set set;
        FD_ZERO(&set);
        FD_SET(fds[0], &set);
        // A pipe becomes readable where the edge of a GPIO would be an exceptional condition.
        ASSERT(select(fds[0] + 1, &set, nullptr, nullptr, nullptr) == 1);
        t.context().activate<Tamper>();
    });
    std::ostringstream out;
    auto tell = [&] {
        t.context().syncLayers();
        if (!t.empty()) out << "tamper!!!";
    };
    tell();
    ASSERT(out.str().empty());
    ASSERT(write(fds[1], "1", 1) == 1);
    sensor.join();
    tell();
    ASSERT(out.str() == "tamper!!!");
    close(fds[0]);
    close(fds[1]);
}

void hardware(const std::string &listings) {
    struct Profile : milieu::Layer {
        Profile(std::string name) : name(name) {}
        static constexpr std::string_view id() { return "profile"; }
        const std::string &operator()() const { return name; }
        std::string name;
    };
    Coordinator c;
    std::ifstream file(listings + "/hardware.ini");
    for (std::string line; std::getline(file, line);) {
        auto at = line.find(" = ");
        if (at != std::string::npos) c.assign(line.substr(0, at), line.substr(at + 3));
    }
    ThreadContext<profile::Environment> tc(c);
    auto &gpio = tc->hw.pi.gpio;
    ASSERT(gpio.folder.empty());
    std::ifstream eeprom(listings + "/profile");
    std::string name;
    eeprom >> name;
    tc.activate<Profile>(name);
    ASSERT(gpio.tamper.getName() == "/hw/pi/elitebook/gpio/tamper");
    ASSERT(gpio.folder == "~/context/pi" && gpio.tamper == "tamper.txt");
    // Tests of other setups need no other hardware.
    tc.with<Profile>("pi")(
        [&] { ASSERT(gpio.folder == "/sys/class/gpio/" && gpio.tamper == "gpio7"); });
}

} // namespace iv_a

namespace iv_b {

using iv_a::Session;
using iv_a::Tamper;

void tamperLoop() {
    constexpr auto N = 1ns;
    Coordinator c;
    c.assign("/sw/pi/tamper/active", "yes");
    std::atomic<bool> shutdown{false};
    ThreadContext<http::Environment> tc(c), request(c);
    std::thread loop([&] {
        while (!shutdown) {
            tc.activate<Tamper>();
            std::this_thread::sleep_for(N);
            tc.deactivate<Tamper>();
            std::this_thread::sleep_for(N);
        }
    });
    for (int round = 0; round < 20; ++round) {
        while (request->sw.pi.tamper.empty() == (round % 2 == 0)) {
            request.wait();
            request.sync();
        }
    }
    shutdown = true;
    loop.join();
    request.sync();
    ASSERT(request.layers().empty());
}

void lockLoop() {
    constexpr auto L = 1ms;
    Coordinator c;
    std::atomic<int> served{0};
    std::atomic<bool> shutdown{false};
    ThreadContext<http::Environment> t(c), request(c);
    std::thread loop([&] {
        for (int round = 0; round < 3; ++round) {
            std::this_thread::sleep_for(L);
            t.syncLayers();
            auto l = c.requireLock();
            int before = served;
            std::this_thread::sleep_for(10ms);
            // Requests do not wait for the lock.
            while (served < before + 10) std::this_thread::yield();
        }
        shutdown = true;
    });
    while (!shutdown) {
        request.sync();
        request.with<Session>("4711")([&] {
            std::string chosen = ++served % 2 ? "german" : "english";
            request->sw.pi.language = chosen;
            ASSERT(request->sw.pi.language == chosen);
        });
    }
    loop.join();
}

} // namespace iv_b

int main(int argc, char **argv) {
    ASSERT(argc == 3);
    ii::run();
    iii_a::run();
    iii_a::deactivateBesideActivate();
    iii_a::activateBesideSync();
    iii_c::run();
    iii_d::run();
    iii_e::run();
    iii_f::startupcode();
    iii_f::shutdown();
    iii_g::run();
    iv_a::session();
    iv_a::persist(argv[1]);
    iv_a::tamper();
    iv_a::hardware(argv[2]);
    iv_b::tamperLoop();
    iv_b::lockLoop();
}
