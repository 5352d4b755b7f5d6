/*
 * Events and their types: how a program describes its structs, and how events are read. Included
 * by streams.h, which says what holds of all of it.
 */
#ifndef MILIEU_EVENTS_H
#define MILIEU_EVENTS_H

#include <milieu.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- types of events */

/**
 * How a field of an event lies in memory: a value of milieu_kind, or one of these. A field may be
 * an array (MILIEU_ARRAY): a pointer to elements, followed by their number.
 */
enum {
    MILIEU_I8 = 12,    /**< int8_t */
    MILIEU_U8 = 13,    /**< uint8_t */
    MILIEU_TIME = 14,  /**< int64_t: a point in time */
    MILIEU_SPAN = 15,  /**< int64_t: a distance in time */
    MILIEU_BYTES = 16, /**< milieu_text of any bytes */
    MILIEU_JSON = 17,  /**< of a milieu_datum: a list or a map, as JSON */
    MILIEU_STRUCT = 18, /**< a struct that is described by its own layout */
    MILIEU_EXPRESSION = 19, /**< of a parameter: an expression, or `$name` of a function */
    MILIEU_FIELDS = 20, /**< of a parameter: `{a: expression, b: other}`, or one expression */
    MILIEU_FUNCTIONS = 21 /**< of a parameter: functions of the operator, `mean, percentile(95)` */
};

/**
 * Added to a kind: the value is followed by a bool that says whether it is there, as in
 * MILIEU_OPTIONAL_OF. Where it is not, nobody looks at the value.
 */
#define MILIEU_OPTIONAL 0x200u

/** A member that may be missing. */
#define MILIEU_OPTIONAL_OF(type)                                                               \
    struct {                                                                                   \
        type value;                                                                            \
        bool is_there;                                                                         \
    }

/** One field of a type of events. */
typedef struct milieu_event_field {
    /** Its name, by which flows know it. Empty: it is the only field, and the body is its value. */
    const char *name;
    /** Offset from the start of the struct, in bytes. */
    size_t offset;
    /** One of the kinds, with MILIEU_ARRAY and MILIEU_OPTIONAL or without. */
    uint32_t kind;
    /** The number of entries in `metadata`. */
    uint32_t metadata_count;
    /**
     * What else is to be known:
     * `id`, a number that stays the same when the field is renamed, so that programs with another
     * version of the type find it;
     * `variant`, of MILIEU_ENUM one for each of them, in their order;
     * `unit`, in which the field is: an event whose field of this name is in another one is not
     * read as one of this type;
     * `private`: others receive it only where they have the right to, so that it may be missing
     * where the field is MILIEU_OPTIONAL;
     * `extends`, of one MILIEU_STRUCT: events of the whole are also events of this type.
     */
    const milieu_entry *metadata;
    /** Of MILIEU_STRUCT: how that is described. */
    const struct milieu_event_layout *layout;
} milieu_event_field;

/** What a program says of a type of events. The library keeps a copy. */
typedef struct milieu_event_layout {
    /** MILIEU_ABI */
    uint32_t abi;
    /** The number of `fields`. */
    uint32_t count;
    /** What the type is called, in messages and to other programs. */
    const char *name;
    const milieu_event_field *fields;
    /** Size and alignment of the struct, in bytes. */
    size_t size;
    size_t align;
} milieu_event_layout;

/** A field whose kind is said. */
#define MILIEU_EVENT_FIELD_OF(type, member, kind)                                              \
    { #member, offsetof(type, member), kind, 0, NULL, NULL }

/** A field of which more is said: an array of milieu_entry. */
#define MILIEU_EVENT_FIELD_WITH(type, member, kind, metadata)                                  \
    { #member, offsetof(type, member), kind, sizeof(metadata) / sizeof((metadata)[0]),         \
        metadata, NULL }

/** A field that is a struct, or an array of them with MILIEU_ARRAY, described by this layout. */
#define MILIEU_EVENT_STRUCT(type, member, flags, layout)                                       \
    { #member, offsetof(type, member), MILIEU_STRUCT | (flags), 0, NULL, layout }


/** The layout of a struct with these fields, an array. */
#define MILIEU_EVENT_LAYOUT(type, fields)                                                      \
    { MILIEU_ABI, sizeof(fields) / sizeof((fields)[0]), #type, fields, sizeof(type),           \
        MILIEU_ALIGNOF(type) }

#ifndef __cplusplus
/** The kind of a member, by its type. */
#define MILIEU_KIND_OF(type, member)                                                           \
    _Generic(((type *)0)->member, bool: MILIEU_BOOL, int8_t: MILIEU_I8, int16_t: MILIEU_I16,   \
        int32_t: MILIEU_I32, int64_t: MILIEU_I64, uint8_t: MILIEU_U8, uint16_t: MILIEU_U16,    \
        uint32_t: MILIEU_U32, uint64_t: MILIEU_U64, float: MILIEU_F32, double: MILIEU_F64,     \
        milieu_text: MILIEU_TEXT)

/** A field whose kind is that of its type. One of another type does not compile: say its kind. */
#define MILIEU_EVENT_FIELD(type, member)                                                       \
    MILIEU_EVENT_FIELD_OF(type, member, MILIEU_KIND_OF(type, member))

/** The field that a type extends: a struct, described by this layout. */
#define MILIEU_EVENT_EXTENDS(type, member, layout)                                             \
    { #member, offsetof(type, member), MILIEU_STRUCT, 1,                                       \
        (const milieu_entry[]){ { "extends", "" } }, layout }

/** A field that may be missing, a MILIEU_OPTIONAL_OF. */
#define MILIEU_EVENT_OPTIONAL(type, member)                                                    \
    MILIEU_EVENT_FIELD_OF(type, member, MILIEU_OPTIONAL | MILIEU_KIND_OF(type, member.value))
#endif

/** A type of events. It lasts as long as the program. */
typedef struct milieu_event_type milieu_event_type;

/**
 * Defines a type. The same layout again gives the same type.
 *
 * MILIEU_WRONG_LAYOUT: it describes no struct, and the message says which field is wrong.
 */
MILIEU_CHECKED milieu_result milieu_event_type_new(const milieu_event_layout *layout,
    const milieu_event_type **type);

/** What a type is called; valid for ever. */
MILIEU_CHECKED milieu_result milieu_event_type_name(const milieu_event_type *type,
    milieu_text *name);

/**
 * In which unit a field is, by its name or, within structs, by its path: `row.value`. Empty where
 * none was said; valid for ever. MILIEU_NO_SUCH.
 */
MILIEU_CHECKED milieu_result milieu_event_type_unit(const milieu_event_type *type,
    milieu_text field, milieu_text *unit);

/* ---------------------------------------------------------------- events */

/** Something that happened. It never changes. */
typedef struct milieu_event milieu_event;

/** No time: now, where an event is published. */
#define MILIEU_NOW INT64_MIN

/** When something was so, and how well that is known. Begin with MILIEU_QUALITY. */
typedef struct milieu_quality {
    /** When it happened; MILIEU_NOW is when it is published. */
    int64_t time_ns;
    /** How old what the event says was already then, a value from a cache for instance. */
    int64_t age_ns;
    /** The truth lies at most this far from each number, in its unit; -1 where it is not known. */
    double accuracy;
    /** What is wrong with the sensor, whose measurement is then not to be trusted; empty is nothing. */
    milieu_text failure;
} milieu_quality;

/** Now, and as well as can be. */
#define MILIEU_QUALITY { MILIEU_NOW, 0, -1.0, { NULL, 0 } }

/** What every event has. Its texts are valid for as long as the event. */
typedef struct milieu_header {
    /** The name of its stream: `/weather/temperature`. */
    milieu_text name;
    /** Who publishes: a host, a program, a device. */
    milieu_text origin;
    /** Which life of the publisher it is of, and its number in that, counted from 1. */
    uint64_t incarnation;
    uint64_t sequence;
    milieu_quality quality;
} milieu_header;

/** A value of which the program learns the kind only now. */
typedef struct milieu_datum {
    /**
     * What it is: MILIEU_BOOL, MILIEU_I64, MILIEU_U64, MILIEU_F64, MILIEU_TEXT, MILIEU_TIME,
     * MILIEU_SPAN, MILIEU_BYTES, MILIEU_JSON, or 0 where there is nothing.
     */
    uint32_t kind;
    union {
        /** MILIEU_BOOL */
        bool boolean;
        /** MILIEU_I64, MILIEU_TIME, MILIEU_SPAN */
        int64_t whole;
        /** MILIEU_U64 */
        uint64_t natural;
        /** MILIEU_F64 */
        double number;
        /** MILIEU_TEXT, MILIEU_BYTES, MILIEU_JSON */
        milieu_text text;
    } content;
} milieu_datum;

/** Name, origin, number, time and quality. */
MILIEU_CHECKED milieu_result milieu_event_header(const milieu_event *event, milieu_header *header);

/**
 * The type of the body, if it is one that this program has defined and published; null where it
 * was made by an operator of Milieu, or came from another program.
 */
MILIEU_CHECKED milieu_result milieu_event_type_of(const milieu_event *event,
    const milieu_event_type **type);

/**
 * The body as a struct of this type: where the event has one, or one that extends it, that is one
 * load. An event that was made by an operator, or came from another program, becomes one if it has
 * all of the fields that are not MILIEU_OPTIONAL.
 *
 * MILIEU_UNFIT: it is none of this type; the message says which field is missing or different.
 */
MILIEU_CHECKED milieu_result milieu_event_body(const milieu_event *event,
    const milieu_event_type *type, const void **body);

/**
 * A field by its name as expressions have it, whatever the type of the event: `room`, `rows[0].value`,
 * `value` for a body that is one, `event.time`. Its text is valid until the next call with this event.
 * What is not there is 0. MILIEU_NO_SUCH: it is no path.
 */
MILIEU_CHECKED milieu_result milieu_event_get(const milieu_event *event, milieu_text path,
    milieu_datum *datum);

/** The body as JSON; valid until the next call with this event. */
MILIEU_CHECKED milieu_result milieu_event_json(const milieu_event *event, milieu_text *body);

/** What the program may do with private fields, or-ed. */
enum {
    /** It may see them. Whether it may is for the program to know: it has published them, or got them with a right. */
    MILIEU_READ_PRIVATE = 1
};

/** As milieu_event_get, with rights: without MILIEU_READ_PRIVATE what is private is not there. */
MILIEU_CHECKED milieu_result milieu_event_get_with(const milieu_event *event, milieu_text path,
    uint32_t rights, milieu_datum *datum);

/** As milieu_event_json, with rights: without MILIEU_READ_PRIVATE what is private is `null`. */
MILIEU_CHECKED milieu_result milieu_event_json_with(const milieu_event *event, uint32_t rights,
    milieu_text *body);

/** Keeps an event, for as long as the program likes. It is not copied. */
MILIEU_CHECKED milieu_result milieu_event_keep(const milieu_event *event, milieu_event **kept);

/** Gives a kept event back. MILIEU_BUSY: it was lent, and not kept. */
milieu_result milieu_event_free(milieu_event *event);

#ifdef __cplusplus
}
#endif

#endif
