/*
 * Actions on global switches in C++: what they get to see, and what keeps them registered. Included
 * by milieu.hpp.
 */
/* Whoever begins here gets the whole, which includes this where it is needed. */
#include <milieu.hpp>

#ifndef MILIEU_ACTIONS_HPP
#define MILIEU_ACTIONS_HPP

namespace milieu {

/** What an action gets to see, and its handle to switch further layers. */
class Activation {
public:
    explicit Activation(milieu_activation *activation) noexcept : activation_(activation) {}
    /** The layer's id; valid while the action runs. */
    [[nodiscard]] std::string_view layer() const {
        milieu_text id;
        detail::check(milieu_activation_layer(activation_, &id));
        return detail::view(id);
    }
    /** The value that the layer got; empty on deactivation. Valid while the action runs. */
    [[nodiscard]] std::string_view value() const {
        milieu_text value;
        detail::check(milieu_activation_value(activation_, &value));
        return detail::view(value);
    }
    /** Activates a layer in the context that switches; a ThreadLayer in each context by itself. */
    template <class L, class... Args>
    void activate(Args &&...args) const {
        detail::check_layer<L>();
        if constexpr (std::is_base_of_v<ThreadLayer, L>) {
            detail::activate_each(milieu_activation_activate_each, activation_,
                std::unique_ptr<L>(new L(detail::make<L>(std::forward<Args>(args)...))));
        } else {
            const L layer = detail::make<L>(std::forward<Args>(args)...);
            const detail::Held<L> held(layer);
            detail::check(milieu_activation_activate(activation_, held.layer()));
        }
    }
    /** Activates a layer by its id. */
    void activate(const Named &layer) const { activate<Named>(layer); }
    /**
     * Activates a contextual value as a layer: in each context its own value. Where no value is at
     * hand, its class says which: `it.activate(follow<station::Station::Language>())`.
     */
    void activate(Following following) const {
        detail::check(milieu_activation_activate_value(
            activation_, following.layout(), following.index));
    }
    /** Deactivates a layer in the context that switches. `args` are needed only where its `id()` is not static. */
    template <class L, class... Args>
    void deactivate(Args &&...args) const {
        deactivate(detail::id_of<L>(std::forward<Args>(args)...));
    }
    /** Deactivates a layer by its id. */
    void deactivate(std::string_view id) const {
        detail::check(milieu_activation_deactivate(activation_, detail::text(id)));
    }

private:
    milieu_activation *activation_;
};

/** Keeps an action registered; when it goes, it waits for the action if that runs in another thread. */
class [[nodiscard]] Registration {
public:
    explicit Registration(milieu_registration *registration) noexcept
        : registration_(registration) {}

private:
    std::unique_ptr<milieu_registration,
        detail::Freeing<milieu_registration, milieu_registration_free>>
        registration_;
};

namespace detail {

/** Runs an action of the program. Several threads may do so at once, as the program has been told. */
template <class Action>
milieu_result act(void *user, milieu_activation *activation) noexcept {
    return guarded([&] {
        Activation seen(activation);
        Action &kept = *static_cast<Action *>(user);
        if constexpr (std::is_invocable_v<Action &, Activation &>) {
            kept(seen);
        } else {
            static_assert(std::is_invocable_v<Action &>,
                "an action takes nothing, or a `milieu::Activation &`");
            kept();
        }
    });
}

} // namespace detail

} // namespace milieu

#endif
