// expect: To remove the user's value is `unset()`
#include "station.hpp"

void wrong(station::Environment &env) { env.station.language = nullptr; }
