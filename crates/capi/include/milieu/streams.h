/*
 * Milieu: streams of events. The C interface, beside contexts in milieu.h.
 *
 *   milieu_streams        the streams of a coordinator
 *   milieu_event_type     a type of events: a plain struct that the program describes
 *   milieu_publisher      publishes events under a name
 *   milieu_source         looks at a part of the world when it is polled
 *   milieu_subscription   a flow's events, in a queue
 *   milieu_listener       a flow's events, by a callback
 *   milieu_event          what happened; it never changes
 *   milieu_operator       an operator of the program, which flows name
 *   milieu_effect         a flow that switches layers or assigns values, a file of subscriptions,
 *                         what stands at a name or is told of names
 *
 *   struct weather { double temperature; milieu_text room; };
 *   static const milieu_event_field fields[] = {
 *       MILIEU_EVENT_FIELD(struct weather, temperature),
 *       MILIEU_EVENT_FIELD(struct weather, room),
 *   };
 *   static const milieu_event_layout layout = MILIEU_EVENT_LAYOUT(struct weather, fields);
 *
 *   milieu_streams_new(coordinator, NULL, &streams);
 *   milieu_event_type_new(&layout, &type);
 *   milieu_publisher_new(streams, milieu_text_of("/weather"), type, false, &publisher);
 *   milieu_subscription_new(streams, milieu_text_of("/weather | filter temperature > 32"), NULL,
 *       &subscription);
 *   milieu_publisher_publish(publisher, &(struct weather){ 33.5, milieu_text_of("005") }, NULL,
 *       NULL);
 *   milieu_subscription_next(subscription, 0, &event);
 *   milieu_event_body(event, type, (const void **)&weather);
 *
 * What holds beside what milieu.h says:
 *
 * - Everything here keeps the coordinator, and may outlive its handle and that of the streams.
 * - A milieu_streams, a milieu_publisher and a milieu_event_type may be used by several threads at
 *   once; everything else by one at a time.
 * - An event that is handed to a callback, or taken from a subscription, is lent: the first is
 *   valid during the callback, the second until the next call with its subscription. What it
 *   points to, a body or a text, is valid for as long. milieu_event_keep makes it last.
 * - Callbacks come one at a time where they belong to one handle, and from any thread that
 *   publishes. They must neither block nor take long: the streams wait for them. What would wait
 *   for the streams in them is MILIEU_BUSY. They may publish, subscribe, and free anything, the
 *   subscription that they belong to included.
 * - When milieu_listener_free or milieu_source_free has returned, the callback runs no more, and
 *   `destroy` was called. Within a callback of streams nobody waits: there it is called later.
 * - Times are nanoseconds since 1970, distances in time nanoseconds.
 */
#ifndef MILIEU_STREAMS_H
#define MILIEU_STREAMS_H

#include <milieu.h>
#include <milieu/events.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- streams */

/** The streams of a coordinator. */
typedef struct milieu_streams milieu_streams;

/** How streams are opened. Begin with MILIEU_STREAMS_OPTIONS. */
typedef struct milieu_streams_options {
    /** MILIEU_ABI */
    uint32_t abi;
    /** Whether time passes only by milieu_streams_pass, for tests. */
    bool virtual_time;
    /** What time it is at first, then. */
    int64_t now_ns;
} milieu_streams_options;

/** Options that say nothing. */
#define MILIEU_STREAMS_OPTIONS { MILIEU_ABI, false, 0 }

/**
 * The streams of a coordinator; each handle of a coordinator is for the same ones. `options` may
 * be null.
 *
 * MILIEU_LATE: the streams have another clock, and are in use already.
 */
MILIEU_CHECKED milieu_result milieu_streams_new(const milieu_coordinator *coordinator,
    const milieu_streams_options *options, milieu_streams **streams);

/** Gives streams back. What came of them goes on. */
void milieu_streams_free(milieu_streams *streams);

/** What time it is for the streams. */
MILIEU_CHECKED milieu_result milieu_streams_now(const milieu_streams *streams, int64_t *now_ns);

/**
 * Starts the thread that wakes operators when time passes, such as those with windows; a source
 * starts it too. In virtual time nothing has to be started.
 */
MILIEU_CHECKED milieu_result milieu_streams_drive(const milieu_streams *streams);

/**
 * Lets virtual time pass until then: sources are polled, and operators woken, at each moment that
 * they have asked for. MILIEU_INVALID: it is no virtual time.
 */
MILIEU_CHECKED milieu_result milieu_streams_pass(const milieu_streams *streams, int64_t until_ns);

/**
 * Waits until all sources were polled once and their events published, but no longer than this, a
 * negative time for ever; `polled` says whether it is so. MILIEU_BUSY: within a callback.
 */
MILIEU_CHECKED milieu_result milieu_streams_wait_for_sources(const milieu_streams *streams,
    int64_t timeout_ns, bool *polled);

/**
 * Lets names with the placeholder of a layer follow that. Flows and bindings from code see to it
 * themselves; this is for names that others bind.
 */
MILIEU_CHECKED milieu_result milieu_streams_follow(const milieu_streams *streams,
    milieu_text layer);

/* ---------------------------------------------------------------- publishing */

/** Publishes events of a type under a name, which is its own. */
typedef struct milieu_publisher milieu_publisher;

/**
 * Takes a name for events of a type. With `retains`, late subscribers get the last event at once:
 * for what is true until it changes.
 *
 * MILIEU_WRONG_NAME: it is no name, or has a publisher.
 */
MILIEU_CHECKED milieu_result milieu_publisher_new(const milieu_streams *streams, milieu_text name,
    const milieu_event_type *type, bool retains, milieu_publisher **publisher);

/** Gives the name back; subscriptions to it wait for the next publisher. */
void milieu_publisher_free(milieu_publisher *publisher);

/**
 * Publishes a copy of a struct, and of what it points to. `quality` may be null; `sequence`, which
 * may be null, gets the number of the event.
 *
 * MILIEU_INVALID, MILIEU_NOT_UTF8: a field has no value that its kind has. MILIEU_REFUSED.
 */
milieu_result milieu_publisher_publish(const milieu_publisher *publisher, const void *body,
    const milieu_quality *quality, uint64_t *sequence);

/* ---------------------------------------------------------------- subscribing */

/** What happens to an event that finds a queue full. Whatever is lost is counted. */
typedef enum milieu_overflow {
    /** The event that has waited longest makes room. */
    MILIEU_DROP_OLDEST = 0,
    /** The event that has come is dropped. */
    MILIEU_DROP_NEWEST = 1,
    /** It is not accepted: its publisher is told by MILIEU_REFUSED. */
    MILIEU_REFUSE = 2,
    /** The subscription ends, after what is in the queue. */
    MILIEU_CLOSE = 3
} milieu_overflow;

/** What arrives when events come faster than they are taken. Begin with MILIEU_DELIVERY. */
typedef struct milieu_delivery {
    /** MILIEU_ABI */
    uint32_t abi;
    /** How many events may wait; 0: the newest one only. */
    uint32_t capacity;
    /** A milieu_overflow. */
    uint32_t overflow;
} milieu_delivery;

/** A queue of 1024 that drops its oldest. */
#define MILIEU_DELIVERY { MILIEU_ABI, 1024, MILIEU_DROP_OLDEST }

/** What has become of the events of a subscription. */
typedef struct milieu_tally {
    uint64_t taken;
    uint64_t dropped;
    uint64_t waiting;
} milieu_tally;

/** A subscription whose events wait in a queue. */
typedef struct milieu_subscription milieu_subscription;

/**
 * Subscribes to a flow: a name, or a pipeline such as
 * `/weather/temperature | filter value > 32 | aggregate mean 10m`. `delivery` may be null, which is
 * MILIEU_DELIVERY.
 *
 * MILIEU_WRONG_FLOW: the message shows the text and where it is wrong.
 */
MILIEU_CHECKED milieu_result milieu_subscription_new(const milieu_streams *streams,
    milieu_text flow, const milieu_delivery *delivery, milieu_subscription **subscription);

/** Ends a subscription. MILIEU_BUSY: another thread takes from it, and goes on. */
milieu_result milieu_subscription_free(milieu_subscription *subscription);

/**
 * Takes the next event, or waits for it for so long: 0 not at all, a negative time for ever. Null
 * where none has come. The event is valid until the next call with this subscription.
 *
 * MILIEU_ENDED: no more will come. MILIEU_BUSY: a callback of streams cannot wait.
 */
MILIEU_CHECKED milieu_result milieu_subscription_next(milieu_subscription *subscription,
    int64_t timeout_ns, const milieu_event **event);

/**
 * A descriptor for poll(2), which belongs to the subscription: readable while there may be an
 * event. Whoever sees it readable takes events without waiting until there is none.
 */
MILIEU_CHECKED milieu_result milieu_subscription_descriptor(milieu_subscription *subscription,
    int *descriptor);

/** What has become of the events so far. */
MILIEU_CHECKED milieu_result milieu_subscription_tally(const milieu_subscription *subscription,
    milieu_tally *tally);

/** How many events were dropped for this reason, one of docs/operators.md, such as `overflow`. */
MILIEU_CHECKED milieu_result milieu_subscription_dropped(
    const milieu_subscription *subscription, milieu_text why, uint64_t *count);

/** A subscription whose events go to a callback. */
typedef struct milieu_listener milieu_listener;

/** An event has come; it is lent. If this fails, that is counted. */
typedef milieu_result (*milieu_receive)(void *user, const milieu_event *event);

/** Subscribes to a flow by a callback, which runs in the thread that publishes. */
MILIEU_CHECKED milieu_result milieu_listener_new(const milieu_streams *streams, milieu_text flow,
    milieu_receive receive, void *user, milieu_destroy destroy, milieu_listener **listener);

/** Ends a subscription. */
void milieu_listener_free(milieu_listener *listener);

/**
 * How often the callback has failed, and what it said last, by milieu_fail; `last` may be null, and
 * is valid until the next call with this listener.
 */
MILIEU_CHECKED milieu_result milieu_listener_failures(const milieu_listener *listener,
    uint64_t *count, milieu_text *last);

/* ---------------------------------------------------------------- sources */

/** Where a source puts what it has seen; valid during the callback. */
typedef struct milieu_feed milieu_feed;

/**
 * Looks at a part of the world: publishes what there is by now, and says what it waits for, by
 * milieu_feed_wait, milieu_feed_wait_readable or milieu_feed_end. It never blocks: all sources have
 * one thread. It may be polled earlier than it asked for.
 *
 * If it fails it is polled no more, and its status says why.
 */
typedef milieu_result (*milieu_poll)(void *user, milieu_feed *feed);

/** A source that is being polled. */
typedef struct milieu_source milieu_source;

/** How a source is. */
typedef enum milieu_status {
    /** It has not looked yet. */
    MILIEU_STARTING = 0,
    /** It sees what it looks at. */
    MILIEU_WORKING = 1,
    /** It sees nothing, or not all that it should. */
    MILIEU_FAILING = 2,
    /** It has said all that it had to say. */
    MILIEU_OVER = 3
} milieu_status;

/**
 * Polls a source and publishes under this name what it sees. Late subscribers get its last event
 * at once.
 *
 * MILIEU_WRONG_NAME: it is no name, or has a publisher. MILIEU_SYSTEM.
 */
MILIEU_CHECKED milieu_result milieu_source_new(const milieu_streams *streams, milieu_text name,
    milieu_poll poll, void *user, milieu_destroy destroy, milieu_source **source);

/** Takes a source out; its name is free again. */
void milieu_source_free(milieu_source *source);

/**
 * How a source is, a milieu_status, and why; `why` may be null, and is valid until the next call
 * with this source.
 */
MILIEU_CHECKED milieu_result milieu_source_status(const milieu_source *source, uint32_t *status,
    milieu_text *why);

/** What time it is. */
MILIEU_CHECKED milieu_result milieu_feed_now(const milieu_feed *feed, int64_t *now_ns);

/** Publishes a copy of a struct, as milieu_publisher_publish does. */
milieu_result milieu_feed_publish(milieu_feed *feed, const milieu_event_type *type,
    const void *body, const milieu_quality *quality);

/** Says that the source sees what it looks at. */
milieu_result milieu_feed_working(milieu_feed *feed);

/** Says why the source sees nothing: what is wrong, where, and how it is mended. */
milieu_result milieu_feed_failing(milieu_feed *feed, milieu_text why);

/** Wants to be polled at this time, or when its descriptor is readable if that comes first. */
milieu_result milieu_feed_wait(milieu_feed *feed, int64_t until_ns);

/** Wants to be polled when its descriptor is readable. MILIEU_INVALID: it has none. */
milieu_result milieu_feed_wait_readable(milieu_feed *feed);

/**
 * Has a descriptor watched, from now on and until another one is named; a negative one is none. It
 * is duplicated: the program may close its own. MILIEU_INVALID: it is not open.
 */
milieu_result milieu_feed_descriptor(milieu_feed *feed, int descriptor);

/** Says that nothing more will come: it is not polled again. */
milieu_result milieu_feed_end(milieu_feed *feed);

/* ---------------------------------------------------------------- functions */

/** What a function has to say; valid during the callback. */
typedef struct milieu_answer milieu_answer;

/**
 * Computes something of an event, which is lent, and says it by milieu_answer_give. It may be called
 * by several threads at once.
 */
typedef milieu_result (*milieu_compute)(void *user, const milieu_event *event,
    milieu_answer *answer);

/** Says what was computed; texts are copied. MILIEU_JSON cannot be said. */
milieu_result milieu_answer_give(milieu_answer *answer, milieu_datum datum);

/** Nothing. */
static inline milieu_datum milieu_datum_nothing(void) {
    milieu_datum datum;
    memset(&datum, 0, sizeof datum);
    return datum;
}
/** True or false. */
static inline milieu_datum milieu_datum_bool(bool boolean) {
    milieu_datum datum = milieu_datum_nothing();
    datum.kind = MILIEU_BOOL;
    datum.content.boolean = boolean;
    return datum;
}
/** A whole number. */
static inline milieu_datum milieu_datum_whole(int64_t whole) {
    milieu_datum datum = milieu_datum_nothing();
    datum.kind = MILIEU_I64;
    datum.content.whole = whole;
    return datum;
}
/** A number. */
static inline milieu_datum milieu_datum_number(double number) {
    milieu_datum datum = milieu_datum_nothing();
    datum.kind = MILIEU_F64;
    datum.content.number = number;
    return datum;
}
/** A text. */
static inline milieu_datum milieu_datum_text(milieu_text text) {
    milieu_datum datum = milieu_datum_nothing();
    datum.kind = MILIEU_TEXT;
    datum.content.text = text;
    return datum;
}

/**
 * Registers a function that flows name by `$name`, as in `filter $hot`: a condition, a number, a
 * key. An event with which it fails is dropped as `fault`, and the picture of the graph shows with
 * the operator what it said. With `blocks`, it may take long, and runs
 * where it holds up nothing else. Flows with functions of one name run as one.
 *
 * MILIEU_LATE: streams are in use already; it comes before the first milieu_streams_new.
 */
MILIEU_CHECKED milieu_result milieu_function_define(const milieu_coordinator *coordinator,
    milieu_text name, milieu_compute compute, bool blocks, void *user, milieu_destroy destroy);

/** Where functions and operators put what they publish; valid during the callback. */
typedef struct milieu_output milieu_output;

/**
 * Makes other events of one, which is lent, by milieu_output_publish; or lets it go on or drops it,
 * as a milieu_step does. It may be called by several threads at once.
 */
typedef milieu_result (*milieu_transform)(void *user, const milieu_event *event,
    milieu_output *output);

/**
 * Registers a function that `transform $name` calls. It remembers nothing, so that it can neither
 * hold events nor be woken. As milieu_function_define in all else.
 */
MILIEU_CHECKED milieu_result milieu_transform_define(const milieu_coordinator *coordinator,
    milieu_text name, milieu_transform transform, bool blocks, void *user,
    milieu_destroy destroy);

/* ---------------------------------------------------------------- operators */

/** What an operator is made with; valid during the callback. */
typedef struct milieu_arguments milieu_arguments;

/** Where an operator puts what it remembers; valid during the callback. */
typedef struct milieu_snapshot milieu_snapshot;

/** Makes the state of an operator, for a flow that names it; if it fails, milieu_fail says why. */
typedef milieu_result (*milieu_make)(void *user, const milieu_arguments *arguments,
    void **state);

/**
 * An event has come at an input, counted from 0; it is lent. What becomes of it is said by
 * milieu_output_pass, milieu_output_drop or milieu_output_hold; otherwise it went into what was
 * published, or into the state. If this fails the event is dropped as `fault`.
 */
typedef milieu_result (*milieu_step)(void *state, uint32_t input, const milieu_event *event,
    milieu_output *output);

/** The time has come that was asked for by milieu_output_wake_at. */
typedef milieu_result (*milieu_wake)(void *state, milieu_output *output);

/** Says by milieu_snapshot_put what has to be remembered across a restart. */
typedef milieu_result (*milieu_save)(void *state, milieu_snapshot *snapshot);

/** Goes on from what milieu_save has said, bytes that belong to the library. */
typedef milieu_result (*milieu_restore)(void *state, milieu_text bytes);

/** A parameter of an operator. */
typedef struct milieu_parameter {
    const char *name;
    /**
     * MILIEU_BOOL, MILIEU_I64, MILIEU_F64, MILIEU_SPAN, MILIEU_TEXT, MILIEU_EXPRESSION, or
     * MILIEU_ENUM with `choices`.
     */
    uint32_t kind;
    uint32_t choice_count;
    const char *const *choices;
    /** What holds where it is not given, as flows write it: `10m`. Null: it has to be given. Empty: there is none. */
    const char *otherwise;
    /** What it means, in one sentence. */
    const char *summary;
    /** Whether its name may be left out, in the order of the parameters. */
    bool positional;
} milieu_parameter;

/** What an operator is. */
enum {
    /** It may take long over an event, and runs where it holds up nothing else. */
    MILIEU_OPERATOR_BLOCKS = 1,
    /** Its last event says how things are until the next: late subscribers to its name get it. */
    MILIEU_OPERATOR_RETAINS = 2,
    /** It remembers nothing from event to event, so that late subscribers may share it at once. */
    MILIEU_OPERATOR_STATELESS = 4
};

/** What a program says of an operator. The library keeps a copy. Callbacks that are null are not there. */
typedef struct milieu_operator {
    /** MILIEU_ABI */
    uint32_t abi;
    /** How many flows it reads; 0: one or more, whose order does not matter. */
    uint32_t inputs;
    /** MILIEU_OPERATOR_*, or-ed. */
    uint32_t flags;
    uint32_t parameter_count;
    /** What flows call it: a word. That of an operator of Milieu takes its place. */
    const char *name;
    /** What it does, in one sentence. */
    const char *summary;
    const milieu_parameter *parameters;
    /** Makes the state; without it, that is null. */
    milieu_make make;
    /** It has to be there. */
    milieu_step step;
    milieu_wake wake;
    /**
     * Without it, an operator that is not stateless is shared by those subscribers only who came
     * before its first event, and begins anew after a restart.
     */
    milieu_save save;
    milieu_restore restore;
    /** Lets go of a state. */
    milieu_destroy free;
} milieu_operator;

/**
 * Defines an operator, which flows and files of subscriptions name like those of Milieu, and share
 * where parameters and inputs are equal. One state is used by one thread at a time.
 *
 * MILIEU_LATE: streams are in use already; it comes before the first milieu_streams_new.
 */
MILIEU_CHECKED milieu_result milieu_operator_define(const milieu_coordinator *coordinator,
    const milieu_operator *definition, void *user, milieu_destroy destroy);

/** A parameter: as it was given, or its default; 0 where there is none. Valid during the callback. */
MILIEU_CHECKED milieu_result milieu_arguments_get(const milieu_arguments *arguments,
    milieu_text name, milieu_datum *datum);

/** An expression of a flow, or `$name` of a function, which an operator computes of events. */
typedef struct milieu_expression milieu_expression;

/**
 * A parameter that is a MILIEU_EXPRESSION, as it was given or by default; null where there is none.
 * It belongs to the operator, which gives it back with its state.
 *
 * MILIEU_NO_SUCH: there is no such parameter. MILIEU_UNFIT: no function has this name.
 */
MILIEU_CHECKED milieu_result milieu_arguments_expression(const milieu_arguments *arguments,
    milieu_text name, milieu_expression **expression);

/**
 * What it makes of an event; valid until the next call with this expression.
 *
 * MILIEU_UNFIT: it cannot be computed. A milieu_step that returns this drops the event, and the
 * message is shown with the operator.
 */
MILIEU_CHECKED milieu_result milieu_expression_value(milieu_expression *expression,
    const milieu_event *event, milieu_datum *datum);

/** Gives an expression back. */
void milieu_expression_free(milieu_expression *expression);

/** What time it is. */
MILIEU_CHECKED milieu_result milieu_output_now(const milieu_output *output, int64_t *now_ns);

/**
 * Publishes a copy of a struct. Without a `quality` it has the time of the event that has come, and
 * what is wrong with its sensor; MILIEU_NOW is the time of that event too, or now where there is
 * none.
 */
milieu_result milieu_output_publish(milieu_output *output, const milieu_event_type *type,
    const void *body, const milieu_quality *quality);

/** The event goes on as it is. */
milieu_result milieu_output_pass(milieu_output *output);

/** The event goes no further, for one of the reasons in docs/operators.md, such as `late`; empty is `filtered`. */
milieu_result milieu_output_drop(milieu_output *output, milieu_text why);

/** The operator keeps the event, and settles its fate later. It has kept it by milieu_event_keep. */
milieu_result milieu_output_hold(milieu_output *output);

/** Sends an event on that was held; it is still to be freed. */
milieu_result milieu_output_pass_held(milieu_output *output, const milieu_event *kept);

/** Settles held events: so many have gone into what was published, so many go no further. */
milieu_result milieu_output_settle_held(milieu_output *output, uint32_t used, uint32_t dropped,
    milieu_text why);

/** Asks to be woken at this time, and not at the one that was asked for before; INT64_MAX is never. */
milieu_result milieu_output_wake_at(milieu_output *output, int64_t at_ns);

/** Adds to what is remembered. */
milieu_result milieu_snapshot_put(milieu_snapshot *snapshot, const void *bytes, size_t length);

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
 * refused a switch, a value breaks a rule. `last` may be null, and is valid until the next call with
 * this effect.
 */
MILIEU_CHECKED milieu_result milieu_effect_failures(const milieu_effect *effect, uint64_t *count,
    milieu_text *last);

/** Ends what holds. */
void milieu_effect_free(milieu_effect *effect);

/* ---------------------------------------------------------------- readers */

/** Subscribes under the layers of a context, those that only it has entered included. */
typedef struct milieu_reader milieu_reader;

/** A reader under the layers that are active in a context now. */
MILIEU_CHECKED milieu_result milieu_reader_new(const milieu_streams *streams,
    const milieu_context *context, milieu_reader **reader);

/** Gives a reader back; its subscriptions go on, under the layers that are active globally. */
void milieu_reader_free(milieu_reader *reader);

/** The layers of the context are others now: subscriptions to names that depend on them change. */
MILIEU_CHECKED milieu_result milieu_reader_follow(milieu_reader *reader,
    const milieu_context *context);

/** As milieu_subscription_new, under the reader's layers. */
MILIEU_CHECKED milieu_result milieu_reader_subscribe(const milieu_reader *reader,
    milieu_text flow, const milieu_delivery *delivery, milieu_subscription **subscription);

/** As milieu_listener_new, under the reader's layers. */
MILIEU_CHECKED milieu_result milieu_reader_listen(const milieu_reader *reader, milieu_text flow,
    milieu_receive receive, void *user, milieu_destroy destroy, milieu_listener **listener);

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

/** What was seen; valid until the picture is freed. */
MILIEU_CHECKED milieu_result milieu_picture_json(const milieu_picture *picture,
    milieu_text *text);

/** Gives a picture back. */
void milieu_picture_free(milieu_picture *picture);

#ifdef __cplusplus
}
#endif

#endif
