/* Links from C: machines of one process, and an engine of the program that is polled. */

#include "check.h"

#include <milieu/engines.h>

struct machine {
    milieu_coordinator *coordinator;
    milieu_streams *streams;
    milieu_link *link;
};

static const milieu_event_field number_field = { "", 0, MILIEU_F64, 0, NULL, NULL };
static const milieu_event_layout number = { MILIEU_ABI, 1, "number", &number_field,
    sizeof(double), MILIEU_ALIGNOF(double) };
static const milieu_event_type *type;

static void start(struct machine *machine) {
    milieu_streams_options options = MILIEU_STREAMS_OPTIONS;
    options.virtual_time = true;
    OK(milieu_coordinator_new(&machine->coordinator));
    OK(milieu_streams_new(machine->coordinator, &options, &machine->streams));
    machine->link = NULL;
}

static void stop(struct machine *machine) {
    milieu_link_free(machine->link);
    milieu_streams_free(machine->streams);
    milieu_coordinator_free(machine->coordinator);
}

static void settle(struct machine *a, struct machine *b) {
    bool busy_a = true, busy_b = true;
    while (busy_a || busy_b) {
        OK(milieu_link_poll(a->link, &busy_a));
        OK(milieu_link_poll(b->link, &busy_b));
    }
}

static void count(void *user) { ++*(int *)user; }

static double next(milieu_subscription *subscription) {
    const milieu_event *event;
    const double *body;
    OK(milieu_subscription_next(subscription, 0, &event));
    if (!event) return -1;
    OK(milieu_event_body(event, type, (const void **)&body));
    return *body;
}

static bool pictures(const milieu_link *link, const char *part) {
    milieu_picture *picture;
    milieu_text json;
    char text[4096];
    OK(milieu_picture_of_link(link, &picture));
    OK(milieu_picture_json(picture, &json));
    snprintf(text, sizeof text, MILIEU_TEXT_FORMAT, MILIEU_TEXT_ARGUMENTS(json));
    milieu_picture_free(picture);
    return strstr(text, part) != NULL;
}

/* ---------------------------------------------------------------- a hub */

static milieu_result grant(void *user, const milieu_peer *peer, milieu_granting *granting) {
    int *asked = user;
    ++*asked;
    if (milieu_text_is(peer->name, "stranger")) return milieu_fail(milieu_text_of("who?"));
    milieu_text queries[] = { milieu_text_of("/oven"), milieu_text_of("/%room%") };
    milieu_rights rights = MILIEU_RIGHTS;
    rights.read.queries = queries;
    rights.read.count = 2;
    EXPECT(MILIEU_WRONG_NAME, milieu_granting_allow(granting, &rights));
    SAYS("`read`: `/%room%` is no right");
    rights.read.count = 1;
    OK(milieu_granting_allow(granting, &rights));
    return MILIEU_OK;
}

static void machines_of_a_process(bool apart) {
    struct machine kitchen, garden, street;
    milieu_hub *hub;
    milieu_engine *engine;
    int asked = 0, destroyed = 0;
    start(&kitchen);
    start(&garden);
    start(&street);
    OK(milieu_hub_new(apart, &hub));
    OK(milieu_hub_join(hub, milieu_text_of("kitchen"), &engine));

    milieu_terms terms = MILIEU_TERMS;
    EXPECT(MILIEU_INVALID,
        milieu_link_new(kitchen.streams, engine, &terms, &destroyed, count, &kitchen.link));
    SAYS("let `grant` say it of each, or set `is_open`");
    CHECK(destroyed == 1);
    terms.grant = grant;
    const milieu_text modes[] = { milieu_text_of("json"), milieu_text_of("smoke") };
    terms.modes = modes;
    terms.mode_count = 2;
    EXPECT(MILIEU_NO_SUCH,
        milieu_link_new(kitchen.streams, engine, &terms, NULL, NULL, &kitchen.link));
    SAYS("there is no mode `smoke`; there are delta, data-stream, cbor");
    terms.mode_count = 1;
    OK(milieu_link_new(kitchen.streams, engine, &terms, &asked, count, &kitchen.link));
    milieu_link *again;
    EXPECT(MILIEU_FREED, milieu_link_new(kitchen.streams, engine, &terms, NULL, NULL, &again));
    SAYS("each link has an engine of its own");

    milieu_terms open = MILIEU_TERMS;
    open.is_open = true;
    open.types = &type;
    open.type_count = 1;
    OK(milieu_hub_join(hub, milieu_text_of("garden"), &engine));
    OK(milieu_link_new(garden.streams, engine, &open, NULL, NULL, &garden.link));
    OK(milieu_hub_join(hub, milieu_text_of("stranger"), &engine));
    OK(milieu_link_new(street.streams, engine, &open, NULL, NULL, &street.link));
    milieu_hub_free(hub);

    milieu_publisher *oven, *safe;
    milieu_subscription *read, *strange, *denied;
    OK(milieu_publisher_new(kitchen.streams, milieu_text_of("/oven"), type, false, &oven));
    OK(milieu_publisher_new(kitchen.streams, milieu_text_of("/safe"), type, false, &safe));
    OK(milieu_subscription_new(garden.streams, milieu_text_of("/oven"), NULL, &read));
    OK(milieu_subscription_new(garden.streams, milieu_text_of("/safe"), NULL, &denied));
    OK(milieu_subscription_new(street.streams, milieu_text_of("/oven"), NULL, &strange));
    settle(&kitchen, &garden);
    settle(&kitchen, &street);
    settle(&kitchen, &garden);
    CHECK(asked == 2);

    OK(milieu_publisher_publish(oven, &(double){ 180 }, NULL, NULL));
    OK(milieu_publisher_publish(safe, &(double){ 1 }, NULL, NULL));
    settle(&kitchen, &garden);
    settle(&kitchen, &street);
    CHECK(next(read) == 180 && next(read) == -1);
    CHECK(next(denied) == -1 && next(strange) == -1);
    CHECK(pictures(garden.link, "\"name\":\"kitchen\"") && pictures(garden.link, "\"names\":1"));

    /* Whoever leaves takes its names along; what was subscribed to goes on. */
    milieu_link_free(kitchen.link);
    kitchen.link = NULL;
    CHECK(asked == 3);
    OK(milieu_link_poll(garden.link, NULL));
    CHECK(pictures(garden.link, "\"presence\":\"done\""));
    milieu_publisher *again_oven;
    OK(milieu_publisher_new(garden.streams, milieu_text_of("/oven"), type, false, &again_oven));
    OK(milieu_publisher_publish(again_oven, &(double){ 20 }, NULL, NULL));
    CHECK(next(read) == 20);

    milieu_publisher_free(again_oven);
    milieu_publisher_free(oven);
    milieu_publisher_free(safe);
    OK(milieu_subscription_free(read));
    OK(milieu_subscription_free(denied));
    OK(milieu_subscription_free(strange));
    stop(&kitchen);
    stop(&garden);
    stop(&street);
}

/* ---------------------------------------------------------------- an engine */

/* It reaches nobody, and tells what it likes. */
struct engine {
    int polls, destroyed, closed;
    bool fails;
    struct machine *machine;
};

static milieu_refusal submit(void *user, const milieu_parcel *parcels, size_t count,
    size_t *taken) {
    (void)user;
    (void)parcels;
    /* More than there were is taken for all. */
    *taken = count + 7;
    return MILIEU_NO_CREDIT;
}
static uint64_t credit(void *user, uint64_t to, uint32_t channel) {
    (void)user;
    (void)to;
    (void)channel;
    return UINT64_MAX;
}
static void granted(void *user, uint64_t from, uint32_t channel, uint64_t frames) {
    (void)user;
    (void)from;
    (void)channel;
    (void)frames;
}
static void shut(void *user, uint64_t from, uint32_t channel) {
    granted(user, from, channel, 0);
}
static milieu_refusal asked(void *user, uint64_t to, uint64_t number, milieu_text question) {
    (void)user;
    (void)to;
    (void)number;
    (void)question;
    return (milieu_refusal)77;
}
static void replied(void *user, uint64_t to, uint64_t number, milieu_text answer) {
    (void)asked(user, to, number, answer);
}
static void closed(void *user, uint32_t reason) {
    struct engine *engine = user;
    CHECK(reason == MILIEU_LEFT_DONE);
    engine->closed++;
}
static void gone(void *user) { ((struct engine *)user)->destroyed++; }

static milieu_result poll(void *user, milieu_arrivals *arrivals) {
    struct engine *engine = user;
    milieu_parcel parcel = { .peer = 1, .payload = { "\xff\x00nonsense", 10 } };
    const char not_utf8[] = "\xff";
    if (engine->fails) return milieu_fail(milieu_text_of("the line is cut"));
    EXPECT(MILIEU_BUSY, milieu_link_poll(engine->machine->link, NULL));
    if (engine->polls++ > 0) return MILIEU_OK;
    EXPECT(MILIEU_INVALID, milieu_arrivals_frame(arrivals, &parcel));
    SAYS("there is no peer 1; tell by milieu_arrivals_joined that it has come");
    EXPECT(MILIEU_NOT_UTF8, milieu_arrivals_joined(arrivals, 1, milieu_text_of(not_utf8)));
    OK(milieu_arrivals_joined(arrivals, 1, milieu_text_of("nobody")));
    /* What nobody can understand is counted, whoever it comes from. */
    OK(milieu_arrivals_frame(arrivals, &parcel));
    parcel.channel = 5;
    OK(milieu_arrivals_frame(arrivals, &parcel));
    OK(milieu_arrivals_receipt(arrivals, 99, true));
    OK(milieu_arrivals_credit(arrivals, 1, 12));
    OK(milieu_arrivals_request(arrivals, 1, 3, milieu_text_of("?")));
    OK(milieu_arrivals_reply(arrivals, 1, 4, NULL));
    return MILIEU_OK;
}

static const milieu_carrier nonsense = { MILIEU_ABI, MILIEU_ENGINE_RECEIPTS, 100, 1, 1, submit,
    credit, granted, shut, shut, asked, replied, poll, closed };

static void an_engine_that_tells_nonsense(void) {
    struct machine machine;
    struct engine behind = { 0 };
    milieu_engine *engine;
    milieu_waker *waker;
    milieu_terms terms = MILIEU_TERMS;
    start(&machine);
    behind.machine = &machine;
    terms.is_open = true;

    milieu_carrier carrier = nonsense;
    carrier.credit_max = 0;
    EXPECT(MILIEU_INVALID, milieu_engine_new(&carrier, &behind, gone, &engine, &waker));
    SAYS("`credit_max` is 0");
    carrier = nonsense;
    carrier.poll = NULL;
    EXPECT(MILIEU_NULL, milieu_engine_new(&carrier, &behind, gone, &engine, &waker));
    SAYS("`poll` is null");
    CHECK(behind.destroyed == 2);

    /* One that no link has. */
    OK(milieu_engine_new(&nonsense, &behind, gone, &engine, &waker));
    milieu_waker_free(waker);
    milieu_engine_free(engine);
    CHECK(behind.destroyed == 3 && behind.closed == 1);

    OK(milieu_engine_new(&nonsense, &behind, gone, &engine, &waker));
    OK(milieu_link_new(machine.streams, engine, &terms, NULL, NULL, &machine.link));
    milieu_publisher *oven;
    OK(milieu_publisher_new(machine.streams, milieu_text_of("/oven"), type, false, &oven));
    OK(milieu_link_poll(machine.link, NULL));
    OK(milieu_waker_wake(waker));
    OK(milieu_link_poll(machine.link, NULL));
    CHECK(pictures(machine.link, "\"presence\":\"here\""));
    CHECK(pictures(machine.link, "\"malformed\":1"));
    CHECK(pictures(machine.link, "\"stale\":1") && pictures(machine.link, "\"gone\":1"));
    behind.fails = true;
    OK(milieu_link_poll(machine.link, NULL));
    CHECK(pictures(machine.link, "\"presence\":\"lost\""));
    OK(milieu_publisher_publish(oven, &(double){ 180 }, NULL, NULL));
    milieu_link_free(machine.link);
    machine.link = NULL;
    CHECK(behind.destroyed == 4 && behind.closed == 1);
    /* It wakes nobody. */
    OK(milieu_waker_wake(waker));
    milieu_waker_free(waker);
    milieu_publisher_free(oven);
    stop(&machine);
}

/* ---------------------------------------------------------------- within callbacks */

/* A link goes within a callback of its streams: nobody waits for that. */
static milieu_result frees(void *user, const milieu_event *event) {
    struct machine *machine = user;
    milieu_picture *picture;
    (void)event;
    EXPECT(MILIEU_BUSY, milieu_picture_of_link(machine->link, &picture));
    EXPECT(MILIEU_BUSY, milieu_link_poll(machine->link, NULL));
    milieu_link_free(machine->link);
    machine->link = NULL;
    return MILIEU_OK;
}

static void a_link_that_a_callback_frees(void) {
    struct machine machine;
    milieu_hub *hub;
    milieu_engine *engine;
    milieu_terms terms = MILIEU_TERMS;
    int destroyed = 0;
    terms.is_open = true;
    start(&machine);
    OK(milieu_hub_new(false, &hub));
    OK(milieu_hub_join(hub, milieu_text_of("alone"), &engine));
    OK(milieu_link_new(machine.streams, engine, &terms, &destroyed, count, &machine.link));
    milieu_publisher *oven;
    milieu_listener *listener;
    OK(milieu_publisher_new(machine.streams, milieu_text_of("/oven"), type, false, &oven));
    OK(milieu_listener_new(
        machine.streams, milieu_text_of("/oven"), frees, &machine, NULL, &listener));
    OK(milieu_publisher_publish(oven, &(double){ 1 }, NULL, NULL));
    CHECK(machine.link == NULL && destroyed == 1);
    milieu_listener_free(listener);
    milieu_publisher_free(oven);
    milieu_hub_free(hub);
    stop(&machine);
}

/* In real time the thread of sources sees to it. */
static void in_real_time(void) {
    milieu_coordinator *coordinators[2];
    milieu_streams *streams[2];
    milieu_link *links[2];
    milieu_hub *hub;
    milieu_terms terms = MILIEU_TERMS;
    terms.is_open = true;
    OK(milieu_hub_new(true, &hub));
    for (int i = 0; i < 2; i++) {
        milieu_engine *engine;
        OK(milieu_coordinator_new(&coordinators[i]));
        OK(milieu_streams_new(coordinators[i], NULL, &streams[i]));
        OK(milieu_hub_join(hub, milieu_text_of(i ? "garden" : "kitchen"), &engine));
        OK(milieu_link_new(streams[i], engine, &terms, NULL, NULL, &links[i]));
    }
    milieu_publisher *oven;
    milieu_subscription *read;
    const milieu_event *event;
    OK(milieu_publisher_new(streams[0], milieu_text_of("/oven"), type, true, &oven));
    OK(milieu_publisher_publish(oven, &(double){ 180 }, NULL, NULL));
    OK(milieu_subscription_new(streams[1], milieu_text_of("/oven"), NULL, &read));
    OK(milieu_subscription_next(read, 20000000000, &event));
    CHECK(event != NULL);
    OK(milieu_subscription_free(read));
    milieu_publisher_free(oven);
    for (int i = 0; i < 2; i++) {
        milieu_link_free(links[i]);
        milieu_streams_free(streams[i]);
        milieu_coordinator_free(coordinators[i]);
    }
    milieu_hub_free(hub);
}

int main(void) {
    OK(milieu_event_type_new(&number, &type));
    machines_of_a_process(false);
    machines_of_a_process(true);
    an_engine_that_tells_nonsense();
    a_link_that_a_callback_frees();
    in_real_time();
    puts("ok");
    return 0;
}
