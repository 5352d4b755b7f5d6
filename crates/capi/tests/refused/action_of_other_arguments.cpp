// expect: an action takes nothing, or a `milieu::Activation &`
#include "station.hpp"

void wrong(const milieu::Coordinator &coordinator) {
    auto on = coordinator.onLayerActivation<station::layer::Tamper>([](int) {});
}
