// expect: this value is marked `readonly` in its specification
#include "station.hpp"

void change(station::Environment &env) { env.station.serial = "1"; }
