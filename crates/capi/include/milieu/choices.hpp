/*
 * Enumerations in C++ and their texts: those of specifications, and those of events. Included by
 * milieu.hpp.
 */
/* Whoever begins here gets the whole, which includes this where it is needed. */
#include <milieu.hpp>

#ifndef MILIEU_CHOICES_HPP
#define MILIEU_CHOICES_HPP

namespace milieu {

namespace detail {

/** The text of a variant among all of them; empty where it is none. */
template <class E, std::size_t count>
constexpr std::string_view text_among(const std::string_view (&texts)[count], E variant) noexcept {
    const auto place = static_cast<std::uint32_t>(variant);
    return place < count ? texts[place] : std::string_view();
}

template <class E, class = void>
struct has_variants : std::false_type {};
template <class E>
struct has_variants<E, std::void_t<decltype(milieu_variants_of(static_cast<const E *>(nullptr)))>>
    : std::is_enum<E> {};

} // namespace detail

/** The text of a variant; empty where it is none. `E` is of a specification, or of MILIEU_VARIANTS. */
template <class E, class = std::enable_if_t<detail::has_variants<E>::value>>
[[nodiscard]] std::string_view to_string(E variant) noexcept {
    const auto variants = milieu_variants_of(static_cast<const E *>(nullptr));
    const auto place = static_cast<std::uint32_t>(variant);
    return place < variants.size() ? variants.begin()[place] : std::string_view();
}

/**
 * The variant with this text, if there is one: `milieu::parse<Airport>("JFK")`. `E` is of a
 * specification, or of MILIEU_VARIANTS.
 */
template <class E>
[[nodiscard]] std::optional<E> parse(std::string_view text) noexcept {
    static_assert(detail::has_variants<E>::value,
        "an enumeration of a specification, or one that MILIEU_VARIANTS describes");
    std::uint32_t place = 0;
    for (std::string_view variant : milieu_variants_of(static_cast<const E *>(nullptr))) {
        if (variant == text) return static_cast<E>(place);
        ++place;
    }
    return std::nullopt;
}

} // namespace milieu

#endif
