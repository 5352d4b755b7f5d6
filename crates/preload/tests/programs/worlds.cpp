// What threads do, in C++: as worlds.c.
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <future>
#include <mutex>
#include <pthread.h>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

// Tells when it goes.
struct Told {
    const char *text;
    ~Told() { std::printf("%s goes\n", text); }
};

thread_local Told of_thread{"thread_local"};

void sums()
{
    std::vector<std::thread> threads;
    std::mutex mutex;
    long sum = 0;
    for (int i = 0; i < 50; ++i)
        threads.emplace_back([&, i] {
            std::lock_guard lock(mutex);
            sum += i;
        });
    for (auto &thread : threads)
        thread.join();
    std::printf("sum %ld\n", sum);
}

void exceptions()
{
    auto failed = std::async(std::launch::async, []() -> int { throw std::runtime_error("told"); });
    try {
        failed.get();
    } catch (const std::runtime_error &error) {
        std::printf("%s\n", error.what());
    }
    std::thread([] {
        try {
            Told local{"local"};
            throw 5;
        } catch (int value) {
            std::printf("caught %d\n", value);
        }
    }).join();
}

void thread_locals()
{
    std::thread([] { std::printf("%s\n", of_thread.text); }).join();
}

// Threads that exit or are cancelled destroy what they have.
void unwinding()
{
    std::thread([] {
        Told local{"exiting"};
        pthread_exit(nullptr);
    }).join();
    std::promise<void> ready;
    std::thread cancelled([&] {
        Told local{"cancelled"};
        ready.set_value();
        for (;;)
            pause();
    });
    ready.get_future().wait();
    pthread_cancel(cancelled.native_handle());
    cancelled.join();
}

void waiting()
{
    std::mutex mutex;
    std::condition_variable changed;
    std::shared_mutex shared;
    int turn = 0;
    auto play = [&](int own) {
        for (int i = 0; i < 100; ++i) {
            std::unique_lock lock(mutex);
            changed.wait(lock, [&] { return turn == own; });
            std::shared_lock reading(shared);
            turn = 1 - own;
            changed.notify_all();
        }
    };
    std::jthread other(play, 1);
    play(0);
    other.join();
    std::printf("turn %d\n", turn);
}

void stops()
{
    std::jthread thread([](std::stop_token token) {
        while (!token.stop_requested())
            std::this_thread::yield();
        std::printf("stopped\n");
    });
}

const struct {
    const char *name;
    void (*run)();
} cases[] = {
    {"sums", sums},
    {"exceptions", exceptions},
    {"thread-locals", thread_locals},
    {"unwinding", unwinding},
    {"waiting", waiting},
    {"stops", stops},
};

} // namespace

int main(int count, char **arguments)
{
    for (const auto &one : cases) {
        if (count == 1)
            std::puts(one.name);
        else if (std::strcmp(arguments[1], one.name) == 0)
            one.run();
    }
    return 0;
}
