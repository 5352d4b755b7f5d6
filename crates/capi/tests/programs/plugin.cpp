// A library that is loaded while a program runs, in C++: exceptions pass through the library that
// it shares with its host, or has for itself.

#include "check.hpp"
#include "plugin.h"
#include "station.hpp"

#include <stdexcept>
#include <thread>

using Context = milieu::ThreadContext<station::Environment>;
using station::layer::Session;
using station::layer::Tamper;

namespace {

/** Its own exception, with a type that nobody else has. */
struct Acted : std::domain_error {
    using std::domain_error::domain_error;
};

/** What its action throws comes out of the switch. */
template <class Switch>
void throws(Switch &&switches) {
    try {
        switches();
    } catch (const Acted &error) {
        ASSERT(std::string_view(error.what()) == "acted");
        return;
    }
    ASSERT(!"it throws");
}

// A layer that each context evaluates, and throws where it is asked for another role.
struct Saving : milieu::ThreadLayer {
    static constexpr std::string_view id() { return "power"; }
    std::string operator()(const milieu::Scope &scope) const {
        if (scope.role() == "/plugin/thread") throw Acted("acted");
        return "saving";
    }
};

} // namespace

extern "C" const char *plugin_milieu(void) { return milieu_version(); }

extern "C" int plugin_run(int value, plugin_meanwhile meanwhile) {
    milieu::Coordinator coordinator;
    Context tc(coordinator, "/plugin");
    ASSERT(tc->value == 0 && tc.layers().empty());
    int acted = 0;
    auto action = coordinator.onLayerActivation<Tamper>([&] {
        ++acted;
        meanwhile();
        throw Acted("acted");
    });
    tc.with<Session>("plugin")([&] {
        tc->value = value;
        tc->station.language = "de";
        meanwhile();
        ASSERT(tc->station.language == "de");
        throws([&] { tc.activate<Tamper>(); });
        ASSERT(tc.is_active<Tamper>() && acted == 1);
        // And in a thread of the plug-in's, whose context goes with it.
        std::thread([&, mine = tc.fork("/plugin/thread")] {
            ASSERT(mine->station.language == "de" && mine.is_active<Tamper>());
            mine.deactivate<Tamper>();
            throws([&] { mine.activate<Tamper>(); });
            mine->value = value + 1;
            throws([&] { mine.activate<Saving>(); });
            ASSERT(!mine.is_active("power"));
        }).join();
        ASSERT(acted == 2 && tc->value == value);
        tc.sync();
        ASSERT(tc->value == value + 1 && tc.layer("power") == "saving");
    });
    try {
        tc->station.interval = 0;
        ASSERT(!"it throws");
    } catch (const milieu::Error &error) {
        ASSERT(error.result() == MILIEU_INVALID);
    }
    return tc->value - 1;
}
