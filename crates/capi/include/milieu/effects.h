/*
 * What flows do to layers, contextual values and names, what streams remember, and pictures of them.
 * Included by streams.h, which says what holds of all of it.
 */
/* It includes this in its place, wherever a program begins. */
#include <milieu/streams.h>

#ifndef MILIEU_EFFECTS_H
#define MILIEU_EFFECTS_H

#include <milieu/operators.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- effects */

/** What holds until it is given back: a flow under a name, a flow that acts, what a file says. */
typedef struct milieu_effect milieu_effect;

/**
 * Brings about what a file of subscriptions says, whose text this is: flows are published under
 * names, switch layers and assign contextual values. `file` is its name, for messages; how it ends
 * says the language: `.flow`, `.toml` or `.xml`.
 *
 * MILIEU_WRONG_FLOW: the message shows the places; nothing of it holds.
 */
MILIEU_CHECKED milieu_result milieu_effect_apply(const milieu_streams *streams, milieu_text file,
    milieu_text text, milieu_effect **effect);

/**
 * Subscribes as an applied file says: to the subscription of this name, or the first one where the
 * name is empty. MILIEU_NO_SUCH: the file has none such.
 */
MILIEU_CHECKED milieu_result milieu_effect_subscribe(const milieu_effect *effect,
    milieu_text name, milieu_subscription **subscription);

/** Publishes what a flow makes under a name. MILIEU_WRONG_NAME: something stands there. */
MILIEU_CHECKED milieu_result milieu_effect_publish(const milieu_streams *streams,
    milieu_text flow, milieu_text name, milieu_effect **effect);

/** Lets a name stand for others, which may have placeholders and wildcards. */
MILIEU_CHECKED milieu_result milieu_effect_bind(const milieu_streams *streams, milieu_text name,
    const milieu_text *targets, size_t count, milieu_effect **effect);

/** Lets a name that milieu_effect_bind binds stand for others, in one step. */
MILIEU_CHECKED milieu_result milieu_effect_rebind(const milieu_effect *effect,
    const milieu_text *targets, size_t count);

/** Lets a name stand for the names that each event of a flow says, until the next. */
MILIEU_CHECKED milieu_result milieu_effect_bind_flow(const milieu_streams *streams,
    milieu_text flow, milieu_text name, milieu_effect **effect);

/** Something that is to be known of a service: `floor` is `3`. */
typedef struct milieu_attribute {
    milieu_text name;
    milieu_text value;
} milieu_attribute;

/** Something that is reached by other means: a printer, a display. Begin with MILIEU_SERVICE. */
typedef struct milieu_service {
    /** MILIEU_ABI */
    uint32_t abi;
    /** The number of `attributes`, by which queries find it: see docs/names.md. */
    uint32_t attribute_count;
    const milieu_attribute *attributes;
    /** Where it is reached: `ipp://printer-23/`. */
    milieu_text endpoint;
    /** When its lease ends, and it goes unless it was renewed; INT64_MAX is never. */
    int64_t until_ns;
} milieu_service;

/** A service without anything. */
#define MILIEU_SERVICE { MILIEU_ABI, 0, NULL, { NULL, 0 }, INT64_MAX }

/** Puts a service at a name. MILIEU_WRONG_NAME: it is no name, or has a publisher. */
MILIEU_CHECKED milieu_result milieu_effect_serve(const milieu_streams *streams, milieu_text name,
    const milieu_service *service, milieu_effect **effect);

/** Renews the lease of a service. MILIEU_WRONG_NAME: it has ended. */
MILIEU_CHECKED milieu_result milieu_effect_renew(const milieu_effect *effect, int64_t until_ns);

/** What has become of a name. */
typedef enum milieu_change_of_name {
    MILIEU_JOINED = 0,  /**< Something stands there now. */
    MILIEU_LEFT = 1,    /**< Nothing stands there any more that is meant. */
    MILIEU_ALTERED = 2  /**< Something else stands there, or it has other attributes. */
} milieu_change_of_name;

/** What stands at a name. */
typedef enum milieu_name_kind {
    MILIEU_NAME_STREAM = 0,
    MILIEU_NAME_SERVICE = 1,
    MILIEU_NAME_BINDING = 2
} milieu_name_kind;

/** A name that has changed. What is not said of it is empty. */
typedef struct milieu_name_change {
    milieu_text name;
    /** A milieu_change_of_name. */
    uint32_t change;
    /** A milieu_name_kind; of a name that has left it says nothing. */
    uint32_t kind;
    /** Of a service: where it is reached, and what is to be known of it. */
    milieu_text endpoint;
    const milieu_attribute *attributes;
    size_t attribute_count;
    /** Of a binding: what the name stands for. */
    const milieu_text *targets;
    size_t target_count;
} milieu_name_change;

/** Names have changed, which are lent; at first they are all that there are. If it fails, that is counted. */
typedef milieu_result (*milieu_name_watch)(void *user, const milieu_name_change *changes,
    size_t count);

/**
 * Watches the names of a query, which may have wildcards and ask for attributes. The callback runs
 * as those of listeners do. MILIEU_WRONG_NAME: it is no query.
 */
MILIEU_CHECKED milieu_result milieu_effect_watch(const milieu_streams *streams, milieu_text query,
    milieu_name_watch watch, void *user, milieu_destroy destroy, milieu_effect **effect);

/**
 * Each event of a flow activates a layer for everybody, with the value that the callback gives, or
 * deactivates it where it gives none. With `lasting_ns` above 0 the layer ends so long after the
 * last event that activated it. If the callback fails, nothing is switched.
 *
 * MILIEU_WRONG_NAME: a name that the flow reads depends on the layer.
 */
MILIEU_CHECKED milieu_result milieu_effect_activate(const milieu_streams *streams,
    milieu_text flow, milieu_text layer, int64_t lasting_ns, milieu_compute value, void *user,
    milieu_destroy destroy, milieu_effect **effect);

/**
 * Each event of a flow assigns what the callback gives to a contextual value, by its name, in which
 * placeholders become the layers that are active globally then. Where it gives nothing, or fails,
 * the value stays. It is not persisted.
 */
MILIEU_CHECKED milieu_result milieu_effect_assign(const milieu_streams *streams, milieu_text flow,
    milieu_text name, milieu_compute value, void *user, milieu_destroy destroy,
    milieu_effect **effect);

/**
 * Keeps what operators remember in a file, written so often, and once more when this is freed.
 * They go on from it after a restart. It comes before the subscriptions.
 */
MILIEU_CHECKED milieu_result milieu_effect_keep(const milieu_streams *streams, milieu_text path,
    int64_t every_ns, milieu_effect **effect);

/** Writes that file now. */
MILIEU_CHECKED milieu_result milieu_effect_save(const milieu_effect *effect);

/** Lets other tools of the same user look at the streams and subscribe: `milieu stream`. */
MILIEU_CHECKED milieu_result milieu_effect_control(const milieu_streams *streams,
    milieu_effect **effect);

/**
 * Where the socket is that milieu_effect_control has made, as the system has the path; valid until
 * it is freed.
 */
MILIEU_CHECKED milieu_result milieu_effect_path(const milieu_effect *effect, milieu_text *path);

/**
 * How many events could not act, and why the last of them could not: a callback failed, an action
 * refused a switch, a value breaks a rule. An action or a thread-based layer that failed counts as
 * well, though the switch stands. The flow goes on with the next event. `last` may be null, and is
 * valid until the next call with this effect.
 */
MILIEU_CHECKED milieu_result milieu_effect_failures(const milieu_effect *effect, uint64_t *count,
    milieu_text *last);

/** Ends what holds. */
void milieu_effect_free(milieu_effect *effect);

/* ---------------------------------------------------------------- remembering */

/** What operators remember, as bytes: what milieu_effect_keep writes, for programs that keep it elsewhere. */
typedef struct milieu_memory milieu_memory;

/** What operators remember now. MILIEU_BUSY: within a callback. */
MILIEU_CHECKED milieu_result milieu_memory_new(const milieu_streams *streams,
    milieu_memory **memory);

/** The bytes, which may be any; valid until it is freed. */
MILIEU_CHECKED milieu_result milieu_memory_bytes(const milieu_memory *memory,
    milieu_text *bytes);

/** Gives it back. */
void milieu_memory_free(milieu_memory *memory);

/**
 * Lets operators go on from bytes of an earlier life of the program: each from its state when an
 * equal flow is first subscribed to, so this comes before the subscriptions.
 *
 * MILIEU_INVALID: the bytes are no such ones; nothing has changed. MILIEU_BUSY: within a callback.
 */
MILIEU_CHECKED milieu_result milieu_memory_restore(const milieu_streams *streams,
    milieu_text bytes);

/* ---------------------------------------------------------------- looking */

/** What was seen, as JSON. */
typedef struct milieu_picture milieu_picture;

/**
 * The operator graph that runs: nodes with their books, edges and subscribers with their rates and
 * delays, as `milieu stream graph --json` has them. MILIEU_BUSY: within a callback.
 */
MILIEU_CHECKED milieu_result milieu_picture_of_graph(const milieu_streams *streams,
    milieu_picture **picture);

/** What stands at the names of a query: a name, or one with wildcards. MILIEU_WRONG_NAME. */
MILIEU_CHECKED milieu_result milieu_picture_of_names(const milieu_streams *streams,
    milieu_text query, milieu_picture **picture);

/**
 * What a file of milieu_effect_keep had and no operator has got, a list of objects: the `flow`,
 * `why` (it waits for its flow, runs already, is unknown, was refused, or was not kept), and a
 * `text` that says more. MILIEU_INVALID: this effect keeps no file.
 */
MILIEU_CHECKED milieu_result milieu_picture_of_losses(const milieu_effect *effect,
    milieu_picture **picture);

/** The same of what milieu_memory_restore was given. */
MILIEU_CHECKED milieu_result milieu_picture_of_not_restored(const milieu_streams *streams,
    milieu_picture **picture);

/** What was seen; valid until the picture is freed. */
MILIEU_CHECKED milieu_result milieu_picture_json(const milieu_picture *picture,
    milieu_text *text);

/** Gives a picture back. */
void milieu_picture_free(milieu_picture *picture);

#ifdef __cplusplus
}
#endif

#endif
