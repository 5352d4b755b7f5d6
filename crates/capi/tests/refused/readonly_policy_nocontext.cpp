// expect: discards qualifiers
// expect: no viable overloaded '-='
#include "station.hpp"

void change(milieu::ThreadContext<station::Environment, milieu::ReadOnly<milieu::NoContext>> &tc) {
    tc->value -= 2;
}
