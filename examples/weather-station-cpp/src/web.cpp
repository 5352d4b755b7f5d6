#include "web.hpp"

#include <algorithm>
#include <future>
#include <iomanip>
#include <random>

namespace {

using Choice = station::Sw::Pi::Language;
using httplib::Request;
using httplib::Response;

const std::string COOKIE = "weather-station-session=";

bool is_session(std::string_view text) {
    return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

/** Who asks: what the cookie says, or somebody new, who gets one. */
std::string session(const Request &request, Response &response) {
    const std::string cookies = "; " + request.get_header_value("Cookie") + ';';
    const auto at = cookies.find("; " + COOKIE);
    if (at != std::string::npos) {
        const auto first = at + 2 + COOKIE.size();
        auto id = cookies.substr(first, cookies.find(';', first) - first);
        if (is_session(id)) return id;
    }
    std::random_device random;
    std::ostringstream id;
    for (int i = 0; i < 4; ++i) id << std::hex << std::setw(8) << std::setfill('0') << random();
    response.set_header("Set-Cookie",
        COOKIE + id.str() + "; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax");
    return id.str();
}

/** The value of the layer Language: what the visitor chose, or else what the browser asks for. */
std::string language(const Choice &chosen, const std::string &accepted) {
    if (chosen != station::Sw::Pi::LanguageChoice::Browser) {
        return std::string(Choice::texts[std::size_t(chosen.get())]);
    }
    std::istringstream ranges(accepted);
    for (std::string range; std::getline(ranges >> std::ws, range, ',');) {
        const auto code = range.substr(0, range.find_first_of("-;"));
        const auto known = std::find(std::begin(Choice::texts) + 1, std::end(Choice::texts), code);
        if (known != std::end(Choice::texts)) return code;
    }
    return "en";
}

void refuse(Response &response, int status, const std::string &why) {
    response.status = status;
    response.set_content(why + '\n', "text/plain; charset=utf-8");
}

} // namespace

Web::Web(const milieu::Coordinator &coordinator, const Sensors &sensors)
    : coordinator_(coordinator), sensors_(sensors) {
    server_.Get(
        "/", [this](const Request &request, Response &response) { page(request, response); });
    server_.Post("/language",
        [this](const Request &request, Response &response) { choose(request, response); });
    server_.set_mount_point("/assets", ASSETS);
    server_.set_error_handler([](const Request &, Response &response) {
        // What a handler has thrown, the library has put there.
        const auto thrown = response.get_header_value("EXCEPTION_WHAT");
        if (response.body.empty()) {
            refuse(response, response.status, !thrown.empty() ? thrown
                : "this station has GET / and POST /language, with a body of at most 4096 bytes");
        }
    });
    const Context tc(coordinator);
    listen(tc->sw.pi.web);

    // Who has chosen something before, by the names of keys: /sw/pi/<session>/language.
    for (const milieu::Key &key : coordinator.requireLock().keys()) {
        std::istringstream name{std::string(key.name)};
        std::string level;
        while (std::getline(name, level, '/') && !is_session(level)) {}
        if (is_session(level)) visitors_.push_back(level);
    }

    // A server can be stopped once it runs, and nobody tells it to before.
    std::promise<void> runs;
    server_.new_task_queue = [&runs] {
        runs.set_value();
        return new httplib::ThreadPool(CPPHTTPLIB_THREAD_POOL_COUNT);
    };
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    runs.get_future().wait();
    ending_.emplace(coordinator.onLayerActivation<Shutdown>(
        [this] { std::call_once(stopped_, [this] { server_.stop(); }); }));
}

Web::~Web() {
    ending_.reset();
    std::call_once(stopped_, [this] { server_.stop(); });
    thread_.join();
}

void Web::listen(const station::Sw::Pi::Web &settings) {
    server_.set_default_headers({{"Cache-Control", "no-store"},
        {"X-Content-Type-Options", "nosniff"},
        {"Content-Security-Policy", "default-src 'none'; style-src 'self'; form-action 'self'"}});
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
    const int port = settings.port == 0                     ? server_.bind_to_any_port(host)
                   : server_.bind_to_port(host, settings.port) ? settings.port.get()
                                                               : -1;
    if (port < 0) {
        throw std::runtime_error("cannot listen on port " + std::to_string(settings.port) + " of "
            + host + "; choose another with --port (0 takes any free one) or --address");
    }
    const bool is_v6 = host.find(':') != std::string::npos;
    address_ = "http://" + (is_v6 ? '[' + host + ']' : host) + ':' + std::to_string(port) + '/';
}

/** The context of this thread of the pool, which ends before the station does. */
const Context &Web::context() const {
    thread_local const Context tc(coordinator_, "/web");
    return tc;
}

void Web::page(const Request &request, Response &response) const {
    std::ostringstream out;
    const Context &tc = context();
    tc.syncLayers();
    tc.with<Session>(session(request, response))([&] {
        const auto accepted = request.get_header_value("Accept-Language");
        tc.with<Language>(language(tc->sw.pi.language, accepted))(
            [&] { draw_page(out, tc, sensors_.readings()); });
    });
    response.set_content(out.str(), "text/html; charset=utf-8");
}

void Web::choose(const Request &request, Response &response) {
    const auto known = std::find(std::begin(Choice::texts), std::end(Choice::texts),
        request.get_param_value("language"));
    if (known == std::end(Choice::texts)) {
        return refuse(response, 400, "language: it must be one of browser, en, de, fr, es, ar");
    }
    const auto id = session(request, response);
    const Context &tc = context();
    tc.syncLayers();
    {
        const std::lock_guard<std::mutex> lock(choosing_);
        tc.with<Session>(id)([&] {
            tc->sw.pi.language = station::Sw::Pi::LanguageChoice(known - std::begin(Choice::texts));
        });
        remember(tc, id);
    }
    // The key set is not locked meanwhile, as it is in the paper (IV-A). Where another station has
    // written the same choice, the visitor's last word counts.
    coordinator_.persist("/sw/pi", MILIEU_OURS);
    response.set_redirect("/", 303);
}

/** Anybody may invent sessions, so those who chose longest ago are forgotten. */
void Web::remember(const Context &tc, const std::string &session) {
    visitors_.erase(std::remove(visitors_.begin(), visitors_.end(), session), visitors_.end());
    visitors_.push_back(session);
    while (visitors_.size() > tc->sw.pi.web.sessions) {
        tc.forget<Session>(visitors_.front());
        visitors_.pop_front();
    }
}
