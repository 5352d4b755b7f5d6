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
#include <milieu/flows.hpp>
#include <milieu/operators.hpp>

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
    /** How many events were dropped for a reason of docs/operators.md, such as `overflow`. */
    std::uint64_t dropped(std::string_view why) const {
        std::uint64_t count;
        detail::check(
            milieu_subscription_dropped(subscription_.get(), detail::text(why), &count));
        return count;
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

namespace detail {

template <class Receive>
milieu_result receive(void *user, const milieu_event *event) {
    return told([&] { (*static_cast<Receive *>(user))(Event(event)); });
}

} // namespace detail

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

/* ---------------------------------------------------------------- effects */

namespace detail {

/** Texts as C has them, for as long as the others are there. */
inline std::vector<milieu_text> texts(const std::vector<std::string_view> &all) {
    std::vector<milieu_text> texts;
    for (std::string_view one : all) texts.push_back(text(one));
    return texts;
}

/** Names and what is said under them, as C has them, for as long as the others are there. */
inline std::vector<milieu_attribute> attributes(
    const std::vector<std::pair<std::string_view, std::string_view>> &all) {
    std::vector<milieu_attribute> attributes;
    for (const auto &[name, value] : all) attributes.push_back({text(name), text(value)});
    return attributes;
}

} // namespace detail

namespace detail {

/** What a picture shows, which is given back. */
inline std::string json(milieu_picture *picture) {
    std::unique_ptr<milieu_picture, Freeing<milieu_picture, milieu_picture_free>> owned(
        picture);
    milieu_text text;
    check(milieu_picture_json(picture, &text));
    return std::string(view(text));
}

} // namespace detail

/** Something that is reached by other means than events: a printer, a display. */
struct Service {
    /** Where: `ipp://printer-23/`. */
    std::string_view endpoint;
    /** What is to be known of it, by which queries find it. */
    std::vector<std::pair<std::string_view, std::string_view>> attributes = {};
    /** When its lease ends, and it goes unless it was renewed. */
    Time until = Time::max();
};

/** A name that has changed; it is lent while a callback runs. */
class NameChange {
public:
    explicit NameChange(const milieu_name_change &change) noexcept : change_(change) {}

    /** The name. */
    std::string_view name() const noexcept { return detail::view(change_.name); }
    /** What has become of it. */
    milieu_change_of_name change() const noexcept {
        return static_cast<milieu_change_of_name>(change_.change);
    }
    /** What stands there; where it has left, this says nothing. */
    milieu_name_kind kind() const noexcept { return static_cast<milieu_name_kind>(change_.kind); }
    /** Where a service is reached; empty if it is none. */
    std::string_view endpoint() const noexcept { return detail::view(change_.endpoint); }
    /** What is to be known of a service, if it says that. */
    std::optional<std::string_view> attribute(std::string_view name) const noexcept {
        for (std::size_t i = 0; i < change_.attribute_count; ++i) {
            const milieu_attribute &known = change_.attributes[i];
            if (detail::view(known.name) == name) return detail::view(known.value);
        }
        return std::nullopt;
    }
    /** How many names a binding stands for. */
    std::size_t targets() const noexcept { return change_.target_count; }
    /** One of these. */
    std::string_view target(std::size_t index) const noexcept {
        return detail::view(change_.targets[index]);
    }

private:
    const milieu_name_change &change_;
};

namespace detail {

template <class Watch>
milieu_result watch_names(void *user, const milieu_name_change *changes, std::size_t count) {
    return told([&] {
        for (std::size_t i = 0; i < count; ++i) {
            (*static_cast<Watch *>(user))(NameChange(changes[i]));
        }
    });
}

} // namespace detail

/**
 * What holds until it goes: a flow under a name, a flow that acts, what a file says, what stands at
 * a name or is told of names.
 */
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
    /** Lets a name that was bound stand for others, in one step. */
    void rebind(const std::vector<std::string_view> &targets) const {
        const auto texts = detail::texts(targets);
        detail::check(milieu_effect_rebind(effect_.get(), texts.data(), texts.size()));
    }
    /** Renews the lease of a service. */
    void renew(Time until) const {
        detail::check(milieu_effect_renew(effect_.get(), detail::nanoseconds(until)));
    }
    /** Where the socket is that control() has made. */
    std::string path() const {
        milieu_text path;
        detail::check(milieu_effect_path(effect_.get(), &path));
        return std::string(detail::view(path));
    }
    /** What a file had in which streams are kept, and no operator has got, as JSON. */
    std::string losses() const {
        milieu_picture *picture;
        detail::check(milieu_picture_of_losses(effect_.get(), &picture));
        return detail::json(picture);
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
    /** The source of the C interface. */
    milieu_source *c() const noexcept { return source_.get(); }

private:
    std::unique_ptr<milieu_source, detail::Freeing<milieu_source, milieu_source_free>> source_;
};

/** A recording that is replayed; it is in milieu/sources.hpp. */
class Replay;

/* ---------------------------------------------------------------- streams */

/** On what terms threads work with operators and functions that may take long. */
struct Blocking {
    /** How many threads there are for all of it. */
    std::uint32_t threads = 4;
    /** How many events may wait for each operator; the oldest make room. */
    std::uint32_t queue = 1024;
    /** How long an operator may take over one event; one that takes longer is given up. */
    Span patience = std::chrono::seconds(30);
};

namespace detail {

/** What a clock says; what it throws stays in it. */
template <class Clock>
std::int64_t tell_time(void *user) noexcept {
    try {
        return nanoseconds((*static_cast<Clock *>(user))());
    } catch (...) {
        return MILIEU_NOW;
    }
}

} // namespace detail

/** The streams of a coordinator. */
class Streams {
public:
    explicit Streams(const Coordinator &coordinator)
        : Streams(coordinator.c(), milieu_streams_options(MILIEU_STREAMS_OPTIONS)) {}
    /** With a time that passes only by pass(), for tests. */
    Streams(const Coordinator &coordinator, Time now)
        : Streams(coordinator.c(), virtual_time(now)) {}
    /**
     * With a clock of the program, which gives a Time. Any thread asks it, several at once, and it
     * cannot ask streams for anything. Where it throws, it is as late as it was last.
     */
    template <class Clock, class = std::enable_if_t<std::is_invocable_r_v<Time, Clock &>>>
    Streams(const Coordinator &coordinator, Clock clock) {
        auto kept = std::make_unique<Clock>(std::move(clock));
        open(coordinator.c(), {MILIEU_ABI, false, 0, detail::tell_time<Clock>, kept.release(),
                                  detail::destroy<Clock>});
    }

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
    /** The same on other terms than Blocking has; before the first source. */
    void drive(const Blocking &terms) const {
        const milieu_blocking given
            = {MILIEU_ABI, terms.threads, terms.queue, terms.patience.count()};
        detail::check(milieu_streams_drive_with(streams_.get(), &given));
    }

    /** Waits until all sources were polled once, but no longer than this. Whether it is so. */
    bool wait_for_sources(Span limit) const {
        bool polled;
        detail::check(
            milieu_streams_wait_for_sources(streams_.get(), limit.count(), &polled));
        return polled;
    }
    /** Lets names with the placeholder of a layer follow that, where others bind them. */
    void follow(std::string_view layer) const {
        detail::check(milieu_streams_follow(streams_.get(), detail::text(layer)));
    }

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
    template <class Poll, class = std::enable_if_t<std::is_invocable_v<Poll &, Feed &>>>
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
    /** Polls a source by what it is called, such as `machine.load`. It is in milieu/sources.hpp. */
    Source source(std::string_view name, std::string_view what,
        const std::vector<std::pair<std::string_view, std::string_view>> &parameters = {}) const;
    /** The same; a function that takes a Feed and a std::string_view publishes what texts become. */
    template <class Format,
        class = std::enable_if_t<std::is_invocable_v<Format &, Feed &, std::string_view>>>
    Source source(std::string_view name, std::string_view what,
        const std::vector<std::pair<std::string_view, std::string_view>> &parameters,
        Format format) const;
    /** Replays a recording by what it is called, such as `replay.csv`. It is in milieu/sources.hpp. */
    Replay replay(std::string_view name, std::string_view what,
        const std::vector<std::pair<std::string_view, std::string_view>> &parameters) const;
    /** The same of one that lies in memory, which is copied. */
    Replay replay(std::string_view name, std::string_view what,
        const std::vector<std::pair<std::string_view, std::string_view>> &parameters,
        std::string_view content) const;
    /** The same, whose rows become bodies of this type, of their fields by name. */
    template <class Body>
    Replay replay(std::string_view name, std::string_view what,
        const std::vector<std::pair<std::string_view, std::string_view>> &parameters) const;
    template <class Body>
    Replay replay(std::string_view name, std::string_view what,
        const std::vector<std::pair<std::string_view, std::string_view>> &parameters,
        std::string_view content) const;

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
        const auto texts = detail::texts(targets);
        return effect([&](milieu_effect **effect) {
            return milieu_effect_bind(streams_.get(), detail::text(name), texts.data(),
                texts.size(), effect);
        });
    }
    /** Puts a service at a name. */
    Effect serve(std::string_view name, const Service &service) const {
        const auto attributes = detail::attributes(service.attributes);
        const milieu_service given = {MILIEU_ABI, static_cast<std::uint32_t>(attributes.size()),
            attributes.data(), detail::text(service.endpoint),
            detail::nanoseconds(service.until)};
        return effect([&](milieu_effect **effect) {
            return milieu_effect_serve(streams_.get(), detail::text(name), &given, effect);
        });
    }
    /** Watches the names of a query, by a callback that takes a NameChange: first of all there are. */
    template <class Watch>
    Effect watch(std::string_view query, Watch callback) const {
        auto kept = std::make_unique<Watch>(std::move(callback));
        return effect([&](milieu_effect **effect) {
            return milieu_effect_watch(streams_.get(), detail::text(query),
                detail::watch_names<Watch>, kept.release(), detail::destroy<Watch>, effect);
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
        detail::check_fixed<L>();
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
    /** What operators remember, as bytes: what keep() writes, for programs that keep it elsewhere. */
    std::string snapshot() const {
        milieu_memory *made;
        detail::check(milieu_memory_new(streams_.get(), &made));
        const std::unique_ptr<milieu_memory, detail::Freeing<milieu_memory, milieu_memory_free>>
            memory(made);
        milieu_text bytes;
        detail::check(milieu_memory_bytes(memory.get(), &bytes));
        return std::string(detail::view(bytes));
    }
    /** Lets operators go on from such bytes; before the subscriptions. */
    void restore(std::string_view snapshot) const {
        detail::check(milieu_memory_restore(streams_.get(), detail::text(snapshot)));
    }
    /** What was restored and no operator has got, as JSON. */
    std::string losses() const {
        milieu_picture *picture;
        detail::check(milieu_picture_of_not_restored(streams_.get(), &picture));
        return detail::json(picture);
    }
    /** Lets other tools of the same user look at the streams: `milieu stream`. */
    Effect control() const {
        return effect([&](milieu_effect **effect) {
            return milieu_effect_control(streams_.get(), effect);
        });
    }
    /** A file of subscriptions, by its name and text, in another language. */
    std::string convert(
        std::string_view file, std::string_view text, milieu_language language) const {
        milieu_writing *writing;
        detail::check(milieu_writing_of_flows(
            streams_.get(), detail::text(file), detail::text(text), language, &writing));
        return detail::written(writing);
    }
    /** The XML Schema of such files in XML, with the operators of the program. */
    std::string schema() const {
        milieu_writing *writing;
        detail::check(milieu_writing_of_schema(streams_.get(), &writing));
        return detail::written(writing);
    }
    /**
     * Runs the cases of a text in a time of their own, with the operators and functions of the
     * program, as `milieu stream test` does; `file` is its name, for messages.
     */
    std::vector<Case> rehearse(std::string_view file, std::string_view text) const {
        milieu_rehearsal *rehearsal;
        detail::check(milieu_rehearsal_new(
            streams_.get(), detail::text(file), detail::text(text), &rehearsal));
        return detail::cases(rehearsal);
    }
    /** A picture of the operator graph as JSON, as `milieu stream graph --json` has it. */
    std::string graph() const {
        milieu_picture *picture;
        detail::check(milieu_picture_of_graph(streams_.get(), &picture));
        return detail::json(picture);
    }
    /** What stands at the names of a query, as JSON. */
    std::string names(std::string_view query) const {
        milieu_picture *picture;
        detail::check(milieu_picture_of_names(streams_.get(), detail::text(query), &picture));
        return detail::json(picture);
    }
    /** The streams of the C interface. */
    milieu_streams *c() const noexcept { return streams_.get(); }

private:
    Streams(milieu_coordinator *coordinator, const milieu_streams_options &options) {
        open(coordinator, options);
    }
    void open(milieu_coordinator *coordinator, const milieu_streams_options &options) {
        milieu_streams *streams;
        detail::check(milieu_streams_new(coordinator, &options, &streams));
        streams_.reset(streams);
    }
    template <class Make>
    static Effect effect(Make &&make) {
        milieu_effect *made;
        detail::check(make(&made));
        return Effect(made);
    }
    static milieu_streams_options virtual_time(Time now) noexcept {
        return {MILIEU_ABI, true, detail::nanoseconds(now), nullptr, nullptr, nullptr};
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
    explicit StreamReader(milieu_reader *reader) noexcept : reader_(reader) {}
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
