// expect: a layer has `operator()`
#include "station.hpp"

struct Changing {
    static constexpr std::string_view id() { return "security"; }
    std::string operator()() { return level += "A"; }
    std::string level;
};
void wrong(milieu::ThreadContext<station::Environment> &tc) { tc.activate<Changing>(); }
