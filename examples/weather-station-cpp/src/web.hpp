/*
 * The web server: a page in each visitor's language. Each thread of its pool has a context.
 */
#pragma once

#include "sensors.hpp"

#include <httplib.h>

#include <deque>
#include <mutex>
#include <thread>

/** Draws what the visitor sees whose session and language are entered. */
void draw_page(std::ostream &out, const Context &tc, const Readings &readings);

class Web {
public:
    /** Serves until the layer Shutdown is activated. */
    Web(const milieu::Coordinator &coordinator, const Sensors &sensors);
    ~Web();
    /** Where it listens: `http://127.0.0.1:8013/`. */
    const std::string &address() const noexcept { return address_; }

private:
    void listen(const station::Sw::Pi::Web &settings);
    void page(const httplib::Request &request, httplib::Response &response) const;
    void choose(const httplib::Request &request, httplib::Response &response);
    void remember(const Context &tc, const std::string &session);
    const Context &context() const;

    const milieu::Coordinator &coordinator_;
    const Sensors &sensors_;
    httplib::Server server_;
    std::string address_;
    /** Visitors who have chosen something; who did so longest ago is the first. */
    std::deque<std::string> visitors_;
    std::mutex choosing_;
    std::once_flag stopped_;
    std::thread thread_;
    std::optional<milieu::Registration> ending_;
};
