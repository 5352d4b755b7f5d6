/* What streams.rs measures of C: prepared by name, executed a number of times. */

#include <milieu/streams.h>

#include <stdio.h>
#include <stdlib.h>

#define TEXT milieu_text_of

static void ok(milieu_result result) {
    if (result == MILIEU_OK) return;
    fprintf(stderr, "%s\n", milieu_message());
    abort();
}

/* The compiler does not know what is there. */
#define LOOK(there) __asm__ volatile("" : : "g"(there) : "memory")

struct weather {
    double temperature;
    double pressure;
};
static const milieu_event_field fields[] = {
    MILIEU_EVENT_FIELD(struct weather, temperature),
    MILIEU_EVENT_FIELD(struct weather, pressure),
};
static const milieu_event_layout layout = MILIEU_EVENT_LAYOUT(struct weather, fields);

struct station {
    double temperature;
    milieu_text room;
};
static const milieu_event_field station_fields[] = {
    MILIEU_EVENT_FIELD(struct station, temperature),
    MILIEU_EVENT_FIELD(struct station, room),
};
static const milieu_event_layout station_layout = MILIEU_EVENT_LAYOUT(struct station, station_fields);

/* What an operation needs; it lasts as long as the program. */
struct operation {
    void (*once)(struct operation *it);
    const milieu_event_type *type;
    milieu_publisher *publisher;
    milieu_subscription *subscription;
    milieu_event *kept;
};

static void nothing(struct operation *it) { LOOK(it); }

static void publish(struct operation *it) {
    const struct weather weather = { 33.5, 1013.25 };
    ok(milieu_publisher_publish(it->publisher, &weather, NULL, NULL));
}

static void publish_text(struct operation *it) {
    const struct station station = { 33.5, { "a room of some length", 21 } };
    ok(milieu_publisher_publish(it->publisher, &station, NULL, NULL));
}

static void publish_and_take(struct operation *it) {
    const milieu_event *event;
    const struct weather *weather;
    publish(it);
    ok(milieu_subscription_next(it->subscription, 0, &event));
    ok(milieu_event_body(event, it->type, (const void **)&weather));
    LOOK(weather->temperature);
}

static void read_body(struct operation *it) {
    const struct weather *weather;
    ok(milieu_event_body(it->kept, it->type, (const void **)&weather));
    LOOK(weather->temperature);
}

static void read_field(struct operation *it) {
    milieu_datum datum;
    ok(milieu_event_get(it->kept, TEXT("temperature"), &datum));
    LOOK(datum.content.number);
}

static milieu_result receive(void *user, const milieu_event *event) {
    const struct weather *weather;
    ok(milieu_event_body(event, ((struct operation *)user)->type, (const void **)&weather));
    LOOK(weather->temperature);
    return MILIEU_OK;
}

static milieu_result hot(void *user, const milieu_event *event, milieu_answer *answer) {
    const struct weather *weather;
    ok(milieu_event_body(event, *(const milieu_event_type **)user, (const void **)&weather));
    return milieu_answer_give(answer, milieu_datum_bool(weather->temperature > 32));
}

static milieu_result step(void *state, uint32_t input, const milieu_event *event,
    milieu_output *output) {
    LOOK(state);
    LOOK(input);
    LOOK(event);
    return milieu_output_pass(output);
}

static struct operation *made(const char *name) {
    struct operation *it = calloc(1, sizeof *it);
    milieu_coordinator *coordinator;
    milieu_streams *streams;
    milieu_listener *listener;
    const bool has_text = strcmp(name, "publish-text") == 0;
    ok(milieu_event_type_new(has_text ? &station_layout : &layout, &it->type));
    ok(milieu_coordinator_new(&coordinator));
    milieu_operator pass = { 0 };
    pass.abi = MILIEU_ABI;
    pass.inputs = 1;
    pass.name = "pass";
    pass.summary = "Lets everything go on.";
    pass.step = step;
    ok(milieu_operator_define(coordinator, &pass, NULL, NULL));
    ok(milieu_function_define(coordinator, TEXT("hot"), hot, false, &it->type, NULL));
    ok(milieu_streams_new(coordinator, NULL, &streams));
    ok(milieu_publisher_new(streams, TEXT("/weather"), it->type, false, &it->publisher));
    it->once = has_text ? publish_text : publish;
    static const struct {
        const char *name, *flow;
    } heard[] = {
        { "listener", "/weather" },
        { "filter", "/weather | filter temperature > 32" },
        { "function", "/weather | filter $hot" },
        { "operator", "/weather | pass" },
    };
    for (size_t i = 0; i < sizeof heard / sizeof *heard; i++) {
        if (strcmp(name, heard[i].name) != 0) continue;
        ok(milieu_listener_new(streams, TEXT(heard[i].flow), receive, it, NULL, &listener));
        return it;
    }
    if (strncmp(name, "publish", 7) == 0) return it;
    ok(milieu_subscription_new(streams, TEXT("/weather"), NULL, &it->subscription));
    if (strcmp(name, "queue") == 0) {
        it->once = publish_and_take;
        return it;
    }
    const milieu_event *event;
    publish(it);
    ok(milieu_subscription_next(it->subscription, 0, &event));
    ok(milieu_event_keep(event, &it->kept));
    if (strcmp(name, "loop") == 0) it->once = nothing;
    else if (strcmp(name, "body") == 0) it->once = read_body;
    else if (strcmp(name, "field") == 0) it->once = read_field;
    else return NULL;
    return it;
}

void *operation_prepare(const char *name);
void *operation_prepare(const char *name) { return made(name); }

void operation_execute(void *operation, uint64_t times);
void operation_execute(void *operation, uint64_t times) {
    struct operation *it = operation;
    for (uint64_t i = 0; i < times; i++) it->once(it);
}
