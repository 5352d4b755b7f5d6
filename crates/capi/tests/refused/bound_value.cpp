// expect: use of deleted function
// expect: deleted
#include "station.hpp"

station::Value kept(station::Environment &env) { return env.value; }
