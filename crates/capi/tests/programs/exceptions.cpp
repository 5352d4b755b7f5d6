// Exceptions of callbacks: each goes on where the call fails in which it was thrown, and nowhere
// else, and is gone when nobody can get it any more.

#include "check.hpp"
#include "station.hpp"

#include <thread>

using Context = milieu::ThreadContext<station::Environment>;

struct Tamper {
    static constexpr std::string_view id() { return "tamper"; }
    std::string operator()() const { return "active"; }
};

struct Security {
    static constexpr std::string_view id() { return "security"; }
    std::string operator()() const { return "A"; }
};

/** How many exceptions there are. */
static int alive = 0;

struct Numbered : std::runtime_error {
    explicit Numbered(int number) : std::runtime_error(std::to_string(number)), number(number) {
        ++alive;
    }
    Numbered(const Numbered &other) : std::runtime_error(other), number(other.number) { ++alive; }
    ~Numbered() override { --alive; }
    int number;
};

/** The exception that a call throws. */
template <class Call>
int number_of(Call &&call) {
    try {
        call();
    } catch (const Numbered &thrown) {
        return thrown.number;
    }
    ASSERT(!"it throws");
    return 0;
}

static milieu_result refuses(void *, milieu_activation *) { return MILIEU_INVALID; }

static milieu_layer tamper() { return milieu_layer_of("tamper", "active"); }

/** What C code does: it takes no notice of exceptions. */
static void calls_of_c(milieu::Coordinator &coordinator) {
    Context tc(coordinator);
    int number = 1;
    {
        auto thrown = coordinator.onLayerActivation<Tamper>([&] { throw Numbered(number); });
        ASSERT(milieu_context_activate(tc.c(), tamper()) == MILIEU_CALLBACK);
        ASSERT(milieu_message() == std::string("an action of layer `tamper` has failed: 1"));
        tc.deactivate<Tamper>();
        // Another one since: that of then is gone.
        number = 2;
        ASSERT(number_of([&] { tc.activate<Tamper>(); }) == 2 && alive == 0);
        tc.deactivate<Tamper>();
        ASSERT(milieu_context_activate(tc.c(), tamper()) == MILIEU_CALLBACK);
        tc.deactivate<Tamper>();
    }
    // The action of C that fails now has thrown nothing, nor said anything.
    milieu_registration *refusing;
    ASSERT(milieu_coordinator_on_activation(coordinator.c(), milieu_text_of("tamper"), refuses,
               nullptr, nullptr, &refusing) == MILIEU_OK);
    const std::string why = thrown(MILIEU_CALLBACK, [&] { tc.activate<Tamper>(); });
    ASSERT(has(why, "as the program's callback said") && alive == 0);
    milieu_registration_free(refusing);
    tc.deactivate<Tamper>();
}

/** Calls within callbacks, whose failures are caught or go on. */
static void calls_within_calls(milieu::Coordinator &coordinator) {
    // Of the same coordinator the actions would wait for those that run.
    milieu::Coordinator other;
    Context tc(coordinator), inner(other);
    bool catches = true;
    auto within = other.onLayerActivation<Security>([] { throw Numbered(3); });
    auto outer = coordinator.onLayerActivation<Tamper>([&] {
        if (catches) {
            ASSERT(number_of([&] { inner.activate<Security>(); }) == 3);
        } else {
            inner.activate<Security>();
        }
    });
    tc.activate<Tamper>();
    tc.deactivate<Tamper>();
    inner.deactivate<Security>();
    ASSERT(alive == 0);
    catches = false;
    ASSERT(number_of([&] { tc.activate<Tamper>(); }) == 3 && alive == 0);
    tc.deactivate<Tamper>();
    inner.deactivate<Security>();
    // One that leaves a block, by which nothing of them is touched.
    const auto body = [&] { tc.with<Tamper>()([&] { throw Numbered(4); }); };
    ASSERT(number_of(body) == 4 && alive == 0);
    // And one that comes out of a block while another call fails.
    const auto both = [&] {
        tc.with<Tamper>()([&] {
            ASSERT(number_of([&] { inner.activate<Security>(); }) == 3);
            throw Numbered(5);
        });
    };
    ASSERT(number_of(both) == 5 && alive == 0);
    inner.deactivate<Security>();
    // Of several the first goes on.
    auto second = other.onLayerActivation<Security>([] { throw Numbered(6); });
    ASSERT(number_of([&] { inner.activate<Security>(); }) == 3 && alive == 0);
    inner.deactivate<Security>();
}

/** What is no std::exception, and what says something that is no text. */
static void other_exceptions(milieu::Coordinator &coordinator) {
    Context tc(coordinator);
    {
        auto thrown = coordinator.onLayerActivation<Tamper>([] { throw 7; });
        try {
            tc.activate<Tamper>();
            ASSERT(!"it throws");
        } catch (int number) {
            ASSERT(number == 7 && has(milieu_message(), "no std::exception"));
        }
        tc.deactivate<Tamper>();
    }
    auto thrown = coordinator.onLayerActivation<Tamper>([] { throw std::range_error("\xff"); });
    try {
        tc.activate<Tamper>();
        ASSERT(!"it throws");
    } catch (const std::range_error &error) {
        ASSERT(error.what() == std::string("\xff"));
    }
    tc.deactivate<Tamper>();
}

int main() {
    milieu::Coordinator coordinator;
    calls_of_c(coordinator);
    calls_within_calls(coordinator);
    other_exceptions(coordinator);
    // What nobody has asked for goes with its thread.
    std::thread([&] {
        Context tc(coordinator);
        auto thrown = coordinator.onLayerActivation<Tamper>([] { throw Numbered(8); });
        ASSERT(milieu_context_activate(tc.c(), tamper()) == MILIEU_CALLBACK && alive == 1);
    }).join();
    ASSERT(alive == 0);
    return 0;
}
