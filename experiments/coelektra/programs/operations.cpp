// The operations of the paper's Figures 5 and 6, each called so many times in a process of
// its own: processor time and time on the clock, in seconds, as the paper gives them.
//
// `operation` says which, `values` how many contextual values the layer touches that is
// switched, and `calls` how often; two contexts share the coordinator.

#include "milieu_bench.h"
#include "operations.hpp"

#include <ctime>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace {

using operations::Environment;
using operations::layer::Country;
using operations::layer::Language;
using operations::layer::Nobody;
using operations::layer::Session;
using Context = milieu::ThreadContext<Environment>;

/** Keeps the compiler from leaving out what nobody looks at. */
template <class T>
void used(const T &value) {
    asm volatile("" : : "r"(&value) : "memory");
}

/** The layer that N values depend on. */
template <int N>
struct By : milieu::Layer {
    static constexpr std::string_view id() {
        constexpr std::string_view ids[] = {
            "nobody", "by1", "by2", "by3", "by4", "by5", "by6", "by7", "by8", "by9"};
        return ids[N];
    }
    std::string_view operator()() const { return "on"; }
};

double seconds(clockid_t clock) {
    timespec now;
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

template <class Body>
void times(long calls, Body &&body) {
    const double wall = seconds(CLOCK_MONOTONIC), processor = seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (long i = 0; i < calls; ++i) body();
    const double used = seconds(CLOCK_PROCESS_CPUTIME_ID) - processor;
    milieu_bench_result("processor", used);
    milieu_bench_result("wall", seconds(CLOCK_MONOTONIC) - wall);
    // A call by itself, as the numbers that others give are.
    milieu_bench_result("nanoseconds", used / static_cast<double>(calls) * 1e9);
}

struct Wrong {
    const char *what;
};

void right(bool holds, const char *what) {
    if (!holds) throw Wrong{what};
}

/** A value that the layer touches, to see that it follows. */
template <int N>
std::string touched(const Context &tc) {
    if constexpr (N == 0) {
        return "/touched/nobody/on";
    } else {
        milieu_text name{};
        // Those of the layers before come first: 1, 3, 6 and so on.
        constexpr unsigned first = 1 + N * (N - 1) / 2;
        milieu::detail::check(milieu_context_name(tc.c(), first + N - 1, &name));
        return std::string(milieu::detail::view(name));
    }
}

template <int N>
void switches(const Context &tc, const std::string &operation, long calls) {
    const std::string name = "/touched/" + std::to_string(N) + "/on/v" + std::to_string(N - 1);
    auto follows = [&] { return N == 0 || touched<N>(tc) == name; };
    if (operation == "with") {
        tc.with<By<N>>()([&] { right(follows(), "a value does not follow its layer"); });
        times(calls, [&] { tc.with<By<N>>()([&] { used(tc); }); });
    } else {
        tc.activate<By<N>>();
        right(follows(), "a value does not follow its layer");
        tc.deactivate<By<N>>();
        times(calls, [&] {
            tc.activate<By<N>>();
            tc.deactivate<By<N>>();
        });
    }
    right(N == 0 || !follows(), "a value follows a layer that is not there");
}

template <int... N>
void switches(std::integer_sequence<int, N...>, int values, const Context &tc,
    const std::string &operation, long calls) {
    bool found = ((values == N && (switches<N>(tc, operation, calls), true)) || ...);
    right(found, "values are 0 to 9");
}

void run(const std::string &operation, int values, long calls) {
    milieu::Coordinator coordinator;
    Context tc(coordinator), other(coordinator);
    if (operation == "with" || operation == "switch") {
        switches(std::make_integer_sequence<int, 10>(), values, tc, operation, calls);
    } else if (operation == "hash map") {
        std::unordered_map<std::string, std::string> map;
        // Fewer than twenty would be looked through, one after the other.
        for (int i = 0; i < 100; ++i) map["/sw/pi/value/" + std::to_string(i)] = "value";
        const std::string key = "/sw/pi/value/3";
        times(calls, [&] { used(*map.find(key)); });
    } else if (operation == "syncLayers") {
        times(calls, [&] { tc.syncLayers(); });
    } else if (operation == "with0") {
        switches<0>(tc, "with", calls);
    } else if (operation == "switch0") {
        switches<0>(tc, "switch", calls);
    } else if (operation == "evaluate") {
        tc.with<Session>("anna").with<Language>("de").with<Country>("AT")([&] {
            const auto &value = tc->an.of_43_ch;
            right(value.getName() == "/an/anna/of-43-ch/de/AT", "the name is another one");
            times(calls, [&] { used(value.getName()); });
        });
    } else if (operation == "read") {
        times(calls, [&] { used(tc->touched._9.v8.get()); });
    } else {
        throw Wrong{"there is no such operation"};
    }
}

} // namespace

int main() {
    milieu_bench bench;
    char operation[64];
    double values = 0, calls = 0;
    if (!milieu_bench_start(&bench)
        || !milieu_bench_text(&bench, "operation", operation, sizeof operation)
        || !milieu_bench_number(&bench, "values", &values)
        || !milieu_bench_number(&bench, "calls", &calls)) {
        return milieu_bench_error("operation, values and calls have to be said");
    }
    try {
        run(operation, static_cast<int>(values), static_cast<long>(calls));
    } catch (const Wrong &wrong) {
        return milieu_bench_invalid(wrong.what);
    } catch (const milieu::Error &error) {
        return milieu_bench_error(error.what());
    }
    return 0;
}
