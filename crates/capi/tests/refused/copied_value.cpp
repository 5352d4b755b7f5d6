// expect: use of deleted function
// expect: deleted
#include "station.hpp"

bool later(station::Watchdog::Enable enable);
bool now(station::Environment &env) { return later(env.watchdog.enable); }
