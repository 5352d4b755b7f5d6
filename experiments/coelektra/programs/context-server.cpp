// The web server of the paper's section IV, and its controls.
//
//   context-server --contexts milieu|none|mutex [--threads 8] [--close]
//                  [--switch-ns N] [--hold-ms L] [--persist] [--when-asked]
//
// Each request is one of a session, whose page is in the session's language and says
// whether somebody tampers: the paper's listing. What varies is who keeps contexts:
//
//   milieu  contexts, as programs have them
//   none    the policy that does without: the same source, the control
//   mutex   contexts behind one lock, which requests, switches and holders take turns at,
//           as the paper's implementation has it: shows what these loads can do
//
// Beside the requests run the loops of the paper: `--switch-ns` activates and deactivates a
// layer, with a pause after each (0: without any); `--hold-ms` holds the key set for 10 ms,
// with so long a time in between; `--persist` writes the key set, over and over.
// `/begin` starts them where they wait (`--when-asked`) and counts anew, `/end` stops them
// and says what the process has used.

#include "site.hpp"

#include <arpa/inet.h>
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
    std::string contexts = "milieu";
    int threads = 8;
    long switch_ns = -1, hold_ms = -1;
    bool persists = false, closes = false, when_asked = false;
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
        int listener = socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        // Who is not on this machine reaches it only in a namespace, where nobody else is.
        address.sin_addr.s_addr = htonl(getenv("SERVE_ALL") ? INADDR_ANY : INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        if (listener < 0 || bind(listener, reinterpret_cast<sockaddr *>(&address), size) != 0
            || listen(listener, 1024) != 0
            || getsockname(listener, reinterpret_cast<sockaddr *>(&address), &size) != 0) {
            std::perror("cannot listen");
            std::exit(1);
        }
        if (!options_.when_asked) loops_.set(true);
        std::vector<std::thread> threads;
        if (options_.switch_ns >= 0) threads.emplace_back([this] { switches(); });
        if (options_.hold_ms >= 0) threads.emplace_back([this] { holds(); });
        if (options_.persists) threads.emplace_back([this] { persists(); });
        for (int i = 0; i < options_.threads; ++i) {
            threads.emplace_back([this, listener] { serves(listener); });
        }
        std::printf("listening on %d\n", ntohs(address.sin_port));
        std::fflush(stdout);
        for (std::thread &thread : threads) thread.detach();
    }

private:
    std::unique_lock<std::mutex> turn() {
        return Kind::locks ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
    }

    void pause() const {
        if (options_.switch_ns > 0) {
            std::this_thread::sleep_for(std::chrono::nanoseconds(options_.switch_ns));
        }
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
            std::this_thread::sleep_for(std::chrono::milliseconds(options_.hold_ms));
            loops_.pass();
            auto lock = turn();
            tc.sync();
            auto held = coordinator_.requireLock();
            std::this_thread::sleep_for(HELD);
        }
    }

    void persists() {
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
    milieu_options folders = milieu::Coordinator::options();
    folders.user_folder = folders.system_folder = milieu_text_of(folder.c_str());
    auto *server = new Server<Kind>(options, folders);
    server->run();
    int signal;
    sigwait(&ends, &signal);
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    std::_Exit(0);
}

Options parse(int count, char **words) {
    Options options;
    for (int i = 1; i < count; ++i) {
        std::string_view word = words[i];
        auto next = [&] { return i + 1 < count ? words[++i] : ""; };
        auto number = [&] { return std::strtol(next(), nullptr, 10); };
        if (word == "--contexts") options.contexts = next();
        else if (word == "--threads") options.threads = static_cast<int>(number());
        else if (word == "--switch-ns") options.switch_ns = number();
        else if (word == "--hold-ms") options.hold_ms = number();
        else if (word == "--persist") options.persists = true;
        else if (word == "--close") options.closes = true;
        else if (word == "--when-asked") options.when_asked = true;
        else {
            std::fprintf(stderr, "no option is called %s\n", words[i]);
            std::exit(2);
        }
    }
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
