// expect: discards qualifiers
// expect: no viable overloaded '='
#include "station.hpp"

void change(station::Watchdog::Enable const &enable) { enable = true; }
