#include "generated/station.hpp"
#include <iostream>

int main() {
    milieu::Coordinator coordinator;
    milieu::ThreadContext<station::Environment> tc(coordinator);
    tc.with<station::layer::Session>("anna")([&] {
        tc->station.language = "de";
        std::cout << tc->station.language << ' ' << tc->station.interval << '\n';
    });
}
