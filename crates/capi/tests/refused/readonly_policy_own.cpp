// expect: discards qualifiers
// expect: no viable overloaded '='
#include "station.hpp"

struct Watching {
    static constexpr bool layers = true;
    static constexpr bool shared = true;
    static constexpr bool assigns = false;
};

void change(milieu::ThreadContext<station::Environment, Watching> &tc) {
    tc->station.language = "de";
}
