/*
 * The watchdog: hardware that restarts the machine unless it is told now and then that all is well.
 */
#pragma once

#include "context.hpp"

#include <fstream>
#include <iostream>
#include <thread>

class Watchdog {
public:
    // A context may move into the thread that uses it.
    explicit Watchdog(const milieu::Coordinator &coordinator)
        : thread_(run, Context(coordinator, "/watchdog")) {}
    ~Watchdog() { thread_.join(); }

private:
    static void run(const Context tc) {
        const station::Watchdog &watchdog = tc->watchdog;
        std::ofstream device;
        while (!tc.is_active<Shutdown>()) {
            if (watchdog.enable && !watchdog.device.empty()) {
                if (!device.is_open()) device.open(std::string(watchdog.device), std::ios::app);
                device << '.' << std::flush;
                if (!device) {
                    std::cerr << "weather-station: " << watchdog.device << ": cannot be written\n";
                    device = std::ofstream();
                }
            } else {
                let_go(device);
            }
            // Any news ends the sleep, the layers security and shutdown among them.
            tc.wait_for(std::chrono::duration<double>(watchdog.interval));
            tc.syncLayers();
        }
        let_go(device);
    }
    /** Says that the silence from now on is meant. */
    static void let_go(std::ofstream &device) {
        if (device.is_open()) device << 'V' << std::flush;
        device = std::ofstream();
    }

    std::thread thread_;
};
