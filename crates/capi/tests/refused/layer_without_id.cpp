// expect: a layer has `id()`
#include "station.hpp"

struct Nameless {
    std::string operator()() const { return "A"; }
};
void wrong(milieu::ThreadContext<station::Environment> &tc) { tc.with<Nameless>()([] {}); }
