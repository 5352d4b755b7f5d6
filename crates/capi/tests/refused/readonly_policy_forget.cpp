// expect: this context's policy is read-only
#include "station.hpp"

void change(milieu::ThreadContext<station::Environment, milieu::ReadOnly<milieu::SingleThread>> &tc) {
    tc.forget<station::layer::Session>("anna");
}
