/* What C programs get wrong with streams, and what they are told. */

#include "check.h"

#include <milieu/streams.h>

#define TEXT milieu_text_of

struct reading {
    double value;
    milieu_text unit;
    bool good;
    uint32_t kind;
};

static const milieu_entry kinds[] = { { "variant", "first" }, { "variant", "second" } };
static milieu_event_field fields[] = {
    MILIEU_EVENT_FIELD(struct reading, value),
    MILIEU_EVENT_FIELD(struct reading, unit),
    MILIEU_EVENT_FIELD(struct reading, good),
    MILIEU_EVENT_FIELD_WITH(struct reading, kind, MILIEU_ENUM, kinds),
};
static const milieu_event_layout layout = MILIEU_EVENT_LAYOUT(struct reading, fields);

static const milieu_event_field flat_field = { "", 0, MILIEU_F64, 0, NULL, NULL };
static const milieu_event_layout flat = { MILIEU_ABI, 1, "flat", &flat_field, sizeof(double),
    MILIEU_ALIGNOF(double) };

struct parts {
    milieu_text first;
    milieu_text second;
    const double *numbers;
    size_t number_count;
    const bool *answers;
    size_t answer_count;
};
static const milieu_event_field part_fields[] = {
    MILIEU_EVENT_FIELD_OF(struct parts, first, MILIEU_BYTES),
    MILIEU_EVENT_FIELD_OF(struct parts, second, MILIEU_BYTES),
    MILIEU_EVENT_FIELD_OF(struct parts, numbers, MILIEU_F64 | MILIEU_ARRAY),
    MILIEU_EVENT_FIELD_OF(struct parts, answers, MILIEU_BOOL | MILIEU_ARRAY),
};
static const milieu_event_layout parts_layout = MILIEU_EVENT_LAYOUT(struct parts, part_fields);

static const milieu_event_type *type, *flat_type;
static milieu_coordinator *coordinator;
static milieu_streams *streams;

static int destroyed;
static void destroy(void *user) {
    (void)user;
    destroyed++;
}

static void wrong_layouts(void) {
    const milieu_event_type *none;
    milieu_event_layout wrong = layout;
    EXPECT(MILIEU_NULL, milieu_event_type_new(NULL, &none));
    EXPECT(MILIEU_NULL, milieu_event_type_new(&layout, NULL));
    wrong.abi = 99;
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_event_type_new(&wrong, &none));
    wrong = layout;
    wrong.size = 8;
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_event_type_new(&wrong, &none));
    wrong = layout;
    wrong.align = 3;
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_event_type_new(&wrong, &none));
    wrong = layout;
    wrong.name = NULL;
    EXPECT(MILIEU_NULL, milieu_event_type_new(&wrong, &none));
    wrong = layout;
    wrong.fields = NULL;
    EXPECT(MILIEU_NULL, milieu_event_type_new(&wrong, &none));

    const milieu_event_field value = fields[0];
    fields[0].offset = 8;
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_event_type_new(&layout, &none));
    SAYS("overlap");
    fields[0].offset = 4;
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_event_type_new(&layout, &none));
    fields[0] = value;
    fields[0].kind = 99;
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_event_type_new(&layout, &none));
    SAYS("`value`");
    fields[0] = value;
    fields[0].name = "unit";
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_event_type_new(&layout, &none));
    SAYS("two fields");
    fields[0].name = "\xff";
    EXPECT(MILIEU_NOT_UTF8, milieu_event_type_new(&layout, &none));
    fields[0] = value;
    static const milieu_entry odd[] = { { "color", "red" } };
    fields[0].metadata = odd;
    fields[0].metadata_count = 1;
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_event_type_new(&layout, &none));
    SAYS("`color`");
    fields[0] = value;
}

static void wrong_bodies(void) {
    milieu_publisher *publisher, *second;
    OK(milieu_publisher_new(streams, TEXT("/r"), type, false, &publisher));
    EXPECT(MILIEU_WRONG_NAME, milieu_publisher_new(streams, TEXT("/r"), type, false, &second));
    SAYS("`/r`");
    EXPECT(MILIEU_WRONG_NAME, milieu_publisher_new(streams, TEXT("r"), type, false, &second));
    EXPECT(MILIEU_NOT_UTF8, milieu_publisher_new(streams, TEXT("/\xff"), type, false, &second));
    EXPECT(MILIEU_NULL, milieu_publisher_new(streams, TEXT("/s"), NULL, false, &second));
    EXPECT(MILIEU_WRONG_HANDLE,
        milieu_publisher_new(streams, TEXT("/s"), (void *)coordinator, false, &second));

    milieu_subscription *subscription;
    OK(milieu_subscription_new(streams, TEXT("/r"), NULL, &subscription));
    struct reading reading = { 1, TEXT("m"), true, 0 };
    EXPECT(MILIEU_NULL, milieu_publisher_publish(publisher, NULL, NULL, NULL));
    reading.unit = TEXT("\xff");
    EXPECT(MILIEU_NOT_UTF8, milieu_publisher_publish(publisher, &reading, NULL, NULL));
    SAYS("`unit`");
    reading.unit.bytes = NULL;
    EXPECT(MILIEU_NULL, milieu_publisher_publish(publisher, &reading, NULL, NULL));
    reading.unit = TEXT("m");
    reading.unit.length = (size_t)-1;
    EXPECT(MILIEU_INVALID, milieu_publisher_publish(publisher, &reading, NULL, NULL));
    SAYS("`unit` is said to have a length of");
    reading.unit = TEXT("m");
    reading.kind = 2;
    EXPECT(MILIEU_INVALID, milieu_publisher_publish(publisher, &reading, NULL, NULL));
    SAYS("`kind` of `struct reading`");
    reading.kind = 1;
    memset(&reading.good, 7, 1);
    EXPECT(MILIEU_INVALID, milieu_publisher_publish(publisher, &reading, NULL, NULL));
    SAYS("`good`");
    const milieu_event *event;
    OK(milieu_subscription_next(subscription, 0, &event));
    CHECK(event == NULL);

    reading.good = true;
    OK(milieu_publisher_publish(publisher, &reading, NULL, NULL));
    OK(milieu_subscription_next(subscription, 0, &event));
    EXPECT(MILIEU_BUSY, milieu_event_free((milieu_event *)event));
    SAYS("lent");
    const void *body;
    EXPECT(MILIEU_NULL, milieu_event_body(NULL, type, &body));
    EXPECT(MILIEU_NULL, milieu_event_body(event, NULL, &body));
    EXPECT(MILIEU_WRONG_HANDLE, milieu_event_body((void *)streams, type, &body));
    OK(milieu_subscription_free(subscription));
    EXPECT(MILIEU_FREED, milieu_event_body(event, type, &body));
    EXPECT(MILIEU_FREED, milieu_subscription_next(subscription, 0, &event));
    milieu_publisher_free(publisher);
    EXPECT(MILIEU_FREED, milieu_publisher_publish(publisher, &reading, NULL, NULL));
}

static milieu_result nothing(void *user, const milieu_event *event) {
    (void)user;
    (void)event;
    return MILIEU_OK;
}

/* Lengths that nothing has, each by itself and together; nothing is looked at. */
static void wrong_lengths(void) {
    static const double numbers[] = { 1, 2 };
    static const bool answers[] = { true };
    static const struct parts right = { { "a", 1 }, { "b", 1 }, numbers, 2, answers, 1 };
    const milieu_event_type *of;
    milieu_publisher *publisher;
    OK(milieu_event_type_new(&parts_layout, &of));
    OK(milieu_publisher_new(streams, TEXT("/parts"), of, false, &publisher));
    struct parts parts = right;
    OK(milieu_publisher_publish(publisher, &parts, NULL, NULL));
    parts.first.length = (size_t)-1;
    EXPECT(MILIEU_INVALID, milieu_publisher_publish(publisher, &parts, NULL, NULL));
    SAYS("`first`");
    parts.first.length = parts.second.length = SIZE_MAX / 2 - 64;
    EXPECT(MILIEU_INVALID, milieu_publisher_publish(publisher, &parts, NULL, NULL));
    SAYS("`second` of `struct parts` has more than there is memory");
    parts = right;
    parts.number_count = (size_t)-1;
    EXPECT(MILIEU_INVALID, milieu_publisher_publish(publisher, &parts, NULL, NULL));
    SAYS("`numbers`");
    parts.number_count = SIZE_MAX / 16 + 1;
    EXPECT(MILIEU_INVALID, milieu_publisher_publish(publisher, &parts, NULL, NULL));
    parts = right;
    parts.answer_count = (size_t)-1;
    EXPECT(MILIEU_INVALID, milieu_publisher_publish(publisher, &parts, NULL, NULL));
    SAYS("`answers`");
    milieu_publisher_free(publisher);
}

static void wrong_flows(void) {
    milieu_subscription *subscription;
    milieu_listener *listener;
    EXPECT(MILIEU_WRONG_FLOW,
        milieu_subscription_new(streams, TEXT("/r | fliter value > 3"), NULL, &subscription));
    SAYS("fliter");
    EXPECT(MILIEU_WRONG_FLOW,
        milieu_subscription_new(streams, TEXT("/r | filter $unknown"), NULL, &subscription));
    milieu_delivery terms = MILIEU_DELIVERY;
    terms.overflow = 17;
    EXPECT(MILIEU_INVALID, milieu_subscription_new(streams, TEXT("/r"), &terms, &subscription));
    destroyed = 0;
    EXPECT(MILIEU_WRONG_FLOW,
        milieu_listener_new(streams, TEXT("|"), nothing, NULL, destroy, &listener));
    EXPECT(MILIEU_NULL, milieu_listener_new(streams, TEXT("/r"), NULL, NULL, destroy, &listener));
    CHECK(destroyed == 2);
    milieu_effect *effect;
    EXPECT(MILIEU_INVALID, milieu_effect_apply(streams, TEXT("flows"), TEXT(""), &effect));
    SAYS(".flow");
}

/* A callback that does what it must not, and what it may. */
struct inside {
    milieu_publisher *publisher;
    milieu_listener *own;
    milieu_subscription *queue;
    const milieu_event *stale;
    int runs;
};

static milieu_result from_inside(void *user, const milieu_event *event) {
    struct inside *inside = user;
    if (inside->runs++ > 0) return MILIEU_OK;
    inside->stale = event;
    /* It may publish and take, and not wait. */
    double more = 2;
    OK(milieu_publisher_publish(inside->publisher, &more, NULL, NULL));
    const milieu_event *taken;
    OK(milieu_subscription_next(inside->queue, 0, &taken));
    EXPECT(MILIEU_BUSY, milieu_subscription_next(inside->queue, -1, &taken));
    milieu_picture *picture;
    EXPECT(MILIEU_BUSY, milieu_picture_of_graph(streams, &picture));
    /* It may end the subscription that it belongs to, and sees no further event. */
    milieu_listener_free(inside->own);
    return milieu_fail(TEXT("as if"));
}

static void callbacks(void) {
    struct inside inside = { 0 };
    OK(milieu_publisher_new(streams, TEXT("/f"), flat_type, false, &inside.publisher));
    milieu_delivery terms = MILIEU_DELIVERY;
    OK(milieu_subscription_new(streams, TEXT("/nobody"), &terms, &inside.queue));
    destroyed = 0;
    OK(milieu_listener_new(streams, TEXT("/f"), from_inside, &inside, destroy, &inside.own));
    double one = 1;
    OK(milieu_publisher_publish(inside.publisher, &one, NULL, NULL));
    CHECK(destroyed == 1);
    OK(milieu_publisher_publish(inside.publisher, &one, NULL, NULL));
    milieu_header header;
    EXPECT(MILIEU_FREED, milieu_event_header(inside.stale, &header));
    uint64_t count;
    EXPECT(MILIEU_FREED, milieu_listener_failures(inside.own, &count, NULL));
    milieu_listener_free(inside.own);
    OK(milieu_subscription_free(inside.queue));
    milieu_publisher_free(inside.publisher);
}

static int polls;

static milieu_result poll_wrongly(void *user, milieu_feed *feed) {
    polls++;
    EXPECT(MILIEU_INVALID, milieu_feed_wait_readable(feed));
    EXPECT(MILIEU_INVALID, milieu_feed_descriptor(feed, 12345));
    EXPECT(MILIEU_NULL, milieu_feed_publish(feed, flat_type, NULL, NULL));
    EXPECT(MILIEU_NOT_UTF8, milieu_feed_failing(feed, TEXT("\xff")));
    EXPECT(MILIEU_BUSY, milieu_streams_pass(user, 5));
    milieu_source *other;
    EXPECT(MILIEU_BUSY, milieu_source_new(user, TEXT("/o"), poll_wrongly, NULL, NULL, &other));
    return MILIEU_OK;
}

static milieu_result poll_and_fail(void *user, milieu_feed *feed) {
    (void)user;
    (void)feed;
    return milieu_fail(TEXT("no bus"));
}

static void sources(void) {
    milieu_coordinator *of;
    milieu_streams *virtual;
    OK(milieu_coordinator_new(&of));
    milieu_streams_options options = MILIEU_STREAMS_OPTIONS;
    options.virtual_time = true;
    OK(milieu_streams_new(of, &options, &virtual));
    milieu_source *source, *failing;
    EXPECT(MILIEU_NULL, milieu_source_new(virtual, TEXT("/s"), NULL, NULL, NULL, &source));
    OK(milieu_source_new(virtual, TEXT("/s"), poll_wrongly, virtual, NULL, &source));
    OK(milieu_source_new(virtual, TEXT("/f"), poll_and_fail, NULL, NULL, &failing));
    OK(milieu_streams_pass(virtual, 10));
    CHECK(polls == 1);
    uint32_t status;
    milieu_text why;
    OK(milieu_source_status(source, &status, &why));
    CHECK(status == MILIEU_FAILING && strstr(why.bytes, "milieu_feed_wait"));
    OK(milieu_source_status(failing, &status, &why));
    CHECK(status == MILIEU_FAILING && strstr(why.bytes, "no bus"));
    EXPECT(MILIEU_LATE, milieu_streams_new(of, &options, &virtual));
    EXPECT(MILIEU_INVALID, milieu_streams_pass(streams, 5));
    milieu_source_free(source);
    milieu_source_free(failing);
    milieu_source_free(NULL);
    /* What was made of a coordinator goes on without its handle. */
    milieu_coordinator_free(of);
    int64_t now;
    OK(milieu_streams_now(virtual, &now));
    CHECK(now == 10);
    milieu_streams_free(virtual);
    EXPECT(MILIEU_FREED, milieu_streams_now(virtual, &now));
}

static int made, freed;

static milieu_result make(void *user, const milieu_arguments *arguments, void **state) {
    *state = user;
    made++;
    (void)arguments;
    return MILIEU_OK;
}

static milieu_result step(void *state, uint32_t input, const milieu_event *event,
    milieu_output *output) {
    (void)state;
    (void)input;
    EXPECT(MILIEU_INVALID, milieu_output_drop(output, TEXT("no reason")));
    EXPECT(MILIEU_NULL, milieu_output_publish(output, NULL, event, NULL));
    EXPECT(MILIEU_WRONG_HANDLE, milieu_output_pass_held(output, (void *)streams));
    return milieu_output_pass(output);
}

static void let_go(void *state) {
    (void)state;
    freed++;
}

static milieu_result answer(void *user, const milieu_event *event, milieu_answer *answer) {
    (void)user;
    (void)event;
    milieu_datum odd = milieu_datum_nothing();
    odd.kind = 99;
    EXPECT(MILIEU_INVALID, milieu_answer_give(answer, odd));
    EXPECT(MILIEU_NOT_UTF8, milieu_answer_give(answer, milieu_datum_text(TEXT("\xff"))));
    return milieu_answer_give(answer, milieu_datum_bool(true));
}

static void operators(void) {
    milieu_coordinator *of;
    milieu_streams *own;
    OK(milieu_coordinator_new(&of));
    milieu_operator definition = { 0 };
    EXPECT(MILIEU_NULL, milieu_operator_define(of, NULL, NULL, NULL));
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_operator_define(of, &definition, NULL, NULL));
    definition.abi = MILIEU_ABI;
    definition.inputs = 1;
    definition.name = "two words";
    definition.summary = "It passes everything.";
    definition.make = make;
    definition.free = let_go;
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_operator_define(of, &definition, NULL, NULL));
    SAYS("two words");
    definition.name = "all";
    EXPECT(MILIEU_NULL, milieu_operator_define(of, &definition, NULL, NULL));
    definition.step = step;
    milieu_parameter parameter = { "every", MILIEU_SPAN, 0, NULL, "soon", "", true };
    definition.parameters = &parameter;
    definition.parameter_count = 1;
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_operator_define(of, &definition, NULL, NULL));
    SAYS("`every`");
    parameter.otherwise = "1s";
    destroyed = 0;
    OK(milieu_operator_define(of, &definition, NULL, destroy));
    EXPECT(MILIEU_NULL, milieu_function_define(of, TEXT("f"), NULL, false, NULL, NULL));
    OK(milieu_function_define(of, TEXT("yes"), answer, false, NULL, destroy));
    OK(milieu_streams_new(of, NULL, &own));
    milieu_publisher *publisher;
    milieu_subscription *subscription;
    OK(milieu_publisher_new(own, TEXT("/n"), flat_type, false, &publisher));
    OK(milieu_subscription_new(own, TEXT("/n | all | filter $yes"), NULL, &subscription));
    double one = 1;
    OK(milieu_publisher_publish(publisher, &one, NULL, NULL));
    const milieu_event *event;
    OK(milieu_subscription_next(subscription, 0, &event));
    CHECK(event != NULL);
    EXPECT(MILIEU_LATE, milieu_function_define(of, TEXT("no"), answer, false, NULL, NULL));
    EXPECT(MILIEU_LATE, milieu_operator_define(of, &definition, NULL, NULL));
    OK(milieu_subscription_free(subscription));
    milieu_publisher_free(publisher);
    milieu_streams_free(own);
    milieu_coordinator_free(of);
    CHECK(made > 0 && freed == made && destroyed == 2);
}

int main(void) {
    wrong_layouts();
    OK(milieu_event_type_new(&layout, &type));
    OK(milieu_event_type_new(&flat, &flat_type));
    OK(milieu_coordinator_new(&coordinator));
    EXPECT(MILIEU_NULL, milieu_streams_new(NULL, NULL, &streams));
    EXPECT(MILIEU_NULL, milieu_streams_new(coordinator, NULL, NULL));
    milieu_streams_options options = MILIEU_STREAMS_OPTIONS;
    options.abi = 7;
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_streams_new(coordinator, &options, &streams));
    OK(milieu_streams_new(coordinator, NULL, &streams));
    wrong_bodies();
    wrong_lengths();
    wrong_flows();
    callbacks();
    sources();
    operators();
    milieu_streams_free(streams);
    milieu_coordinator_free(coordinator);
    puts("ok");
    return 0;
}
