// expect: a policy has the constants `layers`, `shared` and `assigns`
#include "station.hpp"

struct Half {
    static constexpr bool layers = true;
};

milieu::ThreadContext<station::Environment, Half> *cx;
void sync() { cx->syncLayers(); }
