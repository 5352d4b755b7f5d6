/*
 * Layers and policies in C++: what programs write by hand. Included by milieu.hpp.
 */
/* Whoever begins here gets the whole, which includes this where it is needed. */
#include <milieu.hpp>

#ifndef MILIEU_LAYERS_HPP
#define MILIEU_LAYERS_HPP

namespace milieu {

/**
 * A layer, by hand: any class with `id()`, which names the placeholder, and `operator()`, which
 * says its value; an empty one is inactive. Deriving from this class is not needed.
 *
 *   struct Security {
 *       static constexpr std::string_view id() { return "security"; }
 *       std::string operator()() const { return level; }
 *       std::string level;
 *   };
 *
 * With a static `id()` a layer is found by its address. `static constexpr bool inherited = true`
 * lets forks of a context keep it.
 */
struct Layer {};

/**
 * A layer that each context evaluates for itself. Its `operator()`, which may take a Scope, is
 * called in any thread, and has to be a function of the scope and of the thread that the context
 * stays in. `depends_on()`, if there is one, names the values (with placeholders) that it reads.
 */
struct ThreadLayer {};

/** A layer whose id is known when the program runs: `tc.with(milieu::Named("session", "anna"))`. */
class Named {
public:
    Named(std::string_view id, std::string_view value) : id_(id), value_(value) {}
    [[nodiscard]] const std::string &id() const noexcept { return id_; }
    [[nodiscard]] const std::string &operator()() const noexcept { return value_; }

private:
    std::string id_;
    std::string value_;
};

/** What a thread-based layer may know of the context that evaluates it. */
class Scope {
public:
    explicit Scope(const milieu_scope *scope) noexcept : scope_(scope) {}
    /** The number of the context, see Context::identity. */
    [[nodiscard]] std::uint64_t identity() const noexcept { return milieu_scope_identity(scope_); }
    /** The role of the context; valid, as what get() gives, while the layer is evaluated. */
    [[nodiscard]] std::string_view role() const noexcept { return detail::view(milieu_scope_role(scope_)); }
    /** The text of a value that the layer depends on, by its name with placeholders. */
    [[nodiscard]] std::string_view get(std::string_view pattern) const noexcept {
        return detail::view(milieu_scope_get(scope_, detail::text(pattern)));
    }

private:
    const milieu_scope *scope_;
};

namespace detail {

template <class L, class = void>
struct has_static_id : std::false_type {};
template <class L>
struct has_static_id<L, std::void_t<decltype(L::id())>> : std::true_type {};

template <class L, class = void>
struct is_inherited : std::false_type {};
template <class L>
struct is_inherited<L, std::void_t<decltype(L::inherited)>>
    : std::bool_constant<static_cast<bool>(L::inherited)> {};

template <class L, class = void>
struct has_dependencies : std::false_type {};
template <class L>
struct has_dependencies<L, std::void_t<decltype(std::declval<const L &>().depends_on())>>
    : std::true_type {};

template <class Void, class L, class... Args>
struct has_members : std::false_type {};
template <class L, class... Args>
struct has_members<std::void_t<decltype(L{std::declval<Args>()...})>, L, Args...>
    : std::true_type {};

/** The names of the values that a layer depends on. */
template <class L>
auto dependencies_of(const L &layer) {
    if constexpr (has_dependencies<L>::value) {
        return layer.depends_on();
    } else {
        return std::initializer_list<std::string_view>();
    }
}

/** Any text as one that becomes a std::string by itself. */
template <class T>
decltype(auto) as_string(T &&argument) {
    if constexpr (std::is_convertible_v<T, std::string_view>
        && !std::is_convertible_v<T, std::string>) {
        return std::string(static_cast<std::string_view>(argument));
    } else {
        return std::forward<T>(argument);
    }
}

/** A layer of what its constructor takes, or of its members. */
template <class L, class... Args>
L make(Args &&...args) {
    if constexpr (std::is_constructible_v<L, Args...>) {
        return L(std::forward<Args>(args)...);
    } else if constexpr (has_members<void, L, Args...>::value) {
        return L{std::forward<Args>(args)...};
    } else if constexpr (std::is_constructible_v<L, decltype(as_string(std::declval<Args>()))...>) {
        return L(as_string(std::forward<Args>(args))...);
    } else {
        static_assert(has_members<void, L, decltype(as_string(std::declval<Args>()))...>::value,
            "the layer has neither a constructor nor members for these arguments");
        return L{as_string(std::forward<Args>(args))...};
    }
}

template <class L, class = void>
struct has_id : std::false_type {};
template <class L>
struct has_id<L, std::void_t<decltype(std::declval<const L &>().id())>>
    : std::is_convertible<decltype(std::declval<const L &>().id()), std::string_view> {};

/** What a layer says, of a scope where it asks for one. */
template <class L, class = void>
struct has_value : std::bool_constant<std::is_invocable_r_v<std::string_view, const L &>> {};
template <class L>
struct has_value<L, std::enable_if_t<std::is_base_of_v<ThreadLayer, L>>>
    : std::bool_constant<std::is_invocable_r_v<std::string_view, const L &>
          || std::is_invocable_r_v<std::string_view, const L &, const Scope &>> {};

/** Stops the compiler with clear words at what is no layer. */
template <class L>
constexpr void check_layer() noexcept {
    static_assert(has_id<L>::value,
        "a layer has `id()`, static or const, which gives the name of its placeholder as a text");
    static_assert(has_value<L>::value,
        "a layer has `operator()`, which is const and gives its value as a text; that of a "
        "milieu::ThreadLayer may take a `const milieu::Scope &`");
}

/** The same where a layer has one value for everybody, or for one context. */
template <class L>
constexpr void check_fixed() noexcept {
    check_layer<L>();
    static_assert(!std::is_base_of_v<ThreadLayer, L>,
        "a thread-based layer is activated, and not entered, forgotten or switched by a flow");
}

/** A layer's id and value, kept for a call. */
template <class L>
struct Held {
    explicit Held(const L &layer) : id(layer.id()), value(layer()) {}
    milieu_layer layer() const noexcept {
        return {text(std::string_view(id)), text(std::string_view(value)),
            is_inherited<L>::value};
    }
    decltype(std::declval<const L &>().id()) id;
    decltype(std::declval<const L &>()()) value;
};

/** The id of a layer that is not there, made of the arguments where it is not static. */
template <class L, class... Args>
auto id_of(Args &&...args) {
    check_layer<L>();
    if constexpr (has_static_id<L>::value) {
        return L::id();
    } else {
        static_assert(sizeof...(Args) != 0 || has_members<void, L>::value,
            "the `id()` of this layer is not static: say what the layer is made of, or name it by "
            "its id");
        return std::string(make<L>(std::forward<Args>(args)...).id());
    }
}

/** What without() enters: a layer that is not there. */
template <class Id, bool is_inherited_too>
struct Absent {
    std::string_view id() const noexcept { return name; }
    std::string_view operator()() const noexcept { return {}; }
    static constexpr bool inherited = is_inherited_too;
    Id name;
};

template <class L, class... Args>
auto absent(Args &&...args) {
    auto id = id_of<L>(std::forward<Args>(args)...);
    return Absent<decltype(id), is_inherited<L>::value>{std::move(id)};
}
inline auto absent(std::string_view id) { return Absent<std::string, false>{std::string(id)}; }

/** Activates a thread-based layer by a function of C, which has it from then on. */
template <class L, class Activate, class Handle>
void activate_each(Activate activate, Handle *handle, std::unique_ptr<L> layer) {
    // They are what the texts refer to.
    const auto names = dependencies_of(*layer);
    std::vector<milieu_text> texts;
    for (std::string_view name : names) texts.push_back(text(name));
    auto evaluate = [](void *user, milieu_scope *scope) -> milieu_result {
        return guarded([&] {
            const L &kept = *static_cast<const L *>(user);
            auto answer = [&](std::string_view value) {
                check(milieu_scope_answer(scope, text(value)));
            };
            if constexpr (std::is_invocable_v<const L &, const Scope &>) {
                answer(kept(Scope(scope)));
            } else {
                answer(kept());
            }
        });
    };
    const auto id = layer->id();
    check(activate(handle, text(id), texts.data(), texts.size(), evaluate, layer.release(),
        destroy<L>));
}

} // namespace detail

/* ---------------------------------------------------------------- policies */

/** The default: layers, synchronization between threads, and assignments. */
struct Threads {
    static constexpr bool layers = true;
    static constexpr bool shared = true;
    static constexpr bool assigns = true;
};

/** One thread alone: what others publish never appears. */
struct SingleThread : Threads {
    static constexpr bool shared = false;
};

/** No context: values are what they were at the start, switches do nothing. */
struct NoContext : Threads {
    static constexpr bool layers = false;
    static constexpr bool shared = false;
};

namespace detail {

template <class P, class = void>
struct is_policy : std::false_type {};
template <class P>
struct is_policy<P, std::void_t<decltype(P::layers), decltype(P::shared), decltype(P::assigns)>>
    : std::true_type {};

} // namespace detail

/** As `P`, but assignments do not compile. Own policies are such structs. */
template <class P = Threads>
struct ReadOnly : P {
    static constexpr bool assigns = false;
};

} // namespace milieu

#endif
