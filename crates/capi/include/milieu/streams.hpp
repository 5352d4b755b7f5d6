/*
 * Milieu: streams of events. The C++ interface; header only, C++17, over streams.h.
 *
 *   struct Weather {
 *       double temperature;
 *       milieu::Text room;
 *   };
 *   MILIEU_EVENT(Weather, temperature, room)
 *
 *   milieu::Streams streams(coordinator);
 *   auto weather = streams.publisher<Weather>("/weather");
 *   auto hot = streams.subscribe("/weather | filter temperature > 32");
 *   weather.publish({33.5, "005"});
 *   while (auto event = hot.take()) std::cout << event->get<Weather>().temperature << '\n';
 *
 * - What fails throws milieu::Error. What a callback throws does not leave it: it becomes the
 *   failure that the listener counts, or the status of the source.
 * - An Event is lent: by a callback while it runs, by a Subscription until it is next asked. What
 *   get() refers to is valid for as long. keep() makes an event last.
 * - Plain values are events too: double, bool, whole numbers, milieu::Text, std::chrono's
 *   nanoseconds and time points of the system's clock in nanoseconds.
 */
#ifndef MILIEU_STREAMS_HPP
#define MILIEU_STREAMS_HPP

#include <milieu.hpp>
#include <milieu/events.hpp>

namespace milieu {

/* ---------------------------------------------------------------- publishing */

/** Publishes events of a type under a name, until it goes. */
template <class T>
class Publisher {
public:
    explicit Publisher(milieu_publisher *publisher) noexcept : publisher_(publisher) {}

    /** Publishes what is so now. False: a subscriber that wants every event cannot take one now. */
    bool publish(const T &body) const { return published(body, nullptr); }
    /** Publishes what was so at another time, or how well it is known. */
    bool publish(const T &body, const Quality &known) const {
        const milieu_quality quality = detail::quality(known);
        return published(body, &quality);
    }
    /** The publisher of the C interface. */
    milieu_publisher *c() const noexcept { return publisher_.get(); }

private:
    bool published(const T &body, const milieu_quality *quality) const {
        const milieu_result result
            = milieu_publisher_publish(publisher_.get(), &body, quality, nullptr);
        if (result == MILIEU_REFUSED) return false;
        detail::check(result);
        return true;
    }

    std::unique_ptr<milieu_publisher, detail::Freeing<milieu_publisher, milieu_publisher_free>>
        publisher_;
};

/* ---------------------------------------------------------------- subscribing */

/** What arrives when events come faster than they are taken. */
struct Delivery {
    /** How many events may wait; 0: the newest one only. */
    std::uint32_t capacity = 1024;
    /** What happens to one that finds no room. */
    milieu_overflow overflow = MILIEU_DROP_OLDEST;

    /** The newest event that has not been taken. */
    static constexpr Delivery latest() noexcept { return {0, MILIEU_DROP_OLDEST}; }
};

/** A subscription whose events wait in a queue, until it goes. One thread uses it at a time. */
class Subscription {
public:
    explicit Subscription(milieu_subscription *subscription) noexcept
        : subscription_(subscription) {}

    /** The next event, if there is one. It is valid until this is asked again. */
    std::optional<Event> take() { return next(0); }
    /** Waits for the next event. Nothing: no more will come. */
    std::optional<Event> wait() { return next(-1); }
    /** Waits for the next event, but no longer than this. */
    std::optional<Event> wait_for(Span limit) {
        return next(limit.count() < 0 ? 0 : limit.count());
    }
    /** Whether no more events will come, and all were taken; known once nothing was there. */
    bool ended() const noexcept { return ended_; }
    /** What has become of the events so far. */
    milieu_tally tally() const {
        milieu_tally tally;
        detail::check(milieu_subscription_tally(subscription_.get(), &tally));
        return tally;
    }
    /**
     * A descriptor for poll(2): readable while there may be an event. Whoever sees it readable
     * takes until there is none.
     */
    int descriptor() const {
        int descriptor;
        detail::check(milieu_subscription_descriptor(subscription_.get(), &descriptor));
        return descriptor;
    }
    /** The subscription of the C interface. */
    milieu_subscription *c() const noexcept { return subscription_.get(); }

private:
    std::optional<Event> next(std::int64_t timeout_ns) {
        const milieu_event *event;
        const milieu_result result
            = milieu_subscription_next(subscription_.get(), timeout_ns, &event);
        if (result == MILIEU_ENDED) {
            ended_ = true;
            return std::nullopt;
        }
        detail::check(result);
        return event ? std::optional<Event>(event) : std::nullopt;
    }

    std::unique_ptr<milieu_subscription,
        detail::Freeing<milieu_subscription, detail::free_subscription>>
        subscription_;
    bool ended_ = false;
};

/** A subscription whose events go to a callback, until it goes. */
class [[nodiscard]] Listener {
public:
    explicit Listener(milieu_listener *listener) noexcept : listener_(listener) {}

    /** How often the callback has thrown. */
    std::uint64_t failures() const {
        std::uint64_t count;
        detail::check(milieu_listener_failures(listener_.get(), &count, nullptr));
        return count;
    }
    /** What it has thrown last says. */
    std::string failure() const {
        std::uint64_t count;
        milieu_text last;
        detail::check(milieu_listener_failures(listener_.get(), &count, &last));
        return std::string(detail::view(last));
    }

private:
    std::unique_ptr<milieu_listener, detail::Freeing<milieu_listener, milieu_listener_free>>
        listener_;
};

/* ---------------------------------------------------------------- functions */

namespace detail {

/** What a function has to say of an event. */
template <class T>
void give(milieu_answer *answer, const T &value) {
    if constexpr (std::is_same_v<T, bool>) {
        check(milieu_answer_give(answer, milieu_datum_bool(value)));
    } else if constexpr (std::is_integral_v<T>) {
        check(milieu_answer_give(answer, milieu_datum_whole(static_cast<std::int64_t>(value))));
    } else if constexpr (std::is_floating_point_v<T>) {
        check(milieu_answer_give(answer, milieu_datum_number(static_cast<double>(value))));
    } else if constexpr (std::is_convertible_v<const T &, std::string_view>) {
        check(milieu_answer_give(answer, milieu_datum_text(text(std::string_view(value)))));
    } else {
        if (value) give(answer, *value);
    }
}

template <class Receive>
milieu_result receive(void *user, const milieu_event *event) {
    return told([&] { (*static_cast<Receive *>(user))(Event(event)); });
}

template <class Compute>
milieu_result compute(void *user, const milieu_event *event, milieu_answer *answer) {
    return told([&] { give(answer, (*static_cast<Compute *>(user))(Event(event))); });
}

} // namespace detail

/**
 * Registers a function that flows name by `$name`: it takes an Event and returns a bool, a number,
 * a text, or an optional of these. It comes before the Streams of the coordinator. With `blocks` it
 * may take long. Several threads may call it at once.
 */
template <class Compute>
void define_function(const Coordinator &coordinator, std::string_view name, Compute function,
    bool blocks = false) {
    auto kept = std::make_unique<Compute>(std::move(function));
    detail::check(milieu_function_define(coordinator.c(), detail::text(name),
        detail::compute<Compute>, blocks, kept.release(), detail::destroy<Compute>));
}

/* ---------------------------------------------------------------- operators */

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
    /** A text, or the word of a choice. */
    std::string text(std::string_view name) const { return std::string((*this)[name].text()); }

private:
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

/** A parameter of an operator. */
struct Parameter {
    const char *name;
    /** MILIEU_BOOL, MILIEU_I64, MILIEU_F64, MILIEU_SPAN, MILIEU_TEXT, or MILIEU_ENUM with choices. */
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

/* ---------------------------------------------------------------- effects */

/** What holds until it goes: a flow under a name, a flow that acts, what a file says. */
class [[nodiscard]] Effect {
public:
    explicit Effect(milieu_effect *effect) noexcept : effect_(effect) {}

    /** How many events could not act. */
    std::uint64_t failures() const {
        std::uint64_t count;
        detail::check(milieu_effect_failures(effect_.get(), &count, nullptr));
        return count;
    }
    /** Why the last of them could not. */
    std::string failure() const {
        std::uint64_t count;
        milieu_text last;
        detail::check(milieu_effect_failures(effect_.get(), &count, &last));
        return std::string(detail::view(last));
    }
    /** Subscribes as an applied file says: by the name of a subscription, or to the first one. */
    Subscription subscribe(std::string_view name = {}) const {
        milieu_subscription *subscription;
        detail::check(milieu_effect_subscribe(effect_.get(), detail::text(name), &subscription));
        return Subscription(subscription);
    }
    /** Writes the file now in which streams are kept. */
    void save() const { detail::check(milieu_effect_save(effect_.get())); }

private:
    std::unique_ptr<milieu_effect, detail::Freeing<milieu_effect, milieu_effect_free>> effect_;
};

/* ---------------------------------------------------------------- sources */

/** What a source waits for. */
class Wait {
public:
    /** A point in time, or its descriptor if that comes first. */
    static Wait until(Time time) noexcept { return {Until, time}; }
    /** Its descriptor. */
    static Wait readable() noexcept { return {Readable, Time()}; }
    /** Nothing more will come. */
    static Wait ended() noexcept { return {Ended, Time()}; }

    /** Says so to C. */
    void tell(milieu_feed *feed) const {
        switch (what_) {
        case Until: return detail::check(milieu_feed_wait(feed, detail::nanoseconds(time_)));
        case Readable: return detail::check(milieu_feed_wait_readable(feed));
        case Ended: return detail::check(milieu_feed_end(feed));
        }
    }

private:
    enum What { Until, Readable, Ended };
    Wait(What what, Time time) noexcept : what_(what), time_(time) {}
    What what_;
    Time time_;
};

/** Where a source puts what it has seen. */
class Feed {
public:
    explicit Feed(milieu_feed *feed) noexcept : feed_(feed) {}

    /** What time it is. */
    Time now() const {
        std::int64_t now;
        detail::check(milieu_feed_now(feed_, &now));
        return detail::time(now);
    }
    /** Publishes what is so now. */
    template <class T>
    void publish(const T &body) const {
        detail::check(milieu_feed_publish(feed_, detail::type_of<T>(), &body, nullptr));
    }
    /** Publishes what was so at another time, or how well it is known. */
    template <class T>
    void publish(const T &body, const Quality &known) const {
        const milieu_quality quality = detail::quality(known);
        detail::check(milieu_feed_publish(feed_, detail::type_of<T>(), &body, &quality));
    }
    /** Says that the source sees what it looks at. */
    void working() const { detail::check(milieu_feed_working(feed_)); }
    /** Says why it sees nothing, or not all that it should. */
    void failing(std::string_view why) const {
        detail::check(milieu_feed_failing(feed_, detail::text(why)));
    }
    /** Has a descriptor watched from now on; a negative one is none. It is duplicated. */
    void descriptor(int descriptor) const {
        detail::check(milieu_feed_descriptor(feed_, descriptor));
    }

private:
    milieu_feed *feed_;
};

/** A source that is being polled, until this goes. */
class [[nodiscard]] Source {
public:
    explicit Source(milieu_source *source) noexcept : source_(source) {}

    /** How it is. */
    milieu_status status() const {
        std::uint32_t status;
        detail::check(milieu_source_status(source_.get(), &status, nullptr));
        return static_cast<milieu_status>(status);
    }
    /** Why it sees nothing, where it is failing. */
    std::string failure() const {
        std::uint32_t status;
        milieu_text why;
        detail::check(milieu_source_status(source_.get(), &status, &why));
        return std::string(detail::view(why));
    }

private:
    std::unique_ptr<milieu_source, detail::Freeing<milieu_source, milieu_source_free>> source_;
};

/* ---------------------------------------------------------------- streams */

/** The streams of a coordinator. */
class Streams {
public:
    explicit Streams(const Coordinator &coordinator) : Streams(coordinator.c(), nullptr) {}
    /** With a time that passes only by pass(), for tests. */
    Streams(const Coordinator &coordinator, Time now)
        : Streams(coordinator.c(), virtual_time(now)) {}

    /** What time it is. */
    Time now() const {
        std::int64_t now;
        detail::check(milieu_streams_now(streams_.get(), &now));
        return detail::time(now);
    }
    /** Lets virtual time pass until then. */
    void pass(Time until) const {
        detail::check(milieu_streams_pass(streams_.get(), detail::nanoseconds(until)));
    }
    /** Starts the thread that wakes operators when time passes; sources start it too. */
    void drive() const { detail::check(milieu_streams_drive(streams_.get())); }

    /** A publisher of events of a type. */
    template <class T>
    Publisher<T> publisher(std::string_view name) const {
        return publisher_that<T>(name, false);
    }
    /** A publisher whose last event late subscribers get at once: for what is true until it changes. */
    template <class T>
    Publisher<T> retaining_publisher(std::string_view name) const {
        return publisher_that<T>(name, true);
    }

    /** Subscribes to a flow, by a queue. */
    Subscription subscribe(std::string_view flow, Delivery delivery = {}) const {
        const milieu_delivery terms = {
            MILIEU_ABI, delivery.capacity, static_cast<std::uint32_t>(delivery.overflow)};
        milieu_subscription *subscription;
        detail::check(milieu_subscription_new(
            streams_.get(), detail::text(flow), &terms, &subscription));
        return Subscription(subscription);
    }

    /** Subscribes to a flow, by a callback that takes an Event. */
    template <class Receive>
    Listener listen(std::string_view flow, Receive receive) const {
        auto kept = std::make_unique<Receive>(std::move(receive));
        milieu_listener *listener;
        detail::check(milieu_listener_new(streams_.get(), detail::text(flow),
            detail::receive<Receive>, kept.release(), detail::destroy<Receive>, &listener));
        return Listener(listener);
    }

    /** Polls a source, which is called with a Feed and returns a Wait, and publishes what it sees. */
    template <class Poll>
    Source source(std::string_view name, Poll poll) const {
        auto run = [](void *user, milieu_feed *raw) -> milieu_result {
            return detail::told([&] {
                Feed feed(raw);
                const Wait wait = (*static_cast<Poll *>(user))(feed);
                wait.tell(raw);
            });
        };
        auto kept = std::make_unique<Poll>(std::move(poll));
        milieu_source *source;
        detail::check(milieu_source_new(streams_.get(), detail::text(name), run, kept.release(),
            detail::destroy<Poll>, &source));
        return Source(source);
    }

    /** Brings about what a file of subscriptions says; how its name ends says the language. */
    Effect apply(std::string_view file, std::string_view text) const {
        return effect([&](milieu_effect **effect) {
            return milieu_effect_apply(streams_.get(), detail::text(file), detail::text(text),
                effect);
        });
    }
    /** Publishes what a flow makes under a name. */
    Effect publish(std::string_view flow, std::string_view name) const {
        return effect([&](milieu_effect **effect) {
            return milieu_effect_publish(streams_.get(), detail::text(flow), detail::text(name),
                effect);
        });
    }
    /** Lets a name stand for others, which may have placeholders and wildcards. */
    Effect bind(std::string_view name, const std::vector<std::string_view> &targets) const {
        std::vector<milieu_text> texts;
        for (std::string_view target : targets) texts.push_back(detail::text(target));
        return effect([&](milieu_effect **effect) {
            return milieu_effect_bind(streams_.get(), detail::text(name), texts.data(),
                texts.size(), effect);
        });
    }
    /** Lets a name stand for the names that each event of a flow says. */
    Effect bind_flow(std::string_view flow, std::string_view name) const {
        return effect([&](milieu_effect **effect) {
            return milieu_effect_bind_flow(streams_.get(), detail::text(flow),
                detail::text(name), effect);
        });
    }
    /**
     * Each event of a flow activates a layer for everybody. `value` takes the Event and gives an
     * optional: an `L`, or what a layer is made of; nothing deactivates it. With `lasting`, it ends
     * so long after the last event that activated it.
     */
    template <class L, class Value>
    Effect activates(std::string_view flow, Value value, Span lasting = Span(0)) const {
        auto text_of = [value = std::move(value)](Event event) mutable {
            auto given = value(event);
            using Given = std::decay_t<decltype(*given)>;
            if constexpr (std::is_same_v<Given, L>) {
                return given ? std::optional<std::string>((*given)()) : std::nullopt;
            } else {
                return given
                    ? std::optional<std::string>(detail::make<L>(*std::move(given))())
                    : std::nullopt;
            }
        };
        return activates(detail::id_of<L>(), flow, std::move(text_of), lasting);
    }
    /** The same of a layer by its id; `value` gives an optional text. */
    template <class Value>
    Effect activates(std::string_view layer, std::string_view flow, Value value,
        Span lasting) const {
        auto kept = std::make_unique<Value>(std::move(value));
        return effect([&](milieu_effect **effect) {
            return milieu_effect_activate(streams_.get(), detail::text(flow),
                detail::text(layer), lasting.count(), detail::compute<Value>, kept.release(),
                detail::destroy<Value>, effect);
        });
    }
    /**
     * Each event of a flow assigns what `value` makes of it, a value or an optional of one, to a
     * contextual value by its name; placeholders become the layers that are active globally then.
     */
    template <class Value>
    Effect assigns(std::string_view flow, std::string_view name, Value value) const {
        auto kept = std::make_unique<Value>(std::move(value));
        return effect([&](milieu_effect **effect) {
            return milieu_effect_assign(streams_.get(), detail::text(flow), detail::text(name),
                detail::compute<Value>, kept.release(), detail::destroy<Value>, effect);
        });
    }
    /** Keeps what operators remember in a file across restarts; before the subscriptions. */
    Effect keep(std::string_view path, Span every) const {
        return effect([&](milieu_effect **effect) {
            return milieu_effect_keep(streams_.get(), detail::text(path), every.count(), effect);
        });
    }
    /** Lets other tools of the same user look at the streams: `milieu stream`. */
    Effect control() const {
        return effect([&](milieu_effect **effect) {
            return milieu_effect_control(streams_.get(), effect);
        });
    }
    /** A picture of the operator graph as JSON, as `milieu stream graph --json` has it. */
    std::string graph() const {
        milieu_picture *picture;
        detail::check(milieu_picture_of_graph(streams_.get(), &picture));
        return json(picture);
    }
    /** What stands at the names of a query, as JSON. */
    std::string names(std::string_view query) const {
        milieu_picture *picture;
        detail::check(milieu_picture_of_names(streams_.get(), detail::text(query), &picture));
        return json(picture);
    }
    /** The streams of the C interface. */
    milieu_streams *c() const noexcept { return streams_.get(); }

private:
    Streams(milieu_coordinator *coordinator, const milieu_streams_options *options) {
        milieu_streams *streams;
        detail::check(milieu_streams_new(coordinator, options, &streams));
        streams_.reset(streams);
    }
    Streams(milieu_coordinator *coordinator, const milieu_streams_options &options)
        : Streams(coordinator, &options) {}
    template <class Make>
    static Effect effect(Make &&make) {
        milieu_effect *made;
        detail::check(make(&made));
        return Effect(made);
    }
    static std::string json(milieu_picture *picture) {
        std::unique_ptr<milieu_picture, detail::Freeing<milieu_picture, milieu_picture_free>> owned(
            picture);
        milieu_text text;
        detail::check(milieu_picture_json(picture, &text));
        return std::string(detail::view(text));
    }
    static milieu_streams_options virtual_time(Time now) noexcept {
        return {MILIEU_ABI, true, detail::nanoseconds(now)};
    }
    template <class T>
    Publisher<T> publisher_that(std::string_view name, bool retains) const {
        milieu_publisher *publisher;
        detail::check(milieu_publisher_new(streams_.get(), detail::text(name),
            detail::type_of<T>(), retains, &publisher));
        return Publisher<T>(publisher);
    }

    std::unique_ptr<milieu_streams, detail::Freeing<milieu_streams, milieu_streams_free>> streams_;
};

/** Subscribes under the layers of a context, those that only it has entered included. */
class StreamReader {
public:
    /** Under the layers that are active in the context now. */
    template <class Policy>
    StreamReader(const Streams &streams, const BasicContext<Policy> &context) {
        milieu_reader *reader;
        detail::check(milieu_reader_new(streams.c(), context.c(), &reader));
        reader_.reset(reader);
    }
    /** The layers of the context are others now: subscriptions to names that depend on them change. */
    template <class Policy>
    void follow(const BasicContext<Policy> &context) const {
        detail::check(milieu_reader_follow(reader_.get(), context.c()));
    }
    /** Subscribes to a flow, by a queue. */
    Subscription subscribe(std::string_view flow, Delivery delivery = {}) const {
        const milieu_delivery terms = {
            MILIEU_ABI, delivery.capacity, static_cast<std::uint32_t>(delivery.overflow)};
        milieu_subscription *subscription;
        detail::check(milieu_reader_subscribe(
            reader_.get(), detail::text(flow), &terms, &subscription));
        return Subscription(subscription);
    }
    /** Subscribes to a flow, by a callback that takes an Event. */
    template <class Receive>
    Listener listen(std::string_view flow, Receive receive) const {
        auto kept = std::make_unique<Receive>(std::move(receive));
        milieu_listener *listener;
        detail::check(milieu_reader_listen(reader_.get(), detail::text(flow),
            detail::receive<Receive>, kept.release(), detail::destroy<Receive>, &listener));
        return Listener(listener);
    }

private:
    std::unique_ptr<milieu_reader, detail::Freeing<milieu_reader, milieu_reader_free>> reader_;
};

} // namespace milieu

#endif
