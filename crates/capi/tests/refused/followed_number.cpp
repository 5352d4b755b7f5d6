// expect: a layer follows a contextual value
#include "station.hpp"

void wrong(milieu::ThreadContext<station::Environment> &tc) {
    tc.activate(milieu::follow(5));
}
