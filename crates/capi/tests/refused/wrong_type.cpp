// expect: no match for
// expect: no viable overloaded '='
#include "station.hpp"

void change(station::Environment &env) { env.station.level = station::layer::Power::Full; }
