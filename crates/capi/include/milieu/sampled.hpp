/*
 * Sources in C++ that look at something every so often, in a context of their own.
 *
 *   auto load = streams.source("/machine/load",
 *       milieu::sampled<station::Environment>(coordinator,
 *           [](const milieu::Feed &feed, const station::Environment &env) {
 *               feed.publish(Load{measured_in(env.sensors.root)});
 *               return std::chrono::seconds(env.sensors.interval);
 *           }));
 */
#ifndef MILIEU_SAMPLED_HPP
#define MILIEU_SAMPLED_HPP

#include <milieu/streams.hpp>

namespace milieu {

/** What sampled() makes. */
template <class Environment, class Look>
class Sampled {
public:
    Sampled(const Coordinator &coordinator, Look look, Span retry)
        : context_(coordinator), look_(std::move(look)), retry_(retry) {}

    Wait operator()(const Feed &feed) {
        context_.sync();
        try {
            const auto pause = std::chrono::ceil<Span>(look_(feed, std::as_const(*context_)));
            feed.working();
            return Wait::until(feed.now() + pause);
        } catch (const std::exception &error) {
            feed.failing(error.what());
            return Wait::until(feed.now() + retry_);
        }
    }

private:
    ThreadContext<Environment> context_;
    Look look_;
    Span retry_;
};

/**
 * A source for Streams::source. `look` takes a Feed and an environment, which is that of a context
 * of the source's own and up to date, publishes what it sees, and returns for how long it does not
 * look then. While it throws, the source is failing, says why, and looks again after `retry`.
 */
template <class Environment, class Look>
[[nodiscard]] Sampled<Environment, Look> sampled(
    const Coordinator &coordinator, Look look, Span retry = std::chrono::seconds(1)) {
    static_assert(std::is_invocable_v<Look &, const Feed &, const Environment &>,
        "what looks takes a `const milieu::Feed &` and a `const Environment &`");
    return {coordinator, std::move(look), retry};
}

} // namespace milieu

#endif
