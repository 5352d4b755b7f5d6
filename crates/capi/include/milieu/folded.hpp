/*
 * What streams have said so far, for threads that are asked later, in C++.
 *
 *   struct Readings {
 *       std::optional<Load> load;
 *       std::deque<double> temperatures;
 *   };
 *   milieu::Folded<Readings> readings;
 *   readings.on(streams, "/machine/load",
 *       [](Readings &now, const milieu::Event &event) { now.load = event.get<Load>(); });
 *   …
 *   if (const Readings now = readings.get(); now.load) out << now.load->one_minute;
 */
#ifndef MILIEU_FOLDED_HPP
#define MILIEU_FOLDED_HPP

#include <milieu/streams.hpp>

#include <mutex>

namespace milieu {

/**
 * A state that events change one after the other, and that any thread looks at. It holds what a
 * change copies into it: a text of an event is lent, so keep a std::string of it.
 */
template <class State>
class Folded {
public:
    explicit Folded(State first = State()) : state_(std::move(first)) {}
    Folded(Folded &&) = delete; // Listeners refer to it.

    /** Lets the events of a flow change the state from now on. One thread says so at a time. */
    template <class Change>
    void on(const Streams &streams, std::string_view flow, Change change) {
        static_assert(std::is_invocable_v<Change &, State &, const Event &>,
            "a change takes the state, by reference, and a `const milieu::Event &`");
        listeners_.push_back(streams.listen(flow, [this, change](const Event &event) mutable {
            const std::lock_guard<std::mutex> lock(mutex_);
            change(state_, event);
        }));
    }
    /** A copy of the state as it is now. */
    [[nodiscard]] State get() const {
        const std::lock_guard<std::mutex> lock(mutex_);
        return state_;
    }

private:
    mutable std::mutex mutex_;
    State state_;
    // The first to go: each waits for its callback.
    std::vector<Listener> listeners_;
};

} // namespace milieu

#endif
