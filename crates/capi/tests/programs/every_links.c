/* Every function of links.h and engines.h with every kind of misuse that it can be told of. `list`
 * prints their names, which have to be those of the headers. */

#include "check.h"

#include <milieu/engines.h>

/* What functions are handed; one of it is wrong at a time. */
struct arguments {
    milieu_coordinator *coordinator;
    milieu_context *cx;
    milieu_streams *streams;
    milieu_hub *hub;
    milieu_engine *engine;
    milieu_link *link;
    milieu_waker *waker;
    milieu_granting *granting;
    milieu_arrivals *arrivals;
    milieu_text text;
    /* Where results go: null, or the address of some memory. */
    void *out;
    /* Whether callbacks are handed over. */
    bool calls;
};

#include "every.h"

static milieu_rights rights(struct arguments *a) {
    milieu_rights rights = MILIEU_RIGHTS;
    rights.publish.queries = &a->text;
    rights.publish.count = 1;
    return rights;
}

static milieu_terms terms(void) {
    milieu_terms terms = MILIEU_TERMS;
    terms.is_open = true;
    return terms;
}

static milieu_refusal submit(void *user, const milieu_parcel *parcels, size_t count,
    size_t *taken) {
    (void)user;
    (void)parcels;
    *taken = count;
    return MILIEU_ACCEPTED;
}
static uint64_t credit(void *user, uint64_t to, uint32_t channel) {
    (void)user;
    (void)to;
    (void)channel;
    return 0;
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
    return MILIEU_GONE;
}
static void replied(void *user, uint64_t to, uint64_t number, milieu_text answer) {
    (void)asked(user, to, number, answer);
}
static void closed(void *user, uint32_t reason) {
    (void)user;
    (void)reason;
}
static milieu_result poll(void *user, milieu_arrivals *arrivals);

static milieu_carrier carrier(struct arguments *a) {
    milieu_carrier carrier = { MILIEU_ABI, 0, 100, 1, 1, submit, credit, granted, shut, shut,
        asked, replied, a->calls ? poll : NULL, closed };
    return carrier;
}

static milieu_waker *waker;

static const milieu_parcel parcel = { .peer = 7 };

#define FUNCTIONS(R, S)                                                                       \
    R(milieu_reader_new_with, OF(streams), TEXT | OUT, a->streams, a->cx,                     \
        (milieu_rights[]){ rights(a) }, a->out)                                               \
    S(milieu_engine_free, OF(engine), GIVEN, a->engine)                                       \
    R(milieu_hub_new, NONE, OUT, false, a->out)                                               \
    S(milieu_hub_free, OF(hub), GIVEN, a->hub)                                                \
    R(milieu_hub_join, OF(hub), TEXT | OUT, a->hub, a->text, a->out)                          \
    R(milieu_granting_allow, OF(granting), TEXT | LENT, a->granting,                          \
        (milieu_rights[]){ rights(a) })                                                       \
    R(milieu_link_new, OF(streams), OUT, a->streams, a->engine, (milieu_terms[]){ terms() },  \
        NULL, NULL, a->out)                                                                   \
    S(milieu_link_free, OF(link), GIVEN, a->link)                                             \
    R(milieu_link_poll, OF(link), WAITS, a->link, NULL)                                       \
    R(milieu_picture_of_link, OF(link), OUT | WAITS, a->link, a->out)                         \
    R(milieu_engine_new, NONE, OUT | CALLBACK, (milieu_carrier[]){ carrier(a) }, NULL,        \
        destroy, a->out, &waker)                                                              \
    R(milieu_waker_wake, OF(waker), 0, a->waker)                                              \
    S(milieu_waker_free, OF(waker), GIVEN, a->waker)                                          \
    R(milieu_arrivals_joined, OF(arrivals), TEXT | LENT, a->arrivals, 7, a->text)             \
    R(milieu_arrivals_left, OF(arrivals), LENT, a->arrivals, 7, 0)                            \
    R(milieu_arrivals_frame, OF(arrivals), LENT, a->arrivals, &parcel)                        \
    R(milieu_arrivals_receipt, OF(arrivals), LENT, a->arrivals, 1, true)                      \
    R(milieu_arrivals_credit, OF(arrivals), LENT, a->arrivals, 7, 1)                          \
    R(milieu_arrivals_request, OF(arrivals), LENT, a->arrivals, 7, 1, a->text)                \
    R(milieu_arrivals_reply, OF(arrivals), LENT, a->arrivals, 7, 1, NULL)

DEFINE(FUNCTIONS)

#include "every_lent.h"

static char memory[64];

/* Nobody waits within a callback for what waits for it. */
static void within(void) {
    int calls = 0;
    for (size_t i = 0; i < count; i++) {
        if (!(rows[i].kinds & WAITS) || !good.link) continue;
        expect(&rows[i], &good, MILIEU_BUSY, "within a callback");
        calls++;
    }
    CHECK(!good.link || calls == 2);
}

static milieu_result poll(void *user, milieu_arrivals *arrivals) {
    (void)user;
    good.arrivals = arrivals;
    misuse_lent(OF(arrivals), arrivals);
    within();
    return MILIEU_OK;
}

static milieu_result grant(void *user, const milieu_peer *peer, milieu_granting *granting) {
    (void)user;
    (void)peer;
    good.granting = granting;
    misuse_lent(OF(granting), granting);
    return MILIEU_OK;
}

struct settings {
    int64_t shown;
};
static const milieu_entry of_shown[] = { { "type", "long_long" }, { "default", "0" } };
static const milieu_value settings_value = { "/shown", 0, MILIEU_I64, 2, of_shown };
static const milieu_layout settings = { MILIEU_ABI, 1, &settings_value, sizeof(struct settings),
    MILIEU_ALIGNOF(struct settings) };

static void make(struct arguments *a) {
    milieu_streams_options options = MILIEU_STREAMS_OPTIONS;
    milieu_engine *engine;
    options.virtual_time = true;
    a->calls = true;
    a->out = memory;
    a->text = milieu_text_of("/a");
    OK(milieu_coordinator_new(&a->coordinator));
    OK(milieu_context_new(a->coordinator, &settings, NULL, &a->cx, NULL));
    OK(milieu_streams_new(a->coordinator, &options, &a->streams));
    OK(milieu_hub_new(false, &a->hub));
    OK(milieu_hub_join(a->hub, milieu_text_of("a"), &a->engine));
    const milieu_carrier own = carrier(a);
    const milieu_terms open = terms();
    OK(milieu_engine_new(&own, NULL, NULL, &engine, &a->waker));
    OK(milieu_link_new(a->streams, engine, &open, NULL, NULL, &a->link));
    OK(milieu_link_poll(a->link, NULL));
}

static void unmake(struct arguments *a) {
    milieu_link_free(a->link);
    milieu_waker_free(a->waker);
    milieu_engine_free(a->engine);
    milieu_hub_free(a->hub);
    milieu_streams_free(a->streams);
    OK(milieu_context_free(a->cx));
    milieu_coordinator_free(a->coordinator);
}

/* A peer comes, and is asked about. */
static void be_granted(void) {
    milieu_terms of_grant = terms();
    milieu_engine *engine;
    milieu_link *links[2];
    of_grant.grant = grant;
    for (int i = 0; i < 2; i++) {
        OK(milieu_hub_join(good.hub, milieu_text_of("b"), &engine));
        OK(milieu_link_new(good.streams, engine, &of_grant, NULL, NULL, &links[i]));
    }
    OK(milieu_link_poll(links[0], NULL));
    CHECK(good.granting != NULL);
    milieu_link_free(links[0]);
    milieu_link_free(links[1]);
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        for (size_t i = 0; i < count; i++) puts(rows[i].name);
        return 0;
    }
    make(&freed);
    unmake(&freed);
    good.link = NULL;
    make(&good);
    OK(milieu_waker_wake(good.waker));
    OK(milieu_link_poll(good.link, NULL));
    be_granted();
    for (size_t i = 0; i < count; i++) {
        if (!(rows[i].kinds & LENT)) misuse(&rows[i], &good);
        if (rows[i].handle == NONE) continue;
        void *other = rows[i].handle == OF(cx) ? (void *)good.streams : (void *)good.cx;
        mishandle(&rows[i], &good, &freed, other);
    }
    unmake(&good);
    printf("%d\n", made);
    return 0;
}
