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
 * - They are sources as those of the program are: milieu_source_status, milieu_source_free, and one
 *   thread that polls them all. What is not there, a file, a device, a program, is a status that
 *   says so, and no failure of a call: the source goes on trying.
 * - Their events are of types of the library. Fields are read by name, by milieu_event_get, the whole
 *   as JSON, and milieu_event_body makes a struct of the program's own of it, which has those of the
 *   fields that it wants, by the same names: what the tables say may be null is MILIEU_OPTIONAL there,
 *   a field with words MILIEU_ENUM with these as variants. milieu_event_type_of is null.
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

#ifdef __cplusplus
}
#endif

#endif
