// The cases of crates/context/tests/cases/layers.txt, as C++ has them: argv[1] is the file,
// argv[2] a folder for what they write.

#include "cases.hpp"
#include "check.hpp"

#include <algorithm>
#include <deque>
#include <fstream>
#include <iostream>
#include <memory>
#include <mutex>
#include <thread>

using cases::layer::A;
using cases::layer::B;
using cases::layer::C;
using Context = milieu::ThreadContext<cases::Environment>;

// A line of the description, and where the block ends that it begins.
struct Line {
    int number;
    std::string text;
    std::size_t end;
};

// What is not as described, what is refused where that is not expected, and what is thrown.
struct Wrong {
    std::string text;
};
struct Failed {
    std::string why;
};
struct Thrown {};
// Of actions and evaluations.
struct Fails {};

// Any layer, by the names that the description has for it.
struct Any {
    std::string id() const { return id_; }
    std::string operator()() const { return value_; }
    std::string id_, value_;
};

static std::pair<std::string, std::string> cut(const std::string &text, const char *at = " ") {
    const auto found = text.find(at);
    if (found == std::string::npos) return {text, ""};
    return {text.substr(0, found), text.substr(found + std::string_view(at).size())};
}

static Any layer(const std::string &text) {
    auto [id, value] = cut(text);
    return {id, value == "''" ? "" : value};
}

static void same(const std::string &is, const std::string &expected) {
    if (is != expected) throw Wrong{"`" + is + "`, not `" + expected + "`"};
}

template <class Range, class Text>
std::string joined(const Range &range, Text text) {
    std::string all;
    for (const auto &one : range) all += (all.empty() ? "" : " ") + text(one);
    return all;
}

// Does something with the value of this name.
template <class Do>
void with_value(Context &cx, const std::string &name, Do &&act) {
    auto &env = *cx;
    if (name == "v") act(env.v);
    else if (name == "joined") act(env.joined);
    else if (name == "twice") act(env.twice);
    else if (name == "group") act(env.group);
    else if (name == "shared") act(env.shared);
    else if (name == "one.shared") act(env.one.shared);
    else if (name == "language") act(env.p.language);
    else if (name == "hello") act(env.p.hello);
    else if (name == "reply") act(env.p.reply);
    else if (name == "first") act(env.c.first);
    else if (name == "second") act(env.c.second);
    else if (name == "interval") act(env.low.interval);
    else throw Wrong{"there is no value " + name};
}

static std::string read(Context &cx, const std::string &name) {
    std::string text;
    with_value(cx, name, [&](auto &value) {
        if constexpr (std::is_convertible_v<decltype(value), std::string_view>) {
            text = std::string(value);
        } else {
            text = std::to_string(value);
        }
    });
    return text;
}

// What actions and evaluations have left, in their order.
static std::vector<std::string> ran;

// A layer that contexts evaluate.
struct Each : milieu::ThreadLayer {
    Each(const std::string &text, std::thread::id main) : main(main) {
        std::string rest, answer;
        std::tie(name, rest) = cut(text);
        std::tie(how, rest) = cut(rest);
        std::tie(what, value) = cut(rest);
    }
    std::string id() const { return name; }
    std::vector<std::string_view> depends_on() const {
        if (how == "OF") return {what};
        return {};
    }
    std::string operator()(const milieu::Scope &scope) const {
        ran.push_back(name + (std::this_thread::get_id() == main ? "?" : "?!"));
        std::string text;
        if (how == "OF") text = scope.get(what);
        else if (scope.role() == what) text = value;
        if (text == "boom") throw Fails{};
        return text;
    }
    std::thread::id main;
    std::string name, how, what, value;
};

// A case while it runs.
struct Running {
    const std::vector<Line> &lines;
    std::string folder;
    std::thread::id main = std::this_thread::get_id();
    std::deque<milieu::Registration> registrations{};
    std::unique_ptr<milieu::Coordinator> c{};
    std::unique_ptr<Context> here{}, there{};

    milieu::Coordinator opened() const {
        milieu::Options options;
        options.user_folder = options.system_folder = folder;
        return milieu::Coordinator("cases", options);
    }

    static void note(milieu::Activation &it) {
        ran.push_back(std::string(it.layer()) + "+" + std::string(it.value()));
    }
    template <class L>
    void noted() {
        registrations.push_back(c->onLayerActivation<L>(note));
        registrations.push_back(c->onLayerDeactivation<L>(
            [](milieu::Activation &it) { ran.push_back(std::string(it.layer()) + "-"); }));
    }
    template <class Action>
    void on_activation(const std::string &id, Action action) {
        if (id == "a") registrations.push_back(c->onLayerActivation<A>(std::move(action)));
        else if (id == "b") registrations.push_back(c->onLayerActivation<B>(std::move(action)));
        else registrations.push_back(c->onLayerActivation<C>(std::move(action)));
    }

    void start() {
        c = std::make_unique<milieu::Coordinator>(opened());
        noted<A>();
        noted<B>();
        noted<C>();
        here = std::make_unique<Context>(*c, "/here");
        there = std::make_unique<Context>(*c, "/there");
    }
    // Actions go after their coordinator.
    void stop() {
        here.reset();
        there.reset();
        c.reset();
        registrations.clear();
    }

    void action(const std::string &id, const std::string &what) {
        on_activation(id, [this, what](milieu::Activation &it) {
            auto [verb, rest] = cut(what);
            if (verb == "fails") throw Fails{};
            try {
                if (verb == "activates") {
                    Any other = layer(rest);
                    it.activate<Any>(other);
                } else if (verb == "deactivates") {
                    it.deactivate<Any>(rest, "");
                } else if (verb == "assigns") {
                    auto [name, text] = cut(rest, "=");
                    c->assign(name, text);
                } else if (verb == "registers") {
                    on_activation(rest, note);
                } else if (verb == "owns") {
                    Context(*c).activate<Any>(layer(rest));
                } else {
                    throw Wrong{"there is no action that " + verb};
                }
            } catch (const milieu::Error &) {
                throw Fails{};
            }
        });
    }

    // Runs the steps from one line to another.
    void run(std::size_t from, std::size_t to) {
        for (std::size_t at = from; at < to; at = lines[at].end + 1) {
            std::string text = lines[at].text, why, failed;
            if (text.rfind("fails ", 0) == 0) {
                std::tie(why, text) = cut(text.substr(6));
            }
            try {
                step(text, at + 1, lines[at].end);
            } catch (const Fails &) {
                failed = "callback";
            } catch (const milieu::Error &error) {
                failed = reason(error.result());
            } catch (const Wrong &wrong) {
                if (wrong.text.rfind("line ", 0) == 0) throw;
                throw Wrong{"line " + std::to_string(lines[at].number) + ": " + wrong.text};
            }
            if (failed != why) {
                throw Wrong{"line " + std::to_string(lines[at].number) + ": fails by `" + failed
                    + "`, not `" + why + "`"};
            }
        }
    }

    static std::string reason(milieu_result result) {
        switch (result) {
        case MILIEU_CYCLE: return "cycle";
        case MILIEU_INVALID: return "invalid";
        case MILIEU_FILES: return "conflict";
        case MILIEU_WRONG_NAME: return "name";
        default: return milieu_result_name(result);
        }
    }

    void step(const std::string &text, std::size_t from, std::size_t to) {
        auto [verb, rest] = cut(text);
        if (verb == "here") return act(here, "/here", rest, from, to);
        if (verb == "there") return act(there, "/there", rest, from, to);
        if (verb == "elsewhere") {
            std::exception_ptr thrown;
            std::thread([&] {
                try {
                    run(from, to);
                } catch (...) {
                    thrown = std::current_exception();
                }
            }).join();
            if (thrown) std::rethrow_exception(thrown);
        } else if (verb == "hold") {
            auto lock = c->requireLock();
            run(from, to);
        } else if (verb == "try") {
            bool thrown = false;
            try {
                run(from, to);
            } catch (const Thrown &) {
                thrown = true;
            }
            if (!thrown) throw Wrong{"nothing is thrown"};
        } else if (verb == "throw") {
            throw Thrown{};
        } else if (verb == "key") {
            auto [name, value] = cut(rest, "=");
            c->assign(name, value);
        } else if (verb == "remove") {
            c->remove(rest);
        } else if (verb == "action") {
            auto [id, what] = cut(rest);
            action(id, what);
        } else if (verb == "another") {
            auto [name, value] = cut(rest, "=");
            auto other = opened();
            other.assign(name, value);
            other.persist();
        } else if (verb == "persist") {
            same(std::to_string(c->persist()), rest);
        } else if (verb == "reopen") {
            stop();
            start();
        } else if (verb == "close") {
            c.reset();
        } else if (verb == "everywhere") {
            auto [value, expected] = cut(rest);
            here->sync();
            there->sync();
            same(read(*here, value), expected);
            same(read(*there, value), expected);
        } else if (verb == "new") {
            auto [value, expected] = cut(rest);
            Context made(*c);
            same(read(made, value), expected);
        } else if (verb == "keys") {
            auto lock = c->requireLock();
            same(joined(lock.keys(), [](const milieu::Key &key) {
                return std::string(key.name) + "=" + std::string(key.value);
            }), rest);
        } else if (verb == "ran") {
            same(joined(std::exchange(ran, {}), [](const std::string &it) { return it; }), rest);
        } else {
            throw Wrong{"there is no step " + text};
        }
    }

    // A step of one context.
    void act(std::unique_ptr<Context> &of, const char *role, const std::string &text,
        std::size_t from, std::size_t to) {
        Context &cx = *of;
        auto [verb, rest] = cut(text);
        auto [first, second] = cut(rest);
        auto inside = [&] { run(from, to); };
        if (verb == "enter") {
            auto [one, more] = cut(rest, ", ");
            auto [two, three] = cut(more, ", ");
            if (more.empty()) cx.with<Any>(layer(one))(inside);
            else if (three.empty()) cx.with<Any>(layer(one)).with<Any>(layer(two))(inside);
            else cx.with<Any>(layer(one)).with<Any>(layer(two)).with<Any>(layer(three))(inside);
        } else if (verb == "without") {
            if (first == "a") cx.without<A>()(inside);
            else cx.with<Any>(first, "")(inside);
        } else if (verb == "enter-value") {
            with_value(cx, first, [&](auto &value) { cx.with(milieu::follow(value))(inside); });
        } else if (verb == "activate") {
            cx.activate<Any>(layer(rest));
        } else if (verb == "deactivate") {
            cx.deactivate(first);
        } else if (verb == "follow") {
            with_value(cx, first, [&](auto &value) { cx.activate(milieu::follow(value)); });
        } else if (verb == "each") {
            cx.activate<Each>(rest, main);
        } else if (verb == "sync") {
            cx.syncLayers();
        } else if (verb == "set") {
            with_value(cx, first, [&, text = second](auto &value) {
                if constexpr (std::is_convertible_v<decltype(value), std::string_view>) {
                    value = text;
                } else {
                    value = std::stoi(text);
                }
            });
        } else if (verb == "unset") {
            with_value(cx, first, [](auto &value) { value.unset(); });
        } else if (verb == "forget") {
            cx.forget<Any>(layer(rest));
        } else if (verb == "renew") {
            of = std::make_unique<Context>(*c, role);
        } else if (verb == "is") {
            same(read(cx, first), second);
        } else if (verb == "name") {
            std::string name;
            with_value(cx, first, [&](auto &value) { name = value.getName(); });
            same(name, second);
        } else if (verb == "news") {
            same(cx.has_news() ? "yes" : "no", first);
        } else if (verb == "layers") {
            auto layers = cx.layers();
            std::sort(layers.begin(), layers.end());
            same(joined(layers, [](const auto &it) { return it.first + "=" + it.second; }), rest);
        } else {
            throw Wrong{"there is no step " + text};
        }
    }
};

static std::vector<Line> load(const char *file) {
    std::vector<Line> lines;
    std::vector<std::size_t> open;
    std::ifstream in(file);
    int number = 0;
    for (std::string text; std::getline(in, text);) {
        ++number;
        if (text.empty() || text[0] == '#') continue;
        const auto place = lines.size();
        if (text == "}") {
            lines[open.back()].end = place;
            open.pop_back();
        } else if (text.back() == '{') {
            open.push_back(place);
            text.resize(text.size() - 2);
        }
        lines.push_back({number, text, place});
    }
    ASSERT(open.empty());
    return lines;
}

int main(int argc, char **argv) {
    ASSERT(argc == 3);
    const auto lines = load(argv[1]);
    const auto next_case = [&](std::size_t from) {
        while (from < lines.size() && lines[from].text.rfind("case ", 0) != 0) ++from;
        return from;
    };
    const auto first = next_case(0);
    ASSERT(first < lines.size());
    for (auto begin = first; begin < lines.size(); begin = next_case(begin + 1)) {
        Running running{lines, std::string(argv[2]) + "/" + std::to_string(lines[begin].number)};
        ran.clear();
        try {
            running.start();
            running.run(0, first);
            running.here->sync();
            running.there->sync();
            running.run(begin + 1, next_case(begin + 1));
            running.stop();
        } catch (const Wrong &wrong) {
            std::cerr << wrong.text << '\n';
            return 1;
        }
    }
}
