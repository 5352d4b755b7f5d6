// What decides conflicts returns a decision, which may be for a text.
// expect: what decides conflicts takes a `const milieu::Conflict &` and returns a `milieu::Decision`
#include "station.hpp"

void persists(const milieu::Coordinator &coordinator) {
    coordinator.persist("/", [](const milieu::Conflict &) { return "theirs"; });
}
