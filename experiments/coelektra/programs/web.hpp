// The case study on a library for web servers, as the paper's is on one.
#pragma once

#include "case-study.hpp"

#include <httplib.h>

#include <cstdlib>
#include <limits>
#include <sstream>

template <class Kind>
class Web {
    using Context = typename CaseStudy<Kind>::Context;

public:
    explicit Web(CaseStudy<Kind> &study) : study_(study) {}

    /** Listens, and serves in threads from then on; returns the port. */
    int serve() {
        const Options &options = study_.options;
        server_.new_task_queue = [&] { return new httplib::ThreadPool(options.threads); };
        server_.set_keep_alive_max_count(
            options.closes ? 1 : std::numeric_limits<std::size_t>::max());
        // Who is slow, as a machine may be that does something else, is waited for.
        server_.set_read_timeout(60);
        server_.set_keep_alive_timeout(60);
        // It writes head and body one after the other.
        server_.set_tcp_nodelay(true);
        int listener = -1;
        server_.set_socket_options([&](int socket) { listener = socket; });
        server_.Get("/begin", [this](const httplib::Request &, httplib::Response &) {
            study_.begin();
        });
        server_.Get("/end", [this](const httplib::Request &, httplib::Response &response) {
            response.set_content(study_.end(), "text/plain");
        });
        server_.Get("/([0-9]+)",
            [this](const httplib::Request &request, httplib::Response &response) {
                std::ostringstream out;
                study_.page(context(), request.matches[1], out);
                response.set_content(out.str(), "text/html; charset=utf-8");
            });
        server_.Get("/station/([0-9]+)",
            [this](const httplib::Request &request, httplib::Response &response) {
                std::ostringstream out;
                study_.station(context(), request.matches[1], out);
                response.set_content(out.str(), "text/html; charset=utf-8");
            });
        const int port = server_.bind_to_any_port(options.host);
        // The library lets no more than five wait to be accepted.
        if (port < 0 || listen(listener, 1024) != 0) {
            std::perror("cannot listen");
            std::exit(1);
        }
        std::thread([this] { server_.listen_after_bind(); }).detach();
        return port;
    }

private:
    /** The context of this thread of the pool. */
    const Context &context() const {
        thread_local const Context tc = study_.context();
        return tc;
    }

    CaseStudy<Kind> &study_;
    httplib::Server server_;
};
