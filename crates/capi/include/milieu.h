/*
 * Milieu: concurrent software that adapts to its surroundings. The C interface.
 *
 *   milieu_coordinator   one key set, the global layers, the files behind them
 *   milieu_context       one thread's layers, and an environment: a plain struct
 *   milieu_frame         layers entered in a context and not yet left
 *   milieu_watch         keeps an eye on the files
 *
 * A program specifies its contextual values, `milieu spec generate --lang c`
 * makes a struct of them, and a context keeps one filled. Reading a value is
 * reading a field: no call, no lock, no copy.
 *
 *   milieu_coordinator *coordinator;
 *   milieu_context *cx;
 *   const struct station *station;
 *   milieu_frame frame;
 *   milieu_coordinator_open(milieu_text_of("station"), NULL, &coordinator);
 *   station_new(coordinator, NULL, &cx, &station);
 *   milieu_context_enter(cx, milieu_layer_of("session", "anna"), &frame);
 *   printf(MILIEU_TEXT_FORMAT "\n", MILIEU_TEXT_ARGUMENTS(station->sw.language));
 *   milieu_context_leave(cx, frame);
 *
 * What holds for every function:
 *
 * - It returns a milieu_result. MILIEU_OK is 0. Otherwise nothing has changed,
 *   unless the function says so, out-parameters are untouched, and
 *   milieu_message() says what is wrong and the way out.
 * - Out-parameters come last and must not be null, unless the function says so.
 * - `_new`, `_open` and `_fork` give a handle that the caller owns and gives back
 *   to the `_free` of its type, once. Null may be given back. A handle that was
 *   freed is found out for as long as not many others were made since.
 * - A milieu_text handed in is read during the call only, and has to be UTF-8.
 *   One that is handed out belongs to the library, which says until when it is
 *   valid. It is not followed by a zero byte.
 * - `const` on a handle means that the call changes nothing that others see.
 * - A milieu_coordinator, a milieu_registration, a milieu_captured and a milieu_watch may be used
 *   by several threads at once. A milieu_context may move from thread to thread,
 *   and is used by one at a time; a milieu_hold stays in its thread.
 * - No function may be called from a signal handler, nor in a child of fork().
 *
 * What a field points to, a text or the elements of an array, is valid until the
 * next call that may change the context's values: entering and leaving layers,
 * (de)activating, synchronizing, assigning, forgetting, freeing.
 */
#ifndef MILIEU_H
#define MILIEU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** The version of this header. Until 1.0, minor versions may break programs. */
#define MILIEU_VERSION_MAJOR 0
#define MILIEU_VERSION_MINOR 1
#define MILIEU_VERSION_PATCH 0

/** What generated tables and option structs state, so that a library of another kind refuses them. */
#define MILIEU_ABI 1u

#if defined(__GNUC__)
#define MILIEU_CHECKED __attribute__((warn_unused_result))
#else
#define MILIEU_CHECKED
#endif

/* What C and C++ call differently, for generated code. */
#ifdef __cplusplus
#define MILIEU_STATIC_ASSERT(condition, message) static_assert(condition, message)
#define MILIEU_ALIGNOF(type) alignof(type)
#else
#define MILIEU_STATIC_ASSERT(condition, message) _Static_assert(condition, message)
#define MILIEU_ALIGNOF(type) _Alignof(type)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** How a call ended. Numbers stay what they are; there may be more. */
typedef enum milieu_result {
    MILIEU_OK = 0,
    /** Not an error: `--help` or `--version` was given, milieu_message() is the text to print. */
    MILIEU_SAY = 1,
    /** Not an error: no more events will come. */
    MILIEU_ENDED = 2,
    /**
     * Not an error: it cannot be taken now, and nothing has happened. A subscriber that wants every
     * event is full, or an engine has told so much at once as it may.
     */
    MILIEU_REFUSED = 3,

    /** A pointer is null that must not be. */
    MILIEU_NULL = 10,
    /** A handle is of another type, or none at all. */
    MILIEU_WRONG_HANDLE = 11,
    /** A handle was freed, or the callback has returned that it was handed to. */
    MILIEU_FREED = 12,
    /** A context is in use: by another thread, or by the call that runs this callback. */
    MILIEU_BUSY = 13,
    /** Something that belongs to one thread was used in another. */
    MILIEU_WRONG_THREAD = 14,
    /** A frame is not the innermost one of its context, or was left. */
    MILIEU_WRONG_FRAME = 15,
    /** A text is not UTF-8. */
    MILIEU_NOT_UTF8 = 16,
    /** There is no value or element of that number. */
    MILIEU_NO_SUCH = 17,
    /** A table does not describe a struct, or is for another version. */
    MILIEU_WRONG_LAYOUT = 18,
    /** It has to be done earlier: before streams are used for the first time. */
    MILIEU_LATE = 19,

    /** A value breaks the rules of its key, or no array can be where or as long as is said. */
    MILIEU_INVALID = 20,
    /** The specification keeps programs from assigning the value, or the context's options do. */
    MILIEU_READ_ONLY = 21,
    /** A name is not one. */
    MILIEU_WRONG_NAME = 22,
    /** A layer would depend on itself, or an action asks for the switch that caused it. */
    MILIEU_CYCLE = 23,
    /** The environment and the keys do not fit, or a required key has no value. */
    MILIEU_UNFIT = 24,
    /** The command line or a variable is not as specified. */
    MILIEU_USAGE = 25,
    /** A file cannot be read, understood or written, or another process changed the same key. */
    MILIEU_FILES = 26,
    /** A flow, or a file of subscriptions, is not right; the message shows where. */
    MILIEU_WRONG_FLOW = 27,
    /** The system has no thread or descriptor left. */
    MILIEU_SYSTEM = 28,

    /** A callback of the program failed: an action, and the switch stands; or a thread-based layer, which is inactive then. */
    MILIEU_CALLBACK = 30,
    /** A defect of the library; what was being done may be half done. */
    MILIEU_PANIC = 31
} milieu_result;

/** The name of a result, such as `MILIEU_BUSY`. Valid for ever. */
const char *milieu_result_name(milieu_result result);

/**
 * What the last call of this thread that did not return MILIEU_OK has to say, ending in a zero
 * byte. Valid until the next such call of this thread.
 */
const char *milieu_message(void);

/** The version of the library, such as `0.1.0`. Valid for ever. */
const char *milieu_version(void);

/* ---------------------------------------------------------------- texts */

/** A text: UTF-8, `length` bytes, without a zero byte at its end. */
typedef struct milieu_text {
    const char *bytes;
    size_t length;
} milieu_text;

/** The text of a string that ends in a zero byte; it points into the string. Null is empty. */
static inline milieu_text milieu_text_of(const char *string) {
    milieu_text text;
    text.bytes = string;
    text.length = string ? strlen(string) : 0;
    return text;
}

/** Whether a text is this string, which ends in a zero byte. Null is empty. */
static inline bool milieu_text_is(milieu_text text, const char *string) {
    size_t length = string ? strlen(string) : 0;
    if (text.length != length || length == 0) return text.length == length;
    return text.bytes && memcmp(text.bytes, string, length) == 0;
}

/** For printf: `printf(MILIEU_TEXT_FORMAT, MILIEU_TEXT_ARGUMENTS(text))`. */
#define MILIEU_TEXT_FORMAT "%.*s"
#define MILIEU_TEXT_ARGUMENTS(text) (int)(text).length, (text).bytes

/* ---------------------------------------------------------------- environments */

/** How a field lies in memory. */
typedef enum milieu_kind {
    MILIEU_BOOL = 1,  /**< bool */
    MILIEU_I16 = 2,   /**< int16_t */
    MILIEU_I32 = 3,   /**< int32_t */
    MILIEU_I64 = 4,   /**< int64_t */
    MILIEU_U16 = 5,   /**< uint16_t */
    MILIEU_U32 = 6,   /**< uint32_t */
    MILIEU_U64 = 7,   /**< uint64_t */
    MILIEU_F32 = 8,   /**< float */
    MILIEU_F64 = 9,   /**< double */
    MILIEU_TEXT = 10, /**< milieu_text */
    MILIEU_ENUM = 11  /**< an enum of 32 bits, counting from 0 in the order of its variants */
} milieu_kind;

/** Added to a kind: the field is a pointer to elements of that kind, and their number (size_t). */
#define MILIEU_ARRAY 0x100u

/** One piece of metadata of a specification. */
typedef struct milieu_entry {
    const char *key;
    const char *text;
} milieu_entry;

/** One field of an environment. */
typedef struct milieu_value {
    /** The name with placeholders: `/sw/%session%/language`. */
    const char *pattern;
    /** Offset from the start of the struct, in bytes. */
    size_t offset;
    /** A milieu_kind, with MILIEU_ARRAY or without. */
    uint32_t kind;
    /** The number of entries in `metadata`. */
    uint32_t metadata_count;
    const milieu_entry *metadata;
} milieu_value;

/** What generated code says of its struct. The library keeps a copy of what it was handed. */
typedef struct milieu_layout {
    /** MILIEU_ABI */
    uint32_t abi;
    /** The number of `values`. A value is known by its place among them. */
    uint32_t count;
    const milieu_value *values;
    /** Size and alignment of the struct, in bytes. */
    size_t size;
    size_t align;
} milieu_layout;

/* ---------------------------------------------------------------- coordinators */

/** What the contexts of a program share: one key set, the global layers, their actions; and the files. */
typedef struct milieu_coordinator milieu_coordinator;

/** How an application is opened. Begin with MILIEU_OPTIONS. */
typedef struct milieu_options {
    /** MILIEU_ABI */
    uint32_t abi;
    /** The number of `arguments`, with the program itself as the first: argc. */
    int argument_count;
    /** The command line: argv. Null where files alone count. */
    const char *const *arguments;
    /** Whose options and variables these are; with `arguments`. */
    const milieu_layout *layout;
    /** The folders of settings of the user and of the system; empty is as the XDG specification says. */
    milieu_text user_folder;
    milieu_text system_folder;
    /** What help says of the program; may be empty. */
    milieu_text description;
} milieu_options;

/** Options that say nothing. */
#define MILIEU_OPTIONS { MILIEU_ABI, 0, NULL, NULL, { NULL, 0 }, { NULL, 0 }, { NULL, 0 } }

/** A coordinator without files, with an empty key set. */
MILIEU_CHECKED milieu_result milieu_coordinator_new(milieu_coordinator **coordinator);

/**
 * Opens the settings of an application: the command line if there is one, the user's file, then
 * those of the system. `options` may be null.
 *
 * MILIEU_SAY: the command line asks for help or the version. MILIEU_USAGE, MILIEU_FILES: the
 * message says which argument or which line of which file, and what to write instead.
 */
MILIEU_CHECKED milieu_result milieu_coordinator_open(milieu_text application,
    const milieu_options *options, milieu_coordinator **coordinator);

/** Gives a coordinator back. Contexts go on with what they share. */
void milieu_coordinator_free(milieu_coordinator *coordinator);

/** Assigns a key by its name, as the user's. Contexts see it at their next synchronization. */
MILIEU_CHECKED milieu_result milieu_coordinator_assign(const milieu_coordinator *coordinator,
    milieu_text name, milieu_text value);

/** Removes the user's key of this name, assigned or from a file. */
MILIEU_CHECKED milieu_result milieu_coordinator_remove(const milieu_coordinator *coordinator,
    milieu_text name);

/**
 * Reads files that the program brings along, the first of which wins: their keys count where
 * neither the command line nor the user's and the system's files say something else, and nobody
 * persists them. Those that were read before go; `count` 0 reads none.
 *
 * MILIEU_FILES: a file is not there, or cannot be read or understood. MILIEU_UNFIT: values break the
 * rules of their keys; the message names all of them. Nothing has changed then.
 */
MILIEU_CHECKED milieu_result milieu_coordinator_defaults(const milieu_coordinator *coordinator,
    const milieu_text *files, size_t count);

/**
 * Writes what the program has assigned below `branch` into the user's file; `/`, or an empty text,
 * is everything. `written`, which may be null, gets the number of keys that changed in the file.
 * Nobody waits for the disk but others who persist.
 *
 * MILIEU_FILES: the file cannot be written, or another process changed the same key; it is as it was.
 */
MILIEU_CHECKED milieu_result milieu_coordinator_persist(const milieu_coordinator *coordinator,
    milieu_text branch, size_t *written);

/** Who is right where another program has written a key that this one has assigned. */
typedef enum milieu_strategy {
    /** Nobody: MILIEU_FILES, and nothing is written. */
    MILIEU_REFUSE_CONFLICT = 0,
    /** This program. */
    MILIEU_OURS = 1,
    /** The other one: its value is this program's then, too; the rest is written. */
    MILIEU_THEIRS = 2
} milieu_strategy;

/**
 * As milieu_coordinator_persist, with the decision on conflicts. `milieu/files.h` has a function of
 * the program decide each of them, and what else there is of files.
 */
MILIEU_CHECKED milieu_result milieu_coordinator_persist_with(
    const milieu_coordinator *coordinator, milieu_text branch, milieu_strategy strategy,
    size_t *written);

/** Whether milieu_coordinator_assign would succeed: the same results, and nothing changes. */
MILIEU_CHECKED milieu_result milieu_coordinator_check(const milieu_coordinator *coordinator,
    milieu_text name, milieu_text value);

/**
 * Whether the value of any environment depends on a layer of this id: for one that a request, a
 * file or a command line names. MILIEU_NO_SUCH: none does; the message says which it may have been.
 */
MILIEU_CHECKED milieu_result milieu_coordinator_check_layer(const milieu_coordinator *coordinator,
    milieu_text id);

/* ---------------------------------------------------------------- holding the key set */

/** The key set of a coordinator, held still. It belongs to the thread that made it. */
typedef struct milieu_hold milieu_hold;

/** A key of a held key set. Its texts are valid until the hold is freed. */
typedef struct milieu_key {
    milieu_text name;
    milieu_text value;
    /** Who said so: a file and line, an option; empty where the program assigned it. */
    milieu_text origin;
} milieu_key;

/**
 * Holds the key set still until milieu_hold_free. Waits for other threads that hold it, and for
 * nobody else; nobody else waits for it. The thread may hold it several times.
 */
MILIEU_CHECKED milieu_result milieu_hold_new(const milieu_coordinator *coordinator,
    milieu_hold **hold);

/** Lets go. MILIEU_WRONG_THREAD: another thread holds it, and goes on doing so. */
milieu_result milieu_hold_free(milieu_hold *hold);

/** The keys in force, in the order of their names; valid until the hold is freed. */
MILIEU_CHECKED milieu_result milieu_hold_keys(const milieu_hold *hold, const milieu_key **keys,
    size_t *count);

/* ---------------------------------------------------------------- layers */

/** A layer with a value: what fills its placeholder. */
typedef struct milieu_layer {
    /** What the placeholder says between its percent signs. */
    milieu_text id;
    /** Any text is safe. An empty one is inactive. */
    milieu_text value;
    /** Whether a fork of the context keeps it. */
    bool inherited;
} milieu_layer;

/** A layer of two strings that end in a zero byte; it points into them. */
static inline milieu_layer milieu_layer_of(const char *id, const char *value) {
    milieu_layer layer;
    layer.id = milieu_text_of(id);
    layer.value = milieu_text_of(value);
    layer.inherited = false;
    return layer;
}

/* ---------------------------------------------------------------- contexts */

/** The layers of one thread, and its environment. */
typedef struct milieu_context milieu_context;

/** Layers that were entered together. 0 is none. */
typedef uint64_t milieu_frame;

/** What a context is not to do. */
typedef enum milieu_policy {
    /** Everything. */
    MILIEU_THREADS = 0,
    /** Layers do nothing: values are what they were at the start, or are assigned. */
    MILIEU_WITHOUT_LAYERS = 1,
    /** What others publish never appears. */
    MILIEU_WITHOUT_SHARING = 2,
    /** Nothing can be assigned. */
    MILIEU_WITHOUT_ASSIGNMENT = 4
} milieu_policy;

/** What a new context is given. Begin with MILIEU_CONTEXT_OPTIONS. */
typedef struct milieu_context_options {
    /** MILIEU_ABI */
    uint32_t abi;
    /** Values of milieu_policy, or-ed. */
    uint32_t policy;
    /** A name such as `/gas-detection`, by which thread-based layers select; may be empty. */
    milieu_text role;
} milieu_context_options;

/** Options that say nothing. */
#define MILIEU_CONTEXT_OPTIONS { MILIEU_ABI, MILIEU_THREADS, { NULL, 0 } }

/**
 * A context for a thread, up to date. `environment` gets the address of the struct that `layout`
 * describes, which stays the same and is valid until the context is freed; it may be null.
 * `options` may be null. Generated code has a function of this kind for its struct.
 *
 * MILIEU_UNFIT: keys break the rules of the environment, or nobody gives a required one; the
 * message names all of them.
 */
MILIEU_CHECKED milieu_result milieu_context_new(const milieu_coordinator *coordinator,
    const milieu_layout *layout, const milieu_context_options *options, milieu_context **context,
    const void **environment);

/**
 * A further context, which sees what this one sees. Of the layers entered here it keeps those that
 * are `inherited`. An empty role is the one of this context. `environment` may be null.
 */
MILIEU_CHECKED milieu_result milieu_context_fork(const milieu_context *context, milieu_text role,
    milieu_context **fork, const void **environment);

/** Gives a context back, whatever is entered in it. MILIEU_BUSY: it is in use, and stays. */
milieu_result milieu_context_free(milieu_context *context);

/**
 * The context whose environment this is: the address of the whole struct, as it was handed out.
 * Null has none: null, which every function refuses.
 */
static inline milieu_context *milieu_context_of(const void *environment) {
    if (!environment) return NULL;
#ifdef __cplusplus
    return static_cast<milieu_context *const *>(environment)[-1];
#else
    return ((milieu_context *const *)environment)[-1];
#endif
}

/** Enters a layer in this context alone, until it is left. No action runs. */
MILIEU_CHECKED milieu_result milieu_context_enter(milieu_context *context, milieu_layer layer,
    milieu_frame *frame);

/** Enters several layers together: each value is updated once; of two with one id the last wins. */
MILIEU_CHECKED milieu_result milieu_context_enter_all(milieu_context *context,
    const milieu_layer *layers, size_t count, milieu_frame *frame);

/** Enters a contextual value as a layer, which follows the value until it is left. */
MILIEU_CHECKED milieu_result milieu_context_enter_value(milieu_context *context, uint32_t value,
    milieu_frame *frame);

/** Leaves a frame. MILIEU_WRONG_FRAME: it is not the innermost one; nothing is left. */
milieu_result milieu_context_leave(milieu_context *context, milieu_frame frame);

/**
 * Activates a layer for everybody: synchronizes, switches here, publishes, and runs the actions in
 * this thread. Others see it at their next synchronization.
 *
 * MILIEU_CYCLE: nothing has changed. MILIEU_CALLBACK: an action failed; the switch stands, and the
 * other actions have run.
 */
MILIEU_CHECKED milieu_result milieu_context_activate(milieu_context *context, milieu_layer layer);

/** Activates a contextual value as a layer: in each context its own value. */
MILIEU_CHECKED milieu_result milieu_context_activate_value(milieu_context *context,
    uint32_t value);

/** Deactivates a layer for everybody, as milieu_context_activate activates it. */
MILIEU_CHECKED milieu_result milieu_context_deactivate(milieu_context *context, milieu_text id);

/** Takes in what others have activated, deactivated and assigned. Without news it is one comparison. */
milieu_result milieu_context_sync(milieu_context *context);

/** Whether milieu_context_sync would find news. */
MILIEU_CHECKED milieu_result milieu_context_has_news(const milieu_context *context, bool *news);

/**
 * Sleeps until there is news, or for that many nanoseconds, and says whether there is; a negative
 * time is for ever. It takes nothing in: milieu_context_sync does. `news` may be null.
 */
MILIEU_CHECKED milieu_result milieu_context_wait(const milieu_context *context,
    int64_t timeout_ns, bool *news);

/**
 * Assigns a value, under the name that it has in the active layers. It is in the environment and
 * in the key set at once, and in other contexts at their next synchronization. A value is what its
 * text says, so that any of these functions serves any type that can read it.
 *
 * MILIEU_INVALID: the value breaks a rule or is not of the key's type. MILIEU_READ_ONLY.
 * MILIEU_CALLBACK: the value is assigned, and a thread-based layer has failed meanwhile.
 */
MILIEU_CHECKED milieu_result milieu_context_set_text(milieu_context *context, uint32_t value,
    milieu_text text);
/** As milieu_context_set_text. */
MILIEU_CHECKED milieu_result milieu_context_set_bool(milieu_context *context, uint32_t value,
    bool boolean);
/** As milieu_context_set_text. */
MILIEU_CHECKED milieu_result milieu_context_set_signed(milieu_context *context, uint32_t value,
    int64_t number);
/** As milieu_context_set_text. */
MILIEU_CHECKED milieu_result milieu_context_set_unsigned(milieu_context *context, uint32_t value,
    uint64_t number);
/** As milieu_context_set_text. */
MILIEU_CHECKED milieu_result milieu_context_set_float(milieu_context *context, uint32_t value,
    float number);
/** As milieu_context_set_text. */
MILIEU_CHECKED milieu_result milieu_context_set_double(milieu_context *context, uint32_t value,
    double number);
/** Assigns the variant of this number to an enumeration. */
MILIEU_CHECKED milieu_result milieu_context_set_variant(milieu_context *context, uint32_t value,
    uint32_t variant);
/** Assigns all elements of an array. */
MILIEU_CHECKED milieu_result milieu_context_set_elements(milieu_context *context, uint32_t value,
    const milieu_text *elements, size_t count);

/** Removes the user's value, under the name that it has in the active layers. */
MILIEU_CHECKED milieu_result milieu_context_unset(milieu_context *context, uint32_t value);

/** Removes every key of the user that belongs to a value of a layer, such as an ended session. */
MILIEU_CHECKED milieu_result milieu_context_forget(milieu_context *context, milieu_layer layer);

/** The name that a value has in the active layers. Valid until the next call with this context. */
MILIEU_CHECKED milieu_result milieu_context_name(milieu_context *context, uint32_t value,
    milieu_text *name);

/**
 * The text of a value by its name with placeholders, such as `/sw/%session%/language`, as this
 * context sees it: for tools, and where the program does not know which values there are.
 * MILIEU_NO_SUCH where no environment of the coordinator describes it. Valid until the next call
 * with this context.
 */
MILIEU_CHECKED milieu_result milieu_context_text(milieu_context *context, milieu_text name,
    milieu_text *text);

/**
 * The elements of an array by its name, such as `/sw/%session%/hosts/#`, up to the first index that
 * has none; also of an array that is no field of an environment. Valid until the next call with
 * this context.
 */
MILIEU_CHECKED milieu_result milieu_context_elements(milieu_context *context, milieu_text name,
    const milieu_text **elements, size_t *count);

/**
 * Who gave a value its present content: a file and line, an option; empty for the default and for
 * what the program assigned. Valid until the next call with this context.
 */
MILIEU_CHECKED milieu_result milieu_context_origin(milieu_context *context, uint32_t value,
    milieu_text *origin);

/** Whether a value is the default of its specification: nobody has given it another. */
MILIEU_CHECKED milieu_result milieu_context_is_default(const milieu_context *context,
    uint32_t value, bool *is_default);

/** The role that the context was given; empty where it has none. Valid until the context is freed. */
MILIEU_CHECKED milieu_result milieu_context_role(const milieu_context *context,
    milieu_text *role);

/** The value of a layer that is active here; empty where it is not. Valid until the next call with this context. */
MILIEU_CHECKED milieu_result milieu_context_layer(milieu_context *context, milieu_text id,
    milieu_text *value);

/** Every layer that is active here. Valid until the next call with this context. */
MILIEU_CHECKED milieu_result milieu_context_layers(milieu_context *context,
    const milieu_layer **layers, size_t *count);

/** The number of this context, unique in its process, never given again. */
MILIEU_CHECKED milieu_result milieu_context_identity(const milieu_context *context,
    uint64_t *identity);

/* ---------------------------------------------------------------- layers on their way */

/** The layers that were entered in a context, for another one to enter. */
typedef struct milieu_captured milieu_captured;

/** Takes the layers entered in a context, to be handed to another thread. */
MILIEU_CHECKED milieu_result milieu_captured_new(const milieu_context *context,
    milieu_captured **captured);

/** Gives captured layers back; contexts that entered them keep them. */
void milieu_captured_free(milieu_captured *captured);

/** Enters captured layers. */
MILIEU_CHECKED milieu_result milieu_context_enter_captured(milieu_context *context,
    const milieu_captured *captured, milieu_frame *frame);

/** Which member of a milieu_any_layer counts. */
typedef enum milieu_layer_kind {
    MILIEU_FIXED = 1,     /**< `layer` */
    MILIEU_FOLLOWING = 2, /**< `value`: a contextual value as a layer, which follows it */
    MILIEU_CAPTURED = 3   /**< `captured`: all of them */
} milieu_layer_kind;

/** A layer of any kind. What its kind does not name may be anything. */
typedef struct milieu_any_layer {
    /** A milieu_layer_kind. */
    uint32_t kind;
    uint32_t value;
    milieu_layer layer;
    const milieu_captured *captured;
} milieu_any_layer;

/**
 * As milieu_context_enter_all, of layers of any kind. MILIEU_INVALID: there is no such kind.
 */
MILIEU_CHECKED milieu_result milieu_context_enter_mixed(milieu_context *context,
    const milieu_any_layer *layers, size_t count, milieu_frame *frame);

/* ---------------------------------------------------------------- callbacks */

/* A callback returns MILIEU_OK, or anything else to say that it failed. It must not unwind into the
 * library. `user` is what was handed over with it. `destroy`, which may be null, is called with it
 * once, when the callback is never called again: also where handing it over has failed. */

/** Lets go of what was handed over with a callback. */
typedef void (*milieu_destroy)(void *user);

/**
 * For a callback that fails: `return milieu_fail(milieu_text_of("the bus is off"));`. Keeps `why`
 * as milieu_message() and returns MILIEU_CALLBACK, or MILIEU_NOT_UTF8.
 */
milieu_result milieu_fail(milieu_text why);

/**
 * As milieu_fail, of a callback that has failed with something: an exception of another language
 * for instance. If the call that ran the callback ends by it, as MILIEU_CALLBACK, it is there for
 * whoever has made the call: see milieu_failed_with. Otherwise `destroy` lets go of it. Bytes of
 * `why` that are not UTF-8 are replaced.
 *
 * It is told of actions, thread-based layers and functions that decide conflicts; of callbacks of
 * streams only `why` is.
 */
milieu_result milieu_fail_with(milieu_text why, void *what, milieu_destroy destroy);

/**
 * What the last call of this thread that did not return MILIEU_OK has failed with: the `what` of
 * milieu_fail_with, if it came with the same `destroy`, which says what it is. The caller has it
 * from then on. Null: there is none, or it was handed out before. If nobody asks, `destroy` lets go
 * of it when the next call of this thread fails, or the thread ends.
 */
void *milieu_failed_with(milieu_destroy destroy);

/* ---------------------------------------------------------------- watching the files */

/** Watches the files of a coordinator. */
typedef struct milieu_watch milieu_watch;

/** What has come from the files; there may be more kinds. */
typedef enum milieu_news_kind {
    /** Keys have other values: `changes`. All of one commit come together. */
    MILIEU_CHANGED = 1,
    /** Values break the rules of this program's environments; what was in force stays in force. */
    MILIEU_KEYS_REFUSED = 2,
    /** A file cannot be read or understood; the keys that it had stay in force. */
    MILIEU_FILE_INVALID = 3,
    /** A file that was invalid is so no longer; the message is its path. */
    MILIEU_FILE_VALID = 4,
    /** A file can no longer be watched as it should. */
    MILIEU_FILE_UNWATCHED = 5
} milieu_news_kind;

/** A key with another value in force than before. */
typedef struct milieu_change {
    milieu_text name;
    /** What was in force; its `bytes` are null where nothing was. */
    milieu_text before;
    /** What is; its `bytes` are null where nothing is. */
    milieu_text after;
    /** Who has said so: a file and line. */
    milieu_text origin;
    /** The specification calls the key a secret: show it to nobody. */
    bool secret;
} milieu_change;

/** What a milieu_tell is told; all of it is valid during the call. */
typedef struct milieu_news {
    /** A milieu_news_kind. */
    uint32_t kind;
    const milieu_change *changes;
    size_t count;
    /** For people: why, where, and what to do about it; empty for MILIEU_CHANGED. */
    milieu_text message;
} milieu_news;

/** Is told what has come, after it is published, in a thread of the library, while nothing is locked. */
typedef void (*milieu_tell)(void *user, const milieu_news *news);

/**
 * Takes over from now on what others write into the files: other programs, `milieu key`, people
 * with editors. Contexts see it at their next synchronization, and those that wait are woken. What
 * this program has assigned and not yet persisted stays in force. `tell` may be null. A program
 * with a loop of its own over descriptors lets `tell` write to one of them.
 *
 * MILIEU_FILES: a file cannot be read or watched.
 */
MILIEU_CHECKED milieu_result milieu_watch_new(const milieu_coordinator *coordinator,
    milieu_tell tell, void *user, milieu_destroy destroy, milieu_watch **watch);

/** Ends watching, and waits for `tell` if it runs in another thread. `tell` may free its own watch. */
void milieu_watch_free(milieu_watch *watch);

#ifdef __cplusplus
}
#endif

/* It needs what stands above. */
#include <milieu/actions.h>

#endif
