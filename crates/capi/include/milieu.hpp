/*
 * Milieu: concurrent software that adapts to its surroundings. The C++ interface.
 *
 * Header only, C++17, over milieu.h. `milieu spec generate --lang cpp` makes classes of a
 * specification; a thread has a ThreadContext over them.
 *
 *   milieu::Coordinator coordinator("station");
 *   const milieu::ThreadContext<station::Environment> tc(coordinator);
 *   tc.with<Session>("anna")([&] {
 *       std::cout << tc->sw.language << '\n';
 *       tc->sw.language = "de";
 *   });
 *   tc.activate<Tamper>();
 *
 * - A contextual value converts to its type by itself; reading it is one load. Where the type is
 *   not said, `auto`, a template, get() says it.
 * - A context is a handle, as a pointer is: a `const` one switches layers and assigns, too; the
 *   policy ReadOnly keeps from that.
 * - What fails throws milieu::Error. Leaving a block, by whatever way, leaves its layers.
 * - An exception of an action or of a thread-based layer goes on where the layer was switched,
 *   once everything else is done. Where a flow has switched it, the flow counts it as a failure.
 * - What a text or an array refers to, a std::string_view or an iterator, is valid until layers
 *   are entered or left, (de)activated or synchronized in that context, or something is assigned
 *   in it. C++ cannot see to that; take a std::string where a text has to outlive a switch.
 * - A value is bound to the context whose environment it is in, and that to its coordinator.
 *   Values cannot be made, copied or moved; pass them by reference. A ThreadContext moves with
 *   its values, and no other one is ever assigned to it, under which they would be gone.
 */
#ifndef MILIEU_HPP
#define MILIEU_HPP

#include <milieu.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <new>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace milieu {

/** What went wrong. `what()` names the place and the way out. */
class Error : public std::runtime_error {
public:
    Error(milieu_result result, const char *what) : std::runtime_error(what), result_(result) {}
    /** The result of the C interface. */
    milieu_result result() const noexcept { return result_; }

private:
    milieu_result result_;
};

/** Not an error: the command line asks for help or the version, and `what()` is the text to print. */
class HelpAsked : public Error {
public:
    using Error::Error;
};

namespace detail {

inline milieu_text text(std::string_view view) noexcept { return {view.data(), view.size()}; }

inline std::string_view view(milieu_text text) noexcept {
    return text.length == 0 ? std::string_view() : std::string_view(text.bytes, text.length);
}

template <class T>
void destroy(void *user) {
    delete static_cast<T *>(user);
}

/**
 * What a callback returns, in its `catch`: the exception goes past C with the failure, and is gone
 * with it where that ends.
 */
inline milieu_result failed() noexcept {
    const auto fail = [](std::string_view why) {
        auto *kept = new (std::nothrow) std::exception_ptr(std::current_exception());
        return milieu_fail_with(text(why), kept, destroy<std::exception_ptr>);
    };
    try {
        throw;
    } catch (const std::exception &exception) {
        return fail(exception.what());
    } catch (...) {
        return fail("an exception that is no std::exception");
    }
}

/** The exception with which the last call that failed in this thread has ended, if there is one. */
inline std::exception_ptr thrown() noexcept {
    void *kept = milieu_failed_with(destroy<std::exception_ptr>);
    const std::unique_ptr<std::exception_ptr> exception(static_cast<std::exception_ptr *>(kept));
    return exception ? std::move(*exception) : nullptr;
}

/** Runs a callback's body. What it throws goes on where the call fails that runs the callback. */
template <class Body>
milieu_result guarded(Body &&body) noexcept {
    try {
        body();
        return MILIEU_OK;
    } catch (...) {
        return failed();
    }
}

[[noreturn]] inline void fail(milieu_result result) {
    if (result == MILIEU_CALLBACK) {
        if (std::exception_ptr exception = thrown()) std::rethrow_exception(std::move(exception));
    }
    if (result == MILIEU_SAY) throw HelpAsked(result, milieu_message());
    throw Error(result, milieu_message());
}

inline void check(milieu_result result) {
    if (result != MILIEU_OK) fail(result);
}

template <class...>
inline constexpr bool never = false;

/** A timeout as C counts it: none where it is negative, the longest where it is longer. */
template <class Rep, class Period>
std::int64_t timeout(const std::chrono::duration<Rep, Period> &span) {
    using Exact = std::chrono::nanoseconds;
    using Rough = std::chrono::duration<double, std::nano>;
    static_assert(sizeof(Exact::rep) == sizeof(std::int64_t), "nanoseconds have 64 bits");
    if (!(span > span.zero())) return 0;
    if (Rough(span) >= Rough(Exact::max())) return Exact::max().count();
    return std::chrono::ceil<Exact>(span).count();
}

template <class T, void (*Free)(T *)>
struct Freeing {
    void operator()(T *handle) const noexcept { Free(handle); }
};

inline void free_context(milieu_context *context) noexcept { (void)milieu_context_free(context); }
inline void free_hold(milieu_hold *hold) noexcept { (void)milieu_hold_free(hold); }

} // namespace detail

} // namespace milieu

#include <milieu/choices.hpp>
#include <milieu/layers.hpp>
#include <milieu/entering.hpp>
#include <milieu/actions.hpp>
#include <milieu/files.hpp>
#include <milieu/program.hpp>

namespace milieu {

/* ---------------------------------------------------------------- contexts */

/** The layers of a context that somebody else keeps, such as that of a value. */
template <class Policy>
class BasicContext {
public:
    explicit BasicContext(milieu_context *context) noexcept : context_(context) {}

    /** Enters a layer, made of `args`, for a block: `tc.with<Session>("anna")([&] { … })`. Only this context is affected. */
    template <class L, class... Args>
    Entering<Policy, L> with(Args &&...args) const {
        detail::check_fixed<L>();
        return {context_, std::tuple<L>(detail::make<L>(std::forward<Args>(args)...))};
    }
    /** Enters a layer by its id: `tc.with(milieu::Named("session", "anna"))([&] { … })`. */
    auto with(Named layer) const { return entering(std::move(layer)); }
    /** Enters a contextual value as a layer: `tc.with(follow(language))([&] { … })`. */
    auto with(Following following) const { return entering(following); }
    /** Enters layers that were captured in another context; they are needed until they are entered. */
    auto with(const Captured &captured) const { return entering(detail::Taken{captured.c()}); }
    void with(Captured &&) const = delete; // It would be gone before it is entered.
    /** Takes the layers entered here, to be handed to another thread. */
    Captured capture() const {
        milieu_captured *captured;
        detail::check(milieu_captured_new(context_, &captured));
        return Captured(captured);
    }
    /** Has a layer inactive for a block. `args` are needed only where its `id()` is not static. */
    template <class L, class... Args>
    auto without(Args &&...args) const {
        return entering(detail::absent<L>(std::forward<Args>(args)...));
    }
    /** Has the layer of this id inactive for a block. */
    auto without(std::string_view id) const { return entering(detail::absent(id)); }

    /**
     * Activates a layer for everybody: synchronizes, makes the layer of `args`, which so consider
     * what others have switched, switches here, publishes, and runs the actions.
     */
    template <class L, class... Args>
    void activate(Args &&...args) const {
        detail::check_layer<L>();
        if constexpr (Policy::layers) {
            if constexpr (std::is_base_of_v<ThreadLayer, L>) {
                detail::activate_each(milieu_context_activate_each, context_,
                    std::unique_ptr<L>(new L(detail::make<L>(std::forward<Args>(args)...))));
            } else {
                sync();
                const L layer = detail::make<L>(std::forward<Args>(args)...);
                const detail::Held<L> held(layer);
                detail::check(milieu_context_activate(context_, held.layer()));
            }
        }
    }
    /** Activates a layer by its id. */
    void activate(const Named &layer) const { activate<Named>(layer); }
    /** Activates a contextual value as a layer: in each context its own value. */
    void activate(Following following) const {
        if constexpr (Policy::layers) {
            detail::check(milieu_context_activate_value(context_, following.index));
        }
    }
    /** Deactivates a layer for everybody. `args` are needed only where its `id()` is not static. */
    template <class L, class... Args>
    void deactivate(Args &&...args) const {
        deactivate(detail::id_of<L>(std::forward<Args>(args)...));
    }
    /** Deactivates a layer by its id. */
    void deactivate(std::string_view id) const {
        if constexpr (Policy::layers) {
            detail::check(milieu_context_deactivate(context_, detail::text(id)));
        }
    }

    /** Removes every key of the user that belongs to a layer with this value. */
    template <class L, class... Args>
    void forget(Args &&...args) const {
        static_assert(Policy::assigns, "this context's policy is read-only");
        detail::check_fixed<L>();
        const L layer = detail::make<L>(std::forward<Args>(args)...);
        const detail::Held<L> held(layer);
        detail::check(milieu_context_forget(context_, held.layer()));
    }
    /** The same of a layer by its id. */
    void forget(const Named &layer) const { forget<Named>(layer); }

    /** Takes in what others have activated, deactivated and assigned. */
    void sync() const {
        if constexpr (Policy::shared) detail::check(milieu_context_sync(context_));
    }
    /** As sync(), by the paper's name. */
    void syncLayers() const { sync(); }
    /** Whether sync() would find news. */
    [[nodiscard]] bool has_news() const {
        bool news = false;
        if constexpr (Policy::shared) detail::check(milieu_context_has_news(context_, &news));
        return news;
    }
    /** Sleeps until there is news. A context that is alone has none, and returns at once. */
    void wait() const {
        if constexpr (Policy::shared) detail::check(milieu_context_wait(context_, -1, nullptr));
    }
    /** Sleeps until there is news, or for that long; says whether there is. */
    template <class Rep, class Period>
    bool wait_for(const std::chrono::duration<Rep, Period> &span) const {
        bool news = false;
        if constexpr (Policy::shared) {
            detail::check(milieu_context_wait(context_, detail::timeout(span), &news));
        }
        return news;
    }
    /** Sleeps until there is news, or until then; says whether there is. */
    template <class Clock, class Duration>
    bool wait_until(const std::chrono::time_point<Clock, Duration> &time) const {
        return wait_for(time - Clock::now());
    }

    /** Whether a layer is active here. `args` are needed only where its `id()` is not static. */
    template <class L, class... Args>
    [[nodiscard]] bool is_active(Args &&...args) const {
        return is_active(detail::id_of<L>(std::forward<Args>(args)...));
    }
    /** Whether the layer of this id is active here. */
    [[nodiscard]] bool is_active(std::string_view id) const {
        milieu_text value;
        detail::check(milieu_context_layer(context_, detail::text(id), &value));
        return value.length != 0;
    }
    /** The value of a layer, if it is active here. */
    template <class L, class... Args>
    [[nodiscard]] std::optional<std::string> layer(Args &&...args) const {
        return layer(detail::id_of<L>(std::forward<Args>(args)...));
    }
    /** The value of the layer of this id, if it is active here. */
    [[nodiscard]] std::optional<std::string> layer(std::string_view id) const {
        milieu_text value;
        detail::check(milieu_context_layer(context_, detail::text(id), &value));
        if (value.length == 0) return std::nullopt;
        return std::string(detail::view(value));
    }
    /** Every layer that is active here, with its value. */
    [[nodiscard]] std::vector<std::pair<std::string, std::string>> layers() const {
        const milieu_layer *first;
        std::size_t count;
        detail::check(milieu_context_layers(context_, &first, &count));
        std::vector<std::pair<std::string, std::string>> all;
        for (const milieu_layer *it = first; it != first + count; ++it) {
            all.emplace_back(detail::view(it->id), detail::view(it->value));
        }
        return all;
    }
    /**
     * The text of a value by its name with placeholders, such as `/sw/%session%/language`, as this
     * context sees it; none where no environment of the coordinator describes it.
     */
    [[nodiscard]] std::optional<std::string> text(std::string_view name) const {
        milieu_text text;
        const milieu_result result = milieu_context_text(context_, detail::text(name), &text);
        if (result == MILIEU_NO_SUCH) return std::nullopt;
        detail::check(result);
        return std::string(detail::view(text));
    }
    /**
     * The elements of an array by its name, such as `/sw/%session%/hosts/#`, up to the first index
     * that has none; also of an array that is no field of an environment.
     */
    [[nodiscard]] std::vector<std::string> elements(std::string_view name) const {
        const milieu_text *first;
        std::size_t count;
        detail::check(milieu_context_elements(context_, detail::text(name), &first, &count));
        std::vector<std::string> all;
        for (const milieu_text *it = first; it != first + count; ++it) {
            all.emplace_back(detail::view(*it));
        }
        return all;
    }
    /** The number of this context, unique in its process. */
    [[nodiscard]] std::uint64_t identity() const {
        std::uint64_t identity;
        detail::check(milieu_context_identity(context_, &identity));
        return identity;
    }
    /** The role of this context. */
    [[nodiscard]] std::string role() const {
        milieu_text role;
        detail::check(milieu_context_role(context_, &role));
        return std::string(detail::view(role));
    }
    /** The context of the C interface. */
    milieu_context *c() const noexcept { return context_; }

protected:
    milieu_context *context_;

private:
    template <class L>
    Entering<Policy, L> entering(L layer) const {
        return {context_, std::tuple<L>(std::move(layer))};
    }
};

/** The context of a value: what `value.context()` gives. */
using Context = BasicContext<Threads>;

/* ---------------------------------------------------------------- coordinators */

/** A key of a held key set; the texts are valid as long as it is held. */
struct Key {
    std::string_view name;
    std::string_view value;
    /** Who said so; empty where the program assigned it. */
    std::string_view origin;
};

/** The key set, held still until this goes, in the thread that asked for it. */
class [[nodiscard]] Lock {
public:
    explicit Lock(milieu_hold *hold) noexcept : hold_(hold) {}
    /** The keys in force, in the order of their names. They are valid as long as this is there. */
    [[nodiscard]] std::vector<Key> keys() const & {
        const milieu_key *first;
        std::size_t count;
        detail::check(milieu_hold_keys(hold_.get(), &first, &count));
        std::vector<Key> all;
        for (const milieu_key *it = first; it != first + count; ++it) {
            all.push_back(
                {detail::view(it->name), detail::view(it->value), detail::view(it->origin)});
        }
        return all;
    }
    std::vector<Key> keys() && = delete; // Name the lock: the texts of its keys go with it.

private:
    std::unique_ptr<milieu_hold, detail::Freeing<milieu_hold, detail::free_hold>> hold_;
};

/** What has come from the files; valid while a callback runs. */
class News {
public:
    explicit News(const milieu_news *news) noexcept : news_(news) {}
    /** What it is. */
    [[nodiscard]] milieu_news_kind kind() const noexcept { return static_cast<milieu_news_kind>(news_->kind); }
    /** For people; empty for MILIEU_CHANGED. */
    [[nodiscard]] std::string_view message() const noexcept { return detail::view(news_->message); }
    /** The keys that have other values. */
    const milieu_change *begin() const noexcept { return news_->changes; }
    const milieu_change *end() const noexcept { return news_->changes + news_->count; }

private:
    const milieu_news *news_;
};

/** Keeps the files watched; when it goes, it waits for the callback if that runs in another thread. */
class [[nodiscard]] Watch {
public:
    explicit Watch(milieu_watch *watch) noexcept : watch_(watch) {}

private:
    std::unique_ptr<milieu_watch, detail::Freeing<milieu_watch, milieu_watch_free>> watch_;
};

/** What the contexts of a program share: one key set, the global layers, the files behind them. */
class Coordinator {
public:
    /** Without files, with an empty key set. */
    Coordinator() {
        milieu_coordinator *made;
        detail::check(milieu_coordinator_new(&made));
        coordinator_.reset(made);
    }
    /** The settings of an application: the user's file, then those of the system. */
    explicit Coordinator(std::string_view application) : Coordinator(application, Options()) {}
    /** With a command line, or other folders. HelpAsked has the text to print. */
    Coordinator(std::string_view application, const Options &options)
        : Coordinator(application, options.c()) {}
    /** With the options of the C interface. */
    Coordinator(std::string_view application, const milieu_options &options) {
        milieu_coordinator *made;
        detail::check(milieu_coordinator_open(detail::text(application), &options, &made));
        coordinator_.reset(made);
    }
    /** Options of the C interface that say nothing. */
    [[nodiscard]] static milieu_options options() noexcept { return MILIEU_OPTIONS; }
    /**
     * Reads files that the program brings along, the first of which wins: their keys count where
     * neither the command line nor the user's and the system's files say something else, and
     * nobody persists them. Those that were read before go.
     */
    void defaults(const std::vector<std::string> &files) const {
        std::vector<milieu_text> paths;
        for (const std::string &file : files) paths.push_back(detail::text(file));
        detail::check(
            milieu_coordinator_defaults(coordinator_.get(), paths.data(), paths.size()));
    }

    /**
     * Runs an action whenever layer `L` is activated globally: `void()` or `void(Activation &)`.
     * `args` are needed only where its `id()` is not static.
     */
    template <class L, class Action, class... Args>
    Registration onLayerActivation(Action action, Args &&...args) const {
        return onLayerActivation(
            detail::id_of<L>(std::forward<Args>(args)...), std::move(action));
    }
    /** The same of a layer by its id. */
    template <class Action>
    Registration onLayerActivation(std::string_view id, Action action) const {
        return on(milieu_coordinator_on_activation, id, std::move(action));
    }
    /** Runs an action whenever layer `L` is deactivated globally: like atexit, for layers. */
    template <class L, class Action, class... Args>
    Registration onLayerDeactivation(Action action, Args &&...args) const {
        return onLayerDeactivation(
            detail::id_of<L>(std::forward<Args>(args)...), std::move(action));
    }
    /** The same of a layer by its id. */
    template <class Action>
    Registration onLayerDeactivation(std::string_view id, Action action) const {
        return on(milieu_coordinator_on_deactivation, id, std::move(action));
    }

    /** Assigns a key by its name. */
    void assign(std::string_view name, std::string_view value) const {
        detail::check(milieu_coordinator_assign(
            coordinator_.get(), detail::text(name), detail::text(value)));
    }
    /** Removes the user's key of this name. */
    void remove(std::string_view name) const {
        detail::check(milieu_coordinator_remove(coordinator_.get(), detail::text(name)));
    }
    /** Holds the key set still. */
    Lock requireLock() const {
        milieu_hold *hold;
        detail::check(milieu_hold_new(coordinator_.get(), &hold));
        return Lock(hold);
    }
    /** Writes what was assigned below `branch` into the user's file; returns how many keys changed there. */
    std::size_t persist(std::string_view branch = "/") const {
        std::size_t written;
        detail::check(
            milieu_coordinator_persist(coordinator_.get(), detail::text(branch), &written));
        return written;
    }
    /** The same, with the decision where another program has written the same key. */
    std::size_t persist(std::string_view branch, milieu_strategy strategy) const {
        std::size_t written;
        detail::check(milieu_coordinator_persist_with(
            coordinator_.get(), detail::text(branch), strategy, &written));
        return written;
    }
    /**
     * The same, with a function that decides each conflict: `Decision(const Conflict &)`. It runs
     * while nothing is locked; what it throws goes on here, and nothing is written.
     */
    template <class Decide>
    std::size_t persist(std::string_view branch, Decide decide) const {
        std::size_t written;
        detail::check(milieu_coordinator_persist_deciding(
            coordinator_.get(), detail::text(branch), detail::decide<Decide>, &decide, &written));
        return written;
    }
    /** What the files say under names of before, as they were read last; nothing before the first context. */
    [[nodiscard]] std::vector<Notice> notices() const {
        return all<Notice, milieu_notices, milieu_notices_free, milieu_notice>(
            milieu_notices_new, milieu_notices_all);
    }
    /** What programs, and `milieu key`, have written into the files, as far as it is still known; the last one last. */
    [[nodiscard]] std::vector<Commit> log() const {
        return all<Commit, milieu_log, milieu_log_free, milieu_commit>(
            milieu_log_new, milieu_log_commits);
    }
    /**
     * Takes a commit of the user's file back; returns how many keys changed there. They have the
     * values of before in contexts, too, at their next synchronization. `strategy` decides about
     * keys that have changed since; what was before is this program's side of it.
     */
    std::size_t undo(const Commit &commit, milieu_strategy strategy = MILIEU_REFUSE_CONFLICT) const {
        return undo(commit.file, commit.id, strategy);
    }
    /** The same, with a function that decides each conflict, as that of persist(). */
    template <class Decide>
    std::size_t undo(const Commit &commit, Decide decide) const {
        std::size_t written;
        detail::check(milieu_coordinator_undo_deciding(coordinator_.get(),
            detail::text(commit.file), commit.id, detail::decide<Decide>, &decide, &written));
        return written;
    }
    /** Takes the last commit back that is neither taken back nor takes one back. */
    std::size_t undo(milieu_strategy strategy = MILIEU_REFUSE_CONFLICT) const {
        return undo({}, 0, strategy);
    }
    /** Whether assign() would succeed; an Error says why not. */
    void check(std::string_view name, std::string_view value) const {
        detail::check(milieu_coordinator_check(
            coordinator_.get(), detail::text(name), detail::text(value)));
    }
    /** Whether the value of any environment depends on a layer of this id; an Error says which it may have been. */
    void check_layer(std::string_view id) const {
        detail::check(milieu_coordinator_check_layer(coordinator_.get(), detail::text(id)));
    }
    /** Takes over from now on what others write into the files. */
    Watch watch() const { return watching(nullptr, nullptr, nullptr); }
    /** The same, and tells: `void(const News &)`, in a thread of the library. It must not throw. */
    template <class Tell>
    Watch watch(Tell tell) const {
        static_assert(std::is_invocable_v<Tell &, const News &>,
            "what is told of files takes a `const milieu::News &`");
        auto told = [](void *user, const milieu_news *news) noexcept {
            (*static_cast<Tell *>(user))(News(news));
        };
        auto kept = std::make_unique<Tell>(std::move(tell));
        return watching(told, kept.release(), detail::destroy<Tell>);
    }
    /** The coordinator of the C interface. */
    milieu_coordinator *c() const noexcept { return coordinator_.get(); }

private:
    std::size_t undo(std::string_view file, std::uint64_t id, milieu_strategy strategy) const {
        std::size_t written;
        detail::check(milieu_coordinator_undo(
            coordinator_.get(), detail::text(file), id, strategy, &written));
        return written;
    }
    /** What a handle lists, and outlives it so. */
    template <class Item, class Handle, void (*Free)(Handle *), class Raw, class Make, class Look>
    std::vector<Item> all(Make make, Look look) const {
        Handle *made;
        detail::check(make(coordinator_.get(), &made));
        const std::unique_ptr<Handle, detail::Freeing<Handle, Free>> handle(made);
        const Raw *first;
        std::size_t count;
        detail::check(look(handle.get(), &first, &count));
        return std::vector<Item>(first, first + count);
    }
    Watch watching(milieu_tell tell, void *user, milieu_destroy destroy) const {
        milieu_watch *watch;
        detail::check(milieu_watch_new(coordinator_.get(), tell, user, destroy, &watch));
        return Watch(watch);
    }
    template <class Register, class Action>
    Registration on(Register registers, std::string_view id, Action action) const {
        auto kept = std::make_unique<Action>(std::move(action));
        milieu_registration *registration;
        detail::check(registers(coordinator_.get(), detail::text(id), detail::act<Action>,
            kept.release(), detail::destroy<Action>, &registration));
        return Registration(registration);
    }

    std::unique_ptr<milieu_coordinator,
        detail::Freeing<milieu_coordinator, milieu_coordinator_free>>
        coordinator_;
};

/**
 * The layers of one thread, and its environment, to which it leads: `tc->sw.language`. It may move
 * into another thread, and frames that are entered in it go before it does. Values move along: a
 * reference to one stays good. What it has moved from is no context any more: it leads nowhere, and
 * what it is asked to do throws MILIEU_NULL.
 */
template <class Environment, class Policy = Threads>
class ThreadContext : public BasicContext<Policy> {
    static_assert(detail::is_policy<Policy>::value,
        "a policy has the constants `layers`, `shared` and `assigns`, as milieu::Threads has them");

public:
    /** What `->` leads to: something that cannot be assigned to where the policy says so. */
    using Reached = std::conditional_t<Policy::assigns, Environment, const Environment>;

    /** A context, up to date. Thread-based layers select by its role, a name such as `/pool/3`. */
    explicit ThreadContext(const Coordinator &coordinator, std::string_view role = {})
        : BasicContext<Policy>(nullptr) {
        milieu_context_options options = MILIEU_CONTEXT_OPTIONS;
        options.role = detail::text(role);
        options.policy = (Policy::layers ? 0u : unsigned{MILIEU_WITHOUT_LAYERS})
            | (Policy::shared ? 0u : unsigned{MILIEU_WITHOUT_SHARING})
            | (Policy::assigns ? 0u : unsigned{MILIEU_WITHOUT_ASSIGNMENT});
        milieu_context *made;
        const void *place;
        detail::check(milieu_context_new(
            coordinator.c(), Environment::layout_(), &options, &made, &place));
        adopt(made, place);
    }
    ThreadContext(ThreadContext &&other) noexcept
        : BasicContext<Policy>(std::exchange(other.context_, nullptr)),
          owned_(std::move(other.owned_)),
          environment_(std::exchange(other.environment_, nullptr)) {}
    ThreadContext &operator=(ThreadContext &&other) = delete; // References to its values would dangle.

    /** A further context, for another thread; of the layers entered here it keeps the inherited ones. */
    [[nodiscard]] ThreadContext fork(std::string_view role = {}) const {
        milieu_context *made;
        const void *place;
        detail::check(milieu_context_fork(this->context_, detail::text(role), &made, &place));
        return ThreadContext(made, place);
    }

    /** The environment. */
    Reached *operator->() const noexcept { return environment_; }
    /** The environment. */
    Reached &operator*() const noexcept { return *environment_; }

private:
    ThreadContext(milieu_context *made, const void *place) : BasicContext<Policy>(nullptr) {
        adopt(made, place);
    }
    void adopt(milieu_context *made, const void *place) noexcept {
        owned_.reset(made);
        this->context_ = made;
        // The library allocates and fills it; see milieu_context_new.
        environment_ = static_cast<Reached *>(const_cast<void *>(place));
    }

    std::unique_ptr<milieu_context, detail::Freeing<milieu_context, detail::free_context>> owned_;
    Reached *environment_ = nullptr;
};

} // namespace milieu

#include <milieu/values.hpp>

#endif
