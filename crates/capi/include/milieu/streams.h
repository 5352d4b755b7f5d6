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
 *   milieu_flow           a flow that is put together of values
 *   milieu_rehearsal      cases that flows were tried with
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

/**
 * Says what time it is: nanoseconds since 1970, or since whatever the program counts from. It comes
 * from any thread, from several at once, and often, so it has to be quick. MILIEU_NOW says that it
 * cannot tell; it then is what it was when it was asked last.
 *
 * Streams may wait for it: where it asks for anything of streams it gets MILIEU_BUSY, and nothing
 * is done.
 */
typedef int64_t (*milieu_clock)(void *user);

/** How streams are opened. Begin with MILIEU_STREAMS_OPTIONS. */
typedef struct milieu_streams_options {
    /** MILIEU_ABI */
    uint32_t abi;
    /** Whether time passes only by milieu_streams_pass, for tests. */
    bool virtual_time;
    /** What time it is at first, then; or before `clock` can tell. */
    int64_t now_ns;
    /**
     * Null: the clock of the system, or virtual time. Events have the time of this clock, and
     * sources and operators wait for times of it: it is looked at again when the system's has gone
     * as far, and each second, in case it goes otherwise or was set.
     */
    milieu_clock clock;
    void *user;
    /** Called when the streams are gone; where `abi` is another one nothing is done with this. */
    milieu_destroy destroy;
} milieu_streams_options;

/** Options that say nothing. */
#define MILIEU_STREAMS_OPTIONS { MILIEU_ABI, false, 0, NULL, NULL, NULL }

/**
 * The streams of a coordinator; each handle of a coordinator is for the same ones. `options` may
 * be null.
 *
 * MILIEU_LATE: the streams have another clock, and are in use already. MILIEU_INVALID: both
 * `virtual_time` and a clock.
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

/** On what terms threads work with what takes long. Begin with MILIEU_BLOCKING. */
typedef struct milieu_blocking {
    /** MILIEU_ABI */
    uint32_t abi;
    /** How many threads there are for all of it. Each is started when it is first needed. */
    uint32_t threads;
    /**
     * How many events may wait for each operator. One that finds so many waiting takes the place of
     * the oldest, which is counted as `overflow`.
     */
    uint32_t queue;
    /**
     * How long an operator may take over one event. One that takes longer is given up, and another
     * thread takes the place of its thread.
     */
    int64_t patience_ns;
} milieu_blocking;

/** Four threads, queues of 1024, and 30 s. */
#define MILIEU_BLOCKING { MILIEU_ABI, 4, 1024, 30000000000 }

/**
 * As milieu_streams_drive, on these terms for operators and functions that may take long.
 *
 * MILIEU_LATE: the streams are driven on other terms, for instance since there was a source.
 * MILIEU_INVALID: one of them is 0 or less.
 */
MILIEU_CHECKED milieu_result milieu_streams_drive_with(const milieu_streams *streams,
    const milieu_blocking *terms);

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

#ifdef __cplusplus
}
#endif

/* They need what stands above. */
#include <milieu/operators.h>
#include <milieu/effects.h>
#include <milieu/flows.h>

#endif
