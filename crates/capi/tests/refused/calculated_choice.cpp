// expect: only numbers are calculated with
#include "station.hpp"

void wrong(station::Environment &env) { env.station.level += 1; }
