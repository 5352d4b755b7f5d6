// expect: an array is assigned as a whole
#include "station.hpp"

void wrong(station::Environment &env) { env.station.ports = 80; }
