/*
 * Layers that are entered for a while in C++: what `with` and `without` make. Included by
 * milieu.hpp.
 */
/* Whoever begins here gets the whole, which includes this where it is needed. */
#include <milieu.hpp>

#ifndef MILIEU_ENTERING_HPP
#define MILIEU_ENTERING_HPP

namespace milieu {

/** Layers that are entered until this goes. Those entered last go first. */
class [[nodiscard]] Entered {
public:
    /** Nothing is entered. */
    Entered() noexcept = default;
    Entered(milieu_context *context, milieu_frame frame) noexcept
        : context_(context), frame_(frame) {}
    Entered(Entered &&other) noexcept
        : context_(std::exchange(other.context_, nullptr)), frame_(other.frame_) {}
    Entered &operator=(Entered &&other) = delete;
    /**
     * Leaves them. If others were entered later and are there still, the program ends. What a
     * thread-based layer throws meanwhile is lost; leave() lets it go on.
     */
    ~Entered() noexcept {
        if (!context_) return;
        milieu_result result = milieu_context_leave(context_, frame_);
        if (result == MILIEU_CALLBACK) {
            (void)detail::thrown();
            return;
        }
        detail::check(result);
    }
    /** Leaves them before this goes. */
    void leave() {
        if (context_) detail::check(milieu_context_leave(std::exchange(context_, nullptr), frame_));
    }
    /** Runs `body`, and then leaves them. */
    template <class Body>
    decltype(auto) around(Body &&body) && {
        using Result = std::invoke_result_t<Body>;
        if constexpr (std::is_void_v<Result>) {
            std::forward<Body>(body)();
            leave();
        } else {
            Result result = std::forward<Body>(body)();
            leave();
            return static_cast<Result>(std::forward<Result>(result));
        }
    }

private:
    milieu_context *context_ = nullptr;
    milieu_frame frame_ = 0;
};

/** The layers that were entered in a context, for another one to enter: what capture() takes. */
class [[nodiscard]] Captured {
public:
    explicit Captured(milieu_captured *captured) noexcept : captured_(captured) {}
    /** The captured layers of the C interface. */
    milieu_captured *c() const noexcept { return captured_.get(); }

private:
    std::unique_ptr<milieu_captured, detail::Freeing<milieu_captured, milieu_captured_free>>
        captured_;
};

/** A contextual value as a layer: what follow() makes. */
struct Following {
    std::uint32_t index;
    /** Describes the environment that the value is of. */
    const milieu_layout *(*layout)() noexcept;
};

namespace detail {

template <class V, class = void>
struct is_value : std::false_type {};
template <class V>
struct is_value<V, std::void_t<decltype(V::index), decltype(V::offset())>> : std::true_type {};

/** Captured layers on their way into a context. */
struct Taken {
    const milieu_captured *captured;
};

template <>
struct Held<Following> {
    explicit Held(Following following) noexcept : index(following.index) {}
    std::uint32_t index;
};
template <>
struct Held<Taken> {
    explicit Held(Taken taken) noexcept : captured(taken.captured) {}
    const milieu_captured *captured;
};

/** Whether a layer is an id and a value. */
template <class L>
inline constexpr bool is_fixed = !std::is_same_v<L, Following> && !std::is_same_v<L, Taken>;

template <class L>
milieu_any_layer any_layer(const Held<L> &held) noexcept {
    return {MILIEU_FIXED, 0, held.layer(), nullptr};
}
inline milieu_any_layer any_layer(const Held<Following> &held) noexcept {
    return {MILIEU_FOLLOWING, held.index, milieu_layer(), nullptr};
}
inline milieu_any_layer any_layer(const Held<Taken> &held) noexcept {
    return {MILIEU_CAPTURED, 0, milieu_layer(), held.captured};
}

} // namespace detail

/** For with() and activate(): a layer that follows a contextual value, of this class. */
template <class V>
constexpr Following follow() noexcept {
    static_assert(detail::is_value<V>::value, "a layer follows a contextual value");
    return {V::index, V::environment::layout_};
}
/** The same of a value that is at hand. */
template <class V>
constexpr Following follow(const V &) noexcept {
    return follow<V>();
}

/** Layers that will be entered together: each value is updated once, and of two with one id the last wins. */
template <class Policy, class... Layers>
class [[nodiscard]] Entering {
public:
    Entering(milieu_context *context, std::tuple<Layers...> layers)
        : context_(context), layers_(std::move(layers)) {}

    /** And this layer. */
    template <class L, class... Args>
    auto with(Args &&...args) && {
        detail::check_fixed<L>();
        return std::move(*this).and_also(detail::make<L>(std::forward<Args>(args)...));
    }
    /** And this layer, by its id. */
    auto with(Named layer) && { return std::move(*this).and_also(std::move(layer)); }
    /** And this contextual value as a layer. */
    auto with(Following following) && { return std::move(*this).and_also(following); }
    /** And these layers, which are needed until they are entered. */
    auto with(const Captured &captured) && {
        return std::move(*this).and_also(detail::Taken{captured.c()});
    }
    void with(Captured &&) && = delete; // They would be gone before they are entered.
    /** And this layer inactive. `args` are needed only where its `id()` is not static. */
    template <class L, class... Args>
    auto without(Args &&...args) && {
        return std::move(*this).and_also(detail::absent<L>(std::forward<Args>(args)...));
    }
    /** And the layer of this id inactive. */
    auto without(std::string_view id) && {
        return std::move(*this).and_also(detail::absent(id));
    }
    /** Enters them until the result goes. */
    Entered enter() && {
        if constexpr (Policy::layers) {
            return std::apply(
                [this](const Layers &...layers) {
                    return entered(detail::Held<Layers>(layers)...);
                },
                layers_);
        } else {
            return Entered();
        }
    }
    /** Runs `body` with them entered. */
    template <class Body>
    decltype(auto) operator()(Body &&body) && {
        if constexpr (Policy::layers) {
            return std::move(*this).enter().around(std::forward<Body>(body));
        } else {
            return std::forward<Body>(body)();
        }
    }

private:
    template <class L>
    Entering<Policy, Layers..., L> and_also(L layer) && {
        return {context_,
            std::tuple_cat(std::move(layers_), std::tuple<L>(std::move(layer)))};
    }
    Entered entered(const detail::Held<Layers> &...held) const {
        milieu_frame frame;
        if constexpr ((detail::is_fixed<Layers> && ...)) {
            // One layer as well: gcc copies what is handed over by value word by word (rep movs).
            const milieu_layer all[] = {held.layer()...};
            detail::check(milieu_context_enter_all(context_, all, sizeof...(Layers), &frame));
        } else {
            const milieu_any_layer all[] = {detail::any_layer(held)...};
            detail::check(milieu_context_enter_mixed(context_, all, sizeof...(Layers), &frame));
        }
        return Entered(context_, frame);
    }

    milieu_context *context_;
    std::tuple<Layers...> layers_;
};

} // namespace milieu

#endif
