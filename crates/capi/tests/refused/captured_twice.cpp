// expect: of the layers that are entered together those of one context may be captured
#include "station.hpp"

void enter(milieu::ThreadContext<station::Environment> &tc, const milieu::Captured &captured) {
    tc.with(captured).with(captured)([] {});
}
