// Layers from C++: by their classes and ids, of every kind, from contexts and from actions.

#include "by_hand.hpp"
#include "check.hpp"
#include "station.hpp"

#include <array>
#include <stdexcept>

using milieu::Coordinator;
using Context = milieu::ThreadContext<station::Environment>;
using station::layer::Session;
using station::layer::Tamper;

// As the paper has it: the id is not static, and the constructor takes the value.
class Clearance {
public:
    Clearance(std::string level) : level_(std::move(level)) {}
    std::string id() const { return "security"; }
    std::string operator()() const { return level_; }

private:
    std::string level_;
};

// Layers by what their constructors take, where the id is not static, and by their ids.
static void layers_by_ids() {
    using milieu::Named;
    Coordinator c;
    c.assign("/watchdog/A/enable", "true");
    Context tc(c);
    const auto &enable = tc->watchdog.enable;
    int activated = 0, deactivated = 0;
    auto by_class = c.onLayerActivation<Clearance>([&] { ++activated; }, "any");
    auto by_id = c.onLayerActivation("security", [&](milieu::Activation &it) {
        activated += 10;
        ASSERT(it.value() == "A");
    });
    auto off_by_class = c.onLayerDeactivation<Clearance>([&] { ++deactivated; }, "any");
    auto off_by_id = c.onLayerDeactivation("security", [&] { deactivated += 10; });
    tc.activate<Clearance>("A");
    ASSERT(enable && activated == 11 && tc.is_active<Clearance>("any") && tc.layer<Clearance>("") == "A");
    tc.without<Clearance>("any")([&] { ASSERT(!enable); });
    tc.with<Session>("anna").without<Clearance>("any")([&] { ASSERT(!enable); });
    tc.without("security").with<Session>("anna")([&] {
        ASSERT(!enable && tc->station.language.getName() == "/station/anna/language");
    });
    tc.with<Session>("anna").without("security")([&] { ASSERT(!enable); });
    tc.deactivate<Clearance>("any");
    ASSERT(!enable && deactivated == 11);

    const std::string id = "security";
    tc.with(Named(id, "A"))([&] { ASSERT(enable); });
    tc.with(Named{"session", "anna"}).with(Named(id, "A"))([&] {
        ASSERT(enable && tc.layer("session") == "anna");
    });
    tc.with<Named>("session", tc->station.language)([&] { ASSERT(tc.layer("session") == "en"); });
    tc.activate(Named(id, "A"));
    ASSERT(enable && activated == 22);
    tc.deactivate(id);
    ASSERT(!enable && deactivated == 22);
    auto tamper = c.onLayerActivation<Tamper>([](milieu::Activation &it) {
        it.activate(Named("session", "ben"));
        it.activate<Clearance>("A");
    });
    auto end = c.onLayerDeactivation<Tamper>([](milieu::Activation &it) {
        it.deactivate("session");
        it.deactivate<Clearance>("any");
    });
    tc.activate<Tamper>();
    ASSERT(enable && tc.layer("session") == "ben");
    tc.deactivate<Tamper>();
    ASSERT(!enable && tc.layers().empty());

    tc.with<Session>("anna")([&] { tc->station.language = "fr"; });
    tc->station.language.context().forget(Named("session", "anna"));
    tc.with<Session>("anna")([&] {
        ASSERT(tc->station.language == "en");
        tc->station.language = "fr";
    });
    tc->station.language.context().forget<Session>("anna");
    tc.with<Session>("anna")([&] { ASSERT(tc->station.language == "en"); });
}

// Contextual values and captured layers together with others, in any order: the last of an id wins.
static void layers_of_any_kind() {
    using milieu::follow;
    Coordinator c;
    c.assign("/station/de/hello", "Hallo");
    c.assign("/station/otto/language", "de");
    Context tc(c);
    const auto &hello = tc->station.hello;
    auto &language = tc->station.language;
    tc.with<Session>("otto").with(follow(language))([&] {
        ASSERT(hello == "Hallo" && tc.layer("session") == "otto");
        language = "en";
        ASSERT(hello == "Hello");
        language = "de";
    });
    tc.with(follow(language)).with<Session>("otto")([&] { ASSERT(hello == "Hallo"); });
    tc.with(follow(language)).with<Language>("de")([&] {
        ASSERT(hello == "Hallo");
        language = "fr";
        ASSERT(hello == "Hallo");
        language = "en";
    });
    tc.with<Language>("de").with(follow(language))([&] { ASSERT(hello == "Hello"); });
    tc.with(follow(language)).without<Language>()([&] { ASSERT(!tc.layer("language")); });
    auto both = tc.without<Session>().with(follow(language)).with(milieu::Named("session", "otto"));
    {
        auto entered = std::move(both).enter();
        ASSERT(hello == "Hallo");
    }
    ASSERT(hello == "Hello" && tc.layers().empty());

    Context other(c);
    auto outer = tc.with<Session>("otto").with<Security>("A").enter();
    const milieu::Captured captured = tc.capture();
    other.with(captured).with(follow(other->station.language))([&] {
        ASSERT(other->station.hello == "Hallo" && other.layer("security") == "A");
    });
    other.with<Security>("B").with(captured).with<Session>("anna")([&] {
        ASSERT(other.layer("security") == "A" && other.layer("session") == "anna");
    });
    other.with(captured).without<Security>()([&] {
        ASSERT(other.layer("session") == "otto" && !other.layer("security"));
    });
    auto inner = tc.with<Session>("ben").without<Security>().with<Language>("de").enter();
    const milieu::Captured further = tc.capture();
    other.with(captured).with(further)([&] {
        ASSERT(other.layer("session") == "ben" && !other.layer("security"));
        ASSERT(other->station.hello == "Hallo");
    });
    other.with(further).with<Language>("en").with(captured)([&] {
        ASSERT(other.layer("session") == "otto" && other.layer("security") == "A");
        ASSERT(other.layer("language") == "en");
    });
    ASSERT(other.layers().empty());

    milieu::ThreadContext<station::Environment, milieu::NoContext> none(c);
    none.with<Session>("otto").with(follow(none->station.language)).with(captured)([&] {
        ASSERT(none->station.hello == "Hello");
    });
}

// A thread-based layer that an action activates is evaluated by each context, as any is.
struct Pool : milieu::ThreadLayer {
    explicit Pool(std::string value) : level(std::move(value)) {}
    static constexpr std::string_view id() { return "security"; }
    std::string operator()(const milieu::Scope &scope) const {
        const auto language = scope.get("/station/%session%/language");
        if (language == "boom") throw std::domain_error("evaluated");
        return scope.role() == "/pool" ? level : std::string();
    }
    std::array<std::string_view, 1> depends_on() const { return {"/station/%session%/language"}; }
    std::string level;
};
struct Role : milieu::ThreadLayer {
    static constexpr std::string_view id() { return "language"; }
    std::string_view operator()() const { return "de"; }
};

static void thread_layers_of_actions() {
    Coordinator c;
    c.assign("/watchdog/A/enable", "true");
    Context tc(c, "/main"), pool(c, "/pool");
    auto registration = c.onLayerActivation<Tamper>([](milieu::Activation &it) {
        it.activate<Pool>("A");
        it.activate<Role>();
    });
    tc.activate<Tamper>();
    ASSERT(!tc->watchdog.enable && !pool->watchdog.enable && tc.layer("language") == "de");
    pool.sync();
    ASSERT(pool->watchdog.enable && pool.layer("security") == "A" && !tc.layer("security"));
    ASSERT(pool.layer("language") == "de");
    try {
        pool->station.language = "boom";
        ASSERT(!"it throws");
    } catch (const std::domain_error &) {
    }
    ASSERT(!pool.layer("security"));
    pool.deactivate<Pool>("any");
    tc.deactivate<Tamper>();
    // Where it fails at once, the exception goes on from the switch.
    try {
        tc.sync();
        tc.activate<Tamper>();
        ASSERT(!"it throws");
    } catch (const std::domain_error &) {
    }
    ASSERT(tc.is_active<Tamper>() && !tc.layer("security"));
}

// A contextual value that an action activates is in each context its own.
static void values_of_actions() {
    using milieu::follow;
    Coordinator c;
    c.assign("/station/de/hello", "Hallo");
    c.assign("/station/otto/language", "de");
    Context tc(c), other(c);
    auto otto = other.with<Session>("otto").enter();
    auto registration = c.onLayerActivation<Tamper>([](milieu::Activation &it) {
        it.activate(follow<station::Station::Language>());
    });
    tc.activate<Tamper>();
    other.sync();
    ASSERT(tc.layer("language") == "en" && other.layer("language") == "de");
    ASSERT(tc->station.hello == "Hello" && other->station.hello == "Hallo");
    tc->station.language = "de";
    ASSERT(tc->station.hello == "Hallo");
    tc.deactivate("language");
    tc.deactivate<Tamper>();

    // One that is at hand, of whichever context it is.
    auto by_value = c.onLayerActivation<Security>(
        [&language = other->station.language](milieu::Activation &it) { it.activate(follow(language)); });
    tc.activate<Security>("A");
    ASSERT(tc.layer("language") == "de");
    tc.deactivate("language");

    int refused = 0;
    auto again = c.onLayerActivation("language", [&](milieu::Activation &it) {
        try {
            it.activate(follow<station::Station::Language>());
        } catch (const milieu::Error &error) {
            refused += error.result() == MILIEU_CYCLE;
        }
    });
    tc.activate(follow(tc->station.language));
    ASSERT(refused == 1 && tc.layer("language") == "de");
}

int main() {
    layers_by_ids();
    layers_of_any_kind();
    thread_layers_of_actions();
    values_of_actions();
}
