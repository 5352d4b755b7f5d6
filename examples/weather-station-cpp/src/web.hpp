/*
 * The web server: a page in each visitor's language. Each thread of its pool has a context.
 */
#pragma once

#include "page.hpp"

#include <httplib.h>

#include <future>
#include <iomanip>
#include <map>
#include <mutex>
#include <random>
#include <regex>
#include <thread>

using Choice = station::Sw::Pi::LanguageChoice;
using httplib::Request;
using httplib::Response;

/** Who asks: what the cookie says, or somebody new, who gets one. */
inline std::string session(const Request &request, Response &response) {
    static const std::string cookie = "weather-station-session=";
    static const std::regex ours("(^|; )" + cookie + "([0-9a-f]{32})(;|$)");
    const std::string cookies = request.get_header_value("Cookie");
    std::smatch found;
    if (std::regex_search(cookies, found, ours)) return found[2];
    std::random_device random;
    std::ostringstream id;
    for (int i = 0; i < 4; ++i) id << std::hex << std::setw(8) << std::setfill('0') << random();
    response.set_header("Set-Cookie",
        cookie + id.str() + "; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax");
    return id.str();
}

/** The value of the layer Language: what the visitor chose, or else what the browser asks for. */
inline std::string language(Choice chosen, const std::string &accepted) {
    if (chosen != Choice::Browser) return std::string(to_string(chosen));
    std::istringstream ranges(accepted);
    for (std::string range; std::getline(ranges >> std::ws, range, ',');) {
        const auto code = range.substr(0, range.find_first_of("-;"));
        if (milieu::parse<Choice>(code).value_or(Choice::Browser) != Choice::Browser) return code;
    }
    return "en";
}

inline void refuse(Response &response, int status, const std::string &why) {
    response.status = status;
    response.set_content(why + '\n', "text/plain; charset=utf-8");
}

class Web {
public:
    /** Serves until the layer Shutdown is activated. */
    Web(const milieu::Coordinator &coordinator, const Sensors &sensors)
        : coordinator_(coordinator), sensors_(sensors) {
        server_.Get("/", [this](const Request &in, Response &out) { page(in, out); });
        server_.Post("/language", [this](const Request &in, Response &out) { choose(in, out); });
        server_.set_mount_point("/assets", SOURCE "/assets");
        server_.set_error_handler([](const Request &, Response &response) {
            // What a handler has thrown, the library has put there.
            const auto thrown = response.get_header_value("EXCEPTION_WHAT");
            if (!response.body.empty()) return;
            refuse(response, response.status, !thrown.empty() ? thrown
                : "this station has GET / and POST /language, with a body of at most 4096 bytes");
        });
        const Context tc(coordinator);
        listen(tc->sw.pi.web);

        // Who has chosen something before, by the names of keys: /sw/pi/<session>/language. These
        // are random; what was chosen longest ago is what has the least number, or none.
        static const std::regex key("/sw/pi/([0-9a-f]{32})/language");
        std::multimap<std::uint64_t, std::string> known;
        const auto lock = coordinator.requireLock();
        for (const auto &[name, value, origin] : lock.keys()) {
            std::cmatch found;
            if (!std::regex_match(name.begin(), name.end(), found, key)) continue;
            const std::string id = found[1];
            tc.with<Session>(id)([&] { known.emplace(tc->sw.pi.chosen, id); });
        }
        for (const auto &[chosen, id] : known) {
            visitors_.push_back(id);
            chosen_ = chosen;
        }

        // A server can be stopped once it runs, and nobody tells it to before.
        std::promise<void> runs;
        server_.new_task_queue = [&runs] {
            runs.set_value();
            return new httplib::ThreadPool(CPPHTTPLIB_THREAD_POOL_COUNT);
        };
        thread_ = std::thread([this] { server_.listen_after_bind(); });
        runs.get_future().wait();
        ending_.emplace(coordinator.onLayerActivation<Shutdown>([this] { stop(); }));
    }
    ~Web() {
        ending_.reset();
        stop();
        thread_.join();
    }
    /** Where it listens: `http://127.0.0.1:8013/`. */
    const std::string &address() const noexcept { return address_; }

private:
    void stop() {
        std::call_once(stopped_, [this] { server_.stop(); });
    }

    void listen(const station::Sw::Pi::Web &settings) {
        server_.set_default_headers({{"Cache-Control", "no-store"},
            {"X-Content-Type-Options", "nosniff"},
            {"Content-Security-Policy",
                "default-src 'none'; style-src 'self'; form-action 'self'"}});
        const std::chrono::duration<double> patience(settings.patience);
        server_.set_read_timeout(patience);
        server_.set_write_timeout(patience);
        server_.set_payload_max_length(4096);
        // A connection that is kept keeps a thread, for which the end waits.
        server_.set_keep_alive_timeout(1);
        // By the library's own options several stations would share a port, and nobody would know.
        server_.set_socket_options([](int socket) {
            const int yes = 1;
            setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        });
        const std::string host(settings.address);
        int port = settings.port;
        if (port == 0) port = server_.bind_to_any_port(host);
        else if (!server_.bind_to_port(host, port)) port = -1;
        if (port < 0) {
            throw std::runtime_error("cannot listen on port " + std::to_string(settings.port)
                + " of " + host
                + "; choose another with --port (0 takes any free one) or --address");
        }
        const bool is_v6 = host.find(':') != std::string::npos;
        address_ = "http://" + (is_v6 ? '[' + host + ']' : host) + ':' + std::to_string(port) + '/';
    }

    /** The context of this thread of the pool, which ends before the station does. */
    const Context &context() const {
        thread_local const Context tc(coordinator_, "/web");
        tc.syncLayers();
        return tc;
    }

    void page(const Request &request, Response &response) const {
        std::ostringstream out;
        const Context &tc = context();
        tc.with<Session>(session(request, response))([&] {
            const auto accepted = request.get_header_value("Accept-Language");
            tc.with<Language>(language(tc->sw.pi.language, accepted))(
                [&] { draw_page(out, tc, sensors_.readings()); });
        });
        response.set_content(out.str(), "text/html; charset=utf-8");
    }

    void choose(const Request &request, Response &response) {
        const auto choice = milieu::parse<Choice>(request.get_param_value("language"));
        if (!choice) {
            return refuse(
                response, 400, "language: it must be one of browser, en, de, fr, es, ar");
        }
        const auto id = session(request, response);
        const Context &tc = context();
        {
            const std::lock_guard<std::mutex> lock(choosing_);
            tc.with<Session>(id)([&] {
                tc->sw.pi.language = *choice;
                tc->sw.pi.chosen = ++chosen_;
            });
            remember(tc, id);
        }
        // The key set is not locked meanwhile, as it is in the paper (IV-A). Where another station
        // has written the same choice, the visitor's last word counts.
        coordinator_.persist("/sw/pi", MILIEU_OURS);
        response.set_redirect("/", 303);
    }

    /** Anybody may invent sessions, so those who chose longest ago are forgotten. */
    void remember(const Context &tc, const std::string &session) {
        visitors_.erase(
            std::remove(visitors_.begin(), visitors_.end(), session), visitors_.end());
        visitors_.push_back(session);
        while (visitors_.size() > tc->sw.pi.web.sessions) {
            tc.forget<Session>(visitors_.front());
            visitors_.pop_front();
        }
    }

    const milieu::Coordinator &coordinator_;
    const Sensors &sensors_;
    httplib::Server server_;
    std::string address_;
    /** Visitors who have chosen something; who did so longest ago is the first. */
    std::deque<std::string> visitors_;
    /** The number of the last choice; the file keeps that of each, and so their order. */
    std::uint64_t chosen_ = 0;
    std::mutex choosing_;
    std::once_flag stopped_;
    std::thread thread_;
    std::optional<milieu::Registration> ending_;
};
