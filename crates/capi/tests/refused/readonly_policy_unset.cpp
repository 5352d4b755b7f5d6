// expect: discards qualifiers
// expect: not marked const
#include "station.hpp"

void change(milieu::ThreadContext<station::Environment, milieu::ReadOnly<>> &tc) { tc->value.unset(); }
