// expect: neither a constructor nor members for these arguments
#include "station.hpp"

void wrong(milieu::ThreadContext<station::Environment> &tc) {
    tc.with<station::layer::Session>(1, 2)([] {});
}
