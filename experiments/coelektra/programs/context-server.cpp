// The web server of the paper's section IV, and its controls.
//
//   context-server [--contexts milieu|none|mutex] [--host 127.0.0.1] [--threads 4] [--close|--keep]
//                  [--loop no|switch|hold|serialize] [--time '1 ms'] [--when-asked]
//                  [--render PAGES]
//
// Each request is one of a session, whose page is in the session's language and says
// whether somebody tampers: the paper's listing. What varies is who keeps contexts:
//
//   milieu  contexts, as programs have them
//   none    the policy that does without: the same source, the control
//   mutex   contexts behind one lock, which requests, switches and holders take turns at,
//           as the paper's implementation has it: shows what these loads can do
//
// Beside the requests runs a loop of the paper:
//
//   switch     activates and deactivates a layer, and sleeps for `--time` after each; `0 ms` is
//              without any sleep, and `never` without the loop
//   hold       holds the key set for 10 ms, with `--time` in between
//   serialize  writes the key set to its file, over and over
//
// `/begin` starts it where it waits (`--when-asked`) and counts anew, `/end` stops it and says
// what the process has used.
//
// `--render 1000` serves nobody: it makes so many pages, with `--loop switch` each after a
// switch by another context, and says how long a page takes, with the switch.

#include "site.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using site::layer::Language;
using site::layer::Session;
using site::layer::Tamper;

namespace {

constexpr auto HELD = 10ms;
constexpr int SESSIONS = 100;
const char *const LANGUAGES[] = {"en", "de", "fr", "es"};
const char *const HELLOS[] = {"Hello", "Grüß Gott", "Bonjour", "Hola"};

struct Options {
    std::string contexts = "milieu", host = "127.0.0.1", loop = "no";
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

long processor_ns() {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1'000'000'000L + now.tv_nsec;
}

template <class Kind>
class Server {
    using Context = milieu::ThreadContext<site::Environment, typename Kind::Policy>;

public:
    Server(const Options &options, const milieu_options &folders)
        : options_(options), coordinator_("site", folders) {
        coordinator_.assign("/sw/pi/tamper/active", "true");
        for (int i = 0; i < 4; ++i) {
            coordinator_.assign(std::string("/sw/pi/") + LANGUAGES[i] + "/hello", HELLOS[i]);
        }
        for (int i = 0; i < SESSIONS; ++i) {
            coordinator_.assign("/sw/pi/" + std::to_string(i) + "/language", LANGUAGES[i % 4]);
        }
    }

    /** Serves until the process is told to end. */
    void run() {
        addrinfo hints{}, *found = nullptr;
        hints.ai_family = AF_INET;
        hints.ai_socktype = SOCK_STREAM;
        if (getaddrinfo(options_.host.c_str(), "0", &hints, &found) != 0) {
            std::fprintf(stderr, "nobody knows where %s is\n", options_.host.c_str());
            std::exit(1);
        }
        int listener = socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        socklen_t size = sizeof address;
        if (listener < 0 || bind(listener, found->ai_addr, found->ai_addrlen) != 0
            || listen(listener, 1024) != 0
            || getsockname(listener, reinterpret_cast<sockaddr *>(&address), &size) != 0) {
            std::perror("cannot listen");
            std::exit(1);
        }
        freeaddrinfo(found);
        if (!options_.when_asked) loops_.set(true);
        std::vector<std::thread> threads;
        if (options_.loop == "switch") threads.emplace_back([this] { switches(); });
        if (options_.loop == "hold") threads.emplace_back([this] { holds(); });
        if (options_.loop == "serialize") threads.emplace_back([this] { serializes(); });
        for (int i = 0; i < options_.threads; ++i) {
            threads.emplace_back([this, listener] { serves(listener); });
        }
        std::printf("listening on %d\n", ntohs(address.sin_port));
        std::fflush(stdout);
        for (std::thread &thread : threads) thread.detach();
    }

    /** Makes pages and sends them nowhere. */
    void render() {
        Context tc(coordinator_, "/web"), other(coordinator_, "/tamper");
        std::string page;
        const long begun_ns = processor_ns();
        for (long i = 0; i < options_.pages; ++i) {
            if (options_.loop == "switch") {
                if (i % 2 == 0) other.template activate<Tamper>();
                else other.template deactivate<Tamper>();
            }
            page.clear();
            this->page(tc, "2", page);
        }
        const auto used_ns = static_cast<double>(processor_ns() - begun_ns);
        std::printf("page_ns=%f\n", used_ns / static_cast<double>(options_.pages));
        std::fflush(stdout);
    }

private:
    std::unique_lock<std::mutex> turn() {
        return Kind::locks ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
    }

    void pause() const {
        if (options_.time > 0ns) std::this_thread::sleep_for(options_.time);
    }

    void switches() {
        Context tc(coordinator_, "/tamper");
        for (;;) {
            loops_.pass();
            {
                auto lock = turn();
                tc.template activate<Tamper>();
            }
            pause();
            {
                auto lock = turn();
                tc.template deactivate<Tamper>();
            }
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

    void serves(int listener) {
        Context tc(coordinator_, "/web");
        std::string answer;
        for (;;) {
            int connection = accept(listener, nullptr, nullptr);
            if (connection < 0) continue;
            char request[4096];
            std::size_t length = 0;
            for (;;) {
                ssize_t count = read(connection, request + length, sizeof request - 1 - length);
                if (count <= 0) break;
                length += static_cast<std::size_t>(count);
                request[length] = '\0';
                if (!std::strstr(request, "\r\n\r\n")) continue;
                respond(tc, request, answer);
                length = 0;
                if (!sent(connection, answer) || options_.closes) break;
            }
            close(connection);
        }
    }

    static bool sent(int connection, std::string_view text) {
        while (!text.empty()) {
            ssize_t count = send(connection, text.data(), text.size(), MSG_NOSIGNAL);
            if (count <= 0) return false;
            text.remove_prefix(static_cast<std::size_t>(count));
        }
        return true;
    }

    void respond(Context &tc, std::string_view request, std::string &answer) {
        std::size_t begin = request.find('/') + 1;
        std::string_view path = request.substr(begin, request.find(' ', begin) - begin);
        std::string body;
        body.reserve(256);
        if (path == "begin") {
            loops_.set(true);
            switched_ = replies_ = 0;
            begun_ns_ = processor_ns();
        } else if (path == "end") {
            // On a machine that does much else the loop may not have had its turn yet.
            while (options_.loop == "switch" && switched_ == 0) std::this_thread::sleep_for(1ms);
            loops_.set(false);
            body = "processor_ns=" + std::to_string(processor_ns() - begun_ns_)
                + " replies=" + std::to_string(replies_) + " switches=" + std::to_string(switched_)
                + "\n";
        } else {
            page(tc, path, body);
            replies_.fetch_add(1, std::memory_order_relaxed);
        }
        answer.assign("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n");
        if (options_.closes) answer += "Connection: close\r\n";
        answer += "Content-Length: ";
        answer += std::to_string(body.size());
        answer += "\r\n\r\n";
        answer += body;
    }

    void page(Context &tc, std::string_view session, std::string &out) {
        {
            auto lock = turn();
            tc.sync();
        }
        const auto &pi = tc->sw.pi;
        tc.template with<Session>(std::string(session))([&] {
            out += "<html>\n<body>\n<p>Language: ";
            out += pi.language;
            out += "</p>";
            tc.template with<Language>(std::string(pi.language))([&] {
                out += "<p>";
                out += pi.hello;
                out += "</p>";
            });
            if (pi.tamper) out += "tamper!!!";
            out += "</body>\n</html>\n";
        });
    }

    const Options options_;
    milieu::Coordinator coordinator_;
    std::mutex mutex_;
    Turnstile loops_;
    std::atomic<unsigned long> switched_{0}, replies_{0};
    std::atomic<long> begun_ns_{0};
};

/** Serves until the process is told to end; nothing of it is left then. */
template <class Kind>
int serve(const Options &options) {
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ends, nullptr);
    std::string folder = std::filesystem::temp_directory_path() / "context-server-XXXXXX";
    if (!mkdtemp(folder.data())) return 1;
    milieu_options folders = MILIEU_OPTIONS;
    folders.user_folder = folders.system_folder = milieu_text_of(folder.c_str());
    auto *server = new Server<Kind>(options, folders);
    if (options.pages > 0) {
        server->render();
    } else {
        server->run();
        int signal;
        sigwait(&ends, &signal);
    }
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    std::_Exit(0);
}

/** A time such as `13 ms` or `1 ns`. */
std::chrono::nanoseconds time_of(const std::string &text) {
    char *unit;
    const double number = std::strtod(text.c_str(), &unit);
    const std::pair<std::string_view, double> units[] = {
        {" ns", 1}, {" us", 1e3}, {" ms", 1e6}, {" s", 1e9}};
    for (auto [name, scale] : units) {
        if (unit == name) return std::chrono::nanoseconds(static_cast<long>(number * scale));
    }
    std::fprintf(stderr, "no time: %s\n", text.c_str());
    std::exit(2);
}

Options parse(int count, char **words) {
    Options options;
    std::string time = "0 ms";
    for (int i = 1; i < count; ++i) {
        std::string_view word = words[i];
        auto next = [&]() -> std::string { return i + 1 < count ? words[++i] : ""; };
        if (word == "--contexts") options.contexts = next();
        else if (word == "--host") options.host = next();
        else if (word == "--threads") options.threads = std::atoi(next().c_str());
        else if (word == "--loop") options.loop = next();
        else if (word == "--render") options.pages = std::atol(next().c_str());
        else if (word == "--time") time = next();
        else if (word == "--close") options.closes = true;
        else if (word == "--keep") options.closes = false;
        else if (word == "--when-asked") options.when_asked = true;
        else {
            std::fprintf(stderr, "no option is called %s\n", words[i]);
            std::exit(2);
        }
    }
    if (time == "never") options.loop = "no";
    else options.time = time_of(time);
    return options;
}

} // namespace

int main(int count, char **words) {
    const Options options = parse(count, words);
    try {
        if (options.contexts == "milieu") return serve<Milieu>(options);
        if (options.contexts == "none") return serve<None>(options);
        if (options.contexts == "mutex") return serve<Mutex>(options);
    } catch (const milieu::Error &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    std::fprintf(stderr, "contexts are milieu, none or mutex, and not %s\n", options.contexts.c_str());
    return 2;
}
