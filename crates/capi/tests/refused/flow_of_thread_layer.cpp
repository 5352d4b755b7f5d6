// expect: a thread-based layer is activated, and not entered, forgotten or switched by a flow
#include "station.hpp"

#include <milieu/streams.hpp>

struct Thread : milieu::ThreadLayer {
    static constexpr std::string_view id() { return "thread"; }
    std::string operator()() const { return ""; }
};

void apply(milieu::Streams &streams) {
    auto effect = streams.activates<Thread>("/a", [](milieu::Event) { return std::optional<Thread>(); });
}
