// What operations.rs measures of C++: prepared by name, executed a number of times.

#include "operations.hpp"

#include <functional>
#include <string_view>

using operations::Environment;
using Context = milieu::ThreadContext<Environment>;
using Loop = std::function<void(std::uint64_t)>;

struct Untouched {
    static constexpr std::string_view id() { return "untouched"; }
    std::string_view operator()() const { return "yes"; }
};

struct Named {
    std::string_view operator()() const { return name; }
    std::string_view name;
};
struct Session : Named {
    static constexpr std::string_view id() { return "session"; }
};
struct Language : Named {
    static constexpr std::string_view id() { return "language"; }
};
struct Country : Named {
    static constexpr std::string_view id() { return "country"; }
};

// The compiler does not know what is there.
template <class T>
void look(T &&there) {
    asm volatile("" : : "g"(&there) : "memory");
}

template <class Policy = milieu::Threads>
struct Opened {
    milieu::Coordinator coordinator;
    milieu::ThreadContext<Environment, Policy> cx{coordinator};
};

template <class Do, class Policy = milieu::Threads>
static Loop with_context(Do act) {
    auto opened = std::make_shared<Opened<Policy>>();
    return [opened, act](std::uint64_t times) {
        auto &cx = opened->cx;
        for (std::uint64_t i = 0; i < times; ++i) {
            look(cx);
            act(cx, i);
        }
    };
}

template <class Do>
static Loop with_plain(Do act) {
    struct Plain {
        std::int64_t value = 10;
        milieu_text text{"a text of some length", 21};
    };
    auto plain = std::make_shared<Plain>();
    return [plain, act](std::uint64_t times) {
        auto *there = plain.get();
        for (std::uint64_t i = 0; i < times; ++i) {
            look(there);
            act(*there);
        }
    };
}

static Loop made(std::string_view name) {
    if (name == "loop") return with_context([](Context &, std::uint64_t) {});
    if (name == "read")
        return with_context([](Context &cx, std::uint64_t) { look(std::int64_t(cx->value)); });
    if (name == "plain-read")
        return with_plain([](auto &plain) { look(std::int64_t(plain.value)); });
    if (name == "sync-idle")
        return with_context([](Context &cx, std::uint64_t) { cx.syncLayers(); });
    if (name == "with-0")
        return with_context(
            [](Context &cx, std::uint64_t) { cx.with<Untouched>()([&] { look(cx); }); });
    if (name == "with-9") {
        return with_context([](Context &cx, std::uint64_t) {
            cx.with<Session>("anna")([&] { look(cx); });
        });
    }
    if (name == "switch-0") {
        return with_context([](Context &cx, std::uint64_t) {
            cx.activate<Untouched>();
            cx.deactivate<Untouched>();
        });
    }
    if (name == "set")
        return with_context(
            [](Context &cx, std::uint64_t i) { cx->value = static_cast<std::int64_t>(i); });
    if (name == "set-text")
        return with_context(
            [](Context &cx, std::uint64_t i) { cx->text = i % 2 ? "de" : "en"; });
    if (name == "name") {
        auto opened = std::make_shared<Opened<>>();
        return [opened](std::uint64_t times) {
            opened->cx.with<Session>("anna").with<Language>("de").with<Country>("AT")([&] {
                for (std::uint64_t i = 0; i < times; ++i) {
                    look(opened->cx);
                    look(opened->cx->an.of_43_ch.getName());
                }
            });
        };
    }
    if (name == "name-inactive")
        return with_context([](Context &cx, std::uint64_t) { look(cx->an.of_43_ch.getName()); });
    if (name == "new") {
        auto opened = std::make_shared<Opened<>>();
        return [opened](std::uint64_t times) {
            for (std::uint64_t i = 0; i < times; ++i) look(Context(opened->coordinator));
        };
    }
    if (name == "fork")
        return with_context([](Context &cx, std::uint64_t) { look(cx.fork()); });
    return nullptr;
}

extern "C" void *operation_prepare(const char *name);
void *operation_prepare(const char *name) {
    auto loop = made(name);
    return loop ? new Loop(loop) : nullptr;
}

extern "C" void operation_execute(void *loop, std::uint64_t times);
void operation_execute(void *loop, std::uint64_t times) { (*static_cast<Loop *>(loop))(times); }
