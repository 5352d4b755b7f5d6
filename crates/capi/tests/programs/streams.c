/* Streams from C: every function of streams.h, and what it does. */

#define _POSIX_C_SOURCE 200809L

#include "check.h"

#include <milieu/streams.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#define TEXT milieu_text_of
#define SECOND 1000000000LL

enum sky { CLEAR, CLOUDED };

struct weather {
    double temperature;
    milieu_text room;
    uint32_t sky;
    const int32_t *gusts;
    size_t gust_count;
    int64_t since;
    bool is_night;
    int8_t floor;
};

static const milieu_entry sky_entries[] = { { "variant", "clear" }, { "variant", "clouded" } };
static const milieu_entry temperature_entries[] = { { "id", "7" } };
static const milieu_event_field weather_fields[] = {
    MILIEU_EVENT_FIELD_WITH(struct weather, temperature, MILIEU_F64, temperature_entries),
    MILIEU_EVENT_FIELD(struct weather, room),
    MILIEU_EVENT_FIELD_WITH(struct weather, sky, MILIEU_ENUM, sky_entries),
    MILIEU_EVENT_FIELD_OF(struct weather, gusts, MILIEU_I32 | MILIEU_ARRAY),
    MILIEU_EVENT_FIELD_OF(struct weather, since, MILIEU_TIME),
    MILIEU_EVENT_FIELD(struct weather, is_night),
    MILIEU_EVENT_FIELD(struct weather, floor),
};
static const milieu_event_layout weather_layout
    = MILIEU_EVENT_LAYOUT(struct weather, weather_fields);

static const milieu_event_field number_fields[] = { { "", 0, MILIEU_F64, 0, NULL, NULL } };
static const milieu_event_layout number_layout = { MILIEU_ABI, 1, "number", number_fields,
    sizeof(double), MILIEU_ALIGNOF(double) };

static const milieu_event_type *weather_type, *number_type;

static milieu_coordinator *coordinator(void) {
    milieu_coordinator *made;
    OK(milieu_coordinator_new(&made));
    return made;
}

static milieu_streams *virtual_streams(milieu_coordinator *of) {
    milieu_streams_options options = MILIEU_STREAMS_OPTIONS;
    options.virtual_time = true;
    milieu_streams *streams;
    OK(milieu_streams_new(of, &options, &streams));
    return streams;
}

static milieu_publisher *numbers(milieu_streams *streams, const char *name) {
    milieu_publisher *publisher;
    OK(milieu_publisher_new(streams, TEXT(name), number_type, false, &publisher));
    return publisher;
}

static void publish(milieu_publisher *publisher, double number) {
    OK(milieu_publisher_publish(publisher, &number, NULL, NULL));
}

static milieu_subscription *subscribe(milieu_streams *streams, const char *flow) {
    milieu_subscription *subscription;
    OK(milieu_subscription_new(streams, TEXT(flow), NULL, &subscription));
    return subscription;
}

static const milieu_event *take(milieu_subscription *subscription) {
    const milieu_event *event;
    OK(milieu_subscription_next(subscription, 0, &event));
    return event;
}

static double number_of(const milieu_event *event) {
    const double *number;
    OK(milieu_event_body(event, number_type, (const void **)&number));
    return *number;
}

static void types_and_events(void) {
    milieu_coordinator *of = coordinator();
    milieu_streams *streams;
    OK(milieu_streams_new(of, NULL, &streams));
    milieu_publisher *publisher;
    OK(milieu_publisher_new(streams, TEXT("/weather"), weather_type, true, &publisher));
    milieu_subscription *hot
        = subscribe(streams, "/weather | filter temperature > 32 && sky == 'clouded'");

    char room[] = "005";
    int32_t gusts[] = { 3, 7, -1 };
    struct weather weather = { 33.5, TEXT(room), CLOUDED, gusts, 3, 5 * SECOND, true, -1 };
    milieu_quality quality = MILIEU_QUALITY;
    quality.time_ns = 42;
    quality.accuracy = 0.5;
    uint64_t sequence;
    OK(milieu_publisher_publish(publisher, &weather, &quality, &sequence));
    CHECK(sequence == 1);
    memset(room, 'x', sizeof room - 1);
    memset(gusts, 0, sizeof gusts);
    weather.temperature = 3;
    OK(milieu_publisher_publish(publisher, &weather, NULL, NULL));

    const milieu_event *event = take(hot);
    const struct weather *seen;
    OK(milieu_event_body(event, weather_type, (const void **)&seen));
    CHECK(seen->temperature == 33.5 && milieu_text_is(seen->room, "005"));
    CHECK(seen->sky == CLOUDED && seen->gust_count == 3 && seen->gusts[2] == -1);
    CHECK(seen->since == 5 * SECOND && seen->is_night && seen->floor == -1);
    milieu_header header;
    OK(milieu_event_header(event, &header));
    CHECK(milieu_text_is(header.name, "/weather") && header.sequence == 1);
    CHECK(header.quality.time_ns == 42 && header.quality.accuracy == 0.5);
    CHECK(header.quality.failure.length == 0 && header.origin.length > 0);

    milieu_datum datum;
    OK(milieu_event_get(event, TEXT("room"), &datum));
    CHECK(datum.kind == MILIEU_TEXT && milieu_text_is(datum.content.text, "005"));
    OK(milieu_event_get(event, TEXT("gusts[1]"), &datum));
    CHECK(datum.kind == MILIEU_I64 && datum.content.whole == 7);
    OK(milieu_event_get(event, TEXT("gusts"), &datum));
    CHECK(datum.kind == MILIEU_JSON && milieu_text_is(datum.content.text, "[3,7,-1]"));
    OK(milieu_event_get(event, TEXT("since"), &datum));
    CHECK(datum.kind == MILIEU_TIME && datum.content.whole == 5 * SECOND);
    OK(milieu_event_get(event, TEXT("sky"), &datum));
    CHECK(datum.kind == MILIEU_TEXT && milieu_text_is(datum.content.text, "clouded"));
    OK(milieu_event_get(event, TEXT("humidity"), &datum));
    CHECK(datum.kind == 0);
    EXPECT(MILIEU_NO_SUCH, milieu_event_get(event, TEXT("a..b"), &datum));
    EXPECT(MILIEU_UNFIT, milieu_event_body(event, number_type, (const void **)&seen));
    SAYS("/weather");

    milieu_event *kept;
    OK(milieu_event_keep(event, &kept));
    CHECK(take(hot) == NULL);
    EXPECT(MILIEU_FREED, milieu_event_header(event, &header));
    SAYS("milieu_event_keep");
    OK(milieu_event_body(kept, weather_type, (const void **)&seen));
    CHECK(milieu_text_is(seen->room, "005"));
    OK(milieu_event_free(kept));

    /* Whoever comes late gets what is so. */
    milieu_subscription *late = subscribe(streams, "/weather");
    OK(milieu_event_body(take(late), weather_type, (const void **)&seen));
    CHECK(seen->temperature == 3);

    milieu_tally tally;
    OK(milieu_subscription_tally(hot, &tally));
    CHECK(tally.taken == 1 && tally.dropped == 0 && tally.waiting == 0);
    const milieu_event_type *again;
    OK(milieu_event_type_new(&weather_layout, &again));
    CHECK(again == weather_type);
    milieu_text name;
    OK(milieu_event_type_name(again, &name));
    CHECK(milieu_text_is(name, "struct weather"));
    OK(milieu_subscription_free(hot));
    OK(milieu_subscription_free(late));
    milieu_publisher_free(publisher);
    milieu_streams_free(streams);
    milieu_coordinator_free(of);
}

static void deliveries(void) {
    milieu_coordinator *of = coordinator();
    milieu_streams *streams = virtual_streams(of);
    milieu_publisher *publisher = numbers(streams, "/n");
    milieu_delivery terms = MILIEU_DELIVERY;
    milieu_subscription *latest, *refusing;
    terms.capacity = 0;
    OK(milieu_subscription_new(streams, TEXT("/n"), &terms, &latest));
    terms.capacity = 2;
    terms.overflow = MILIEU_REFUSE;
    OK(milieu_subscription_new(streams, TEXT("/n"), &terms, &refusing));
    publish(publisher, 1);
    publish(publisher, 2);
    double three = 3;
    EXPECT(MILIEU_REFUSED, milieu_publisher_publish(publisher, &three, NULL, NULL));
    CHECK(number_of(take(refusing)) == 1);
    CHECK(number_of(take(latest)) == 2);
    CHECK(take(latest) == NULL);
    OK(milieu_subscription_free(refusing));
    terms.overflow = MILIEU_CLOSE;
    OK(milieu_subscription_new(streams, TEXT("/n"), &terms, &refusing));
    for (int i = 0; i < 3; i++) publish(publisher, i);
    CHECK(number_of(take(refusing)) == 0 && number_of(take(refusing)) == 1);
    const milieu_event *event;
    EXPECT(MILIEU_ENDED, milieu_subscription_next(refusing, -1, &event));
    OK(milieu_subscription_free(refusing));
    OK(milieu_subscription_free(latest));
    milieu_publisher_free(publisher);
    milieu_streams_free(streams);
    milieu_coordinator_free(of);
}

static void *publish_three(void *publisher) {
    for (int i = 0; i < 3; i++) publish(publisher, i);
    return NULL;
}

static void descriptors_and_waiting(void) {
    milieu_coordinator *of = coordinator();
    milieu_streams *streams;
    OK(milieu_streams_new(of, NULL, &streams));
    milieu_publisher *publisher = numbers(streams, "/n");
    milieu_subscription *subscription = subscribe(streams, "/n");
    struct pollfd watched = { .events = POLLIN };
    OK(milieu_subscription_descriptor(subscription, &watched.fd));
    CHECK(poll(&watched, 1, 0) == 1);
    CHECK(take(subscription) == NULL);
    CHECK(poll(&watched, 1, 0) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, publish_three, publisher) == 0);
    for (int want = 0; want < 3;) {
        CHECK(poll(&watched, 1, -1) == 1);
        const milieu_event *event = take(subscription);
        if (event) CHECK(number_of(event) == want++);
    }
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(pthread_create(&thread, NULL, publish_three, publisher) == 0);
    for (int want = 0; want < 3; want++) {
        const milieu_event *event;
        OK(milieu_subscription_next(subscription, -1, &event));
        CHECK(number_of(event) == want);
    }
    CHECK(pthread_join(thread, NULL) == 0);
    const milieu_event *none = (const milieu_event *)&none;
    OK(milieu_subscription_next(subscription, 1000, &none));
    CHECK(none == NULL);
    OK(milieu_subscription_free(subscription));
    milieu_publisher_free(publisher);
    milieu_streams_free(streams);
    milieu_coordinator_free(of);
}

struct pipe_source {
    int ends[2];
    int polled;
    int destroyed;
};

static milieu_result poll_pipe(void *user, milieu_feed *feed) {
    struct pipe_source *source = user;
    if (source->polled++ == 0) milieu_feed_descriptor(feed, source->ends[0]);
    unsigned char byte;
    while (read(source->ends[0], &byte, 1) == 1) {
        if (byte == 0) return milieu_feed_end(feed);
        double number = byte;
        milieu_feed_publish(feed, number_type, &number, NULL);
    }
    milieu_feed_working(feed);
    return milieu_feed_wait_readable(feed);
}

static void destroy_pipe(void *user) { ((struct pipe_source *)user)->destroyed = 1; }

static void sources_with_descriptors(void) {
    milieu_coordinator *of = coordinator();
    milieu_streams *streams;
    OK(milieu_streams_new(of, NULL, &streams));
    struct pipe_source source = { .polled = 0 };
    CHECK(pipe(source.ends) == 0);
    CHECK(fcntl(source.ends[0], F_SETFL, O_NONBLOCK) == 0);
    milieu_subscription *subscription = subscribe(streams, "/bytes");
    milieu_source *made;
    OK(milieu_source_new(streams, TEXT("/bytes"), poll_pipe, &source, destroy_pipe, &made));
    const milieu_event *event;
    for (unsigned char byte = 1; byte < 4; byte++) {
        CHECK(write(source.ends[1], &byte, 1) == 1);
        OK(milieu_subscription_next(subscription, -1, &event));
        CHECK(number_of(event) == byte);
    }
    uint32_t status;
    milieu_text why;
    OK(milieu_source_status(made, &status, &why));
    CHECK(status == MILIEU_WORKING && why.length == 0);
    milieu_source_free(made);
    CHECK(source.destroyed);
    close(source.ends[0]);
    close(source.ends[1]);
    OK(milieu_subscription_free(subscription));
    milieu_streams_free(streams);
    milieu_coordinator_free(of);
}

/* An operator that publishes the sum of what has come whenever it is woken. */
struct summing {
    double sum;
    int64_t every;
};

static int made, freed;

static milieu_result make_summing(void *user, const milieu_arguments *arguments, void **state) {
    CHECK(user == &made);
    milieu_datum every, begin;
    OK(milieu_arguments_get(arguments, TEXT("every"), &every));
    OK(milieu_arguments_get(arguments, TEXT("begin"), &begin));
    CHECK(every.kind == MILIEU_SPAN && begin.kind == MILIEU_F64);
    EXPECT(MILIEU_NO_SUCH, milieu_arguments_get(arguments, TEXT("evry"), &every));
    if (every.content.whole < SECOND) return milieu_fail(TEXT("`every` is a second at least"));
    struct summing *summing = malloc(sizeof *summing);
    summing->sum = begin.content.number;
    summing->every = every.content.whole;
    *state = summing;
    made++;
    return MILIEU_OK;
}

static milieu_result step_summing(void *state, uint32_t input, const milieu_event *event,
    milieu_output *output) {
    struct summing *summing = state;
    CHECK(input == 0);
    double number = number_of(event);
    if (number < 0) return milieu_output_drop(output, TEXT("outlier"));
    if (number == 13) return milieu_fail(TEXT("thirteen"));
    summing->sum += number;
    int64_t now;
    OK(milieu_output_now(output, &now));
    return milieu_output_wake_at(output, (now / summing->every + 1) * summing->every);
}

static milieu_result wake_summing(void *state, milieu_output *output) {
    struct summing *summing = state;
    EXPECT(MILIEU_NO_SUCH, milieu_output_pass(output));
    return milieu_output_publish(output, number_type, &summing->sum, NULL);
}

static milieu_result save_summing(void *state, milieu_snapshot *snapshot) {
    return milieu_snapshot_put(snapshot, &((struct summing *)state)->sum, sizeof(double));
}

static milieu_result restore_summing(void *state, milieu_text bytes) {
    if (bytes.length != sizeof(double)) return milieu_fail(TEXT("this is no sum"));
    memcpy(&((struct summing *)state)->sum, bytes.bytes, sizeof(double));
    return MILIEU_OK;
}

static void free_summing(void *state) {
    freed++;
    free(state);
}

static const milieu_parameter summing_parameters[] = {
    { "every", MILIEU_SPAN, 0, NULL, NULL, "How often it publishes.", true },
    { "begin", MILIEU_F64, 0, NULL, "0.5", "What it begins with.", false },
};
static const milieu_operator summing = { MILIEU_ABI, 1, 0, 2, "summing", "Sums up.",
    summing_parameters, make_summing, step_summing, wake_summing, save_summing, restore_summing,
    free_summing };

static void operators(const char *folder) {
    char path[4096];
    snprintf(path, sizeof path, "%s/kept", folder);
    for (int life = 0; life < 2; life++) {
        made = freed = 0;
        milieu_coordinator *of = coordinator();
        OK(milieu_operator_define(of, &summing, &made, NULL));
        milieu_streams *streams = virtual_streams(of);
        milieu_effect *keeping;
        OK(milieu_effect_keep(streams, TEXT(path), -1, &keeping));
        milieu_picture *waiting;
        milieu_text text_of_waiting;
        OK(milieu_picture_of_losses(keeping, &waiting));
        OK(milieu_picture_json(waiting, &text_of_waiting));
        CHECK(milieu_text_is(text_of_waiting,
            life ? "[{\"flow\":\"/n | summing 10s\",\"text\":\"\",\"why\":\"waits\"}]" : "[]"));
        milieu_picture_free(waiting);
        milieu_publisher *publisher = numbers(streams, "/n");
        milieu_subscription *sums = subscribe(streams, "/n | summing 10s");
        milieu_subscription *same = subscribe(streams, "/n | summing every=10s begin=0.5");
        CHECK(made - freed == 1);
        milieu_subscription *other;
        EXPECT(MILIEU_WRONG_FLOW,
            milieu_subscription_new(streams, TEXT("/n | summing 10ms"), NULL, &other));
        SAYS("`every` is a second at least");
        EXPECT(MILIEU_WRONG_FLOW,
            milieu_subscription_new(streams, TEXT("/n | summing 10s evry=3"), NULL, &other));
        SAYS("evry");
        publish(publisher, 1);
        publish(publisher, -1);
        publish(publisher, 13);
        publish(publisher, 2);
        CHECK(take(sums) == NULL);
        OK(milieu_streams_pass(streams, 10 * SECOND));
        CHECK(number_of(take(sums)) == (life ? 6.5 : 3.5));
        CHECK(number_of(take(same)) == (life ? 6.5 : 3.5));
        milieu_picture *picture;
        OK(milieu_picture_of_graph(streams, &picture));
        milieu_text json;
        OK(milieu_picture_json(picture, &json));
        char *text = strndup(json.bytes, json.length);
        CHECK(strstr(text, "summing") && strstr(text, "thirteen") && strstr(text, "outlier"));
        free(text);
        milieu_picture_free(picture);
        OK(milieu_picture_of_names(streams, TEXT("/n"), &picture));
        OK(milieu_picture_json(picture, &json));
        CHECK(milieu_text_is(json, "[{\"kind\":\"stream\",\"name\":\"/n\"}]"));
        milieu_picture_free(picture);
        /* The state of the first life is given to the same flow, and to it alone. */
        OK(milieu_picture_of_losses(keeping, &picture));
        OK(milieu_picture_json(picture, &json));
        CHECK(milieu_text_is(json, "[]"));
        milieu_picture_free(picture);
        OK(milieu_effect_save(keeping));
        milieu_effect_free(keeping);
        OK(milieu_subscription_free(sums));
        OK(milieu_subscription_free(same));
        milieu_publisher_free(publisher);
        milieu_streams_free(streams);
        milieu_coordinator_free(of);
        CHECK(freed == made);
    }
}

static milieu_result is_hot(void *user, const milieu_event *event, milieu_answer *answer) {
    (void)user;
    double number = number_of(event);
    if (number > 100) return milieu_fail(TEXT("no such temperature"));
    return milieu_answer_give(answer, milieu_datum_bool(number > 32));
}

static milieu_result heat_of(void *user, const milieu_event *event, milieu_answer *answer) {
    (void)user;
    double number = number_of(event);
    if (number > 100) return milieu_fail(TEXT("no such temperature"));
    if (number <= 32) return MILIEU_OK;
    return milieu_answer_give(answer, milieu_datum_text(TEXT("much")));
}

static milieu_result same_number(void *user, const milieu_event *event, milieu_answer *answer) {
    (void)user;
    return milieu_answer_give(answer, milieu_datum_number(number_of(event)));
}

static milieu_text layer_in(milieu_context *cx, const char *id) {
    milieu_text value;
    OK(milieu_context_sync(cx));
    OK(milieu_context_layer(cx, TEXT(id), &value));
    return value;
}

/* A struct without fields would do, but C has none. */
struct settings {
    double shown;
};
static const milieu_entry shown_entries[] = { { "type", "double" }, { "default", "0" } };
static const milieu_value settings_values[]
    = { { "/shown/%heat%", offsetof(struct settings, shown), MILIEU_F64, 2, shown_entries } };
static const milieu_layout settings_layout = { MILIEU_ABI, 1, settings_values,
    sizeof(struct settings), MILIEU_ALIGNOF(struct settings) };

static void acting_on_contexts(void) {
    milieu_coordinator *of = coordinator();
    OK(milieu_function_define(of, TEXT("hot"), is_hot, false, NULL, NULL));
    milieu_streams *streams = virtual_streams(of);
    milieu_publisher *publisher = numbers(streams, "/t");
    milieu_context *cx;
    const struct settings *settings;
    OK(milieu_context_new(of, &settings_layout, NULL, &cx, (const void **)&settings));

    /* From code. */
    milieu_effect *heat, *shown;
    OK(milieu_effect_activate(
        streams, TEXT("/t"), TEXT("heat"), 60 * SECOND, heat_of, NULL, NULL, &heat));
    OK(milieu_effect_assign(
        streams, TEXT("/t | filter $hot"), TEXT("/shown/%heat%"), same_number, NULL, NULL, &shown));
    publish(publisher, 33);
    CHECK(milieu_text_is(layer_in(cx, "heat"), "much") && settings->shown == 33);
    publish(publisher, 30);
    CHECK(layer_in(cx, "heat").length == 0 && settings->shown == 0);
    publish(publisher, 34);
    publish(publisher, 500);
    uint64_t count;
    milieu_text last;
    OK(milieu_effect_failures(heat, &count, &last));
    CHECK(count == 1 && milieu_text_is(last, "no such temperature"));
    CHECK(milieu_text_is(layer_in(cx, "heat"), "much") && settings->shown == 34);
    OK(milieu_streams_pass(streams, 61 * SECOND));
    CHECK(layer_in(cx, "heat").length == 0);
    milieu_effect_free(heat);
    milieu_effect_free(shown);

    /* In a file. */
    milieu_effect *file;
    OK(milieu_effect_apply(streams, TEXT("station.flow"),
        TEXT("/t | filter $hot | activate heat value='file'\n"
             "/t | set \"/shown/%heat%\" value=value * 2.0\n"
             "/t | filter $hot | publish /t/hot\n"
             "/t/hot | subscribe capacity=4 name=wanted\n"),
        &file));
    milieu_subscription *wanted;
    OK(milieu_effect_subscribe(file, TEXT("wanted"), &wanted));
    OK(milieu_effect_failures(file, &count, NULL));
    CHECK(count == 0);
    publish(publisher, 40);
    publish(publisher, 20);
    CHECK(milieu_text_is(layer_in(cx, "heat"), "file") && settings->shown == 40);
    CHECK(number_of(take(wanted)) == 40 && take(wanted) == NULL);
    EXPECT(MILIEU_NO_SUCH, milieu_effect_subscribe(file, TEXT("other"), &wanted));
    SAYS("wanted");
    milieu_effect_free(file);
    EXPECT(MILIEU_WRONG_FLOW,
        milieu_effect_apply(streams, TEXT("s.flow"), TEXT("/t | fliter $hot\n"), &file));
    SAYS("s.flow:1:6");
    EXPECT(MILIEU_WRONG_NAME, milieu_effect_activate(streams, TEXT("/of/%heat%"), TEXT("heat"), 0,
                                  heat_of, NULL, NULL, &heat));

    OK(milieu_subscription_free(wanted));
    OK(milieu_context_free(cx));
    milieu_publisher_free(publisher);
    milieu_streams_free(streams);
    milieu_coordinator_free(of);
}

static void names_and_readers(void) {
    milieu_coordinator *of = coordinator();
    milieu_streams *streams = virtual_streams(of);
    milieu_publisher *five = numbers(streams, "/rooms/005"), *seven = numbers(streams, "/rooms/007");
    milieu_context *cx;
    OK(milieu_context_new(of, &settings_layout, NULL, &cx, NULL));
    milieu_frame frame;
    OK(milieu_context_enter(cx, milieu_layer_of("room", "005"), &frame));
    milieu_reader *reader;
    OK(milieu_reader_new(streams, cx, &reader));
    milieu_subscription *here;
    OK(milieu_reader_subscribe(reader, TEXT("/rooms/%room%"), NULL, &here));
    publish(five, 1);
    publish(seven, 2);
    CHECK(number_of(take(here)) == 1 && take(here) == NULL);
    OK(milieu_context_leave(cx, frame));
    OK(milieu_context_enter(cx, milieu_layer_of("room", "007"), &frame));
    OK(milieu_reader_follow(reader, cx));
    publish(five, 3);
    publish(seven, 4);
    CHECK(number_of(take(here)) == 4 && take(here) == NULL);

    milieu_effect *both, *max;
    milieu_text targets[] = { TEXT("/rooms/005"), TEXT("/rooms/007") };
    OK(milieu_effect_bind(streams, TEXT("/both"), targets, 2, &both));
    OK(milieu_effect_publish(streams, TEXT("/both | filter value > 5"), TEXT("/many"), &max));
    milieu_subscription *many = subscribe(streams, "/many");
    publish(five, 6);
    publish(seven, 7);
    CHECK(number_of(take(many)) == 6 && number_of(take(many)) == 7);
    milieu_effect *twice;
    EXPECT(MILIEU_WRONG_NAME, milieu_effect_publish(streams, TEXT("/both"), TEXT("/many"), &twice));
    milieu_effect_free(both);
    milieu_effect_free(max);
    OK(milieu_subscription_free(many));
    OK(milieu_subscription_free(here));
    milieu_reader_free(reader);
    OK(milieu_context_free(cx));
    milieu_publisher_free(five);
    milieu_publisher_free(seven);
    milieu_streams_free(streams);
    milieu_coordinator_free(of);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    OK(milieu_event_type_new(&weather_layout, &weather_type));
    OK(milieu_event_type_new(&number_layout, &number_type));
    types_and_events();
    deliveries();
    descriptors_and_waiting();
    sources_with_descriptors();
    operators(argv[1]);
    acting_on_contexts();
    names_and_readers();
    puts("ok");
    return 0;
}
