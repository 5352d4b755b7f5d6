/* A sensor, written in C. */

#include "sensor.h"

#include <stdlib.h>

static const milieu_event_field fields[] = {
    MILIEU_EVENT_FIELD(struct reading, level),
    MILIEU_EVENT_FIELD(struct reading, battery),
};
static const milieu_event_layout layout = MILIEU_EVENT_LAYOUT(struct reading, fields);

struct sensor {
    const milieu_event_type *type;
    double level;
};

static milieu_result measure(void *user, milieu_feed *feed) {
    struct sensor *sensor = user;
    struct reading reading = { sensor->level, milieu_text_of("main") };
    int64_t now;
    milieu_result result = milieu_feed_now(feed, &now);
    if (result != MILIEU_OK) return result;
    sensor->level -= 1;
    result = milieu_feed_publish(feed, sensor->type, &reading, NULL);
    if (result != MILIEU_OK) return result;
    return milieu_feed_wait(feed, now + 1000000000);
}

milieu_result sensor_open(const milieu_streams *streams, const char *name,
    milieu_source **source) {
    struct sensor *sensor = malloc(sizeof *sensor);
    if (!sensor) abort();
    sensor->level = 9;
    milieu_result result = milieu_event_type_new(&layout, &sensor->type);
    if (result != MILIEU_OK) {
        free(sensor);
        return result;
    }
    return milieu_source_new(streams, milieu_text_of(name), measure, sensor, free, source);
}
