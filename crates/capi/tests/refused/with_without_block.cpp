// expect: nodiscard
#include "station.hpp"

void wrong(milieu::ThreadContext<station::Environment> &tc) {
    tc.with<station::layer::Session>("anna");
}
