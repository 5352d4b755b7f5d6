// expect: nodiscard
#include "station.hpp"

void wrong(milieu::ThreadContext<station::Environment> &tc) {
    tc.is_active<station::layer::Tamper>();
}
