/* On what terms streams run: a clock of the program, threads for what takes long, what operators
 * remember as bytes, and the right to see private fields. */

#define _POSIX_C_SOURCE 200809L

#include "check.h"

#include <milieu/streams.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#define TEXT milieu_text_of
#define SECOND 1000000000LL

static const milieu_event_field number_field = { "", 0, MILIEU_F64, 0, NULL, NULL };
static const milieu_event_layout number_layout = { MILIEU_ABI, 1, "number", &number_field,
    sizeof(double), MILIEU_ALIGNOF(double) };
static const milieu_event_type *number_type;

static milieu_coordinator *coordinator;
static milieu_streams *streams;

static int destroyed;
static void destroy(void *user) {
    (void)user;
    destroyed++;
}

static milieu_publisher *publisher_of(const char *name, const milieu_event_type *type) {
    milieu_publisher *publisher;
    OK(milieu_publisher_new(streams, TEXT(name), type, false, &publisher));
    return publisher;
}

static void publish(milieu_publisher *publisher, double number) {
    OK(milieu_publisher_publish(publisher, &number, NULL, NULL));
}

static milieu_subscription *subscribe(const char *flow) {
    milieu_subscription *subscription;
    OK(milieu_subscription_new(streams, TEXT(flow), NULL, &subscription));
    return subscription;
}

static const milieu_event *next(milieu_subscription *subscription, int64_t timeout_ns) {
    const milieu_event *event;
    OK(milieu_subscription_next(subscription, timeout_ns, &event));
    return event;
}

static double number_of(const milieu_event *event, const char *field) {
    milieu_datum datum;
    CHECK(event != NULL);
    OK(milieu_event_get(event, TEXT(field), &datum));
    CHECK(datum.kind == MILIEU_F64);
    return datum.content.number;
}

static void end(void) {
    milieu_streams_free(streams);
    milieu_coordinator_free(coordinator);
}

/* A clock that shows what it is told, and asks streams for something where it must not. */
struct shown {
    _Atomic int64_t now;
    milieu_publisher *publisher;
    milieu_subscription *subscription;
    atomic_int refused;
};

static int64_t show(void *user) {
    struct shown *shown = user;
    if (shown->publisher) {
        const milieu_event *event;
        int64_t now = 7;
        double one = 1;
        EXPECT(MILIEU_BUSY, milieu_streams_now(streams, &now));
        SAYS("clock");
        CHECK(now == 7);
        EXPECT(MILIEU_BUSY, milieu_publisher_publish(shown->publisher, &one, NULL, NULL));
        EXPECT(MILIEU_BUSY, milieu_subscription_next(shown->subscription, -1, &event));
        shown->refused++;
    }
    return shown->now;
}

static int64_t now(void) {
    int64_t now;
    OK(milieu_streams_now(streams, &now));
    return now;
}

static milieu_result look(void *user, milieu_feed *feed) {
    int64_t time;
    double number;
    (void)user;
    OK(milieu_feed_now(feed, &time));
    number = (double)(time / SECOND);
    OK(milieu_feed_publish(feed, number_type, &number, NULL));
    return milieu_feed_wait(feed, time + 100 * SECOND);
}

static void clocks(void) {
    struct shown shown = { 1000 * SECOND, NULL, NULL, 0 };
    milieu_streams_options options = MILIEU_STREAMS_OPTIONS;
    milieu_streams *others;
    OK(milieu_coordinator_new(&coordinator));

    /* What comes too early or twice is let go of, and changes nothing. */
    options.clock = show;
    options.user = &shown;
    options.destroy = destroy;
    options.virtual_time = true;
    EXPECT(MILIEU_INVALID, milieu_streams_new(coordinator, &options, &streams));
    CHECK(destroyed == 1);
    options.virtual_time = false;
    EXPECT(MILIEU_NULL, milieu_streams_new(NULL, &options, &streams));
    CHECK(destroyed == 2);
    options.clock = NULL;
    OK(milieu_streams_new(coordinator, &options, &streams));
    CHECK(destroyed == 3 && now() > SECOND);
    options.clock = show;
    EXPECT(MILIEU_LATE, milieu_streams_new(coordinator, &options, &others));
    CHECK(destroyed == 4);
    end();

    destroyed = 0;
    OK(milieu_coordinator_new(&coordinator));
    OK(milieu_streams_new(coordinator, &options, &streams));
    EXPECT(MILIEU_LATE, milieu_streams_new(coordinator, &options, &others));
    CHECK(destroyed == 1);
    CHECK(now() == 1000 * SECOND);
    milieu_publisher *publisher = publisher_of("/n", number_type);
    milieu_subscription *all = subscribe("/n"), *sums = subscribe("/n | aggregate sum 10s");
    publish(publisher, 3);
    milieu_header header;
    OK(milieu_event_header(next(all, 0), &header));
    CHECK(header.quality.time_ns == 1000 * SECOND);

    /* Where it cannot tell it is as late as it was. */
    shown.now = MILIEU_NOW;
    CHECK(now() == 1000 * SECOND);
    shown.now = 1001 * SECOND;
    CHECK(now() == 1001 * SECOND);

    shown.publisher = publisher;
    shown.subscription = all;
    CHECK(now() == 1001 * SECOND);
    publish(publisher, 4);
    CHECK(shown.refused > 1);
    shown.publisher = NULL;
    CHECK(next(all, 0) != NULL && next(all, 0) == NULL);

    /* What waits for a time waits for one of this clock. */
    milieu_source *source;
    milieu_subscription *looked = subscribe("/looked");
    OK(milieu_source_new(streams, TEXT("/looked"), look, NULL, NULL, &source));
    CHECK(number_of(next(looked, -1), "value") == 1001);
    CHECK(next(looked, SECOND / 10) == NULL && next(sums, 0) == NULL);
    shown.now = 1012 * SECOND;
    CHECK(number_of(next(sums, -1), "sum") == 7);
    CHECK(next(looked, 0) == NULL);
    shown.now = 1101 * SECOND;
    CHECK(number_of(next(looked, -1), "value") == 1101);

    milieu_source_free(source);
    OK(milieu_subscription_free(looked));
    OK(milieu_subscription_free(sums));
    OK(milieu_subscription_free(all));
    milieu_publisher_free(publisher);
    CHECK(destroyed == 1);
    end();
}

/* A function that takes until it is let go on. */
struct slow {
    sem_t begun, may_end;
};

static milieu_result slow_value(void *user, const milieu_event *event, milieu_answer *answer) {
    struct slow *slow = user;
    (void)event;
    CHECK(sem_post(&slow->begun) == 0);
    while (sem_wait(&slow->may_end) != 0) continue;
    return milieu_answer_give(answer, milieu_datum_bool(true));
}

static void terms(void) {
    struct slow slow;
    CHECK(sem_init(&slow.begun, 0, 0) == 0 && sem_init(&slow.may_end, 0, 0) == 0);
    OK(milieu_coordinator_new(&coordinator));
    OK(milieu_function_define(coordinator, TEXT("slow"), slow_value, true, &slow, NULL));
    OK(milieu_streams_new(coordinator, NULL, &streams));
    milieu_blocking few = MILIEU_BLOCKING;
    EXPECT(MILIEU_NULL, milieu_streams_drive_with(streams, NULL));
    few.abi = 99;
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_streams_drive_with(streams, &few));
    few.abi = MILIEU_ABI;
    few.threads = 0;
    EXPECT(MILIEU_INVALID, milieu_streams_drive_with(streams, &few));
    SAYS("`threads`");
    few.threads = 1;
    few.queue = 0;
    EXPECT(MILIEU_INVALID, milieu_streams_drive_with(streams, &few));
    SAYS("`queue`");
    few.queue = 2;
    few.patience_ns = 0;
    EXPECT(MILIEU_INVALID, milieu_streams_drive_with(streams, &few));
    SAYS("`patience_ns`");
    few.patience_ns = 100 * SECOND;
    OK(milieu_streams_drive_with(streams, &few));
    OK(milieu_streams_drive_with(streams, &few));
    OK(milieu_streams_drive(streams));
    few.queue = 3;
    EXPECT(MILIEU_LATE, milieu_streams_drive_with(streams, &few));
    SAYS("queues of 2");

    /* One is being worked at, two may wait: of the others the newest do. */
    milieu_publisher *publisher = publisher_of("/n", number_type);
    milieu_subscription *known = subscribe("/n | filter $slow");
    publish(publisher, 1);
    while (sem_wait(&slow.begun) != 0) continue;
    for (int number = 2; number <= 5; number++) publish(publisher, number);
    /* Another thread may be at work with the streams, and take them in later: a look waits. */
    milieu_picture *picture;
    OK(milieu_picture_of_graph(streams, &picture));
    milieu_picture_free(picture);
    for (int i = 0; i < 3; i++) CHECK(sem_post(&slow.may_end) == 0);
    for (int i = 0; i < 3; i++) {
        static const double expected[] = { 1, 4, 5 };
        CHECK(number_of(next(known, -1), "value") == expected[i]);
    }
    CHECK(next(known, SECOND / 20) == NULL);
    OK(milieu_subscription_free(known));
    milieu_publisher_free(publisher);
    end();
    CHECK(sem_destroy(&slow.begun) == 0 && sem_destroy(&slow.may_end) == 0);

    /* Who has a source has said on what terms. In virtual time there are no threads. */
    milieu_source *source;
    OK(milieu_coordinator_new(&coordinator));
    OK(milieu_streams_new(coordinator, NULL, &streams));
    OK(milieu_source_new(streams, TEXT("/looked"), look, NULL, NULL, &source));
    EXPECT(MILIEU_LATE, milieu_streams_drive_with(streams, &few));
    few = (milieu_blocking)MILIEU_BLOCKING;
    OK(milieu_streams_drive_with(streams, &few));
    milieu_source_free(source);
    end();
    milieu_streams_options options = MILIEU_STREAMS_OPTIONS;
    options.virtual_time = true;
    OK(milieu_coordinator_new(&coordinator));
    OK(milieu_streams_new(coordinator, &options, &streams));
    few.threads = 1;
    OK(milieu_streams_drive_with(streams, &few));
    end();
}

static void begin(void) {
    milieu_streams_options options = MILIEU_STREAMS_OPTIONS;
    options.virtual_time = true;
    OK(milieu_coordinator_new(&coordinator));
    OK(milieu_streams_new(coordinator, &options, &streams));
}

static bool shows(milieu_picture *picture, const char *part) {
    milieu_text text;
    OK(milieu_picture_json(picture, &text));
    char copy[4096];
    snprintf(copy, sizeof copy, MILIEU_TEXT_FORMAT, MILIEU_TEXT_ARGUMENTS(text));
    milieu_picture_free(picture);
    return strstr(copy, part) != NULL;
}

/* What is remembered goes where the program likes. */
static void memories(void) {
    static const char flow[] = "/n | aggregate sum count=3";
    begin();
    milieu_publisher *publisher = publisher_of("/n", number_type);
    milieu_subscription *sums = subscribe(flow);
    publish(publisher, 1);
    publish(publisher, 2);
    CHECK(next(sums, 0) == NULL);
    milieu_memory *memory;
    milieu_text bytes;
    OK(milieu_memory_new(streams, &memory));
    OK(milieu_subscription_free(sums));
    milieu_publisher_free(publisher);
    end();

    begin();
    OK(milieu_memory_bytes(memory, &bytes));
    CHECK(bytes.length > 32);
    EXPECT(MILIEU_INVALID, milieu_memory_restore(streams, TEXT("something else")));
    SAYS("snapshot");
    milieu_text part = { bytes.bytes, bytes.length - 5 };
    EXPECT(MILIEU_INVALID, milieu_memory_restore(streams, part));
    SAYS("damaged");
    EXPECT(MILIEU_NULL, milieu_memory_restore(streams, (milieu_text){ NULL, 1 }));
    OK(milieu_memory_restore(streams, bytes));
    milieu_memory_free(memory);
    EXPECT(MILIEU_FREED, milieu_memory_bytes(memory, &bytes));
    milieu_picture *picture;
    OK(milieu_picture_of_not_restored(streams, &picture));
    CHECK(shows(picture, "\"why\":\"waits\""));
    publisher = publisher_of("/n", number_type);
    sums = subscribe(flow);
    OK(milieu_picture_of_not_restored(streams, &picture));
    CHECK(!shows(picture, "why"));
    publish(publisher, 4);
    CHECK(number_of(next(sums, 0), "sum") == 7);
    OK(milieu_subscription_free(sums));
    milieu_publisher_free(publisher);
    end();
}

struct pulse {
    double degrees;
    MILIEU_OPTIONAL_OF(uint16_t) pulse;
};
static const milieu_entry secret[] = { { "private", "" } };
static const milieu_event_field pulse_fields[] = {
    MILIEU_EVENT_FIELD(struct pulse, degrees),
    MILIEU_EVENT_FIELD_WITH(struct pulse, pulse, MILIEU_U16 | MILIEU_OPTIONAL, secret),
};
static const milieu_event_layout pulse_layout = MILIEU_EVENT_LAYOUT(struct pulse, pulse_fields);

struct patient {
    milieu_text room;
    struct pulse now;
};
static const milieu_event_field patient_fields[] = {
    MILIEU_EVENT_FIELD(struct patient, room),
    MILIEU_EVENT_STRUCT(struct patient, now, 0, &pulse_layout),
};
static const milieu_event_layout patient_layout
    = MILIEU_EVENT_LAYOUT(struct patient, patient_fields);

static bool is_json(const milieu_event *event, uint32_t rights, const char *expected) {
    milieu_text json;
    OK(milieu_event_json_with(event, rights, &json));
    return milieu_text_is(json, expected);
}

static milieu_datum get(const milieu_event *event, const char *path, uint32_t rights) {
    milieu_datum datum;
    OK(milieu_event_get_with(event, TEXT(path), rights, &datum));
    return datum;
}

static void rights(void) {
    const milieu_event_type *type;
    OK(milieu_event_type_new(&patient_layout, &type));
    begin();
    milieu_publisher *publisher = publisher_of("/ward", type);
    milieu_subscription *all = subscribe("/ward");
    struct patient patient = { TEXT("005"), { 38.5, { 71, true } } };
    OK(milieu_publisher_publish(publisher, &patient, NULL, NULL));
    const milieu_event *event = next(all, 0);
    milieu_text json;
    OK(milieu_event_json(event, &json));
    CHECK(milieu_text_is(json, "{\"room\":\"005\",\"now\":{\"degrees\":38.5,\"pulse\":null}}"));
    CHECK(is_json(event, 0, "{\"room\":\"005\",\"now\":{\"degrees\":38.5,\"pulse\":null}}"));
    CHECK(is_json(event, MILIEU_READ_PRIVATE,
        "{\"room\":\"005\",\"now\":{\"degrees\":38.5,\"pulse\":71}}"));
    EXPECT(MILIEU_INVALID, milieu_event_json_with(event, 6, &json));
    SAYS("MILIEU_READ_PRIVATE");

    milieu_datum datum;
    EXPECT(MILIEU_INVALID, milieu_event_get_with(event, TEXT("room"), 2, &datum));
    CHECK(get(event, "now.pulse", 0).kind == 0);
    for (int again = 0; again < 2; again++) {
        datum = get(event, "now.pulse", MILIEU_READ_PRIVATE);
        CHECK(datum.kind == MILIEU_U64 && datum.content.natural == 71);
        CHECK(get(event, "now.pulse", 0).kind == 0);
    }
    CHECK(get(event, "now.degrees", MILIEU_READ_PRIVATE).content.number == 38.5);
    datum = get(event, "now", MILIEU_READ_PRIVATE);
    CHECK(datum.kind == MILIEU_JSON
        && milieu_text_is(datum.content.text, "{\"degrees\":38.5,\"pulse\":71}"));
    CHECK(milieu_text_is(get(event, "room", MILIEU_READ_PRIVATE).content.text, "005"));
    CHECK(milieu_text_is(get(event, "event.name", MILIEU_READ_PRIVATE).content.text, "/ward"));
    CHECK(get(event, "nothing", MILIEU_READ_PRIVATE).kind == 0);

    /* One that has none, and one that is a single value. */
    patient.now.pulse.is_there = false;
    OK(milieu_publisher_publish(publisher, &patient, NULL, NULL));
    event = next(all, 0);
    CHECK(get(event, "now.pulse", MILIEU_READ_PRIVATE).kind == 0);
    CHECK(is_json(event, MILIEU_READ_PRIVATE,
        "{\"room\":\"005\",\"now\":{\"degrees\":38.5,\"pulse\":null}}"));
    milieu_publisher *numbers = publisher_of("/n", number_type);
    milieu_subscription *number = subscribe("/n");
    publish(numbers, 2.5);
    event = next(number, 0);
    CHECK(get(event, "value", MILIEU_READ_PRIVATE).content.number == 2.5);
    CHECK(is_json(event, MILIEU_READ_PRIVATE, "2.5"));
    OK(milieu_subscription_free(number));
    milieu_publisher_free(numbers);
    OK(milieu_subscription_free(all));
    milieu_publisher_free(publisher);
    end();
}

int main(void) {
    OK(milieu_event_type_new(&number_layout, &number_type));
    clocks();
    terms();
    memories();
    rights();
    puts("ok");
    return 0;
}
