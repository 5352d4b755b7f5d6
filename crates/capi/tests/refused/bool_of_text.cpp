// expect: a boolean is assigned `true` or `false`, not a text
#include "station.hpp"

void wrong(station::Environment &env) { env.watchdog.enable = "false"; }
