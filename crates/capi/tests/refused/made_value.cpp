// expect: use of deleted function
// expect: deleted
#include "station.hpp"

bool read() {
    station::Environment env;
    return env.watchdog.enable;
}
