/*
 * Contextual values in C++: the bases of the classes that `milieu spec generate --lang cpp` makes.
 * Included by milieu.hpp.
 *
 * A value has the size of its type and nothing more: it is found in its environment by its offset,
 * and the environment knows its context.
 */
#ifndef MILIEU_VALUES_HPP
#define MILIEU_VALUES_HPP

#include <milieu.hpp>

#include <cstdio>
#include <limits>

namespace milieu {

/** What every contextual value has. `Self` says its number and where it is in its environment. */
template <class T, class Self>
class AnyValue {
public:
    AnyValue() = delete; // Values are made with their context: milieu::ThreadContext.
    AnyValue(const AnyValue &) = delete; // Take a reference, or a copy of the content: `value.get()`.

    /** The context that the value is bound to. */
    [[nodiscard]] Context context() const noexcept {
        const char *environment = reinterpret_cast<const char *>(this) - Self::offset();
        return Context(milieu_context_of(environment));
    }
    /** The name that the value has in the active layers. */
    [[nodiscard]] std::string getName() const {
        milieu_text name;
        detail::check(milieu_context_name(context().c(), Self::index, &name));
        return std::string(detail::view(name));
    }
    /** Who gave the value its content; empty for the default and for what the program assigned. */
    [[nodiscard]] std::string getOrigin() const {
        milieu_text origin;
        detail::check(milieu_context_origin(context().c(), Self::index, &origin));
        return std::string(detail::view(origin));
    }

    /** Whether nobody has given the value another content than its default. */
    [[nodiscard]] bool isDefault() const {
        bool is_default;
        detail::check(milieu_context_is_default(context().c(), Self::index, &is_default));
        return is_default;
    }

protected:
    AnyValue &operator=(const AnyValue &) = delete;
    T value_;
};

/** A number, a boolean or an enumeration, to be read. */
template <class T, class Self>
class ReadValue : public AnyValue<T, Self> {
public:
    /** The value. */
    operator T() const noexcept { return this->value_; }
    /** The value, where its type is not said otherwise: `auto now = interval.get()`. */
    [[nodiscard]] T get() const noexcept { return this->value_; }

    /** As what it holds; an enumeration as its text. */
    friend std::ostream &operator<<(std::ostream &out, const ReadValue &value) {
        if constexpr (std::is_enum_v<T>) {
            return out << detail::text_among(Self::texts, value.get());
        } else {
            return out << value.get();
        }
    }
};

/** The text of an enumeration's value, as files and options have it. */
template <class T, class Self, class = std::enable_if_t<std::is_enum_v<T>>>
[[nodiscard]] constexpr std::string_view to_string(const ReadValue<T, Self> &value) noexcept {
    return detail::text_among(Self::texts, value.get());
}

/** A text, to be read. */
template <class Self>
class ReadValue<milieu_text, Self> : public AnyValue<milieu_text, Self> {
public:
    /** The text; valid until the next switch, synchronization or assignment in its context. */
    operator std::string_view() const noexcept { return detail::view(this->value_); }
    /** A copy of the text. */
    operator std::string() const { return std::string(detail::view(this->value_)); }
    /** The text; valid until the next switch, synchronization or assignment in its context. */
    [[nodiscard]] std::string_view get() const noexcept { return detail::view(this->value_); }
    [[nodiscard]] bool empty() const noexcept { return this->value_.length == 0; }
    /** In bytes. */
    [[nodiscard]] std::size_t size() const noexcept { return this->value_.length; }

    friend std::ostream &operator<<(std::ostream &out, const ReadValue &text) {
        return out << text.get();
    }
};

namespace detail {

inline void set(milieu_context *cx, std::uint32_t index, std::string_view value) {
    check(milieu_context_set_text(cx, index, text(value)));
}

template <class T, class = std::enable_if_t<std::is_arithmetic_v<T> || std::is_enum_v<T>>>
void set(milieu_context *cx, std::uint32_t index, T value) {
    if constexpr (std::is_same_v<T, bool>) {
        check(milieu_context_set_bool(cx, index, value));
    } else if constexpr (std::is_enum_v<T>) {
        check(milieu_context_set_variant(cx, index, static_cast<std::uint32_t>(value)));
    } else if constexpr (std::is_same_v<T, float>) {
        check(milieu_context_set_float(cx, index, value));
    } else if constexpr (std::is_floating_point_v<T>) {
        check(milieu_context_set_double(cx, index, value));
    } else if constexpr (std::is_signed_v<T>) {
        check(milieu_context_set_signed(cx, index, value));
    } else {
        check(milieu_context_set_unsigned(cx, index, value));
    }
}

/** The content of a contextual value; all else is what it is. */
template <class U>
decltype(auto) content(const U &of) noexcept {
    if constexpr (is_value<U>::value) {
        return of.get();
    } else {
        return (of);
    }
}

} // namespace detail

/**
 * A value that the program may assign. An assignment is one of the name that the value has now: it
 * is in the key set at once, and elsewhere at the next synchronization. One that breaks the rules
 * of the key throws and changes nothing.
 */
template <class T, class Self>
class Value : public ReadValue<T, Self> {
public:
    Self &operator=(T value) {
        detail::set(this->context().c(), Self::index, value);
        return self();
    }
    Self &operator=(const Value &other) { return *this = other.get(); }
    /** Every text would be true, "false" too. */
    template <class U, class = std::enable_if_t<std::is_same_v<T, bool>
                           && std::is_pointer_v<std::decay_t<U>>>>
    Self &operator=(U &&) {
        static_assert(detail::never<U>, "a boolean is assigned `true` or `false`, not a text");
        return self();
    }
    /* What it is calculated with may be a contextual value, too. */
    template <class U> Self &operator+=(const U &by) { return *this = static_cast<T>(number() + detail::content(by)); }
    template <class U> Self &operator-=(const U &by) { return *this = static_cast<T>(number() - detail::content(by)); }
    template <class U> Self &operator*=(const U &by) { return *this = static_cast<T>(number() * detail::content(by)); }
    template <class U> Self &operator/=(const U &by) { return *this = static_cast<T>(number() / detail::content(by)); }
    template <class U> Self &operator%=(const U &by) { return *this = static_cast<T>(this->get() % detail::content(by)); }
    template <class U> Self &operator&=(const U &by) { return *this = static_cast<T>(this->get() & detail::content(by)); }
    template <class U> Self &operator|=(const U &by) { return *this = static_cast<T>(this->get() | detail::content(by)); }
    template <class U> Self &operator^=(const U &by) { return *this = static_cast<T>(this->get() ^ detail::content(by)); }
    template <class U> Self &operator<<=(const U &by) { return *this = static_cast<T>(bits() << detail::content(by)); }
    template <class U> Self &operator>>=(const U &by) { return *this = static_cast<T>(bits() >> detail::content(by)); }
    Self &operator++() { return *this += 1; }
    Self &operator--() { return *this -= 1; }
    T operator++(int) {
        const T before = this->get();
        *this += 1;
        return before;
    }
    T operator--(int) {
        const T before = this->get();
        *this -= 1;
        return before;
    }
    /** Removes the user's value; what is below it in the cascade is then in force. */
    void unset() { detail::check(milieu_context_unset(this->context().c(), Self::index)); }

private:
    Self &self() noexcept { return static_cast<Self &>(*this); }
    T number() const noexcept {
        static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>,
            "only numbers are calculated with; assign a variant, or `true` or `false`");
        return this->get();
    }
    T bits() const noexcept {
        static_assert(std::is_integral_v<T> && !std::is_same_v<T, bool>,
            "only the bits of an integer are shifted");
        return this->get();
    }
};

/** A text that the program may assign. */
template <class Self>
class Value<milieu_text, Self> : public ReadValue<milieu_text, Self> {
public:
    Self &operator=(std::string_view value) {
        detail::set(this->context().c(), Self::index, value);
        return static_cast<Self &>(*this);
    }
    Self &operator=(const char *value) {
        if (!value) throw Error(MILIEU_NULL, "a text is assigned a null pointer, which is none");
        return *this = std::string_view(value);
    }
    Self &operator=(std::nullptr_t) = delete; // To remove the user's value is `unset()`.
    Self &operator=(const std::string &value) { return *this = std::string_view(value); }
    Self &operator=(const Value &other) { return *this = other.get(); }
    template <class Other>
    Self &operator=(const ReadValue<milieu_text, Other> &other) {
        return *this = other.get();
    }
    Self &operator+=(std::string_view more) { return *this = std::string(this->get()).append(more); }
    /** Removes the user's value; what is below it in the cascade is then in force. */
    void unset() { detail::check(milieu_context_unset(this->context().c(), Self::index)); }
};

/** A value that the specification marks `readonly`. */
template <class T, class Self>
class ReadOnlyValue : public ReadValue<T, Self> {
public:
    template <class U>
    Self &operator=(const U &) {
        static_assert(detail::never<U>,
            "this value is marked `readonly` in its specification; remove that if the program is "
            "meant to change it");
        return static_cast<Self &>(*this);
    }
};

namespace detail {

/** A float with as many digits as it takes to be read again. */
template <class T>
std::string exact(T number) {
    char digits[64];
    std::snprintf(digits, sizeof digits, "%.*g", std::numeric_limits<T>::max_digits10,
        static_cast<double>(number));
    return digits;
}

/** The memory of an array field. */
template <class T>
struct Elements {
    const T *first;
    std::size_t count;
};

} // namespace detail

/** An array, to be read: a range of numbers, enumerations or texts. */
template <class T, class Self>
class ReadArray : public AnyValue<detail::Elements<T>, Self> {
public:
    /** Valid, as all that refers to elements, until the next switch, synchronization or assignment in its context. */
    [[nodiscard]] const T *begin() const noexcept { return this->value_.first; }
    [[nodiscard]] const T *end() const noexcept { return this->value_.first + this->value_.count; }
    [[nodiscard]] const T *data() const noexcept { return this->value_.first; }
    [[nodiscard]] std::size_t size() const noexcept { return this->value_.count; }
    [[nodiscard]] bool empty() const noexcept { return this->value_.count == 0; }
    /** An element that is there; nobody checks. */
    const T &operator[](std::size_t index) const noexcept { return this->value_.first[index]; }
    /** An element; std::out_of_range if there is none. */
    const T &at(std::size_t index) const {
        if (index < size()) return (*this)[index];
        throw std::out_of_range(this->getName() + " has no element " + std::to_string(index));
    }
};

/** An element of an array of texts, or a field of an event; it refers to its text. */
struct Text : milieu_text {
    Text() noexcept : milieu_text() {}
    Text(std::string_view text) noexcept : milieu_text(detail::text(text)) {}
    Text(const std::string &text) noexcept : Text(std::string_view(text)) {}
    Text(const char *text) noexcept : Text(std::string_view(text)) {}
    operator std::string_view() const noexcept { return detail::view(*this); }
    [[nodiscard]] bool empty() const noexcept { return length == 0; }
    /** In bytes. */
    [[nodiscard]] std::size_t size() const noexcept { return length; }
    friend std::ostream &operator<<(std::ostream &out, const Text &text) {
        return out << detail::view(text);
    }
};
static_assert(sizeof(Text) == sizeof(milieu_text), "an element is nothing but its text");

namespace detail {

template <class Self>
std::true_type as_text(const ReadValue<milieu_text, Self> *);
std::true_type as_text(const Text *);
std::false_type as_text(const void *);

/** Whether something is a text of this library, a contextual one or an element. */
template <class T>
inline constexpr bool is_text = decltype(as_text(static_cast<const T *>(nullptr)))::value;

template <class A, class B>
using IfTexts = std::enable_if_t<(is_text<A> || is_text<B>)
    && std::is_convertible_v<const A &, std::string_view>
    && std::is_convertible_v<const B &, std::string_view>>;

} // namespace detail

/* A text of this library is compared with any text, in either order: by its bytes. */
template <class A, class B, class = detail::IfTexts<A, B>>
[[nodiscard]] bool operator==(const A &a, const B &b) noexcept {
    return static_cast<std::string_view>(a) == static_cast<std::string_view>(b);
}
template <class A, class B, class = detail::IfTexts<A, B>>
[[nodiscard]] bool operator!=(const A &a, const B &b) noexcept {
    return static_cast<std::string_view>(a) != static_cast<std::string_view>(b);
}
template <class A, class B, class = detail::IfTexts<A, B>>
[[nodiscard]] bool operator<(const A &a, const B &b) noexcept {
    return static_cast<std::string_view>(a) < static_cast<std::string_view>(b);
}
template <class A, class B, class = detail::IfTexts<A, B>>
[[nodiscard]] bool operator<=(const A &a, const B &b) noexcept {
    return static_cast<std::string_view>(a) <= static_cast<std::string_view>(b);
}
template <class A, class B, class = detail::IfTexts<A, B>>
[[nodiscard]] bool operator>(const A &a, const B &b) noexcept {
    return static_cast<std::string_view>(a) > static_cast<std::string_view>(b);
}
template <class A, class B, class = detail::IfTexts<A, B>>
[[nodiscard]] bool operator>=(const A &a, const B &b) noexcept {
    return static_cast<std::string_view>(a) >= static_cast<std::string_view>(b);
}
/** Both, one behind the other. */
template <class A, class B, class = detail::IfTexts<A, B>>
[[nodiscard]] std::string operator+(const A &a, const B &b) {
    return std::string(static_cast<std::string_view>(a)).append(static_cast<std::string_view>(b));
}

namespace detail {

template <class R, class = void>
struct is_range : std::false_type {};
template <class R>
struct is_range<R, std::void_t<decltype(std::begin(std::declval<const R &>())),
    decltype(std::end(std::declval<const R &>()))>> : std::true_type {};

} // namespace detail

/** An array that the program may assign, as a whole. */
template <class T, class Self>
class Array : public ReadArray<T, Self> {
public:
    /** Assigns all elements of a range. */
    template <class Range>
    Self &assign(const Range &range) {
        static_assert(detail::is_range<Range>::value,
            "an array is assigned as a whole: a range of elements, or `{first, second}`");
        std::vector<std::string> texts;
        for (const auto &element : range) texts.push_back(text_of(element));
        std::vector<milieu_text> elements;
        for (const std::string &text : texts) elements.push_back(detail::text(text));
        detail::check(milieu_context_set_elements(
            this->context().c(), Self::index, elements.data(), elements.size()));
        return static_cast<Self &>(*this);
    }
    using Element = std::conditional_t<std::is_same_v<T, Text>, std::string_view, T>;
    Self &operator=(std::initializer_list<Element> elements) { return assign(elements); }
    template <class Range>
    Self &operator=(const Range &range) {
        return assign(range);
    }
    Self &operator=(const Array &other) { return assign(other); }
    /** Removes the user's elements; what is below them in the cascade is then in force. */
    void unset() { detail::check(milieu_context_unset(this->context().c(), Self::index)); }

private:
    static std::string text_of(std::string_view text) { return std::string(text); }
    template <class U, class = std::enable_if_t<std::is_arithmetic_v<U> || std::is_enum_v<U>>>
    static std::string text_of(U element) {
        if constexpr (std::is_enum_v<U>) {
            return std::string(Self::texts[static_cast<std::size_t>(element)]);
        } else if constexpr (std::is_same_v<U, bool>) {
            return element ? "true" : "false";
        } else if constexpr (std::is_floating_point_v<U>) {
            return detail::exact(element);
        } else {
            return std::to_string(element);
        }
    }
};

} // namespace milieu

#endif
