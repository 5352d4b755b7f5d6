// expect: use of deleted function
// expect: deleted operator '='
#include "station.hpp"

using Context = milieu::ThreadContext<station::Environment>;
bool again(Context &tc, milieu::Coordinator &other) {
    const auto &enable = tc->watchdog.enable;
    tc = Context(other);
    return enable;
}
