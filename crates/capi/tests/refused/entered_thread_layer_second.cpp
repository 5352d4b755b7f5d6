// expect: a thread-based layer is activated, and not entered
#include "station.hpp"

struct Thread : milieu::ThreadLayer {
    static constexpr std::string_view id() { return "thread"; }
    std::string operator()() const { return ""; }
};

void enter(milieu::ThreadContext<station::Environment> &tc) {
    tc.with<station::layer::Session>("anna").with<Thread>()([] {});
}
