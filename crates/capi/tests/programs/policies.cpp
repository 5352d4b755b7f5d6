// What contexts of each policy do: the instructions are compared, see cpp.rs.

#include "station.hpp"

using station::Environment;
template <class P> using Cx = milieu::ThreadContext<Environment, P>;

// A policy of the program's own: layers and assignments, without anybody else.
struct Own {
    static constexpr bool layers = true;
    static constexpr bool shared = false;
    static constexpr bool assigns = true;
};
// And one that makes more of another.
struct Frozen : milieu::NoContext {
    static constexpr bool assigns = false;
};

struct Security {
    static constexpr std::string_view id() { return "security"; }
    std::string_view operator()() const { return "A"; }
};

extern "C" void body(std::int32_t value);

// Reads, switches and synchronizations of one policy.
#define POLICY(name, ...)                                                                     \
    extern "C" std::int32_t read_##name(Cx<__VA_ARGS__> &cx) { return cx->value; }            \
    extern "C" std::size_t text_##name(Cx<__VA_ARGS__> &cx) {                                 \
        return cx->station.language.get().size();                                             \
    }                                                                                         \
    extern "C" void with_##name(Cx<__VA_ARGS__> &cx) {                                        \
        cx.template with<Security>()([&] { body(cx->value); });                               \
    }                                                                                         \
    extern "C" void chain_##name(Cx<__VA_ARGS__> &cx) {                                       \
        cx.template with<Security>().template without<Security>()([&] { body(cx->value); });  \
    }                                                                                         \
    extern "C" void follow_##name(Cx<__VA_ARGS__> &cx) {                                      \
        cx.with(milieu::follow(cx->station.language))([&] { body(cx->value); });              \
    }                                                                                         \
    extern "C" void switch_##name(Cx<__VA_ARGS__> &cx) {                                      \
        cx.template activate<Security>();                                                     \
        cx.template deactivate<Security>();                                                   \
    }                                                                                         \
    extern "C" void sync_##name(Cx<__VA_ARGS__> &cx) { cx.syncLayers(); }

// Assignments of one that has them; those of others do not compile, see tests/refused.
#define ASSIGNS(name, ...)                                                                    \
    extern "C" void set_##name(Cx<__VA_ARGS__> &cx) { cx->value = 7; }                        \
    extern "C" void add_##name(Cx<__VA_ARGS__> &cx) { cx->value += 7; }                       \
    extern "C" void name_##name(Cx<__VA_ARGS__> &cx) { cx->station.language = "de"; }

ASSIGNS(threads, milieu::Threads)
ASSIGNS(single, milieu::SingleThread)
ASSIGNS(none, milieu::NoContext)
ASSIGNS(own, Own)

POLICY(threads, milieu::Threads)
POLICY(single, milieu::SingleThread)
POLICY(none, milieu::NoContext)
POLICY(own, Own)
POLICY(frozen, Frozen)
POLICY(read_threads, milieu::ReadOnly<milieu::Threads>)
POLICY(read_single, milieu::ReadOnly<milieu::SingleThread>)
POLICY(read_none, milieu::ReadOnly<milieu::NoContext>)
POLICY(read_own, milieu::ReadOnly<Own>)
POLICY(read_read, milieu::ReadOnly<milieu::ReadOnly<milieu::Threads>>)

// What is left of a block where layers are left out, and of what is left out whole.
extern "C" void block_only(Cx<milieu::Threads> &cx) { body(cx->value); }
extern "C" void nothing(Cx<milieu::Threads> &) {}

// A context of any policy is as large as one of any other.
static_assert(sizeof(Cx<milieu::Threads>) == sizeof(Cx<milieu::NoContext>));
static_assert(sizeof(Cx<Own>) == sizeof(Cx<milieu::ReadOnly<Frozen>>));
