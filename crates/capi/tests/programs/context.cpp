// Contexts from C++: what the paper's listings do not show.

#include "by_hand.hpp"
#include "check.hpp"
#include "station.hpp"

#include <array>
#include <cmath>
#include <fstream>
#include <future>
#include <sstream>
#include <stdexcept>
#include <thread>

using milieu::Coordinator;
using Context = milieu::ThreadContext<station::Environment>;
using station::layer::Power;
using station::layer::Session;
using station::layer::Tamper;

// Whatever way a block is left, its layers are.
static void exceptions_unwind() {
    Coordinator c;
    Context tc(c);
    const auto &name = tc->station.language;
    try {
        tc.with<Session>("anna")([&] {
            tc.with<Session>("ben").with<Security>("A")([&] {
                ASSERT(name.getName() == "/station/ben/language");
                tc->station.language = "fr";
                throw std::runtime_error("out of here");
            });
        });
        ASSERT(!"it throws");
    } catch (const std::runtime_error &error) {
        ASSERT(std::string_view(error.what()) == "out of here");
    }
    ASSERT(name.getName() == "/station/%/language" && name == "en");
    ASSERT(tc.layers().empty() && tc.text("/station/%session%/language") == "en");
    ASSERT(!tc.text("/station/en/language"));
    auto early = [&]() -> int {
        auto session = tc.with<Session>("ben").enter();
        if (name == "fr") return 1;
        return 2;
    };
    ASSERT(early() == 1 && name == "en");
}

static void chains() {
    Coordinator c;
    c.assign("/watchdog/A/enable", "true");
    Context tc(c);
    tc.with<Session>("anna").with<Session>("ben").with<Security>("A")([&] {
        ASSERT(tc.layer("session") == "ben" && tc->watchdog.enable);
        tc.without<Security>()([&] { ASSERT(!tc->watchdog.enable); });
        tc.with<Session>("carl").without<Security>()([&] {
            ASSERT(tc.layer("session") == "carl" && !tc.layer("security"));
        });
        ASSERT(tc->watchdog.enable);
    });
    // What a block returns, its caller gets; a reference stays one.
    std::string text = "kept";
    std::string &same = tc.with<Session>("a")([&]() -> std::string & { return text; });
    ASSERT(&same == &text);
    auto moved = tc.with<Session>("a")([&] { return std::make_unique<int>(3); });
    ASSERT(*moved == 3);
}

static void values() {
    Coordinator c;
    Context tc(c);
    auto &env = *tc;
    using Level = station::Environment::Station::LevelChoice;
    env.station.level = Level::VeryHigh;
    ASSERT(env.station.level == Level::VeryHigh);
    switch (env.station.level) {
    case Level::Low: ASSERT(false); break;
    case Level::VeryHigh: break;
    }
    env.station.factor = 0.1;
    env.station.factor *= 3;
    ASSERT(env.station.factor == 0.1 * 3);
    env.station.small = 0.1f;
    ASSERT(env.station.small == 0.1f);
    env.station.big -= 5u;
    ASSERT(env.station.big == UINT64_MAX - 5);
    env.value = 7;
    ASSERT(env.value++ == 7 && --env.value == 7);
    env.value %= 4;
    ASSERT(env.value == 3);
    // The other side may be a contextual value, of another type or the same.
    env.value += env.value;
    ASSERT(env.value == 6);
    env.value -= env.station.interval;
    ASSERT(env.value == -54);
    env.station.factor = 0.5;
    env.value *= env.station.factor;
    ASSERT(env.value == -27);
    env.station.factor *= env.value;
    ASSERT(env.station.factor == -13.5);
    env.station.factor /= env.station.factor;
    ASSERT(env.station.factor == 1);
    env.value = 7;
    env.value %= env.station.interval;
    env.value &= env.value;
    env.value |= env.station.interval;
    ASSERT(env.value == (7 | 60));
    env.value ^= env.value;
    ASSERT(env.value == 0);
    env.value = 3;
    env.value <<= 2;
    ASSERT(env.value == 12);
    env.value >>= env.value.get() - 11;
    ASSERT(env.value == 6);
    env.value = 1;
    env.value <<= env.value;
    ASSERT(env.value == 2);
    env.station.big = 1;
    env.station.big <<= 63;
    ASSERT(env.station.big == UINT64_C(1) << 63);
    thrown(MILIEU_INVALID, [&] { env.station.interval <<= 10; });
    ASSERT(env.station.interval == 60);
    env.station.big = UINT64_MAX;
    env.station.factor = 0.1;
    env.value = 3;

    auto &language = env.station.language;
    language = std::string("de");
    language += "_AT";
    std::string copy = language;
    std::string_view seen = language;
    std::ostringstream out;
    out << language << ' ' << env.value;
    ASSERT(copy == "de_AT" && seen == "de_AT" && out.str() == "de_AT 3");
    ASSERT(language != "de" && "de_AT" == language && !language.empty());
    env.station.hello = language;
    ASSERT(env.station.hello == "de_AT");
    language.unset();
    ASSERT(language == "en");

    env.station.hosts = {"oven", "fridge"};
    ASSERT(env.station.hosts.size() == 2 && env.station.hosts[1] == "fridge");
    std::string all;
    for (std::string_view host : env.station.hosts) all += host;
    ASSERT(all == "ovenfridge");
    env.station.ports = std::vector<int>{80, 443};
    ASSERT(env.station.ports[0] == 80 && *(env.station.ports.end() - 1) == 443);
    env.station.ports.unset();
    ASSERT(env.station.ports.empty());
    thrown(MILIEU_INVALID, [&] { env.station.hosts = {"a", "b", "c", "d"}; });
    const std::vector<std::string> hosts = {"oven", "fridge"};
    ASSERT(tc.elements("/station/%session%/hosts/#") == hosts);
    ASSERT(tc.elements("/station/%session%/hosts") == hosts && tc.elements("/other").empty());
    thrown(MILIEU_WRONG_NAME, [&] { (void)tc.elements("hosts"); });

    // The same value of another context is a value, too.
    Context other(c);
    env.value = 1;
    other->value = env.value;
    other->value = other->value;
    ASSERT(other->value == 1);

    auto text = thrown(MILIEU_INVALID, [&] { env.station.interval = 4000; });
    ASSERT(text.find("/station/%/interval") != std::string::npos);
    ASSERT(env.station.interval == 60);
    ASSERT(env.station.serial == "4711");
    tc.with<Power>(Power::Saving)(
        [&] { ASSERT(env.station.interval.getName() == "/station/saving/interval"); });
    Session anna("anna");
    tc.with<Session>("anna")([&] { language = "fr"; });
    tc.forget<Session>("anna");
    tc.with<Session>("anna")([&] { ASSERT(language == "en"); });
}

struct Failing : milieu::ThreadLayer {
    static constexpr std::string_view id() { return "security"; }
    std::string operator()(const milieu::Scope &scope) const {
        if (scope.get("/station/%session%/language") == "boom") throw std::domain_error("evaluated");
        return std::string(scope.get("/station/%session%/language"));
    }
    std::array<std::string_view, 1> depends_on() const { return {"/station/%session%/language"}; }
};

static void exceptions_of_callbacks() {
    Coordinator c;
    Context tc(c), other(c);
    int others = 0;
    {
        auto first = c.onLayerActivation<Tamper>([] { throw std::out_of_range("acted"); });
        auto second = c.onLayerActivation<Tamper>([&](milieu::Activation &activation) {
            ++others;
            ASSERT(activation.layer() == "tamper" && activation.value() == "active");
            activation.activate<Session>("anna");
            activation.deactivate<Session>();
            throw std::logic_error("too late: the first goes on");
        });
        try {
            tc.activate<Tamper>();
            ASSERT(!"it throws");
        } catch (const std::out_of_range &error) {
            ASSERT(std::string_view(error.what()) == "acted");
        }
        ASSERT(others == 1 && tc.layer("tamper") == "active");
        tc.deactivate<Tamper>();
    }
    tc.activate<Tamper>();
    ASSERT(others == 1);

    tc.activate<Failing>();
    ASSERT(tc.layer("security") == "en");
    c.assign("/station/boom/language", "boom");
    c.assign("/station/fine/language", "fine");
    other.sync();
    auto boom = [&] { other.with<Session>("boom")([] { ASSERT(!"it is not entered"); }); };
    try {
        boom();
        ASSERT(!"it throws");
    } catch (const std::domain_error &error) {
        ASSERT(std::string_view(error.what()) == "evaluated");
    }
    ASSERT(!other.layer("session") && other.layer("security") == "en");
    other.with<Session>("fine")([&] { ASSERT(other.layer("security") == "fine"); });
    // The switch that leads to it stands, and the layer is inactive here.
    try {
        tc.activate<Session>("boom");
        ASSERT(!"it throws");
    } catch (const std::domain_error &) {
    }
    ASSERT(tc.layer("session") == "boom" && !tc.layer("security"));
    // And so does an assignment.
    tc.deactivate<Session>();
    ASSERT(tc.layer("security") == "en");
    try {
        tc->station.language = "boom";
        ASSERT(!"it throws");
    } catch (const std::domain_error &) {
    }
    ASSERT(tc->station.language == "boom" && !tc.layer("security"));
}

static_assert(std::is_nothrow_destructible_v<milieu::Entered>);
static_assert(std::is_nothrow_destructible_v<Context>);
static_assert(std::is_nothrow_destructible_v<milieu::Registration>);

// A layer that throws while a block is left: the block is left, and what can be told is.
static void exceptions_while_leaving() {
    Coordinator c;
    Context tc(c);
    auto &language = tc->station.language;
    tc.activate<Failing>();
    c.assign("/station/fine/language", "fine");
    // In the block all is well; outside of it the layer cannot be evaluated.
    auto enter = [&] {
        c.remove("/station/%/language");
        tc.sync();
        auto entered = tc.with<Session>("fine").enter();
        ASSERT(tc.layer("security") == "fine");
        c.assign("/station/%/language", "boom");
        tc.sync();
        ASSERT(language == "fine");
        return entered;
    };
    auto is_left = [&] { return language == "boom" && !tc.layer("session") && !tc.layer("security"); };
    {
        auto destroyed = enter();
    }
    ASSERT(is_left());
    auto left = enter();
    try {
        left.leave();
        ASSERT(!"it throws");
    } catch (const std::domain_error &) {
    }
    ASSERT(is_left());
    // Of two exceptions the one that is on its way goes on.
    try {
        auto destroyed = enter();
        throw std::length_error("first");
    } catch (const std::length_error &) {
    }
    ASSERT(is_left());
    // One that was lost does not come up later.
    c.assign("/station/%/language", "well");
    tc.sync();
    tc.with<Session>("fine")([&] { ASSERT(language == "fine"); });
    thrown(MILIEU_INVALID, [&] { tc->station.interval = 4000; });
}

static void forks_and_threads() {
    Coordinator c;
    Context tc(c, "/main");
    auto frame = tc.with<Session>("anna").with<Security>("A").enter();
    Context fork = tc.fork("/pool/1");
    ASSERT(fork.layer("session") == "anna" && !fork.layer("security"));
    ASSERT(fork.identity() != tc.identity());
    bool news = true;
    std::thread([&, moved = std::move(fork)] {
        news = moved.wait_for(std::chrono::microseconds(1));
        moved->station.language = "it";
    }).join();
    ASSERT(!news && tc.has_news());
    tc.sync();
    ASSERT(tc->station.language == "it");
    frame.leave();
    ASSERT(tc->station.language == "en");
    ASSERT(milieu_context_of(&*tc) == tc.c());
    ASSERT(tc->station.ports.context().c() == tc.c());
}

static_assert(std::is_nothrow_move_constructible_v<Context>);
static_assert(!std::is_move_assignable_v<Context> && !std::is_swappable_v<Context>);

// A context moves with its values, and what it has moved from does nothing in its place.
static void moves() {
    Coordinator c;
    Context first(c, "/first");
    const auto &enable = first->watchdog.enable;
    auto &language = first->station.language;
    first.activate<Tamper>();
    Context second = std::move(first);
    ASSERT(second.role() == "/first" && &second->station.language == &language);
    ASSERT(&second->watchdog.enable == &enable && language.context().c() == second.c());
    language = "de";
    second.with<Session>("anna")([&] { ASSERT(language.getName() == "/station/anna/language"); });
    ASSERT(second.is_active<Tamper>() && second->station.language == "de");

    ASSERT(!first.c() && !first.operator->());
    auto never = [] { ASSERT(!"it is entered"); };
    auto text = thrown(MILIEU_NULL, [&] { first.with<Session>("ben")(never); });
    ASSERT(text.find("`milieu_context` is null") != std::string::npos);
    thrown(MILIEU_NULL, [&] { first.with<Session>("ben").without<Tamper>()(never); });
    thrown(MILIEU_NULL, [&] { first.deactivate<Tamper>(); });
    thrown(MILIEU_NULL, [&] { first.activate<Session>("ben"); });
    thrown(MILIEU_NULL, [&] { first.sync(); });
    thrown(MILIEU_NULL, [&] { (void)first.has_news(); });
    thrown(MILIEU_NULL, [&] { first.wait(); });
    thrown(MILIEU_NULL, [&] { (void)first.layers(); });
    thrown(MILIEU_NULL, [&] { (void)first.role(); });
    thrown(MILIEU_NULL, [&] { (void)first.capture(); });
    thrown(MILIEU_NULL, [&] { (void)first.fork(); });
    thrown(MILIEU_NULL, [&] { first.forget<Session>("anna"); });
    ASSERT(second.is_active<Tamper>() && second.layers().size() == 1);

    // Where one is kept for later, the one that comes anew is made in its place.
    std::optional<Context> kept(std::move(second));
    ASSERT(&(*kept)->station.language == &language && !second.c());
    kept.emplace(c, "/later");
    ASSERT(kept->role() == "/later" && (*kept)->station.language == "de");
    std::vector<Context> several;
    for (int i = 0; i < 5; ++i) several.emplace_back(c, "/pool/" + std::to_string(i));
    for (int i = 0; i < 5; ++i) {
        const Context &tc = several[static_cast<std::size_t>(i)];
        ASSERT(tc.role() == "/pool/" + std::to_string(i) && milieu_context_of(&*tc) == tc.c());
    }
}

// An enumeration is its text, for people and in files, in both directions.
static void choices() {
    using Level = station::Environment::Station::LevelChoice;
    static_assert(to_string(Level::VeryHigh) == "very high");
    static_assert(to_string(static_cast<Level>(9)).empty());
    ASSERT(milieu::parse<Level>("very high") == Level::VeryHigh);
    ASSERT(!milieu::parse<Level>("Very High") && !milieu::parse<Level>(""));
    ASSERT(milieu::parse<Power::Choice>("full") == Power::Full);
    ASSERT(milieu::to_string(Level::Low) == "low");

    Coordinator c;
    Context tc(c);
    auto &level = tc->station.level;
    level = Level::VeryHigh;
    std::ostringstream out;
    out << level << ' ' << Level::Low << ' ' << Power::Saving << ' ' << tc->watchdog.enable;
    ASSERT(out.str() == "very high low saving 0");
    ASSERT(to_string(level) == "very high" && milieu::to_string(level) == "very high");
    level = *milieu::parse<Level>("low");
    ASSERT(level == Level::Low);
}

// Texts are compared in either order, whatever they come from.
static void comparisons() {
    Coordinator c;
    Context tc(c), other(c);
    auto &station = tc->station;
    const std::string string = "en";
    const std::string_view view = string;
    ASSERT(station.language == "en" && "en" == station.language);
    ASSERT(station.language == string && string == station.language);
    ASSERT(station.language == view && view == station.language);
    ASSERT(station.language != station.hello && station.language == other->station.language);
    station.hello = "en";
    ASSERT(station.language == station.hello && !(station.language != station.hello));
    station.hosts = {"en", "de"};
    const milieu::Text &host = station.hosts[0];
    ASSERT(host == "en" && "en" == host && host == string && string == host);
    ASSERT(host == view && view == host && host == station.language && station.language == host);
    ASSERT(host != station.hosts.at(1) && host == *station.hosts.data());
    const milieu::Text &less = station.hosts[1];
    ASSERT(less < host && host > less && less <= host && host >= less && !(host < less));
    ASSERT(less < station.language && station.language > less && "de" < station.language);
    ASSERT(station.language >= string && view <= station.language && host < "es" && "es" > host);
    ASSERT(station.language < std::string("es") && station.language <= station.hello);
    ASSERT(host.size() == 2 && !host.empty() && milieu::Text().empty());
    ASSERT(station.language.size() == 2 && station.language.size() == view.size());
    ASSERT(station.language + "_AT" == "en_AT" && "in " + station.language == "in en");
    ASSERT(host + less == "ende" && string + host == "enen" && host + view == "enen");
    std::string sentence = "<" + station.language + "|" + host + ">";
    sentence += station.language;
    ASSERT(sentence == "<en|en>en");
    static_assert(std::is_same_v<decltype(station.language + host), std::string>);
    try {
        (void)station.hosts.at(2);
        ASSERT(!"it throws");
    } catch (const std::out_of_range &error) {
        ASSERT(std::string_view(error.what()).find("/hosts") != std::string_view::npos);
    }
    const char *none = nullptr;
    thrown(MILIEU_NULL, [&] { station.language = none; });
    auto content = station.language.get();
    auto number = tc->value.get();
    static_assert(std::is_same_v<decltype(content), std::string_view>);
    static_assert(std::is_same_v<decltype(number), std::int32_t>);
}

// Any duration is a timeout, also one that nanoseconds cannot count.
static void timeouts() {
    using namespace std::chrono_literals;
    using milieu::detail::timeout;
    ASSERT(timeout(1ms) == 1'000'000 && timeout(0h) == 0 && timeout(-1s) == 0);
    ASSERT(timeout(std::chrono::duration<double>(0.5)) == 500'000'000);
    ASSERT(timeout(std::chrono::duration<double>(1e-12)) == 1);
    ASSERT(timeout(std::chrono::duration<double>(1e300)) == INT64_MAX);
    ASSERT(timeout(std::chrono::duration<double>(-1e300)) == 0);
    ASSERT(timeout(std::chrono::duration<double>(std::nan(""))) == 0);
    ASSERT(timeout(std::chrono::hours::max()) == INT64_MAX);
    Coordinator c;
    Context tc(c), other(c);
    ASSERT(!tc.wait_for(std::chrono::duration<float, std::micro>(1.5f)));
    ASSERT(!tc.wait_until(std::chrono::system_clock::now() - 1h));
    other.activate<Tamper>();
    ASSERT(tc.wait_for(std::chrono::hours::max()));
    ASSERT(tc.wait_until(std::chrono::steady_clock::now() + 24h));
}

// Layers by their class, layers of any text, and layers that another thread takes over.
static void activity() {
    Coordinator c;
    Context tc(c);
    ASSERT(!tc.is_active<Tamper>() && !tc.layer<Session>() && !tc.is_active("tamper"));
    tc.activate<Tamper>();
    ASSERT(tc.is_active<Tamper>() && tc.layer<Tamper>() == "active");
    const std::string anna = "anna";
    const std::string_view view = anna;
    tc->station.language = anna;
    tc.with<Session>(view).with<Security>(tc->station.language)([&] {
        ASSERT(tc.layer<Session>() == "anna" && tc.layer<Security>() == "anna");
        const milieu::Captured captured = tc.capture();
        Context other(c);
        other.with(captured)([&] {
            ASSERT(other.layer<Session>() == "anna" && other.is_active<Security>());
        });
        auto entered = other.with(captured).enter();
        ASSERT(other.is_active<Session>());
        entered.leave();
        ASSERT(!other.is_active<Session>());
        milieu::ThreadContext<station::Environment, milieu::NoContext> none(c);
        none.with(captured)([&] { ASSERT(!none.is_active<Session>()); });
    });
    // An empty value is an inactive layer.
    tc.activate<Session>("");
    ASSERT(!tc.is_active<Session>());
}

// What the program brings along is below everything else, and nobody persists it.
static void defaults(const std::string &folder) {
    const std::string file = folder + "/texts.ini", second = folder + "/more.ini";
    std::ofstream(file) << "[/station/de]\nhello = Hallo\n[/station/saving]\ninterval = 600\n";
    std::ofstream(second) << "[/station/de]\nhello = Moin\n[/station/fr]\nhello = Salut\n";
    milieu::Options options;
    options.user_folder = options.system_folder = folder;
    Coordinator c("defaults", options);
    Context tc(c);
    c.defaults({file, second});
    tc.sync();
    auto hello = [&](std::string_view language) {
        return tc.with<Language>(language)([&] { return std::string(tc->station.hello); });
    };
    ASSERT(hello("de") == "Hallo" && hello("fr") == "Salut" && hello("es") == "Hello");
    tc.with<Language>("de")([&] {
        ASSERT(tc->station.hello.getOrigin().find("texts.ini:2") != std::string::npos);
        tc->station.hello = "Servus";
        tc->station.hello.unset();
        ASSERT(tc->station.hello == "Hallo");
    });
    ASSERT(c.persist() == 0);
    // What is wrong changes nothing, and is told with its place.
    auto text = thrown(MILIEU_FILES, [&] { c.defaults({folder + "/none.ini"}); });
    ASSERT(text.find("none.ini") != std::string::npos);
    std::ofstream(second) << "[/station/saving]\ninterval = 4000\n";
    text = thrown(MILIEU_UNFIT, [&] { c.defaults({second}); });
    ASSERT(text.find("more.ini:2") != std::string::npos);
    std::ofstream(second) << "[/station\n";
    thrown(MILIEU_FILES, [&] { c.defaults({second}); });
    tc.sync();
    ASSERT(hello("de") == "Hallo");
    c.defaults({});
    tc.sync();
    ASSERT(hello("de") == "Hello");
}

// The command line, and how programs end.
static void command_lines() {
    const char *const help[] = {"station", "--help", nullptr};
    auto options = milieu::Options::command_line<station::Environment>(2, help);
    options.description = "Says hello.";
    try {
        Coordinator c("station", options);
        ASSERT(!"it throws");
    } catch (const milieu::HelpAsked &asked) {
        const std::string_view text = asked.what();
        ASSERT(asked.result() == MILIEU_SAY && text.find("Says hello.") != text.npos);
        ASSERT(text.find("--language") != text.npos && milieu::report("station", asked) == 0);
    }
    const char *const wrong[] = {"station", "--langauge=de", nullptr};
    auto mistaken = milieu::Options::command_line<station::Environment>(2, wrong);
    try {
        Coordinator c("station", mistaken);
        ASSERT(!"it throws");
    } catch (const milieu::Error &error) {
        ASSERT(error.result() == MILIEU_USAGE && milieu::report("station", error) == 2);
    }
    ASSERT(milieu::report("station", std::runtime_error("the bus is off")) == 1);
    ASSERT(milieu::report("station", milieu::Error(MILIEU_SYSTEM, "no thread is left")) == 1);
}

// A policy of the program's own.
struct Alone {
    static constexpr bool layers = true;
    static constexpr bool shared = false;
    static constexpr bool assigns = true;
};

static void policies() {
    Coordinator c;
    milieu::ThreadContext<station::Environment, Alone> alone(c);
    Context other(c);
    other->value = 3;
    other.activate<Session>("anna");
    alone.sync();
    ASSERT(!alone.has_news() && alone->value == 0 && alone.layers().empty());
    alone->station.language = "de";
    alone.with<Session>("ben")([&] { ASSERT(alone.layer("session") == "ben"); });
    alone.wait();
    other.sync();
    other.without<Session>()([&] { ASSERT(other->station.language == "de"); });
    milieu::ThreadContext<station::Environment, milieu::ReadOnly<Alone>> reading(c);
    ASSERT(reading->value == 3 && reading.layer("session") == "anna");
    // What it may not is refused below the types as well.
    auto result = milieu_context_set_signed(reading.c(), station::Value::index, 4);
    ASSERT(result == MILIEU_READ_ONLY && reading->value == 3);
}

static void errors() {
    auto text = thrown(MILIEU_WRONG_NAME, [] { Coordinator().assign("no slash", "x"); });
    ASSERT(!text.empty());
    Coordinator c;
    Context tc(c);
    tc.activate(milieu::follow(tc->station.language));
    tc.with(milieu::follow(tc->station.hello))([&] { ASSERT(tc.layer("hello") == "Hello"); });
    tc.deactivate("language");
    // An action that asks for what has caused it.
    auto again = c.onLayerActivation<Tamper>([](milieu::Activation &it) { it.activate<Security>("A"); });
    auto cycle = c.onLayerActivation<Security>([&](milieu::Activation &it) {
        thrown(MILIEU_CYCLE, [&] { it.activate<Tamper>(); it.deactivate<Tamper>(); it.activate<Security>("B"); });
    });
    tc.activate<Tamper>();
}

// What another program writes is told in a thread of the library, and waits for a synchronization.
static void files(const char *folder) {
    milieu::Options options;
    options.user_folder = options.system_folder = folder;
    Coordinator c("station", options);
    Context tc(c, "/main");
    ASSERT(tc.role() == "/main" && tc->value.isDefault());
    std::promise<std::string> told;
    {
        auto watch = c.watch([&, once = false](const milieu::News &news) mutable {
            for (const milieu_change &change : news) {
                if (!std::exchange(once, true)) told.set_value(std::string(
                    milieu::detail::view(change.name)));
            }
        });
        Coordinator other("station", options);
        other.assign("/value", "5");
        ASSERT(other.persist() == 1);
        auto future = told.get_future();
        ASSERT(future.wait_for(std::chrono::minutes(2)) == std::future_status::ready);
        ASSERT(future.get() == "/value" && tc->value == 0);
        tc.sync();
        ASSERT(tc->value == 5 && !tc->value.isDefault());
        ASSERT(tc->value.getOrigin().find(folder) != std::string::npos);
    }
    {
        auto quiet = c.watch();
    }
    // Nobody watches, so what another program writes is not known here.
    Coordinator other("station", options);
    other.assign("/value", "6");
    other.persist();
    tc->value = 7;
    thrown(MILIEU_FILES, [&] { c.persist(); });
    ASSERT(c.persist("/", MILIEU_OURS) == 1);
    thrown(MILIEU_INVALID, [&] { c.check("/value", "many"); });
    c.check("/value", "8");
}

int main(int argc, char **argv) {
    ASSERT(argc == 2);
    files(argv[1]);
    defaults(argv[1]);
    command_lines();
    choices();
    comparisons();
    timeouts();
    activity();
    exceptions_unwind();
    chains();
    values();
    exceptions_of_callbacks();
    exceptions_while_leaving();
    forks_and_threads();
    moves();
    policies();
    errors();
}
