// Reads every value of `site.ini`: what a specification adds to a program in C++.

#include "site.hpp"

#include <cstdio>
#include <string>

int main() {
    milieu::Coordinator coordinator("site");
    milieu::ThreadContext<site::Environment> tc(coordinator);
    std::puts(std::string(tc->sw.pi.language.get()).c_str());
    std::puts(std::string(tc->sw.pi.title.get()).c_str());
    std::puts(std::string(tc->sw.pi.hello.get()).c_str());
    std::puts(std::string(tc->sw.pi.goodbye.get()).c_str());
    std::printf("%ld\n", static_cast<long>(tc->sw.pi.tamper.get()));
    std::printf("%ld\n", static_cast<long>(tc->sw.pi.refresh.get()));
    std::printf("%ld\n", static_cast<long>(tc->sw.pi.visits.get()));
    std::printf("%ld\n", static_cast<long>(tc->sw.pi.theme.get()));
    std::printf("%ld\n", static_cast<long>(tc->sw.pi.width.get()));
    std::printf("%ld\n", static_cast<long>(tc->sw.pi.threads.get()));
    std::printf("%ld\n", static_cast<long>(tc->sw.pi.port.get()));
    std::puts(std::string(tc->sw.pi.root.get()).c_str());
    std::printf("%f\n", static_cast<double>(tc->sw.pi.timeout.get()));
    std::printf("%ld\n", static_cast<long>(tc->sw.pi.verbose.get()));
    std::puts(std::string(tc->hw.pi.gpio.folder.get()).c_str());
    std::puts(std::string(tc->hw.pi.gpio.tamper.get()).c_str());
    std::printf("%ld\n", static_cast<long>(tc->hw.pi.gpio.edge.get()));
    std::printf("%ld\n", static_cast<long>(tc->hw.pi.gpio.poll.get()));
    std::printf("%ld\n", static_cast<long>(tc->hw.pi.led.get()));
    std::printf("%ld\n", static_cast<long>(tc->hw.pi.clock.get()));
    std::puts(std::string(tc->log.file.get()).c_str());
    std::printf("%ld\n", static_cast<long>(tc->log.level.get()));
    std::printf("%ld\n", static_cast<long>(tc->version.get()));
}
