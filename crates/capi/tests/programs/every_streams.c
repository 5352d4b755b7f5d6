/* Every function of streams.h and what it includes with every kind of misuse that it can be told of: from
 * outside, from within callbacks, and with what is in use. `list` prints their names, which have to
 * be those of the headers; any other argument is a folder for what streams remember. */

#include "check.h"

#include <milieu/streams.h>

/* What functions are handed; one of it is wrong at a time. */
struct arguments {
    milieu_coordinator *coordinator;
    milieu_context *cx;
    milieu_streams *streams;
    const milieu_event_type *type;
    milieu_event *event;
    milieu_publisher *publisher;
    milieu_subscription *subscription;
    milieu_listener *listener;
    milieu_source *source;
    milieu_effect *effect;
    milieu_reader *reader;
    milieu_picture *picture;
    milieu_memory *memory;
    milieu_flow *flow;
    milieu_writing *writing;
    milieu_rehearsal *rehearsal;
    milieu_expression *expression;
    milieu_feed *feed;
    milieu_answer *answer;
    const milieu_arguments *arguments;
    milieu_output *output;
    milieu_snapshot *snapshot;
    milieu_text text;
    /* Where results go: null, or the address of some memory. */
    void *out;
    /* Whether callbacks are handed over. */
    bool calls;
};

#include "every.h"

static const milieu_event_field number_field = { "", 0, MILIEU_F64, 0, NULL, NULL };
static const milieu_event_layout number = { MILIEU_ABI, 1, "number", &number_field,
    sizeof(double), MILIEU_ALIGNOF(double) };
static const double one = 1;

static milieu_result receive(void *user, const milieu_event *event) {
    (void)user;
    (void)event;
    return MILIEU_OK;
}

static milieu_result compute(void *user, const milieu_event *event, milieu_answer *answer) {
    (void)user;
    (void)event;
    (void)answer;
    return MILIEU_OK;
}

static milieu_result transform(void *user, const milieu_event *event, milieu_output *output) {
    (void)user;
    (void)event;
    (void)output;
    return MILIEU_OK;
}

static milieu_result look(void *user, milieu_feed *feed) {
    (void)user;
    return milieu_feed_end(feed);
}

static milieu_result told(void *user, const milieu_name_change *changes, size_t count) {
    (void)user;
    (void)changes;
    (void)count;
    return MILIEU_OK;
}

static milieu_service service(struct arguments *a) {
    milieu_service made = MILIEU_SERVICE;
    made.endpoint = a->text;
    return made;
}

static milieu_operator operator_of(struct arguments *a) {
    milieu_operator made = { 0 };
    made.abi = MILIEU_ABI;
    made.inputs = 1;
    made.name = a->text.bytes && a->text.bytes[0] == '/' ? "every" : a->text.bytes;
    made.summary = "It does nothing.";
    return made;
}

static const milieu_blocking terms = MILIEU_BLOCKING;

/* What is remembered of streams, as it was written. */
static milieu_text bytes(struct arguments *a) {
    milieu_text bytes = { NULL, 0 };
    milieu_result result = milieu_memory_bytes(a->memory, &bytes);
    (void)result;
    return bytes;
}

#define ON(callback) (a->calls ? callback : NULL)

#define FUNCTIONS(R, S)                                                                       \
    R(milieu_streams_new, OF(coordinator), OUT, a->coordinator, NULL, a->out)                 \
    S(milieu_streams_free, OF(streams), GIVEN, a->streams)                                    \
    R(milieu_streams_now, OF(streams), OUT, a->streams, a->out)                               \
    R(milieu_streams_drive, OF(streams), 0, a->streams)                                       \
    R(milieu_streams_drive_with, OF(streams), 0, a->streams, &terms)                          \
    R(milieu_streams_pass, OF(streams), WAITS, a->streams, 1)                                 \
    R(milieu_streams_wait_for_sources, OF(streams), OUT | WAITS, a->streams, 0, a->out)       \
    R(milieu_streams_follow, OF(streams), TEXT, a->streams, a->text)                          \
    R(milieu_event_type_new, NONE, OUT, &number, a->out)                                      \
    R(milieu_event_type_name, OF(type), OUT | LASTING, a->type, a->out)                       \
    R(milieu_event_type_unit, OF(type), TEXT | OUT | LASTING, a->type, a->text, a->out)       \
    R(milieu_event_header, OF(event), OUT, a->event, a->out)                                  \
    R(milieu_event_type_of, OF(event), OUT, a->event, a->out)                                 \
    R(milieu_event_body, OF(event), OUT, a->event, a->type, a->out)                           \
    R(milieu_event_get, OF(event), TEXT | OUT, a->event, a->text, a->out)                     \
    R(milieu_event_json, OF(event), OUT, a->event, a->out)                                    \
    R(milieu_event_get_with, OF(event), TEXT | OUT, a->event, a->text, 0, a->out)             \
    R(milieu_event_json_with, OF(event), OUT, a->event, MILIEU_READ_PRIVATE, a->out)          \
    R(milieu_event_keep, OF(event), OUT, a->event, a->out)                                    \
    R(milieu_event_free, OF(event), GIVEN, a->event)                                          \
    R(milieu_publisher_new, OF(streams), TEXT | OUT, a->streams, a->text, a->type, false,     \
        a->out)                                                                               \
    S(milieu_publisher_free, OF(publisher), GIVEN, a->publisher)                              \
    R(milieu_publisher_publish, OF(publisher), 0, a->publisher, &one, NULL, NULL)             \
    R(milieu_subscription_new, OF(streams), TEXT | OUT, a->streams, a->text, NULL, a->out)    \
    R(milieu_subscription_free, OF(subscription), GIVEN, a->subscription)                     \
    R(milieu_subscription_next, OF(subscription), OUT | WAITS, a->subscription, -1, a->out)   \
    R(milieu_subscription_descriptor, OF(subscription), OUT, a->subscription, a->out)         \
    R(milieu_subscription_tally, OF(subscription), OUT, a->subscription, a->out)              \
    R(milieu_subscription_dropped, OF(subscription), TEXT | OUT, a->subscription, a->text,    \
        a->out)                                                                               \
    R(milieu_listener_new, OF(streams), TEXT | OUT | CALLBACK, a->streams, a->text,           \
        ON(receive), NULL, destroy, a->out)                                                   \
    S(milieu_listener_free, OF(listener), GIVEN, a->listener)                                 \
    R(milieu_listener_failures, OF(listener), OUT, a->listener, a->out, NULL)                 \
    R(milieu_source_new, OF(streams), TEXT | OUT | CALLBACK | WAITS, a->streams, a->text,     \
        ON(look), NULL, destroy, a->out)                                                      \
    S(milieu_source_free, OF(source), GIVEN, a->source)                                       \
    R(milieu_source_status, OF(source), OUT, a->source, a->out, NULL)                         \
    R(milieu_feed_now, OF(feed), OUT | LENT, a->feed, a->out)                                 \
    R(milieu_feed_publish, OF(feed), LENT, a->feed, a->type, &one, NULL)                      \
    R(milieu_feed_working, OF(feed), LENT, a->feed)                                           \
    R(milieu_feed_failing, OF(feed), TEXT | LENT, a->feed, a->text)                           \
    R(milieu_feed_wait, OF(feed), LENT, a->feed, 1)                                           \
    R(milieu_feed_wait_readable, OF(feed), LENT, a->feed)                                     \
    R(milieu_feed_descriptor, OF(feed), LENT, a->feed, -1)                                    \
    R(milieu_feed_end, OF(feed), LENT, a->feed)                                               \
    R(milieu_answer_give, OF(answer), TEXT | LENT, a->answer, milieu_datum_text(a->text))     \
    R(milieu_function_define, OF(coordinator), TEXT | CALLBACK, a->coordinator, a->text,      \
        ON(compute), false, NULL, destroy)                                                    \
    R(milieu_transform_define, OF(coordinator), TEXT | CALLBACK, a->coordinator, a->text,     \
        ON(transform), false, NULL, destroy)                                                  \
    R(milieu_operator_define, OF(coordinator), CALLBACK, a->coordinator,                      \
        (milieu_operator[]){ operator_of(a) }, NULL, destroy)                                 \
    R(milieu_arguments_get, OF(arguments), TEXT | OUT | LENT, a->arguments, a->text, a->out)  \
    R(milieu_arguments_expression, OF(arguments), TEXT | OUT | LENT, a->arguments, a->text,   \
        a->out)                                                                               \
    R(milieu_arguments_count, OF(arguments), TEXT | OUT | LENT, a->arguments, a->text, a->out) \
    R(milieu_arguments_field, OF(arguments), TEXT | OUT | LENT, a->arguments, a->text, 0,     \
        a->out, (milieu_expression **)a->out)                                                 \
    R(milieu_arguments_function, OF(arguments), TEXT | OUT | LENT, a->arguments, a->text, 0,  \
        a->out)                                                                               \
    R(milieu_expression_value, OF(expression), OUT, a->expression, a->event, a->out)          \
    S(milieu_expression_free, OF(expression), GIVEN, a->expression)                           \
    R(milieu_output_now, OF(output), OUT | LENT, a->output, a->out)                           \
    R(milieu_output_publish, OF(output), LENT, a->output, a->type, &one, NULL)                \
    R(milieu_output_pass, OF(output), LENT, a->output)                                        \
    R(milieu_output_drop, OF(output), TEXT | LENT, a->output, a->text)                        \
    R(milieu_output_hold, OF(output), LENT, a->output)                                        \
    R(milieu_output_pass_held, OF(output), LENT, a->output, a->event)                         \
    R(milieu_output_settle_held, OF(output), TEXT | LENT, a->output, 0, 0, a->text)           \
    R(milieu_output_wake_at, OF(output), LENT, a->output, 1)                                  \
    R(milieu_snapshot_put, OF(snapshot), LENT, a->snapshot, "a", 1)                           \
    R(milieu_effect_apply, OF(streams), TEXT | OUT | WAITS, a->streams,                       \
        milieu_text_of("every.flow"), a->text, a->out)                                        \
    R(milieu_effect_subscribe, OF(effect), TEXT | OUT, a->effect, a->text, a->out)            \
    R(milieu_effect_publish, OF(streams), TEXT | OUT | WAITS, a->streams, a->text,            \
        milieu_text_of("/p"), a->out)                                                         \
    R(milieu_effect_bind, OF(streams), TEXT | OUT | WAITS, a->streams, milieu_text_of("/b"),  \
        &a->text, 1, a->out)                                                                  \
    R(milieu_effect_rebind, OF(effect), TEXT, a->effect, &a->text, 1)                         \
    R(milieu_effect_bind_flow, OF(streams), TEXT | OUT | WAITS, a->streams, a->text,          \
        milieu_text_of("/f"), a->out)                                                         \
    R(milieu_effect_serve, OF(streams), TEXT | OUT | WAITS, a->streams, milieu_text_of("/s"), \
        (milieu_service[]){ service(a) }, a->out)                                             \
    R(milieu_effect_renew, OF(effect), 0, a->effect, 1)                                       \
    R(milieu_effect_watch, OF(streams), TEXT | OUT | CALLBACK | WAITS, a->streams, a->text,   \
        ON(told), NULL, destroy, a->out)                                                      \
    R(milieu_effect_activate, OF(streams), TEXT | OUT | CALLBACK | WAITS, a->streams,         \
        a->text, milieu_text_of("heat"), 0, ON(compute), NULL, destroy, a->out)               \
    R(milieu_effect_assign, OF(streams), TEXT | OUT | CALLBACK, a->streams, a->text,          \
        milieu_text_of("/k"), ON(compute), NULL, destroy, a->out)                             \
    R(milieu_effect_keep, OF(streams), TEXT | OUT | WAITS, a->streams, a->text, -1, a->out)   \
    R(milieu_effect_save, OF(effect), WAITS, a->effect)                                       \
    R(milieu_effect_control, OF(streams), OUT, a->streams, a->out)                            \
    R(milieu_effect_path, OF(effect), OUT, a->effect, a->out)                                 \
    R(milieu_effect_failures, OF(effect), OUT, a->effect, a->out, NULL)                       \
    S(milieu_effect_free, OF(effect), GIVEN, a->effect)                                       \
    R(milieu_reader_new, OF(streams), OUT, a->streams, a->cx, a->out)                         \
    S(milieu_reader_free, OF(reader), GIVEN, a->reader)                                       \
    R(milieu_reader_follow, OF(reader), 0, a->reader, a->cx)                                  \
    R(milieu_reader_subscribe, OF(reader), TEXT | OUT, a->reader, a->text, NULL, a->out)      \
    R(milieu_reader_listen, OF(reader), TEXT | OUT | CALLBACK, a->reader, a->text,            \
        ON(receive), NULL, destroy, a->out)                                                   \
    R(milieu_picture_of_graph, OF(streams), OUT | WAITS, a->streams, a->out)                  \
    R(milieu_picture_of_names, OF(streams), TEXT | OUT | WAITS, a->streams, a->text, a->out)  \
    R(milieu_picture_of_losses, OF(effect), OUT | WAITS, a->effect, a->out)                   \
    R(milieu_picture_of_not_restored, OF(streams), OUT | WAITS, a->streams, a->out)           \
    R(milieu_memory_new, OF(streams), OUT | WAITS, a->streams, a->out)                        \
    R(milieu_memory_bytes, OF(memory), OUT, a->memory, a->out)                                \
    S(milieu_memory_free, OF(memory), GIVEN, a->memory)                                       \
    R(milieu_memory_restore, OF(streams), WAITS, a->streams, bytes(a))                        \
    R(milieu_picture_json, OF(picture), OUT, a->picture, a->out)                              \
    S(milieu_picture_free, OF(picture), GIVEN, a->picture)                                    \
    R(milieu_flow_new, OF(streams), TEXT | OUT, a->streams, a->text, a->out)                  \
    R(milieu_flow_and, OF(flow), 0, a->flow, a->flow)                                         \
    R(milieu_flow_then, OF(flow), TEXT, a->flow, a->text, NULL, 0)                            \
    R(milieu_flow_text, OF(flow), OUT, a->flow, a->out)                                       \
    S(milieu_flow_free, OF(flow), GIVEN, a->flow)                                             \
    R(milieu_literal, NONE, TEXT | OUT, milieu_datum_text(a->text), a->out, 64, NULL)         \
    R(milieu_writing_of_flows, OF(streams), TEXT | OUT, a->streams,                           \
        milieu_text_of("every.flow"), a->text, MILIEU_XML, a->out)                            \
    R(milieu_writing_of_schema, OF(streams), OUT, a->streams, a->out)                         \
    R(milieu_writing_text, OF(writing), OUT, a->writing, a->out)                              \
    S(milieu_writing_free, OF(writing), GIVEN, a->writing)                                    \
    R(milieu_rehearsal_new, OF(streams), TEXT | OUT | WAITS, a->streams,                      \
        milieu_text_of("every.cases"), a->text, a->out)                                       \
    R(milieu_rehearsal_cases, OF(rehearsal), OUT, a->rehearsal, a->out, (size_t *)a->out)     \
    S(milieu_rehearsal_free, OF(rehearsal), GIVEN, a->rehearsal)

DEFINE(FUNCTIONS)

#include "every_lent.h"

static char memory[4096];

/* What is in use further up. */
static void in_use(size_t handle) {
    int calls = 0;
    for (size_t i = 0; i < count; i++)
        if (rows[i].handle == handle) {
            expect(&rows[i], &good, MILIEU_BUSY, "in use");
            calls++;
        }
    CHECK(calls > 1);
}

static milieu_result poll_once(void *user, milieu_feed *feed) {
    misuse_lent(OF(feed), feed);
    *(milieu_feed **)user = feed;
    return milieu_feed_end(feed);
}

/* An operator that is handed everything that one can be. */
struct everything {
    milieu_expression *expression;
    int steps;
};

static milieu_result make_everything(void *user, const milieu_arguments *arguments, void **state) {
    static struct everything everything;
    (void)user;
    misuse_lent(OF(arguments), arguments);
    OK(milieu_arguments_expression(arguments, milieu_text_of("of"), &everything.expression));
    *state = &everything;
    return MILIEU_OK;
}

static milieu_result step_everything(void *state, uint32_t input, const milieu_event *event,
    milieu_output *output) {
    struct everything *everything = state;
    (void)input;
    misuse_lent(OF(output), output);
    good.expression = everything->expression;
    milieu_datum datum;
    OK(milieu_expression_value(good.expression, event, &datum));
    CHECK(datum.kind == MILIEU_F64 && datum.content.number == 2);
    everything->steps++;
    return milieu_output_publish(output, good.type, &datum.content.number, NULL);
}

static bool saving;

static milieu_result save_everything(void *state, milieu_snapshot *snapshot) {
    struct everything *everything = state;
    misuse_lent(OF(snapshot), snapshot);
    /* While it is saved the effect is in use, and so are the streams. */
    if (saving) in_use(OF(effect));
    return milieu_snapshot_put(snapshot, &everything->steps, sizeof everything->steps);
}

static milieu_result restore_everything(void *state, milieu_text bytes) {
    (void)state;
    (void)bytes;
    return MILIEU_OK;
}

static const milieu_parameter of_parameter[] = {
    { "of", MILIEU_EXPRESSION, 0, NULL, "value", "What counts.", true },
};
static const milieu_operator everything = { MILIEU_ABI, 1, 0, 1, "everything", "Is handed all.",
    of_parameter, make_everything, step_everything, NULL, save_everything, restore_everything,
    NULL };

/* A function that is asked by the expression of an operator, which is in use meanwhile. */
static milieu_result twice(void *user, const milieu_event *event, milieu_answer *answer) {
    const double *body;
    (void)user;
    misuse_lent(OF(answer), answer);
    if (good.expression) in_use(OF(expression));
    OK(milieu_event_body(event, good.type, (const void **)&body));
    return milieu_answer_give(answer, milieu_datum_number(*body * 2));
}

/* Whoever comes late gets what is so at once, while the reader is in use. */
static milieu_result late(void *user, const milieu_event *event) {
    (void)event;
    in_use(OF(reader));
    *(bool *)user = true;
    return MILIEU_OK;
}

/* Nobody waits within a callback for what waits for it. */
static milieu_result within(void *user, const milieu_event *event) {
    int *calls = user;
    (void)event;
    for (size_t i = 0; i < count; i++) {
        if (!(rows[i].kinds & WAITS) || rows[i].handle == OF(effect)) continue;
        /* In real time a source is added by its thread. */
        if (strcmp(rows[i].name, "milieu_source_new") == 0) continue;
        expect(&rows[i], &good, MILIEU_BUSY, "within a callback");
        ++*calls;
    }
    return MILIEU_OK;
}

struct settings {
    int64_t shown;
};
static const milieu_entry of_shown[] = { { "type", "long_long" }, { "default", "0" } };
static const milieu_value settings_value = { "/shown", 0, MILIEU_I64, 2, of_shown };
static const milieu_layout settings = { MILIEU_ABI, 1, &settings_value, sizeof(struct settings),
    MILIEU_ALIGNOF(struct settings) };

static const milieu_event *published(struct arguments *a) {
    const milieu_event *event;
    OK(milieu_publisher_publish(a->publisher, &one, NULL, NULL));
    OK(milieu_subscription_next(a->subscription, 0, &event));
    CHECK(event != NULL);
    return event;
}

static void make(struct arguments *a, const char *folder, milieu_feed **stale) {
    char path[4096];
    milieu_streams_options options = MILIEU_STREAMS_OPTIONS;
    options.virtual_time = true;
    OK(milieu_coordinator_new(&a->coordinator));
    OK(milieu_function_define(a->coordinator, milieu_text_of("twice"), twice, false, NULL, NULL));
    OK(milieu_operator_define(a->coordinator, &everything, NULL, NULL));
    OK(milieu_context_new(a->coordinator, &settings, NULL, &a->cx, NULL));
    OK(milieu_streams_new(a->coordinator, &options, &a->streams));
    OK(milieu_event_type_new(&number, &a->type));
    snprintf(path, sizeof path, "%s/every", folder);
    OK(milieu_effect_keep(a->streams, milieu_text_of(path), -1, &a->effect));
    OK(milieu_publisher_new(a->streams, milieu_text_of("/n"), a->type, true, &a->publisher));
    OK(milieu_subscription_new(a->streams, milieu_text_of("/n"), NULL, &a->subscription));
    OK(milieu_listener_new(a->streams, milieu_text_of("/n"), receive, NULL, NULL, &a->listener));
    OK(milieu_source_new(a->streams, milieu_text_of("/polled"), poll_once, stale, NULL, &a->source));
    OK(milieu_reader_new(a->streams, a->cx, &a->reader));
    OK(milieu_picture_of_graph(a->streams, &a->picture));
    OK(milieu_memory_new(a->streams, &a->memory));
    OK(milieu_flow_new(a->streams, milieu_text_of("/n"), &a->flow));
    OK(milieu_writing_of_schema(a->streams, &a->writing));
    OK(milieu_rehearsal_new(a->streams, milieu_text_of("every.cases"),
        milieu_text_of("# a case\n/n\n\n1 /n 1.0\n"), &a->rehearsal));
    OK(milieu_event_keep(published(a), &a->event));
    a->out = memory;
    a->text = milieu_text_of("/a");
    a->calls = true;
}

static void unmake(struct arguments *a) {
    OK(milieu_event_free(a->event));
    milieu_picture_free(a->picture);
    milieu_memory_free(a->memory);
    milieu_flow_free(a->flow);
    milieu_writing_free(a->writing);
    milieu_rehearsal_free(a->rehearsal);
    milieu_reader_free(a->reader);
    milieu_source_free(a->source);
    milieu_listener_free(a->listener);
    OK(milieu_subscription_free(a->subscription));
    milieu_publisher_free(a->publisher);
    milieu_effect_free(a->effect);
    milieu_streams_free(a->streams);
    OK(milieu_context_free(a->cx));
    milieu_coordinator_free(a->coordinator);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    if (strcmp(argv[1], "list") == 0) {
        for (size_t i = 0; i < count; i++) puts(rows[i].name);
        return 0;
    }
    milieu_feed *stale = NULL;
    OK(milieu_event_type_new(&number, &good.type));
    make(&freed, argv[1], &stale);
    milieu_subscription *through;
    OK(milieu_subscription_new(
        freed.streams, milieu_text_of("/n | everything $twice"), NULL, &through));
    published(&freed);
    freed.expression = good.expression;
    milieu_expression_free(freed.expression);
    good.expression = NULL;
    OK(milieu_subscription_free(through));
    unmake(&freed);

    make(&good, argv[1], &stale);
    OK(milieu_streams_pass(good.streams, 1));
    CHECK(stale != NULL);
    /* With a flow through everything: what is lent is misused while it is good. */
    OK(milieu_subscription_new(
        good.streams, milieu_text_of("/n | everything $twice"), NULL, &through));
    published(&good);
    published(&good);
    saving = true;
    OK(milieu_effect_save(good.effect));
    saving = false;
    bool was = false;
    milieu_listener *listener;
    OK(milieu_reader_listen(good.reader, milieu_text_of("/n"), late, &was, NULL, &listener));
    CHECK(was);
    milieu_listener_free(listener);
    int calls = 0;
    OK(milieu_listener_new(good.streams, milieu_text_of("/w"), within, &calls, NULL, &listener));
    milieu_publisher *w;
    OK(milieu_publisher_new(good.streams, milieu_text_of("/w"), good.type, false, &w));
    OK(milieu_publisher_publish(w, &one, NULL, NULL));
    CHECK(calls > 10);
    milieu_publisher_free(w);
    milieu_listener_free(listener);

    for (size_t i = 0; i < count; i++) {
        if (!(rows[i].kinds & LENT)) misuse(&rows[i], &good);
        if (rows[i].handle == NONE) continue;
        void *other = rows[i].handle == OF(cx) ? (void *)good.streams : (void *)good.cx;
        mishandle(&rows[i], &good, &freed, other);
    }

    /* Nothing of it has changed anything. */
    milieu_tally tally;
    OK(milieu_subscription_tally(good.subscription, &tally));
    CHECK(tally.waiting == 0 && tally.dropped == 0);
    milieu_expression *expression = good.expression;
    OK(milieu_subscription_free(through));
    milieu_expression_free(expression);
    good.expression = NULL;
    unmake(&good);
    printf("%d\n", made);
    return 0;
}
