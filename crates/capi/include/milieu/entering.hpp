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
};

namespace detail {

template <class V, class = void>
struct is_value : std::false_type {};
template <class V>
struct is_value<V, std::void_t<decltype(V::index), decltype(V::offset())>> : std::true_type {};

} // namespace detail

/** For with() and activate(): a layer that follows a contextual value. */
template <class V>
constexpr Following follow(const V &) noexcept {
    static_assert(detail::is_value<V>::value, "a layer follows a contextual value");
    return {V::index};
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
        return std::move(*this).and_also(detail::make<L>(std::forward<Args>(args)...));
    }
    /** And this layer inactive. */
    template <class L>
    auto without() && {
        return std::move(*this).and_also(detail::Absent<L>{});
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
        // One layer as well: gcc copies what is handed over by value word by word (rep movs).
        const milieu_layer all[] = {held.layer()...};
        detail::check(milieu_context_enter_all(context_, all, sizeof...(Layers), &frame));
        return Entered(context_, frame);
    }

    milieu_context *context_;
    std::tuple<Layers...> layers_;
};

/** What will be entered by a call of its own: a contextual value, or captured layers. */
template <class Policy, class Enter>
class [[nodiscard]] EnteringBy {
public:
    EnteringBy(milieu_context *context, Enter enter) noexcept
        : context_(context), enter_(enter) {}
    /** Enters it until the result goes. */
    Entered enter() && {
        if constexpr (Policy::layers) {
            milieu_frame frame;
            detail::check(enter_(context_, &frame));
            return Entered(context_, frame);
        } else {
            return Entered();
        }
    }
    /** Runs `body` with it entered. */
    template <class Body>
    decltype(auto) operator()(Body &&body) && {
        if constexpr (Policy::layers) {
            return std::move(*this).enter().around(std::forward<Body>(body));
        } else {
            return std::forward<Body>(body)();
        }
    }

private:
    milieu_context *context_;
    Enter enter_;
};

} // namespace milieu

#endif
