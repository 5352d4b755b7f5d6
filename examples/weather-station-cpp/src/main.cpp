/*
 * The weather station in C++: starts its parts, and ends them when it is told to.
 */
#include "watchdog.hpp"
#include "web.hpp"

#include <csignal>
#include <unistd.h>

namespace {

/** Signals that wait until they are asked for, in this thread and in all that it starts. */
sigset_t blocked_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGHUP, SIGINT, SIGTERM}) sigaddset(&set, signal);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    return set;
}

/** Activates the profile that a file names: from then on /hw/pi/%profile%/… is meant. */
void identify_hardware(const Context &tc) {
    std::ifstream file{std::string(tc->hw.pi.profile)};
    std::string line;
    std::getline(file, line);
    // A node of the device tree ends in a zero byte. Where nothing is left, the layer is inactive.
    tc.activate<Profile>(line.substr(0, std::min<std::size_t>(line.find('\0'), 128)));
}

} // namespace

int main(int argc, char **argv) try {
    const sigset_t signals = blocked_signals();
    auto options = milieu::Options::command_line<station::Environment>(argc, argv);
    options.description
        = "Serves the weather of a replayed year and this machine's sensors as a web page.";
    const milieu::Coordinator coordinator("weather-station", options);
    coordinator.defaults({SOURCE "/settings.ini", RUST "/texts/ar.ini", RUST "/texts/de.ini",
        RUST "/texts/es.ini", RUST "/texts/fr.ini"});
    const Context tc(coordinator);
    identify_hardware(tc);

    // Wakes this thread, whoever ends the station. The paper sends the signal to a thread by an id
    // that it has stored (III-F): the id dangles if that thread has ended, and a signal that comes
    // before the thread blocks is lost. The process lives on in any case, a signal that is blocked
    // waits, and the action is there no longer than what it uses.
    const auto wake = coordinator.onLayerActivation<Shutdown>([] { kill(getpid(), SIGTERM); });
    // Who tampers with the sensors may mean more than these (CoElektra, III-F).
    const auto alarm = coordinator.onLayerActivation<Tamper>(
        [](milieu::Activation &it) { it.activate<Security>("A"); });
    const auto calm = coordinator.onLayerDeactivation<Tamper>(
        [](milieu::Activation &it) { it.deactivate<Security>(); });

    // What others write into the files arrives by itself; what is wrong there changes nothing.
    const auto watch = coordinator.watch([](const milieu::News &news) {
        if (!news.message().empty()) std::cerr << "weather-station: " << news.message() << '\n';
    });
    Sensors sensors(coordinator, tc->sw.pi.sensors.flow);
    Web web(coordinator, sensors);
    const Watchdog watchdog(coordinator);
    std::cout << web.address() << std::endl;

    for (int signal = 0; sigwait(&signals, &signal) == 0 && signal == SIGHUP;) {
        try {
            identify_hardware(tc);
            sensors.reload();
        } catch (const std::exception &error) {
            std::cerr << "weather-station: it goes on as before: " << error.what() << '\n';
        }
    }
    // Whatever blocks is woken by an action of this layer, or by the news of it.
    tc.activate<Shutdown>();
} catch (const std::exception &error) {
    return milieu::report("weather-station", error);
}
