// expect: It would be gone before it is entered
#include "station.hpp"

void wrong(milieu::ThreadContext<station::Environment> &tc) {
    tc.with(tc.capture())([] {});
}
