// expect: Take a reference, or a copy of the content
#include "station.hpp"

station::Value kept(station::Environment &env) { return env.value; }
