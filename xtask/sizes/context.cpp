// What a program pays for contexts, and with FILES for settings in files: it enters layers,
// activates one, assigns, synchronizes, reads, and runs an action.
#include "station.hpp"

#include <cstdio>

using Context = milieu::ThreadContext<station::Environment>;
using station::layer::Session;
using station::layer::Tamper;

int main() {
#ifdef FILES
    milieu::Coordinator coordinator("station");
#else
    milieu::Coordinator coordinator;
#endif
    Context tc(coordinator);
    tc.with<Session>("anna").without<Tamper>()([&] {
        tc->station.language = "de";
        tc->station.interval += 5;
    });
    auto action = coordinator.onLayerActivation<Tamper>([] { std::puts("tampered with"); });
    tc.activate<Tamper>();
    tc.sync();
    std::string_view language = tc->station.language;
    std::printf("%.*s %d\n", int(language.size()), language.data(), int(tc->station.interval));
#ifdef FILES
    coordinator.persist();
#endif
}
