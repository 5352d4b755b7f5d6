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
 */
#ifndef MILIEU_SOURCES_HPP
#define MILIEU_SOURCES_HPP

#include <milieu/sources.h>
#include <milieu/streams.hpp>

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

inline Source Streams::source(std::string_view name, std::string_view what,
    const std::vector<std::pair<std::string_view, std::string_view>> &parameters) const {
    const auto given = detail::attributes(parameters);
    milieu_source *source;
    detail::check(milieu_source_open(streams_.get(), detail::text(name), detail::text(what),
        given.data(), given.size(), &source));
    return Source(source);
}

} // namespace milieu

#endif
