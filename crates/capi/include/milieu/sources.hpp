/*
 * Sources that have names, in C++; over sources.h, which says what holds of them.
 *
 *   struct Load {
 *       double fifteen_minutes;
 *   };
 *   MILIEU_EVENT(Load, fifteen_minutes)
 *
 *   auto load = streams.source("/machine/load", "machine.load", {{"every", "10s"}});
 *   auto high = streams.subscribe("/machine/load | filter fifteen_minutes > 4");
 *   while (auto event = high.wait()) std::cout << event->get<Load>().fifteen_minutes << '\n';
 *
 *   auto scale = streams.source("/scale", "serial.lines", {{"path", "/dev/ttyUSB0"}},
 *       [](milieu::Feed &feed, std::string_view text) { feed.publish(grams(text)); });
 *   auto year = streams.replay("/weather", "replay.csv", {{"path", "weather-2013.csv"}});
 *   year.pace(3600);
 *   auto degrees = streams.replay<Degrees>("/degrees", "replay.csv", {{"path", "degrees.csv"}});
 */
#ifndef MILIEU_SOURCES_HPP
#define MILIEU_SOURCES_HPP

#include <milieu/sources.h>
#include <milieu/streams.hpp>

#include <limits>

namespace milieu {

/** What there is to know of a source that has a name. */
struct SourceInfo {
    /** `machine.load` */
    std::string_view name;
    /** What it does, in one sentence. */
    std::string_view summary;
    /** The types of its events, by which docs/sources.md has their fields. */
    std::string_view events;
    /** What the process needs beyond an ordinary user's rights; empty where that suffices. */
    std::string_view needs;
    /** What it is told. */
    std::vector<Parameter> parameters;
};

/** A recording that is replayed, until this goes. One thread uses it at a time. */
class [[nodiscard]] Replay : public Source {
public:
    /** As fast as it can be read. */
    static constexpr double immediate = std::numeric_limits<double>::infinity();

    /** Of a source that replays a recording; another one throws when it is told something. */
    explicit Replay(Source source) noexcept : Source(std::move(source)) {}

    /** Stops until resume(). */
    void pause() const { detail::check(milieu_replay_pause(c())); }
    /** Goes on where it was stopped. */
    void resume() const { detail::check(milieu_replay_resume(c())); }
    /** Goes on with the first row that was recorded at this time or later. */
    void seek(Time time) const {
        detail::check(milieu_replay_seek(c(), detail::nanoseconds(time)));
    }
    /** Goes on so many times as fast as it was recorded, or `immediate`. */
    void pace(double times) const { detail::check(milieu_replay_pace(c(), times)); }
    /**
     * Which recorded time it is now. Nothing before the first row, where it is replayed as fast as it
     * can be read, and once it has ended.
     */
    std::optional<Time> position() const {
        std::int64_t time;
        detail::check(milieu_replay_position(c(), &time));
        if (time == MILIEU_NOW) return std::nullopt;
        return detail::time(time);
    }
};

/** All sources that have names. */
inline const std::vector<SourceInfo> &sources() {
    static const std::vector<SourceInfo> all = [] {
        const milieu_source_definition *known;
        std::size_t count;
        detail::check(milieu_sources(&known, &count));
        std::vector<SourceInfo> all;
        for (const milieu_source_definition *it = known; it != known + count; ++it) {
            std::vector<Parameter> parameters;
            for (std::size_t i = 0; i < it->parameter_count; ++i) {
                const milieu_parameter &one = it->parameters[i];
                parameters.push_back({one.name, one.kind, one.summary, one.otherwise,
                    one.positional, {one.choices, one.choices + one.choice_count}});
            }
            all.push_back({it->name, it->summary, it->events, it->needs, std::move(parameters)});
        }
        return all;
    }();
    return all;
}

namespace detail {

/** Terms of a recording that lies in memory. */
inline milieu_source_terms in_memory(std::string_view content) noexcept {
    milieu_source_terms terms = MILIEU_SOURCE_TERMS;
    // Nothing lies somewhere all the same.
    terms.content = text(content.data() ? content : std::string_view(""));
    return terms;
}

inline Replay replay(const milieu_streams *streams, std::string_view name, std::string_view what,
    const std::vector<std::pair<std::string_view, std::string_view>> &parameters,
    const milieu_source_terms &terms) {
    const auto given = attributes(parameters);
    milieu_source *source;
    check(milieu_source_open_with(streams, text(name), text(what), given.data(), given.size(),
        &terms, nullptr, nullptr, &source));
    return Replay(Source(source));
}

} // namespace detail

inline Source Streams::source(std::string_view name, std::string_view what,
    const std::vector<std::pair<std::string_view, std::string_view>> &parameters) const {
    const auto given = detail::attributes(parameters);
    milieu_source *source;
    detail::check(milieu_source_open(streams_.get(), detail::text(name), detail::text(what),
        given.data(), given.size(), &source));
    return Source(source);
}

template <class Format, class>
Source Streams::source(std::string_view name, std::string_view what,
    const std::vector<std::pair<std::string_view, std::string_view>> &parameters,
    Format format) const {
    milieu_source_terms terms = MILIEU_SOURCE_TERMS;
    terms.format = [](void *user, milieu_feed *raw, milieu_text text) -> milieu_result {
        return detail::told([&] {
            Feed feed(raw);
            (*static_cast<Format *>(user))(feed, detail::view(text));
        });
    };
    const auto given = detail::attributes(parameters);
    auto kept = std::make_unique<Format>(std::move(format));
    milieu_source *source;
    detail::check(milieu_source_open_with(streams_.get(), detail::text(name), detail::text(what),
        given.data(), given.size(), &terms, kept.release(), detail::destroy<Format>, &source));
    return Source(source);
}

inline Replay Streams::replay(std::string_view name, std::string_view what,
    const std::vector<std::pair<std::string_view, std::string_view>> &parameters) const {
    return Replay(source(name, what, parameters));
}

inline Replay Streams::replay(std::string_view name, std::string_view what,
    const std::vector<std::pair<std::string_view, std::string_view>> &parameters,
    std::string_view content) const {
    return detail::replay(streams_.get(), name, what, parameters, detail::in_memory(content));
}

template <class Body>
Replay Streams::replay(std::string_view name, std::string_view what,
    const std::vector<std::pair<std::string_view, std::string_view>> &parameters) const {
    milieu_source_terms terms = MILIEU_SOURCE_TERMS;
    terms.rows = detail::type_of<Body>();
    return detail::replay(streams_.get(), name, what, parameters, terms);
}

template <class Body>
Replay Streams::replay(std::string_view name, std::string_view what,
    const std::vector<std::pair<std::string_view, std::string_view>> &parameters,
    std::string_view content) const {
    milieu_source_terms terms = detail::in_memory(content);
    terms.rows = detail::type_of<Body>();
    return detail::replay(streams_.get(), name, what, parameters, terms);
}

} // namespace milieu

#endif
