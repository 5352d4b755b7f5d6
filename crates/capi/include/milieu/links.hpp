/*
 * Milieu: links between machines. The C++ interface; header only, C++17, over links.h and
 * engines.h.
 *
 *   milieu::Hub hub;
 *   milieu::Link at_home(kitchen, hub.join("kitchen"), milieu::Terms::open());
 *   milieu::Link outside(garden, hub.join("garden"), milieu::Terms::open());
 *   auto oven = garden.subscribe("/oven/temperature");    // which the kitchen publishes
 *
 * An engine of the program's own derives from milieu::Carrier.
 */
#ifndef MILIEU_LINKS_HPP
#define MILIEU_LINKS_HPP

#include <milieu/engines.h>
#include <milieu/rights.hpp>

#include <atomic>
#include <functional>

namespace milieu {

/* ---------------------------------------------------------------- engines */

/** One end of what carries frames between machines; a Link takes it over. */
class Engine {
public:
    explicit Engine(milieu_engine *engine) noexcept : engine_(engine) {}
    /** The engine of the C interface. */
    milieu_engine *c() const noexcept { return engine_.get(); }
    /** Whoever calls this has it now. */
    milieu_engine *release() noexcept { return engine_.release(); }

private:
    std::unique_ptr<milieu_engine, detail::Freeing<milieu_engine, milieu_engine_free>> engine_;
};

/** Joins machines of one process. */
class Hub {
public:
    /** With `apart`, frames are bytes alone, as if each machine were in a process of its own. */
    explicit Hub(bool apart = false) {
        milieu_hub *hub;
        detail::check(milieu_hub_new(apart, &hub));
        hub_.reset(hub);
    }
    /** A port, under the name that the others get to see. */
    Engine join(std::string_view name) const {
        milieu_engine *engine;
        detail::check(milieu_hub_join(hub_.get(), detail::text(name), &engine));
        return Engine(engine);
    }

private:
    std::unique_ptr<milieu_hub, detail::Freeing<milieu_hub, milieu_hub_free>> hub_;
};

/* ---------------------------------------------------------------- engines of the program */

/** Where an engine of the program tells what has happened; it is lent while that is polled. */
class Arrivals {
public:
    explicit Arrivals(milieu_arrivals *arrivals) noexcept : arrivals_(arrivals) {}

    /*
     * Each of these says whether it was told: false where 256 were told already, and the engine
     * keeps it for the next time. What makes no sense throws.
     */

    /** A peer has come, under a number that no other one has had. */
    bool joined(std::uint64_t peer, std::string_view name) const {
        return told(milieu_arrivals_joined(arrivals_, peer, detail::text(name)));
    }
    /** A peer has left; nothing more of it will come. */
    bool left(std::uint64_t peer, milieu_close_reason reason) const {
        return told(
            milieu_arrivals_left(arrivals_, peer, static_cast<std::uint32_t>(reason)));
    }
    /** A frame has come; its bytes are copied. */
    bool frame(const milieu_parcel &parcel) const {
        return told(milieu_arrivals_frame(arrivals_, &parcel));
    }
    /** What has become of a parcel. */
    bool receipt(std::uint64_t receipt, bool delivered) const {
        return told(milieu_arrivals_receipt(arrivals_, receipt, delivered));
    }
    /** There is credit again where there was none. */
    bool credit(std::uint64_t peer, std::uint32_t channel) const {
        return told(milieu_arrivals_credit(arrivals_, peer, channel));
    }
    /** A peer asks something. */
    bool request(std::uint64_t peer, std::uint64_t number, std::string_view question) const {
        return told(
            milieu_arrivals_request(arrivals_, peer, number, detail::text(question)));
    }
    /** What a peer has answered; nothing: it did not. */
    bool reply(std::uint64_t peer, std::uint64_t number,
        std::optional<std::string_view> answer) const {
        const milieu_text given = detail::text(answer.value_or(std::string_view()));
        return told(
            milieu_arrivals_reply(arrivals_, peer, number, answer ? &given : nullptr));
    }

private:
    static bool told(milieu_result result) {
        if (result == MILIEU_REFUSED) return false;
        detail::check(result);
        return true;
    }

    milieu_arrivals *arrivals_;
};

namespace detail {
struct CarrierOfC;
}

/**
 * An engine of the program's own, as engines.h says what it keeps. What one of its functions throws
 * does not leave it: an engine that throws from anything is polled no more and carries nothing.
 */
class Carrier {
public:
    Carrier() = default;
    Carrier(const Carrier &) = delete;
    Carrier &operator=(const Carrier &) = delete;
    virtual ~Carrier() { milieu_waker_free(waker_.load()); }

    /** What it can do. */
    struct Capabilities {
        /** Frames of a channel come in their order. */
        bool ordered = true;
        /** Frames may be lost, and there are receipts that tell. */
        bool receipts = false;
        /** The largest payload, question and answer, in bytes. */
        std::size_t bytes_max = 1 << 20;
        /** How many questions a peer may have to answer at most. */
        std::size_t requests_max = 64;
        /** How many frames may be under way on a channel at most. */
        std::uint64_t credit_max = 4096;
    };

    /** Always the same. */
    virtual Capabilities capabilities() const { return {}; }
    /** Takes one frame. */
    virtual milieu_refusal submit(const milieu_parcel &parcel) = 0;
    /** How many frames a peer takes on a channel now. */
    virtual std::uint64_t credit(std::uint64_t to, std::uint32_t channel) = 0;
    /** Allows a peer to have submitted so many frames on a channel altogether. */
    virtual void grant(std::uint64_t from, std::uint32_t channel, std::uint64_t frames) = 0;
    /** A channel from a peer is used no more. */
    virtual void shut(std::uint64_t from, std::uint32_t channel) = 0;
    /** Nothing more is sent to a peer on a channel. */
    virtual void leave(std::uint64_t to, std::uint32_t channel) = 0;
    /** Asks a peer something. */
    virtual milieu_refusal request(
        std::uint64_t to, std::uint64_t number, std::string_view question) = 0;
    /** Answers what a peer has asked. */
    virtual void reply(std::uint64_t to, std::uint64_t number, std::string_view answer) = 0;
    /** Tells what has happened since. */
    virtual void poll(const Arrivals &arrivals) = 0;
    /** Ends it. */
    virtual void close(milieu_close_reason reason) = 0;

protected:
    /** Says that there is something to poll for; from any thread, also before a link has it. */
    void wake() const noexcept {
        if (const milieu_waker *waker = waker_.load()) (void)milieu_waker_wake(waker);
    }

private:
    friend struct detail::CarrierOfC;
    std::atomic<milieu_waker *> waker_{nullptr};
    bool failed_ = false;
};

namespace detail {

/** The callbacks of an engine, as C has them. */
struct CarrierOfC {
    /** An engine that has these functions, and is destroyed with it. */
    static Engine engine(std::unique_ptr<Carrier> carrier) {
        const Carrier::Capabilities can = carrier->capabilities();
        milieu_carrier given;
        given.abi = MILIEU_ABI;
        given.flags = (can.ordered ? std::uint32_t{MILIEU_ENGINE_ORDERED} : 0)
            | (can.receipts ? std::uint32_t{MILIEU_ENGINE_RECEIPTS} : 0);
        given.bytes_max = can.bytes_max;
        given.requests_max = can.requests_max;
        given.credit_max = can.credit_max;
        given.submit = submit;
        given.credit = credit;
        given.grant = grant;
        given.shut = shut;
        given.leave = leave;
        given.request = request;
        given.reply = reply;
        given.poll = poll;
        given.close = close;
        Carrier *kept = carrier.get();
        milieu_engine *engine;
        milieu_waker *waker;
        check(milieu_engine_new(
            &given, carrier.release(), destroy<Carrier>, &engine, &waker));
        kept->waker_.store(waker);
        return Engine(engine);
    }

private:
    /** Does it; what it throws fails the engine, whose next poll says so. */
    template <class Result, class Work>
    static Result done(void *user, Result otherwise, Work &&work) noexcept {
        auto &carrier = *static_cast<Carrier *>(user);
        Result result = otherwise;
        if (told([&] { result = work(carrier); }) != MILIEU_OK) {
            carrier.failed_ = true;
            carrier.wake();
            return otherwise;
        }
        return result;
    }

    static milieu_refusal submit(
        void *user, const milieu_parcel *parcels, std::size_t count, std::size_t *taken) {
        for (*taken = 0; *taken < count; ++*taken) {
            const milieu_refusal refusal = done(user, MILIEU_CLOSED,
                [&](Carrier &carrier) { return carrier.submit(parcels[*taken]); });
            if (refusal != MILIEU_ACCEPTED) return refusal;
        }
        return MILIEU_ACCEPTED;
    }
    static std::uint64_t credit(void *user, std::uint64_t to, std::uint32_t channel) {
        return done(user, std::uint64_t{0},
            [&](Carrier &carrier) { return carrier.credit(to, channel); });
    }
    static void grant(
        void *user, std::uint64_t from, std::uint32_t channel, std::uint64_t frames) {
        (void)done(user, 0, [&](Carrier &carrier) {
            return carrier.grant(from, channel, frames), 0;
        });
    }
    static void shut(void *user, std::uint64_t from, std::uint32_t channel) {
        (void)done(user, 0, [&](Carrier &carrier) { return carrier.shut(from, channel), 0; });
    }
    static void leave(void *user, std::uint64_t to, std::uint32_t channel) {
        (void)done(user, 0, [&](Carrier &carrier) { return carrier.leave(to, channel), 0; });
    }
    static milieu_refusal request(
        void *user, std::uint64_t to, std::uint64_t number, milieu_text question) {
        return done(user, MILIEU_CLOSED, [&](Carrier &carrier) {
            return carrier.request(to, number, view(question));
        });
    }
    static void reply(void *user, std::uint64_t to, std::uint64_t number, milieu_text answer) {
        (void)done(user, 0, [&](Carrier &carrier) {
            return carrier.reply(to, number, view(answer)), 0;
        });
    }
    static milieu_result poll(void *user, milieu_arrivals *arrivals) {
        auto &carrier = *static_cast<Carrier *>(user);
        return told([&] {
            if (carrier.failed_) throw std::runtime_error("the engine has failed before");
            carrier.poll(Arrivals(arrivals));
        });
    }
    static void close(void *user, std::uint32_t reason) {
        (void)done(user, 0, [&](Carrier &carrier) {
            return carrier.close(static_cast<milieu_close_reason>(reason)), 0;
        });
    }
};

} // namespace detail

/** An engine of the program's own. */
template <class T, class... Arguments>
Engine make_engine(Arguments &&...arguments) {
    return detail::CarrierOfC::engine(std::make_unique<T>(std::forward<Arguments>(arguments)...));
}

/* ---------------------------------------------------------------- links */

/** Another machine, as the engine knows it; it is lent while it is asked what that may do. */
struct Peer {
    /** What the engine calls it. */
    std::string_view name;
    /** Its number, which no other one has had. */
    std::uint64_t id;
    /** Whether it is in this process. */
    bool is_here;
};

/** On what terms a machine joins others. */
class Terms {
public:
    /** Every peer may do everything: for machines of one program. */
    static Terms open() { return Terms(nullptr); }
    /** Each peer may do what this says when it comes; nothing, if it throws. */
    static Terms with(std::function<Rights(const Peer &)> grant) {
        return Terms(std::move(grant));
    }

    /** Bodies of this type stay so on the way. */
    template <class T>
    Terms &typed() {
        types_.push_back(detail::type_of<T>());
        return *this;
    }
    /** Adds a transfer mode to those that are known here, what is liked best first; none: all. */
    Terms &mode(std::string_view name) {
        modes_.emplace_back(name);
        return *this;
    }
    /** What this machine gets of others where it is slow. */
    Delivery delivery = {};
    /** How many frames of an edge may be under way to here. */
    std::uint32_t window = 256;
    /** How large an event may be that comes, in bytes. */
    std::size_t event_bytes_max = std::size_t{16} << 20;
    /** How deep lists and maps may lie in each other in it. */
    std::size_t event_depth_max = 128;
    /** How many names a peer may announce. */
    std::size_t names_max = 1 << 16;
    /** How many edges a peer may read at a time. */
    std::size_t edges_max = 1 << 16;
    /** How many events may wait for a peer. */
    std::size_t waiting_max = 1 << 16;

private:
    friend class Link;
    explicit Terms(std::function<Rights(const Peer &)> grant) : grant_(std::move(grant)) {}

    std::function<Rights(const Peer &)> grant_;
    std::vector<std::string> modes_;
    std::vector<const milieu_event_type *> types_;
};

/** What joins a machine to others, until it goes. */
class [[nodiscard]] Link {
public:
    /** Joins streams to those of all machines that an engine reaches. */
    Link(const Streams &streams, Engine engine, Terms terms) {
        const milieu_delivery delivery = {MILIEU_ABI, terms.delivery.capacity,
            static_cast<std::uint32_t>(terms.delivery.overflow)};
        const std::vector<milieu_text> modes
            = detail::texts({terms.modes_.begin(), terms.modes_.end()});
        milieu_terms given = MILIEU_TERMS;
        given.is_open = !terms.grant_;
        given.grant = terms.grant_ ? granted : nullptr;
        given.window = terms.window;
        given.modes = modes.data();
        given.mode_count = modes.size();
        given.types = terms.types_.data();
        given.type_count = terms.types_.size();
        given.delivery = &delivery;
        given.event_bytes_max = terms.event_bytes_max;
        given.event_depth_max = terms.event_depth_max;
        given.names_max = terms.names_max;
        given.edges_max = terms.edges_max;
        given.waiting_max = terms.waiting_max;
        auto grant = std::make_unique<Grant>(std::move(terms.grant_));
        milieu_link *link;
        const milieu_result result = milieu_link_new(streams.c(), engine.c(), &given,
            grant.release(), detail::destroy<Grant>, &link);
        if (result == MILIEU_OK || result == MILIEU_SYSTEM) (void)engine.release();
        detail::check(result);
        link_.reset(link);
    }

    /**
     * Takes in what others have sent, and tells them what has changed here: in virtual time nobody
     * else does. Whether there was anything.
     */
    bool poll() const {
        bool was_busy;
        detail::check(milieu_link_poll(link_.get(), &was_busy));
        return was_busy;
    }
    /** Whom it reaches, as JSON; see milieu_picture_of_link. */
    std::string peers() const {
        milieu_picture *picture;
        detail::check(milieu_picture_of_link(link_.get(), &picture));
        return detail::json(picture);
    }

private:
    using Grant = std::function<Rights(const Peer &)>;

    static milieu_result granted(
        void *user, const milieu_peer *peer, milieu_granting *granting) {
        return detail::told([&] {
            const Rights rights = (*static_cast<Grant *>(user))(
                Peer{detail::view(peer->name), peer->id, peer->is_here});
            detail::check(
                milieu_granting_allow(granting, detail::RightsOfC(rights).c()));
        });
    }

    std::unique_ptr<milieu_link, detail::Freeing<milieu_link, milieu_link_free>> link_;
};

} // namespace milieu

#endif
