// expect: only the bits of an integer are shifted
#include "station.hpp"

void shift(milieu::ThreadContext<station::Environment> &tc) { tc->station.factor <<= 1; }
