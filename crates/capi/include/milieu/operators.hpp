/*
 * Functions and operators that flows name, in C++. Included by streams.hpp.
 */
#ifndef MILIEU_OPERATORS_HPP
#define MILIEU_OPERATORS_HPP

#include <milieu/events.hpp>

namespace milieu {

/* ---------------------------------------------------------------- functions */

namespace detail {

/** Whether it is a value that C has as a datum. */
template <class T>
constexpr bool is_datum = std::is_arithmetic_v<T> || std::is_convertible_v<const T &, Time>
    || std::is_convertible_v<const T &, Span> || std::is_convertible_v<const T &, std::string_view>;

/** A value as C has it, which refers to a text. */
template <class T>
milieu_datum datum(const T &value) {
    milieu_datum datum = milieu_datum_nothing();
    if constexpr (std::is_same_v<T, bool>) {
        datum = milieu_datum_bool(value);
    } else if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8) {
        datum.kind = MILIEU_U64;
        datum.content.natural = value;
    } else if constexpr (std::is_integral_v<T>) {
        datum = milieu_datum_whole(static_cast<std::int64_t>(value));
    } else if constexpr (std::is_floating_point_v<T>) {
        datum = milieu_datum_number(static_cast<double>(value));
    } else if constexpr (std::is_convertible_v<const T &, Time>) {
        datum.kind = MILIEU_TIME;
        datum.content.whole = nanoseconds(value);
    } else if constexpr (std::is_convertible_v<const T &, Span>) {
        datum.kind = MILIEU_SPAN;
        datum.content.whole = Span(value).count();
    } else {
        static_assert(is_datum<T>,
            "a value is true or false, a number, a point or a distance in time, or a text");
        datum = milieu_datum_text(text(std::string_view(value)));
    }
    return datum;
}

/** What a function has to say of an event. */
template <class T>
void give(milieu_answer *answer, const T &value) {
    if constexpr (is_datum<T>) {
        check(milieu_answer_give(answer, datum(value)));
    } else {
        if (value) give(answer, *value);
    }
}

template <class Compute>
milieu_result compute(void *user, const milieu_event *event, milieu_answer *answer) {
    return told([&] { give(answer, (*static_cast<Compute *>(user))(Event(event))); });
}

} // namespace detail

/**
 * Registers a function that flows name by `$name`: it takes an Event and returns a bool, a number,
 * a text, a point or a distance in time, or an optional of these. It comes before the Streams of the coordinator. With `blocks` it
 * may take long. Several threads may call it at once.
 */
template <class Compute>
void define_function(const Coordinator &coordinator, std::string_view name, Compute function,
    bool blocks = false) {
    auto kept = std::make_unique<Compute>(std::move(function));
    detail::check(milieu_function_define(coordinator.c(), detail::text(name),
        detail::compute<Compute>, blocks, kept.release(), detail::destroy<Compute>));
}

namespace detail {

/** A function of bodies, as one of events. */
template <class Body, class Compute>
struct OfBody {
    Compute compute;
    auto operator()(const Event &event) { return compute(event.get<Body>()); }
};

} // namespace detail

/**
 * The same of bodies of one type: `define_function<Weather>(coordinator, "hot", [](const Weather
 * &weather) { … })`. An event that is none of these is dropped as `fault`.
 */
template <class Body, class Compute,
    class = std::enable_if_t<std::is_invocable_v<Compute &, const Body &>>>
void define_function(const Coordinator &coordinator, std::string_view name, Compute function,
    bool blocks = false) {
    using Function = detail::OfBody<Body, Compute>;
    define_function(coordinator, name, Function{std::move(function)}, blocks);
}

/* ---------------------------------------------------------------- operators */

/** An expression of a flow, or `$name` of a function, which an operator computes of events. */
class Expression {
public:
    explicit Expression(milieu_expression *expression) noexcept : expression_(expression) {}

    /** Whether there is one. */
    explicit operator bool() const noexcept { return expression_ != nullptr; }
    /**
     * What it makes of an event; valid until it is asked again. What cannot be computed throws, and
     * an operator that lets it drops the event.
     */
    Datum operator()(const Event &event) const {
        milieu_datum datum;
        detail::check(milieu_expression_value(expression_.get(), event.c(), &datum));
        return Datum(datum);
    }

private:
    std::unique_ptr<milieu_expression, detail::Freeing<milieu_expression, milieu_expression_free>>
        expression_;
};

/** A function that an operator is told: `percentile(95)`. */
struct FunctionCall {
    std::string name;
    /** Numbers, distances in time, and words, which are valid while the operator is made. */
    std::vector<Datum> arguments;
};

/** What an operator is made with. */
class Arguments {
public:
    explicit Arguments(const milieu_arguments *arguments) noexcept : arguments_(arguments) {}

    /** A parameter: as it was given, or its default; nothing where there is none. */
    Datum operator[](std::string_view name) const {
        milieu_datum datum;
        detail::check(milieu_arguments_get(arguments_, detail::text(name), &datum));
        return Datum(datum);
    }
    /** A number that has to be there. */
    double number(std::string_view name) const { return (*this)[name].number().value(); }
    /** A distance in time that has to be there. */
    Span span(std::string_view name) const { return (*this)[name].span().value(); }
    /** True or false. */
    bool flag(std::string_view name) const { return (*this)[name].boolean().value_or(false); }
    /** An expression, a parameter that is a MILIEU_EXPRESSION. */
    Expression expression(std::string_view name) const {
        milieu_expression *expression;
        detail::check(milieu_arguments_expression(arguments_, detail::text(name), &expression));
        return Expression(expression);
    }
    /** A text, or the word of a choice. */
    std::string text(std::string_view name) const { return std::string((*this)[name].text()); }
    /**
     * Fields and the expressions that they become, a parameter that is MILIEU_FIELDS. None where it
     * is one expression(), which makes the whole.
     */
    std::vector<std::pair<std::string, Expression>> fields(std::string_view name) const {
        std::vector<std::pair<std::string, Expression>> fields;
        for (std::size_t i = 0, all = count(name); i < all; ++i) {
            milieu_text field;
            milieu_expression *expression;
            detail::check(milieu_arguments_field(
                arguments_, detail::text(name), i, &field, &expression));
            Expression owned(expression);
            fields.emplace_back(detail::view(field), std::move(owned));
        }
        return fields;
    }
    /** Functions of the operator's own, a parameter that is MILIEU_FUNCTIONS. */
    std::vector<FunctionCall> functions(std::string_view name) const {
        std::vector<FunctionCall> functions;
        for (std::size_t i = 0, all = count(name); i < all; ++i) {
            milieu_function_call call;
            detail::check(
                milieu_arguments_function(arguments_, detail::text(name), i, &call));
            functions.push_back({std::string(detail::view(call.name)), {}});
            for (std::size_t at = 0; at < call.argument_count; ++at) {
                functions.back().arguments.push_back(Datum(call.arguments[at]));
            }
        }
        return functions;
    }

private:
    std::size_t count(std::string_view name) const {
        std::size_t count;
        detail::check(milieu_arguments_count(arguments_, detail::text(name), &count));
        return count;
    }
    const milieu_arguments *arguments_;
};

/** Where an operator puts what it publishes, and says what becomes of the event that has come. */
class Output {
public:
    explicit Output(milieu_output *output) noexcept : output_(output) {}

    /** What time it is. */
    Time now() const {
        std::int64_t now;
        detail::check(milieu_output_now(output_, &now));
        return detail::time(now);
    }
    /** Publishes an event of the operator's own, at the time of the one that has come. */
    template <class T>
    void publish(const T &body) const {
        detail::check(milieu_output_publish(output_, detail::type_of<T>(), &body, nullptr));
    }
    /** Publishes one of another time or quality. */
    template <class T>
    void publish(const T &body, const Quality &known) const {
        const milieu_quality quality = detail::quality(known);
        detail::check(milieu_output_publish(output_, detail::type_of<T>(), &body, &quality));
    }
    /** The event goes on as it is. */
    void pass() const { detail::check(milieu_output_pass(output_)); }
    /** The event goes no further, for one of the reasons of docs/operators.md. */
    void drop(std::string_view why = {}) const {
        detail::check(milieu_output_drop(output_, detail::text(why)));
    }
    /** The operator keeps the event, and settles its fate later. */
    KeptEvent hold(const Event &event) const {
        KeptEvent kept = event.keep();
        detail::check(milieu_output_hold(output_));
        return kept;
    }
    /** Sends a held event on. */
    void pass(const KeptEvent &held) const {
        detail::check(milieu_output_pass_held(output_, held.c()));
    }
    /** So many held events have gone into what was published. */
    void used_held(std::uint32_t count) const {
        detail::check(milieu_output_settle_held(output_, count, 0, detail::text({})));
    }
    /** So many held events go no further. */
    void drop_held(std::uint32_t count, std::string_view why = {}) const {
        detail::check(milieu_output_settle_held(output_, 0, count, detail::text(why)));
    }
    /** Asks to be woken at this time, and not at the one asked for before. */
    void wake_at(Time time) const {
        detail::check(milieu_output_wake_at(output_, detail::nanoseconds(time)));
    }

private:
    milieu_output *output_;
};

namespace detail {

template <class Transform>
milieu_result transform(void *user, const milieu_event *event, milieu_output *raw) {
    return told([&] {
        Output output(raw);
        (*static_cast<Transform *>(user))(Event(event), output);
    });
}

} // namespace detail

/**
 * Registers a function for `transform $name`: it takes an Event and an Output, and makes events of
 * it, lets it go on or drops it. It remembers nothing. As define_function in all else.
 */
template <class Transform>
void define_transform(const Coordinator &coordinator, std::string_view name, Transform function,
    bool blocks = false) {
    auto kept = std::make_unique<Transform>(std::move(function));
    detail::check(milieu_transform_define(coordinator.c(), detail::text(name),
        detail::transform<Transform>, blocks, kept.release(), detail::destroy<Transform>));
}

namespace detail {

/** A function that makes a body of another one, as one that makes events. */
template <class Body, class Make>
struct Making {
    Make make;
    void operator()(const Event &event, Output &output) {
        publish(make(event.get<Body>()), output);
    }

private:
    template <class Made>
    static void publish(const Made &made, Output &output) {
        output.publish(made);
    }
    template <class Made>
    static void publish(const std::optional<Made> &made, Output &output) {
        if (made) return output.publish(*made);
        output.drop();
    }
};

} // namespace detail

/**
 * The same of bodies of one type: it takes a `const Body &` and gives another body, or an optional
 * one: nothing drops the event. Its time stays, and what is wrong with the sensor.
 */
template <class Body, class Make,
    class = std::enable_if_t<std::is_invocable_v<Make &, const Body &>>>
void define_transform(const Coordinator &coordinator, std::string_view name, Make function,
    bool blocks = false) {
    using Transform = detail::Making<Body, Make>;
    define_transform(coordinator, name, Transform{std::move(function)}, blocks);
}

/** A parameter of an operator. */
struct Parameter {
    const char *name;
    /**
     * MILIEU_BOOL, MILIEU_I64, MILIEU_F64, MILIEU_SPAN, MILIEU_TEXT, MILIEU_EXPRESSION,
     * MILIEU_FIELDS, or MILIEU_ENUM or MILIEU_FUNCTIONS with choices.
     */
    std::uint32_t kind;
    /** What it means, in one sentence. */
    const char *summary;
    /** What holds where it is not given; null: it has to be given; empty: there is none. */
    const char *otherwise = nullptr;
    /** Whether its name may be left out. */
    bool positional = true;
    std::vector<const char *> choices = {};
};

/** What flows know of an operator. */
struct OperatorInfo {
    /** What flows call it: a word. */
    const char *name;
    /** What it does, in one sentence. */
    const char *summary;
    std::vector<Parameter> parameters = {};
    /** How many flows it reads; 0: one or more, whose order does not matter. */
    std::uint32_t inputs = 1;
    /** MILIEU_OPERATOR_…, or-ed. */
    std::uint32_t flags = 0;
};

namespace detail {

template <class O, class = void>
struct has_wake : std::false_type {};
template <class O>
struct has_wake<O, std::void_t<decltype(std::declval<O &>().wake(std::declval<Output &>()))>>
    : std::true_type {};

template <class O, class = void>
struct has_snapshot : std::false_type {};
template <class O>
struct has_snapshot<O, std::void_t<decltype(std::declval<const O &>().snapshot())>>
    : std::true_type {};

template <class O>
milieu_result make_operator(void *, const milieu_arguments *arguments, void **state) {
    return told([&] {
        if constexpr (std::is_constructible_v<O, const Arguments &>) {
            *state = new O(Arguments(arguments));
        } else {
            *state = new O();
        }
    });
}

template <class O>
milieu_result step(
    void *state, std::uint32_t input, const milieu_event *event, milieu_output *raw) {
    return told([&] {
        Output output(raw);
        if constexpr (std::is_invocable_v<decltype(&O::event), O &, std::uint32_t, Event,
                          Output &>) {
            static_cast<O *>(state)->event(input, Event(event), output);
        } else {
            static_cast<O *>(state)->event(Event(event), output);
        }
    });
}

template <class O>
milieu_result wake(void *state, milieu_output *raw) {
    return told([&] {
        Output output(raw);
        static_cast<O *>(state)->wake(output);
    });
}

template <class O>
milieu_result save(void *state, milieu_snapshot *snapshot) {
    return told([&] {
        const std::string bytes = static_cast<const O *>(state)->snapshot();
        check(milieu_snapshot_put(snapshot, bytes.data(), bytes.size()));
    });
}

template <class O>
milieu_result restore(void *state, milieu_text bytes) {
    return told([&] { static_cast<O *>(state)->restore(view(bytes)); });
}

} // namespace detail

/**
 * Defines an operator, which flows name. `O` is a class that is constructed of Arguments, or of
 * nothing; it has `event(Event, Output &)`, or with an input before these, and may have
 * `wake(Output &)`, and `snapshot()`, which gives a std::string, with `restore(std::string_view)`.
 * It comes before the Streams of the coordinator.
 */
template <class O>
void define_operator(const Coordinator &coordinator, const OperatorInfo &info) {
    std::vector<milieu_parameter> parameters;
    for (const Parameter &parameter : info.parameters) {
        parameters.push_back({parameter.name, parameter.kind,
            static_cast<std::uint32_t>(parameter.choices.size()), parameter.choices.data(),
            parameter.otherwise, parameter.summary, parameter.positional});
    }
    milieu_operator definition = {};
    definition.abi = MILIEU_ABI;
    definition.inputs = info.inputs;
    definition.flags = info.flags;
    definition.parameter_count = static_cast<std::uint32_t>(parameters.size());
    definition.name = info.name;
    definition.summary = info.summary;
    definition.parameters = parameters.data();
    definition.make = detail::make_operator<O>;
    definition.step = detail::step<O>;
    definition.free = detail::destroy<O>;
    if constexpr (detail::has_wake<O>::value) definition.wake = detail::wake<O>;
    if constexpr (detail::has_snapshot<O>::value) {
        definition.save = detail::save<O>;
        definition.restore = detail::restore<O>;
    }
    detail::check(milieu_operator_define(coordinator.c(), &definition, nullptr, nullptr));
}

} // namespace milieu

#endif
