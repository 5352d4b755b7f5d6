/*
 * Events and their types in C++: what MILIEU_EVENT describes, and how events are read. Included by
 * streams.hpp.
 */
#ifndef MILIEU_EVENTS_HPP
#define MILIEU_EVENTS_HPP

#include <milieu.hpp>
#include <milieu/streams.h>

#include <list>

namespace milieu {

/* ---------------------------------------------------------------- types of events */

/** A point in time, as events have it. */
using Time = std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>;
/** A distance in time. */
using Span = std::chrono::nanoseconds;

/** A field of several elements: it refers to them, and events have a copy. */
template <class T>
struct List {
    const T *first = nullptr;
    std::size_t count = 0;

    List() = default;
    List(const T *first_, std::size_t count_) noexcept : first(first_), count(count_) {}
    List(const std::vector<T> &all) noexcept : first(all.data()), count(all.size()) {}
    const T *begin() const noexcept { return first; }
    const T *end() const noexcept { return first + count; }
    std::size_t size() const noexcept { return count; }
    bool empty() const noexcept { return count == 0; }
    const T &operator[](std::size_t index) const noexcept { return first[index]; }
};

/** A field that may be missing. */
template <class T>
struct Optional {
    T value = T();
    bool is_there = false;

    Optional() = default;
    Optional(std::nullopt_t) noexcept {}
    Optional(const T &value_) noexcept : value(value_), is_there(true) {}
    Optional(const std::optional<T> &other) noexcept {
        if (other) *this = Optional(*other);
    }
    explicit operator bool() const noexcept { return is_there; }
    const T &operator*() const noexcept { return value; }
    const T *operator->() const noexcept { return &value; }
    T value_or(T otherwise) const noexcept { return is_there ? value : otherwise; }
    operator std::optional<T>() const noexcept {
        return is_there ? std::optional<T>(value) : std::nullopt;
    }
};

/** Any bytes, which it refers to. */
struct Bytes : milieu_text {
    Bytes() noexcept : milieu_text() {}
    Bytes(const void *first, std::size_t size) noexcept
        : milieu_text{static_cast<const char *>(first), size} {}
    const char *data() const noexcept { return bytes; }
    std::size_t size() const noexcept { return length; }
};

namespace detail {

struct EventLayout;

template <class T, class = void>
struct is_described : std::false_type {};
template <class T>
struct is_described<T,
    std::void_t<decltype(milieu_describe(static_cast<const T *>(nullptr),
        std::declval<EventLayout &>()))>> : std::true_type {};

template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<Optional<T>> : std::true_type {};

template <class T>
struct is_list : std::false_type {};
template <class T>
struct is_list<List<T>> : std::true_type {};

/** What a member consists of: what is optional, or each of several. */
template <class T>
struct element {
    using type = T;
};
template <class T>
struct element<List<T>> : element<T> {};
template <class T>
struct element<Optional<T>> : element<T> {};

/** The kind of a member of an event. */
template <class T>
constexpr std::uint32_t kind_of() {
    if constexpr (is_described<T>::value) {
        return MILIEU_STRUCT;
    } else if constexpr (is_optional<T>::value) {
        using Value = decltype(T::value);
        static_assert(offsetof(T, is_there) == sizeof(Value), "it follows the value");
        static_assert(!is_optional<Value>::value, "what may be missing may be so once");
        return MILIEU_OPTIONAL | kind_of<Value>();
    } else if constexpr (std::is_same_v<T, Bytes>) {
        return MILIEU_BYTES;
    } else if constexpr (std::is_same_v<T, bool>) {
        return MILIEU_BOOL;
    } else if constexpr (std::is_enum_v<T>) {
        static_assert(sizeof(T) == 4, "an enum of an event has 32 bits: enum class E : std::uint32_t");
        return MILIEU_ENUM;
    } else if constexpr (std::is_same_v<T, float>) {
        return MILIEU_F32;
    } else if constexpr (std::is_same_v<T, double>) {
        return MILIEU_F64;
    } else if constexpr (std::is_integral_v<T>) {
        constexpr std::uint32_t is_signed[] = {MILIEU_I8, MILIEU_I16, MILIEU_I32, MILIEU_I64};
        constexpr std::uint32_t is_unsigned[] = {MILIEU_U8, MILIEU_U16, MILIEU_U32, MILIEU_U64};
        constexpr int place = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
        return std::is_signed_v<T> ? is_signed[place] : is_unsigned[place];
    } else if constexpr (std::is_base_of_v<milieu_text, T>) {
        static_assert(sizeof(T) == sizeof(milieu_text), "a text is nothing but its text");
        return MILIEU_TEXT;
    } else if constexpr (std::is_same_v<T, Time>) {
        return MILIEU_TIME;
    } else if constexpr (std::is_same_v<T, Span>) {
        static_assert(sizeof(Span) == 8, "a distance in time has 64 bits");
        return MILIEU_SPAN;
    } else if constexpr (is_list<T>::value) {
        using Element = std::remove_cv_t<std::remove_pointer_t<decltype(T::first)>>;
        static_assert(!is_list<Element>::value && !is_optional<Element>::value,
            "an element of a list is a value or a struct");
        return MILIEU_ARRAY | kind_of<Element>();
    } else {
        static_assert(never<T>,
            "no field of an event: use bool, numbers, enums of 32 bits, milieu::Text, "
            "milieu::Bytes, milieu::Time, milieu::Span, a struct that MILIEU_EVENT names, or a "
            "milieu::List or milieu::Optional of these");
        return 0;
    }
}

template <class T>
const EventLayout &layout_of();

/** What milieu_event_layout leads to. */
struct EventLayout {
    std::vector<milieu_event_field> fields;
    /** What is said of each field, and the texts of it. */
    std::vector<std::vector<milieu_entry>> metadata;
    std::list<std::string> texts;
    milieu_event_layout described = {};

    template <class M>
    void add(const char *name, std::size_t offset) {
        using Element = typename element<M>::type;
        milieu_event_field field = {name, offset, kind_of<M>(), 0, nullptr, nullptr};
        metadata.emplace_back();
        if constexpr (std::is_enum_v<Element>) {
            for (const char *variant : milieu_variants_of(static_cast<const Element *>(nullptr))) {
                metadata.back().push_back({"variant", variant});
            }
        } else if constexpr (is_described<Element>::value) {
            field.layout = &layout_of<Element>().described;
        }
        fields.push_back(field);
    }

    void finish(const char *name, std::size_t size, std::size_t align) {
        for (std::size_t i = 0; i < fields.size(); ++i) {
            fields[i].metadata = metadata[i].data();
            fields[i].metadata_count = static_cast<std::uint32_t>(metadata[i].size());
        }
        described = {MILIEU_ABI, static_cast<std::uint32_t>(fields.size()), name, fields.data(),
            size, align};
    }
};

} // namespace detail

/** What more is to be said of one member of an event. */
class AboutMember {
public:
    AboutMember(detail::EventLayout &layout, std::vector<milieu_entry> &metadata) noexcept
        : layout_(layout), metadata_(metadata) {}

    /** A number that stays the same when it is renamed. */
    AboutMember &id(std::uint32_t id) { return say("id", std::to_string(id)); }
    /** In which unit it is: an event that has it in another one is not read as one of this type. */
    AboutMember &unit(std::string_view unit) { return say("unit", std::string(unit)); }
    /** Others receive it only where they have the right to. */
    AboutMember &is_private() { return say("private", {}); }
    /** It is what the type extends: events of the whole are also events of this member's type. */
    AboutMember &extends() { return say("extends", {}); }

private:
    AboutMember &say(const char *what, std::string text) {
        layout_.texts.push_back(std::move(text));
        metadata_.push_back({what, layout_.texts.back().c_str()});
        return *this;
    }
    detail::EventLayout &layout_;
    std::vector<milieu_entry> &metadata_;
};

/**
 * What more is to be said of members than their types do. A program defines, in the namespace of
 * the struct, `void milieu_about(milieu::About<Weather> &about)`, which calls
 * `about(&Weather::temperature).id(7).unit("°C")`.
 */
template <class T>
class About {
public:
    explicit About(detail::EventLayout &layout) noexcept : layout_(layout) {}

    /** Of this member, which MILIEU_EVENT names too. */
    template <class M>
    AboutMember operator()(M T::*member) {
        const T whole = T();
        const auto offset = reinterpret_cast<const char *>(&(whole.*member))
            - reinterpret_cast<const char *>(&whole);
        for (std::size_t i = 0; i < layout_.fields.size(); ++i) {
            if (layout_.fields[i].offset == static_cast<std::size_t>(offset))
                return {layout_, layout_.metadata[i]};
        }
        throw std::logic_error("milieu_about speaks of a member that MILIEU_EVENT does not name");
    }

private:
    detail::EventLayout &layout_;
};

namespace detail {

template <class T, class = void>
struct has_about : std::false_type {};
template <class T>
struct has_about<T, std::void_t<decltype(milieu_about(std::declval<About<T> &>()))>>
    : std::true_type {};

/** How a type is described, which stays where it is. */
template <class T>
const EventLayout &layout_of() {
    static const EventLayout layout = [] {
        EventLayout made;
        if constexpr (is_described<T>::value) {
            static_assert(std::is_standard_layout_v<T>, "an event is a plain struct");
            const char *name = milieu_describe(static_cast<const T *>(nullptr), made);
            if constexpr (has_about<T>::value) {
                About<T> about(made);
                milieu_about(about);
            }
            made.finish(name, sizeof(T), alignof(T));
        } else {
            static_assert(!std::is_class_v<T> || kind_of<T>() != 0, "say MILIEU_EVENT for it");
            made.add<T>("", 0);
            made.finish("value", sizeof(T), alignof(T));
        }
        return made;
    }();
    return layout;
}

/** The type of events with these bodies; it is defined when it is first asked for. */
template <class T>
const milieu_event_type *type_of() {
    static const milieu_event_type *const type = [] {
        const milieu_event_type *made;
        check(milieu_event_type_new(&layout_of<T>().described, &made));
        return made;
    }();
    return type;
}

} // namespace detail

/** In which unit a member is, by its name or path; empty where nothing was said. */
template <class T>
std::string_view unit_of(std::string_view member) {
    milieu_text unit;
    detail::check(milieu_event_type_unit(detail::type_of<T>(), detail::text(member), &unit));
    return detail::view(unit);
}

/* The members of a struct, one after the other: at most 24. */
#define MILIEU_EACH_(f, t, ...)                                                                \
    MILIEU_PICK_(__VA_ARGS__, MILIEU_24_, MILIEU_23_, MILIEU_22_, MILIEU_21_, MILIEU_20_,      \
        MILIEU_19_, MILIEU_18_, MILIEU_17_, MILIEU_16_, MILIEU_15_, MILIEU_14_, MILIEU_13_,    \
        MILIEU_12_, MILIEU_11_, MILIEU_10_, MILIEU_9_, MILIEU_8_, MILIEU_7_, MILIEU_6_,        \
        MILIEU_5_, MILIEU_4_, MILIEU_3_, MILIEU_2_, MILIEU_1_, )                               \
    (f, t, __VA_ARGS__)
#define MILIEU_PICK_(a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q, r, s, u, v, w, x, y, z,   \
    name, ...)                                                                                 \
    name
#define MILIEU_1_(f, t, a) f(t, a)
#define MILIEU_2_(f, t, a, ...) f(t, a) MILIEU_1_(f, t, __VA_ARGS__)
#define MILIEU_3_(f, t, a, ...) f(t, a) MILIEU_2_(f, t, __VA_ARGS__)
#define MILIEU_4_(f, t, a, ...) f(t, a) MILIEU_3_(f, t, __VA_ARGS__)
#define MILIEU_5_(f, t, a, ...) f(t, a) MILIEU_4_(f, t, __VA_ARGS__)
#define MILIEU_6_(f, t, a, ...) f(t, a) MILIEU_5_(f, t, __VA_ARGS__)
#define MILIEU_7_(f, t, a, ...) f(t, a) MILIEU_6_(f, t, __VA_ARGS__)
#define MILIEU_8_(f, t, a, ...) f(t, a) MILIEU_7_(f, t, __VA_ARGS__)
#define MILIEU_9_(f, t, a, ...) f(t, a) MILIEU_8_(f, t, __VA_ARGS__)
#define MILIEU_10_(f, t, a, ...) f(t, a) MILIEU_9_(f, t, __VA_ARGS__)
#define MILIEU_11_(f, t, a, ...) f(t, a) MILIEU_10_(f, t, __VA_ARGS__)
#define MILIEU_12_(f, t, a, ...) f(t, a) MILIEU_11_(f, t, __VA_ARGS__)
#define MILIEU_13_(f, t, a, ...) f(t, a) MILIEU_12_(f, t, __VA_ARGS__)
#define MILIEU_14_(f, t, a, ...) f(t, a) MILIEU_13_(f, t, __VA_ARGS__)
#define MILIEU_15_(f, t, a, ...) f(t, a) MILIEU_14_(f, t, __VA_ARGS__)
#define MILIEU_16_(f, t, a, ...) f(t, a) MILIEU_15_(f, t, __VA_ARGS__)
#define MILIEU_17_(f, t, a, ...) f(t, a) MILIEU_16_(f, t, __VA_ARGS__)
#define MILIEU_18_(f, t, a, ...) f(t, a) MILIEU_17_(f, t, __VA_ARGS__)
#define MILIEU_19_(f, t, a, ...) f(t, a) MILIEU_18_(f, t, __VA_ARGS__)
#define MILIEU_20_(f, t, a, ...) f(t, a) MILIEU_19_(f, t, __VA_ARGS__)
#define MILIEU_21_(f, t, a, ...) f(t, a) MILIEU_20_(f, t, __VA_ARGS__)
#define MILIEU_22_(f, t, a, ...) f(t, a) MILIEU_21_(f, t, __VA_ARGS__)
#define MILIEU_23_(f, t, a, ...) f(t, a) MILIEU_22_(f, t, __VA_ARGS__)
#define MILIEU_24_(f, t, a, ...) f(t, a) MILIEU_23_(f, t, __VA_ARGS__)

#define MILIEU_MEMBER_(type, member)                                                           \
    layout.template add<decltype(type::member)>(#member, offsetof(type, member));
#define MILIEU_TEXT_OF_(type, variant) #variant,

/** Makes a plain struct a type of events. It stands in the namespace of the struct. */
#define MILIEU_EVENT(type, ...)                                                                \
    template <class Layout>                                                                    \
    const char *milieu_describe(const type *, Layout &layout) {                                \
        MILIEU_EACH_(MILIEU_MEMBER_, type, __VA_ARGS__)                                        \
        return #type;                                                                          \
    }

/** The texts of an enum's variants, which count from 0. It stands in the enum's namespace. */
#define MILIEU_VARIANTS(type, ...)                                                             \
    inline std::initializer_list<const char *> milieu_variants_of(const type *) {              \
        static const std::initializer_list<const char *> variants = {                          \
            MILIEU_EACH_(MILIEU_TEXT_OF_, type, __VA_ARGS__)};                                 \
        return variants;                                                                       \
    }

/* ---------------------------------------------------------------- events */

/** When something was so, and how well that is known. */
struct Quality {
    /** When it happened; nothing is when it is published. */
    std::optional<Time> time = {};
    /** How old what the event says was already then. */
    Span age = Span(0);
    /** The truth lies at most this far from each number; negative where it is not known. */
    double accuracy = -1.0;
    /** What is wrong with the sensor; empty is nothing. */
    std::string_view failure = {};
};

namespace detail {

inline std::int64_t nanoseconds(Time time) noexcept { return time.time_since_epoch().count(); }
inline Time time(std::int64_t nanoseconds) noexcept { return Time(Span(nanoseconds)); }

inline milieu_quality quality(const Quality &quality) noexcept {
    return {quality.time ? nanoseconds(*quality.time) : MILIEU_NOW, quality.age.count(),
        quality.accuracy, text(quality.failure)};
}

/** Runs a callback's body; what it throws becomes the failure that C is told. */
template <class Body>
milieu_result told(Body &&body) noexcept {
    try {
        body();
        return MILIEU_OK;
    } catch (const std::exception &exception) {
        return milieu_fail(text(exception.what()));
    } catch (...) {
        return milieu_fail(text("an exception that is no std::exception"));
    }
}

} // namespace detail

/** A value of which the program learns the kind only now. */
class Datum {
public:
    explicit Datum(const milieu_datum &datum) noexcept : datum_(datum) {}
    /** Whether there is something. */
    explicit operator bool() const noexcept { return datum_.kind != 0; }
    /** The kind, as in milieu_datum. */
    std::uint32_t kind() const noexcept { return datum_.kind; }
    /** A number of any kind, if it is one. */
    std::optional<double> number() const noexcept {
        switch (datum_.kind) {
        case MILIEU_I64: return static_cast<double>(datum_.content.whole);
        case MILIEU_U64: return static_cast<double>(datum_.content.natural);
        case MILIEU_F64: return datum_.content.number;
        default: return std::nullopt;
        }
    }
    /** A whole number, if it is one that fits. */
    std::optional<std::int64_t> whole() const noexcept {
        if (datum_.kind == MILIEU_I64) return datum_.content.whole;
        if (datum_.kind != MILIEU_U64 || datum_.content.natural > INT64_MAX) return std::nullopt;
        return static_cast<std::int64_t>(datum_.content.natural);
    }
    /** True or false, if it is one of them. */
    std::optional<bool> boolean() const noexcept {
        if (datum_.kind != MILIEU_BOOL) return std::nullopt;
        return datum_.content.boolean;
    }
    /** A distance in time, if it is one. */
    std::optional<Span> span() const noexcept {
        if (datum_.kind != MILIEU_SPAN) return std::nullopt;
        return Span(datum_.content.whole);
    }
    /** A point in time, if it is one. */
    std::optional<Time> time() const noexcept {
        if (datum_.kind != MILIEU_TIME) return std::nullopt;
        return detail::time(datum_.content.whole);
    }
    /** A text, bytes, or JSON of a list or map; empty if it is none. Valid until the event is asked next. */
    std::string_view text() const noexcept {
        const bool is_text = datum_.kind == MILIEU_TEXT || datum_.kind == MILIEU_BYTES
            || datum_.kind == MILIEU_JSON;
        return is_text ? detail::view(datum_.content.text) : std::string_view();
    }
    /** The datum of the C interface. */
    const milieu_datum &c() const noexcept { return datum_; }

private:
    milieu_datum datum_;
};

class KeptEvent;

/** Something that happened. It is lent; see keep(). */
class Event {
public:
    explicit Event(const milieu_event *event) noexcept : event_(event) {}

    /** The body, as a struct that MILIEU_EVENT names, or as a plain value. */
    template <class T>
    const T &get() const {
        const void *body;
        detail::check(milieu_event_body(event_, detail::type_of<T>(), &body));
        return *static_cast<const T *>(body);
    }
    /** What the type of the body is called; empty where it is none of this program's. */
    std::string_view type() const {
        const milieu_event_type *type;
        milieu_text name = {nullptr, 0};
        detail::check(milieu_event_type_of(event_, &type));
        if (type) detail::check(milieu_event_type_name(type, &name));
        return detail::view(name);
    }
    /** The body, or nothing where it is of another type. */
    template <class T>
    const T *get_if() const {
        const void *body;
        const milieu_result result = milieu_event_body(event_, detail::type_of<T>(), &body);
        if (result == MILIEU_UNFIT) return nullptr;
        detail::check(result);
        return static_cast<const T *>(body);
    }
    /**
     * A field by its name, whatever the type: `room`, `rows[0].value`, `event.time`. A private one
     * is there with MILIEU_READ_PRIVATE.
     */
    Datum field(std::string_view path, std::uint32_t rights = 0) const {
        milieu_datum datum;
        detail::check(milieu_event_get_with(event_, detail::text(path), rights, &datum));
        return Datum(datum);
    }
    /** The body as JSON, with private fields for MILIEU_READ_PRIVATE. */
    std::string json(std::uint32_t rights = 0) const {
        milieu_text body;
        detail::check(milieu_event_json_with(event_, rights, &body));
        return std::string(detail::view(body));
    }
    /** The name of its stream. */
    std::string_view name() const { return detail::view(header().name); }
    /** Who publishes. */
    std::string_view origin() const { return detail::view(header().origin); }
    /** Its number in the stream. */
    std::uint64_t sequence() const { return header().sequence; }
    /** When it happened. */
    Time time() const { return detail::time(header().quality.time_ns); }
    /** What is wrong with the sensor; empty is nothing. */
    std::string_view failure() const { return detail::view(header().quality.failure); }
    /** All of this. */
    milieu_header header() const {
        milieu_header header;
        detail::check(milieu_event_header(event_, &header));
        return header;
    }
    /** The event, for as long as the program likes. */
    KeptEvent keep() const;
    /** The event of the C interface. */
    const milieu_event *c() const noexcept { return event_; }

private:
    const milieu_event *event_;
};

namespace detail {

inline void free_event(milieu_event *event) noexcept { milieu_event_free(event); }
inline void free_subscription(milieu_subscription *subscription) noexcept {
    milieu_subscription_free(subscription);
}

} // namespace detail

/** An event that was kept. */
class KeptEvent : public Event {
public:
    explicit KeptEvent(milieu_event *event) noexcept : Event(event), owned_(event) {}

private:
    std::unique_ptr<milieu_event, detail::Freeing<milieu_event, detail::free_event>> owned_;
};

inline KeptEvent Event::keep() const {
    milieu_event *kept;
    detail::check(milieu_event_keep(event_, &kept));
    return KeptEvent(kept);
}

} // namespace milieu

#endif
