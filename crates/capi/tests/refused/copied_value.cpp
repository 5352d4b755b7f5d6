// expect: Take a reference, or a copy of the content
#include "station.hpp"

bool later(station::Watchdog::Enable enable);
bool now(station::Environment &env) { return later(env.watchdog.enable); }
