// As threads.c, through classes: exceptions of actions, guards, followed values and locks, in many
// threads at once.

#include "check.hpp"
#include "station.hpp"

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

using station::layer::Session;
using Context = milieu::ThreadContext<station::Environment>;

constexpr int workers = 4;
constexpr int rounds = 100;

struct Tamper {
    static constexpr std::string_view id() { return "tamper"; }
    std::string operator()() const { return by; }
    std::string by;
};

struct Power : milieu::ThreadLayer {
    static constexpr std::string_view id() { return "power"; }
    std::string_view operator()(const milieu::Scope &scope) const {
        return scope.role() == "/pool/1" ? "saving" : "";
    }
};

static milieu::Options settings(const char *folder) {
    milieu::Options options;
    options.user_folder = options.system_folder = folder;
    return options;
}

// What an action throws comes to the thread that has switched, and to no other.
static void switches(Context &tc, const std::string &me) {
    try {
        tc.activate<Tamper>(me);
        ASSERT(!"the action throws");
    } catch (const std::runtime_error &error) {
        ASSERT(me == error.what());
    }
    tc.deactivate<Tamper>();
}

static void work(const milieu::Coordinator &coordinator, int worker) {
    const std::string me = std::to_string(worker);
    Context tc(coordinator, "/pool/" + me);
    for (int round = 0; round < rounds; round++) {
        tc.with<Session>(me)([&] {
            tc->station.language = "l" + me;
            tc->station.factor = round;
            tc.with(milieu::follow(tc->station.language))([&] {
                ASSERT(tc.layer("language") == "l" + me);
            });
            // The thread that gets it starts with what is inherited.
            std::thread([&me, fork = tc.fork()]() mutable {
                ASSERT(fork->station.language == "l" + me);
                fork.sync();
            }).join();
        });
        ASSERT(tc->station.language == "en");
        switches(tc, me);
        tc.sync();
        ASSERT(tc->station.interval == (worker == 1 ? 600 : 60));
        if (round % workers == worker) {
            auto lock = coordinator.requireLock();
            ASSERT(!lock.keys().empty());
        }
        if (round % 8 == worker) coordinator.persist("/station");
    }
}

int main(int argc, char **argv) {
    ASSERT(argc > 1);
    {
        milieu::Coordinator coordinator("threads", settings(argv[1]));
        coordinator.assign("/station/saving/interval", "600");
        Context tc(coordinator);
        tc.activate<Power>();
        std::atomic<int> deactivated{0};
        auto thrown = coordinator.onLayerActivation<Tamper>([](milieu::Activation &it) {
            throw std::runtime_error(std::string(it.value()));
        });
        auto counted = coordinator.onLayerDeactivation<Tamper>([&] { deactivated++; });
        std::vector<std::thread> threads;
        for (int worker = 0; worker < workers; worker++) {
            threads.emplace_back([&coordinator, worker] { work(coordinator, worker); });
        }
        threads.emplace_back([&coordinator] {
            for (int round = 0; round < rounds; round++) {
                std::string kept = "an action that comes and goes";
                auto registration = coordinator.onLayerActivation<Tamper>([kept] { ASSERT(kept.size() == 29); });
            }
        });
        for (auto &thread : threads) thread.join();
        ASSERT(deactivated > 0);
        coordinator.persist();
    }
    milieu::Coordinator again("threads", settings(argv[1]));
    Context tc(again);
    for (int worker = 0; worker < workers; worker++) {
        const std::string me = std::to_string(worker);
        tc.with<Session>(me)([&] {
            ASSERT(tc->station.language == "l" + me && tc->station.factor == rounds - 1);
        });
    }
}
