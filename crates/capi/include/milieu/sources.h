/*
 * Milieu: sources that have names. The C interface, beside streams.h.
 *
 *   milieu_attribute every = { milieu_text_of("every"), milieu_text_of("10s") };
 *
 *   milieu_source_open(streams, milieu_text_of("/machine/load"), milieu_text_of("machine.load"),
 *       &every, 1, &source);
 *   milieu_subscription_new(streams, milieu_text_of("/machine/load | filter fifteen_minutes > 4"),
 *       NULL, &subscription);
 *   milieu_subscription_next(subscription, -1, &event);
 *   milieu_event_get(event, milieu_text_of("fifteen_minutes"), &datum);
 *
 * docs/sources.md has all of them, what they are told, and the fields of their events with units.
 *
 * What no text says, a program brings along: what texts become, and recordings that lie in memory.
 *
 *   static milieu_result weigh(void *user, milieu_feed *feed, milieu_text text) {
 *       double grams;
 *       if (!read_grams(text, &grams)) return milieu_fail(milieu_text_of("that is no weight"));
 *       return milieu_feed_publish(feed, grams_type, &grams, NULL);
 *   }
 *
 *   milieu_source_terms terms = MILIEU_SOURCE_TERMS;
 *   terms.format = weigh;
 *   milieu_source_open_with(streams, milieu_text_of("/scale"), milieu_text_of("serial.lines"),
 *       &path, 1, &terms, NULL, NULL, &scale);
 *
 * - They are sources as those of the program are: milieu_source_status, milieu_source_free, and one
 *   thread that polls them all. What is not there, a file, a device, a program, is a status that
 *   says so, and no failure of a call: the source goes on trying.
 * - Their events are of types of the library. Fields are read by name, by milieu_event_get, the whole
 *   as JSON, and milieu_event_body makes a struct of the program's own of it, which has those of the
 *   fields that it wants, by the same names: what the tables say may be null is MILIEU_OPTIONAL there,
 *   a field with words MILIEU_ENUM with these as variants. milieu_event_type_of is null, unless the
 *   rows of a recording were given a type.
 * - In virtual time, sources see the time that is passed: timers tick, recordings play, the machine
 *   is looked at. Those that wait for a descriptor, for a program, a device or the kernel to tell of a
 *   file, are polled no more once they do.
 * - Whoever may say which sources there are may run programs (`command.shell`) and read files with the
 *   rights of this process.
 *
 * These functions are in libraries that were built with the feature `sources`.
 */
#ifndef MILIEU_SOURCES_H
#define MILIEU_SOURCES_H

#include <milieu/streams.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A source that has a name. Everything of it is valid for ever. */
typedef struct milieu_source_definition {
    /** `machine.load` */
    const char *name;
    /** What it does, in one sentence. */
    const char *summary;
    /** The types of its events, by which docs/sources.md has their fields. */
    const char *events;
    /** What the process needs beyond an ordinary user's rights; empty where that suffices. */
    const char *needs;
    /** What it is told. */
    const milieu_parameter *parameters;
    size_t parameter_count;
} milieu_source_definition;

/** All sources that have names. */
MILIEU_CHECKED milieu_result milieu_sources(const milieu_source_definition **sources,
    size_t *count);

/**
 * Polls the source of the name `what`, and publishes what it sees under `name`. Late subscribers get
 * its last event at once. Parameters are texts: spans are `250ms` or `1h30m`, flags `true` and
 * `false`, lists have commas. What is not given has its default.
 *
 * MILIEU_NO_SUCH: there is no such source. MILIEU_INVALID: a parameter is missing, unknown, or is
 * not what it should be. MILIEU_WRONG_NAME: it is no name, or has a publisher. MILIEU_BUSY: within a
 * callback, in virtual time. MILIEU_SYSTEM.
 */
MILIEU_CHECKED milieu_result milieu_source_open(const milieu_streams *streams, milieu_text name,
    milieu_text what, const milieu_attribute *parameters, size_t count, milieu_source **source);

/**
 * Publishes what it makes of a text, by milieu_feed_publish: nothing, or any number of events, of
 * any types. A text is a line of a program or of a serial line, without its end, blank ones left
 * out; or what is in a file, without blanks around it. It is UTF-8, with U+FFFD for what is not,
 * and valid until the callback returns.
 *
 * If it fails, or calls milieu_feed_failing, the status of the source has that as the reason, with
 * the text and its line, until a text makes an event; the source goes on, and what was published
 * stays so. It does not say what the source waits for: milieu_feed_wait,
 * milieu_feed_wait_readable, milieu_feed_descriptor and milieu_feed_end are MILIEU_INVALID.
 */
typedef milieu_result (*milieu_format)(void *user, milieu_feed *feed, milieu_text text);

/** What a program gives a source beside its parameters. Begin with MILIEU_SOURCE_TERMS. */
typedef struct milieu_source_terms {
    /** MILIEU_ABI */
    uint32_t abi;
    /** What texts become, in the place of the parameter `format`; null: what that says. */
    milieu_format format;
    /**
     * A recording that lies in memory, of any bytes, which are copied; where `bytes` is null there is
     * none. The parameter `path` is then only what it is called, and need not be given.
     */
    milieu_text content;
    /**
     * The type that the rows of a recording become, of their fields by name; null: they are values
     * with these fields. An empty field is one that is missing, and fields that the type does not have
     * are left out. A row that lacks what the type has is left out as one that cannot be read: a text
     * that looks like a number or a truth is one, unless the parameter `texts` names its column, and
     * numbers above 2^53 are exact where `integers` does.
     */
    const milieu_event_type *rows;
} milieu_source_terms;

/** Terms that say nothing. */
#define MILIEU_SOURCE_TERMS { MILIEU_ABI, NULL, { NULL, 0 }, NULL }

/**
 * As milieu_source_open, on these terms. The format is handed `user`; `destroy` is called when
 * nobody has that any more, at once where there is no format, and where this fails.
 *
 * MILIEU_INVALID: as there; also, there is a format for a source that reads no texts, or besides
 * the parameter `format`, a recording for a source that replays none, or a type of rows for one whose
 * events are no rows, as those of `replay.nmea` are.
 */
MILIEU_CHECKED milieu_result milieu_source_open_with(const milieu_streams *streams,
    milieu_text name, milieu_text what, const milieu_attribute *parameters, size_t count,
    const milieu_source_terms *terms, void *user, milieu_destroy destroy, milieu_source **source);

/* ---------------------------------------------------------------- recordings */

/*
 * A source `replay.csv`, `replay.json_lines` or `replay.nmea`, in a file or in memory, is stopped
 * and moved within, by callbacks too. Other sources get MILIEU_INVALID. What a recording is told
 * holds from that moment on; in virtual time its events come when time next passes. Of one that has
 * ended nothing comes of it. As all of a source, these are for one thread at a time: MILIEU_BUSY.
 */

/** Stops a recording until milieu_replay_resume. */
MILIEU_CHECKED milieu_result milieu_replay_pause(const milieu_source *source);

/** Goes on where it was stopped. */
MILIEU_CHECKED milieu_result milieu_replay_resume(const milieu_source *source);

/**
 * Goes on with the first row that was recorded at this time or later; with the parameter `lead`, it
 * is exactly there, and what was recorded shortly before comes at once. Where there is no such row,
 * the next pass begins; without a next pass it ends.
 */
MILIEU_CHECKED milieu_result milieu_replay_seek(const milieu_source *source, int64_t time_ns);

/**
 * Goes on so many times as fast as it was recorded; with INFINITY, as fast as it can be read.
 * MILIEU_INVALID: it is no number, 0 or less.
 */
MILIEU_CHECKED milieu_result milieu_replay_pace(const milieu_source *source, double times);

/**
 * Which recorded time it is now. MILIEU_NOW: none, before the first row, where it is replayed as fast
 * as it can be read, and once it has ended.
 */
MILIEU_CHECKED milieu_result milieu_replay_position(const milieu_source *source, int64_t *time_ns);

#ifdef __cplusplus
}
#endif

#endif
