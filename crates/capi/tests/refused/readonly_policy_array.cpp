// expect: discards qualifiers
// expect: no viable overloaded '='
#include "station.hpp"

void change(milieu::ThreadContext<station::Environment, milieu::ReadOnly<milieu::SingleThread>> &tc) {
    tc->station.hosts = {"a", "b"};
}
