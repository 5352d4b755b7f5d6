/*
 * Flows that are put together of values, written in other languages, and rehearsed, in C++. Included
 * by streams.hpp.
 */
#ifndef MILIEU_FLOWS_HPP
#define MILIEU_FLOWS_HPP

#include <milieu/operators.hpp>

namespace milieu {

/** A value as expressions write it, so that a part of one can come from elsewhere. */
template <class T>
std::string literal(const T &value) {
    const milieu_datum datum = detail::datum(value);
    std::size_t length;
    detail::check(milieu_literal(datum, nullptr, 0, &length));
    std::string text(length, '\0');
    // The zero byte behind a string is there already, and may be written.
    detail::check(milieu_literal(datum, text.data(), length + 1, nullptr));
    return text;
}

/**
 * Something that an operator is told: true or false, a number, a distance in time, or a text, which
 * may be an expression, `$name` of a function, `{a: b}` or `mean, percentile(95)`.
 */
class Told {
public:
    /** The next parameter, in their order. */
    template <class T, class = std::enable_if_t<!std::is_same_v<std::decay_t<T>, Told>>>
    Told(const T &value) : Told(std::string_view(), value) {}
    /** The parameter of this name. */
    template <class T>
    Told(std::string_view name, const T &value) : name_(name) {
        if constexpr (std::is_convertible_v<const T &, std::string_view>) {
            text_ = std::string_view(value);
        } else {
            datum_ = detail::datum(value);
        }
    }
    /** The same in C, for as long as this is there. */
    milieu_told c() const noexcept {
        return {detail::text(name_),
            datum_.kind ? datum_ : milieu_datum_text(detail::text(text_))};
    }

private:
    std::string name_;
    std::string text_;
    milieu_datum datum_ = milieu_datum_nothing();
};

/**
 * A flow that is put together of values: whatever these say, they are names and parameters, and
 * nothing else.
 *
 *   auto rises = milieu::Flow(streams, "/weather").then("rise", {{"least", 2.0}});
 *   streams.subscribe(rises.text());
 */
class Flow {
public:
    /** The events of a name, which may have wildcards and placeholders. */
    Flow(milieu_streams *streams, std::string_view name) {
        milieu_flow *flow;
        detail::check(milieu_flow_new(streams, detail::text(name), &flow));
        flow_.reset(flow);
    }
    template <class Streams, class = decltype(std::declval<const Streams &>().c())>
    Flow(const Streams &streams, std::string_view name) : Flow(streams.c(), name) {}

    /** Lets the next operator read another flow as well. */
    Flow &also(const Flow &other) & {
        detail::check(milieu_flow_and(flow_.get(), other.flow_.get()));
        return *this;
    }
    Flow &&also(const Flow &other) && { return std::move(also(other)); }
    /** Adds an operator, which reads all that there was. */
    Flow &then(std::string_view operation, const std::vector<Told> &told = {}) & {
        std::vector<milieu_told> all;
        for (const Told &one : told) all.push_back(one.c());
        detail::check(
            milieu_flow_then(flow_.get(), detail::text(operation), all.data(), all.size()));
        return *this;
    }
    Flow &&then(std::string_view operation, const std::vector<Told> &told = {}) && {
        return std::move(then(operation, told));
    }
    /** The flow as one line, for whatever asks for a flow. */
    std::string text() const {
        milieu_text text;
        detail::check(milieu_flow_text(flow_.get(), &text));
        return std::string(detail::view(text));
    }

private:
    std::unique_ptr<milieu_flow, detail::Freeing<milieu_flow, milieu_flow_free>> flow_;
};

/** What came of a case of a rehearsal. */
struct Case {
    std::string title;
    /** What was to happen, and what has happened, by lines. */
    std::string expected;
    std::string found;
    /** Both, with `-` and `+` where they differ; empty where they do not. */
    std::string difference;
    bool passed;
};

namespace detail {

/** What was written, which is given back. */
inline std::string written(milieu_writing *writing) {
    const std::unique_ptr<milieu_writing, Freeing<milieu_writing, milieu_writing_free>> owned(
        writing);
    milieu_text text;
    check(milieu_writing_text(writing, &text));
    return std::string(view(text));
}

/** The cases of a rehearsal, which is given back. */
inline std::vector<Case> cases(milieu_rehearsal *rehearsal) {
    const std::unique_ptr<milieu_rehearsal, Freeing<milieu_rehearsal, milieu_rehearsal_free>>
        owned(rehearsal);
    const milieu_case *first;
    std::size_t count;
    check(milieu_rehearsal_cases(rehearsal, &first, &count));
    std::vector<Case> cases;
    for (const milieu_case *it = first; it != first + count; ++it) {
        cases.push_back({std::string(view(it->title)), std::string(view(it->expected)),
            std::string(view(it->found)), std::string(view(it->difference)), it->passed});
    }
    return cases;
}

} // namespace detail

} // namespace milieu

#endif
