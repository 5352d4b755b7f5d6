// expect: use of deleted function
// expect: deleted
#include "station.hpp"

using Context = milieu::ThreadContext<station::Environment>;
Context again(const Context &tc) { return tc; }
