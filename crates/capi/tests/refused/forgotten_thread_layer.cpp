// expect: a thread-based layer is activated, and not entered, forgotten
#include "station.hpp"

struct Thread : milieu::ThreadLayer {
    static constexpr std::string_view id() { return "thread"; }
    std::string operator()() const { return ""; }
};

void forget(milieu::ThreadContext<station::Environment> &tc) { tc.forget<Thread>(); }
