/* What test programs in C that read streams have in common. */
#ifndef STREAMS_CHECK_H
#define STREAMS_CHECK_H

#include "check.h"

#include <milieu/streams.h>

/* Where a program may write, if it is told. */
static const char *folder;

/* What is in the folder; some at a time. */
static inline const char *path_of(const char *name) {
    static char paths[8][4096];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static inline void write_file(const char *name, const char *content) {
    FILE *file = fopen(path_of(name), "w");
    CHECK(file && fputs(content, file) >= 0 && fclose(file) == 0);
}

static inline milieu_text text(const char *string) { return milieu_text_of(string); }

static inline bool is(milieu_text given, const char *string) {
    return given.length == strlen(string) && memcmp(given.bytes, string, given.length) == 0;
}

static inline bool has(milieu_text given, const char *part) {
    for (size_t at = 0; at + strlen(part) <= given.length; at++)
        if (memcmp(given.bytes + at, part, strlen(part)) == 0) return true;
    return false;
}

static inline milieu_attribute told(const char *name, const char *value) {
    return (milieu_attribute){ text(name), text(value) };
}

static inline milieu_subscription *subscribed(milieu_streams *streams, const char *flow) {
    milieu_subscription *subscription;
    OK(milieu_subscription_new(streams, text(flow), NULL, &subscription));
    return subscription;
}

/* The next event, which has to come within twenty seconds. */
static inline const milieu_event *next(milieu_subscription *subscription) {
    const milieu_event *event;
    OK(milieu_subscription_next(subscription, 20000000000, &event));
    CHECK(event != NULL);
    return event;
}

static inline bool has_more(milieu_subscription *subscription) {
    const milieu_event *event;
    OK(milieu_subscription_next(subscription, 0, &event));
    return event != NULL;
}

#endif
