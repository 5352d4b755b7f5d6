/* What streams.c leaves out: what takes long, several threads, handles that go before others, the
 * naming tree, the socket for other tools, readers with callbacks, and expressions. */

#define _DEFAULT_SOURCE

#include "check.h"

#include <milieu/streams.h>

#include <pthread.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define TEXT milieu_text_of
#define SECOND 1000000000LL

static const milieu_event_field number_field = { "", 0, MILIEU_F64, 0, NULL, NULL };
static const milieu_event_layout number_layout = { MILIEU_ABI, 1, "number", &number_field,
    sizeof(double), MILIEU_ALIGNOF(double) };
static const milieu_event_field text_field = { "", 0, MILIEU_TEXT, 0, NULL, NULL };
static const milieu_event_layout text_layout = { MILIEU_ABI, 1, "text", &text_field,
    sizeof(milieu_text), MILIEU_ALIGNOF(milieu_text) };
static const milieu_event_type *number_type, *text_type;

/* Everything below is of one coordinator at a time. */
static milieu_coordinator *coordinator;
static milieu_streams *streams;

static void begin(bool virtual_time) {
    milieu_streams_options options = MILIEU_STREAMS_OPTIONS;
    options.virtual_time = virtual_time;
    if (!coordinator) OK(milieu_coordinator_new(&coordinator));
    OK(milieu_streams_new(coordinator, &options, &streams));
}

static void end(void) {
    milieu_streams_free(streams);
    milieu_coordinator_free(coordinator);
    coordinator = NULL;
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

static double number_of(const milieu_event *event) {
    const double *number;
    CHECK(event != NULL);
    OK(milieu_event_body(event, number_type, (const void **)&number));
    return *number;
}

static const milieu_event *next(milieu_subscription *subscription, int64_t timeout_ns) {
    const milieu_event *event;
    OK(milieu_subscription_next(subscription, timeout_ns, &event));
    return event;
}

/* Something that takes until it is let go on. */
struct slow {
    sem_t begun, may_end;
    pthread_t thread;
};

static void take_long(struct slow *slow) {
    slow->thread = pthread_self();
    CHECK(sem_post(&slow->begun) == 0);
    while (sem_wait(&slow->may_end) != 0) continue;
}

static milieu_result slow_value(void *user, const milieu_event *event, milieu_answer *answer) {
    take_long(user);
    return milieu_answer_give(answer, milieu_datum_bool(number_of(event) > 1));
}

static milieu_result slow_step(void *state, uint32_t input, const milieu_event *event,
    milieu_output *output) {
    (void)input;
    (void)event;
    take_long(state);
    return milieu_output_pass(output);
}

static milieu_result make_slow(void *user, const milieu_arguments *arguments, void **state) {
    (void)arguments;
    *state = user;
    return MILIEU_OK;
}

static milieu_result slow_transform(void *user, const milieu_event *event, milieu_output *output) {
    double doubled = number_of(event) * 2;
    take_long(user);
    return milieu_output_publish(output, number_type, &doubled, NULL);
}

/* What takes long runs in another thread, and holds up neither publishers nor others. */
static void what_blocks(void) {
    struct slow slow[3];
    for (int i = 0; i < 3; i++) {
        CHECK(sem_init(&slow[i].begun, 0, 0) == 0 && sem_init(&slow[i].may_end, 0, 0) == 0);
    }
    OK(milieu_coordinator_new(&coordinator));
    OK(milieu_function_define(coordinator, TEXT("known"), slow_value, true, &slow[0], NULL));
    OK(milieu_transform_define(coordinator, TEXT("twice"), slow_transform, true, &slow[1], NULL));
    milieu_operator ask = { 0 };
    ask.abi = MILIEU_ABI;
    ask.inputs = 1;
    ask.flags = MILIEU_OPERATOR_BLOCKS;
    ask.name = "ask";
    ask.summary = "Asks another host.";
    ask.make = make_slow;
    ask.step = slow_step;
    OK(milieu_operator_define(coordinator, &ask, &slow[2], NULL));
    begin(false);
    OK(milieu_streams_drive(streams));
    milieu_publisher *publisher = publisher_of("/n", number_type);
    const char *flows[] = { "/n | filter $known", "/n | transform $twice", "/n | ask" };
    milieu_subscription *quick = subscribe("/n"), *results[3];
    for (int i = 0; i < 3; i++) results[i] = subscribe(flows[i]);
    publish(publisher, 5);
    CHECK(number_of(next(quick, 0)) == 5);
    for (int i = 0; i < 3; i++) {
        while (sem_wait(&slow[i].begun) != 0) continue;
        CHECK(!pthread_equal(slow[i].thread, pthread_self()));
        CHECK(next(results[i], 0) == NULL);
        CHECK(sem_post(&slow[i].may_end) == 0);
        CHECK(number_of(next(results[i], -1)) == (i == 1 ? 10 : 5));
        OK(milieu_subscription_free(results[i]));
    }
    OK(milieu_subscription_free(quick));
    milieu_publisher_free(publisher);
    end();
}

/* Several threads publish by one publisher, and each has its own subscription. */
enum { EACH = 200, THREADS = 4 };

static void *publish_many(void *publisher) {
    for (int i = 0; i < EACH; i++) publish(publisher, i);
    return NULL;
}

static void *take_many(void *subscription) {
    double sum = 0;
    for (int i = 0; i < EACH * THREADS; i++) sum += number_of(next(subscription, -1));
    CHECK(sum == THREADS * (EACH - 1.0) * EACH / 2);
    OK(milieu_subscription_free(subscription));
    return NULL;
}

static void *keep_and_read(void *event) {
    milieu_header header;
    OK(milieu_event_header(event, &header));
    CHECK(milieu_text_is(header.name, "/n") && number_of(event) == 7);
    OK(milieu_event_free(event));
    return NULL;
}

static milieu_result count_events(void *user, const milieu_event *event) {
    (void)event;
    ++*(int *)user;
    return MILIEU_OK;
}

static void *free_listener(void *listener) {
    milieu_listener_free(listener);
    return NULL;
}

static void several_threads(void) {
    begin(false);
    milieu_publisher *publisher = publisher_of("/n", number_type);
    pthread_t publishing[THREADS], taking[2], other;
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&taking[i], NULL, take_many, subscribe("/n")) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&publishing[i], NULL, publish_many, publisher) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(publishing[i], NULL) == 0);
    for (int i = 0; i < 2; i++) CHECK(pthread_join(taking[i], NULL) == 0);

    /* Handles go from thread to thread, and are freed where they are. */
    milieu_subscription *subscription = subscribe("/n");
    publish(publisher, 7);
    milieu_event *kept;
    OK(milieu_event_keep(next(subscription, 0), &kept));
    OK(milieu_subscription_free(subscription));
    CHECK(pthread_create(&other, NULL, keep_and_read, kept) == 0 && pthread_join(other, NULL) == 0);
    milieu_header header;
    EXPECT(MILIEU_FREED, milieu_event_header(kept, &header));
    int events = 0;
    milieu_listener *listener;
    OK(milieu_listener_new(streams, TEXT("/n"), count_events, &events, NULL, &listener));
    publish(publisher, 8);
    CHECK(pthread_create(&other, NULL, free_listener, listener) == 0);
    CHECK(pthread_join(other, NULL) == 0);
    publish(publisher, 9);
    CHECK(events == 1);
    milieu_publisher_free(publisher);
    end();
}

/* What was made of a coordinator and its streams outlives their handles. */
static void handles_that_go_first(void) {
    begin(true);
    milieu_publisher *publisher = publisher_of("/n", number_type);
    milieu_subscription *subscription = subscribe("/n | filter value > 1");
    milieu_effect *named;
    OK(milieu_effect_publish(streams, TEXT("/n"), TEXT("/m"), &named));
    milieu_streams *gone = streams;
    end();
    milieu_subscription *none;
    EXPECT(MILIEU_FREED, milieu_subscription_new(gone, TEXT("/n"), NULL, &none));
    publish(publisher, 2);
    CHECK(number_of(next(subscription, 0)) == 2);
    milieu_publisher_free(publisher);
    publisher = NULL;
    CHECK(next(subscription, 0) == NULL);
    milieu_effect_free(named);
    OK(milieu_subscription_free(subscription));
}

/* A name that stands for what events say. */
static void names_that_flows_bind(void) {
    begin(true);
    milieu_publisher *where = publisher_of("/where", text_type),
                     *five = publisher_of("/rooms/005", number_type),
                     *seven = publisher_of("/rooms/007", number_type);
    milieu_effect *bound, *second;
    OK(milieu_effect_bind_flow(streams, TEXT("/where"), TEXT("/here"), &bound));
    EXPECT(MILIEU_WRONG_NAME,
        milieu_effect_bind_flow(streams, TEXT("/here"), TEXT("/here"), &second));
    milieu_subscription *here = subscribe("/here");
    milieu_text room = TEXT("/rooms/005");
    OK(milieu_publisher_publish(where, &room, NULL, NULL));
    publish(five, 1);
    publish(seven, 2);
    CHECK(number_of(next(here, 0)) == 1 && next(here, 0) == NULL);
    room = TEXT("/rooms/007");
    OK(milieu_publisher_publish(where, &room, NULL, NULL));
    publish(five, 3);
    publish(seven, 4);
    CHECK(number_of(next(here, 0)) == 4 && next(here, 0) == NULL);
    uint64_t count;
    milieu_text why;
    OK(milieu_effect_failures(bound, &count, &why));
    CHECK(count == 0 && why.length == 0);
    room = TEXT("no name");
    OK(milieu_publisher_publish(where, &room, NULL, NULL));
    OK(milieu_effect_failures(bound, &count, &why));
    CHECK(count == 1 && why.length > 0);
    milieu_effect_free(bound);

    /* One that the program binds anew, and that follows a layer. */
    milieu_text target = TEXT("/rooms/005");
    OK(milieu_effect_bind(streams, TEXT("/mine"), &target, 1, &bound));
    milieu_subscription *mine = subscribe("/mine");
    publish(five, 5);
    target = TEXT("/rooms/%room%");
    OK(milieu_effect_rebind(bound, &target, 1));
    publish(five, 6);
    CHECK(number_of(next(mine, 0)) == 5 && next(mine, 0) == NULL);
    milieu_effect *follows;
    OK(milieu_effect_apply(streams, TEXT("r.flow"),
        TEXT("/rooms/005 | activate room value='007'\n"), &follows));
    publish(five, 7);
    publish(seven, 8);
    CHECK(number_of(next(mine, 0)) == 8);
    OK(milieu_streams_follow(streams, TEXT("floor")));
    target = TEXT("mine");
    EXPECT(MILIEU_WRONG_NAME, milieu_effect_rebind(bound, &target, 1));
    EXPECT(MILIEU_INVALID, milieu_effect_renew(follows, 5));
    EXPECT(MILIEU_INVALID, milieu_effect_rebind(follows, &target, 1));
    SAYS("milieu_effect_bind");
    milieu_effect_free(follows);
    milieu_effect_free(bound);
    OK(milieu_subscription_free(here));
    OK(milieu_subscription_free(mine));
    milieu_publisher_free(where);
    milieu_publisher_free(five);
    milieu_publisher_free(seven);
    end();
}

/* What a watch was told, a line for each name. */
static char told[4096];

static milieu_result tell(void *user, const milieu_name_change *changes, size_t count) {
    static const char *const verbs[] = { "joined", "left", "altered" };
    static const char *const kinds[] = { "stream", "service", "binding" };
    (void)user;
    for (size_t i = 0; i < count; i++) {
        const milieu_name_change *it = &changes[i];
        size_t at = strlen(told);
        at += (size_t)snprintf(told + at, sizeof told - at, MILIEU_TEXT_FORMAT " %s",
            MILIEU_TEXT_ARGUMENTS(it->name), verbs[it->change]);
        if (it->change != MILIEU_LEFT)
            at += (size_t)snprintf(told + at, sizeof told - at, " %s", kinds[it->kind]);
        if (it->endpoint.length > 0)
            at += (size_t)snprintf(told + at, sizeof told - at, " " MILIEU_TEXT_FORMAT,
                MILIEU_TEXT_ARGUMENTS(it->endpoint));
        for (size_t j = 0; j < it->attribute_count; j++)
            at += (size_t)snprintf(told + at, sizeof told - at,
                " " MILIEU_TEXT_FORMAT "=" MILIEU_TEXT_FORMAT,
                MILIEU_TEXT_ARGUMENTS(it->attributes[j].name),
                MILIEU_TEXT_ARGUMENTS(it->attributes[j].value));
        for (size_t j = 0; j < it->target_count; j++)
            at += (size_t)snprintf(told + at, sizeof told - at, " " MILIEU_TEXT_FORMAT,
                MILIEU_TEXT_ARGUMENTS(it->targets[j]));
        snprintf(told + at, sizeof told - at, "\n");
    }
    return count == 0 ? milieu_fail(TEXT("nothing")) : MILIEU_OK;
}

#define TOLD(expected)                                                                        \
    do {                                                                                      \
        if (strcmp(told, expected) != 0) fprintf(stderr, "told:\n%s", told);                  \
        CHECK(strcmp(told, expected) == 0);                                                   \
        told[0] = 0;                                                                          \
    } while (0)

static void services_and_watches(void) {
    begin(true);
    milieu_attribute attributes[] = { { TEXT("kind"), TEXT("printer") }, { TEXT("colour"), TEXT("no") } };
    milieu_service printer = MILIEU_SERVICE;
    printer.attributes = attributes;
    printer.attribute_count = 2;
    printer.endpoint = TEXT("ipp://printer-23/");
    printer.until_ns = 10 * SECOND;
    milieu_effect *served, *watched, *bound;
    OK(milieu_effect_serve(streams, TEXT("/devices/23"), &printer, &served));
    OK(milieu_effect_watch(streams, TEXT("/devices/*"), tell, NULL, NULL, &watched));
    TOLD("/devices/23 joined service ipp://printer-23/ colour=no kind=printer\n");
    milieu_publisher *lamp = publisher_of("/devices/lamp", number_type);
    TOLD("/devices/lamp joined stream\n");
    milieu_text target = TEXT("/devices/23");
    OK(milieu_effect_bind(streams, TEXT("/devices/printer"), &target, 1, &bound));
    TOLD("/devices/printer joined binding /devices/23\n");
    attributes[1].value = TEXT("yes");
    milieu_effect *again;
    OK(milieu_effect_serve(streams, TEXT("/devices/23"), &printer, &again));
    TOLD("/devices/23 altered service ipp://printer-23/ colour=yes kind=printer\n");
    milieu_publisher_free(lamp);
    TOLD("/devices/lamp left\n");
    OK(milieu_effect_renew(again, 20 * SECOND));
    OK(milieu_streams_pass(streams, 15 * SECOND));
    TOLD("");
    OK(milieu_streams_pass(streams, 25 * SECOND));
    TOLD("/devices/23 left\n");
    EXPECT(MILIEU_WRONG_NAME, milieu_effect_renew(again, 30 * SECOND));
    uint64_t count;
    OK(milieu_effect_failures(watched, &count, NULL));
    CHECK(count == 0);

    milieu_effect *none;
    printer.abi = 9;
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_effect_serve(streams, TEXT("/d"), &printer, &none));
    printer = (milieu_service)MILIEU_SERVICE;
    printer.attribute_count = 1;
    EXPECT(MILIEU_NULL, milieu_effect_serve(streams, TEXT("/d"), &printer, &none));
    attributes[1].name = attributes[0].name;
    printer.attributes = attributes;
    printer.attribute_count = 2;
    EXPECT(MILIEU_WRONG_NAME, milieu_effect_serve(streams, TEXT("/d"), &printer, &none));
    SAYS("twice");
    EXPECT(MILIEU_NULL, milieu_effect_serve(streams, TEXT("/d"), NULL, &none));
    EXPECT(MILIEU_WRONG_NAME, milieu_effect_watch(streams, TEXT("d*"), tell, NULL, NULL, &none));
    milieu_effect_free(served);
    milieu_effect_free(again);
    milieu_effect_free(bound);
    milieu_effect_free(watched);
    end();
}

/* Another tool asks by the socket. */
static void the_socket_for_tools(void) {
    char folder[] = "/tmp/milieu-streams-XXXXXX";
    CHECK(mkdtemp(folder) && setenv("XDG_RUNTIME_DIR", folder, 1) == 0);
    begin(true);
    milieu_publisher *publisher = publisher_of("/n", number_type);
    milieu_effect *control, *second;
    milieu_text path;
    OK(milieu_effect_control(streams, &control));
    OK(milieu_effect_path(control, &path));
    EXPECT(MILIEU_SYSTEM, milieu_effect_control(streams, &second));
    SAYS("is in use");
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    CHECK(path.length < sizeof address.sun_path);
    memcpy(address.sun_path, path.bytes, path.length);
    int tool = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(connect(tool, (struct sockaddr *)&address, sizeof address) == 0);
    static const char ask[] = "{\"ask\":\"stream.list\",\"query\":\"/**\"}\n";
    CHECK(write(tool, ask, sizeof ask - 1) == (ssize_t)sizeof ask - 1);
    char answer[512] = "";
    size_t length = 0;
    while (!strchr(answer, '\n')) {
        ssize_t more = read(tool, answer + length, sizeof answer - 1 - length);
        CHECK(more > 0);
        length += (size_t)more;
    }
    CHECK(strcmp(answer, "{\"names\":[{\"kind\":\"stream\",\"name\":\"/n\"}]}\n") == 0);
    close(tool);
    milieu_effect *other;
    OK(milieu_effect_publish(streams, TEXT("/n"), TEXT("/m"), &other));
    EXPECT(MILIEU_INVALID, milieu_effect_path(other, &path));
    milieu_effect_free(other);
    milieu_effect_free(control);
    struct stat there;
    CHECK(stat(address.sun_path, &there) != 0);
    milieu_publisher_free(publisher);
    end();
    char made[128];
    snprintf(made, sizeof made, "%s/milieu/.lock", folder);
    unlink(made);
    snprintf(made, sizeof made, "%s/milieu", folder);
    CHECK(rmdir(made) == 0 && rmdir(folder) == 0);
}

struct settings {
    int64_t shown;
};
static const milieu_entry shown_entries[] = { { "type", "long_long" }, { "default", "0" } };
static const milieu_value shown_value = { "/shown", 0, MILIEU_I64, 2, shown_entries };
static const milieu_layout settings_layout = { MILIEU_ABI, 1, &shown_value,
    sizeof(struct settings), MILIEU_ALIGNOF(struct settings) };

static milieu_result add_up(void *user, const milieu_event *event) {
    if (number_of(event) < 0) return milieu_fail(TEXT("below zero"));
    *(double *)user += number_of(event);
    return MILIEU_OK;
}

static int let_go;
static void destroy(void *user) {
    (void)user;
    let_go++;
}

/* A callback under the layers of one context. */
static void readers_with_callbacks(void) {
    begin(true);
    milieu_publisher *five = publisher_of("/rooms/005", number_type),
                     *seven = publisher_of("/rooms/007", number_type);
    milieu_context *cx;
    milieu_frame frame;
    OK(milieu_context_new(coordinator, &settings_layout, NULL, &cx, NULL));
    OK(milieu_context_enter(cx, milieu_layer_of("room", "005"), &frame));
    milieu_reader *reader;
    OK(milieu_reader_new(streams, cx, &reader));
    double sum = 0;
    milieu_listener *listener, *wrong;
    OK(milieu_reader_listen(reader, TEXT("/rooms/%room%"), add_up, &sum, destroy, &listener));
    EXPECT(MILIEU_WRONG_FLOW,
        milieu_reader_listen(reader, TEXT("/rooms | fliter"), add_up, &sum, destroy, &wrong));
    CHECK(let_go == 1);
    publish(five, 1);
    publish(seven, 10);
    CHECK(sum == 1);
    OK(milieu_context_leave(cx, frame));
    OK(milieu_context_enter(cx, milieu_layer_of("room", "007"), &frame));
    OK(milieu_reader_follow(reader, cx));
    publish(five, 1);
    publish(seven, 10);
    publish(seven, -1);
    CHECK(sum == 11);
    uint64_t count;
    milieu_text why;
    OK(milieu_listener_failures(listener, &count, &why));
    CHECK(count == 1 && milieu_text_is(why, "below zero"));
    /* It goes on without its reader, and the context may go as well. */
    milieu_reader_free(reader);
    OK(milieu_context_leave(cx, frame));
    OK(milieu_context_free(cx));
    EXPECT(MILIEU_FREED, milieu_reader_follow(reader, cx));
    milieu_listener_free(listener);
    CHECK(let_go == 2);
    milieu_publisher_free(five);
    milieu_publisher_free(seven);
    end();
}

/* An operator that is told by an expression what counts, and by another one what tells apart. */
struct most {
    milieu_expression *of, *by;
    double most;
};

static milieu_result make_most(void *user, const milieu_arguments *arguments, void **state) {
    (void)user;
    struct most *most = calloc(1, sizeof *most);
    CHECK(most != NULL);
    milieu_expression *none;
    EXPECT(MILIEU_NO_SUCH, milieu_arguments_expression(arguments, TEXT("fo"), &none));
    milieu_result result = milieu_arguments_expression(arguments, TEXT("of"), &most->of);
    if (result != MILIEU_OK) {
        free(most);
        return result;
    }
    OK(milieu_arguments_expression(arguments, TEXT("by"), &most->by));
    *state = most;
    return MILIEU_OK;
}

static milieu_result step_most(void *state, uint32_t input, const milieu_event *event,
    milieu_output *output) {
    struct most *most = state;
    (void)input;
    milieu_datum datum;
    milieu_result result = milieu_expression_value(most->of, event, &datum);
    if (result != MILIEU_OK) return result;
    CHECK(datum.kind == MILIEU_F64);
    if (datum.content.number <= most->most) return milieu_output_drop(output, TEXT(""));
    most->most = datum.content.number;
    if (most->by) {
        OK(milieu_expression_value(most->by, event, &datum));
        CHECK(datum.kind == MILIEU_TEXT);
        return milieu_output_publish(output, text_type, &datum.content.text, NULL);
    }
    return milieu_output_publish(output, number_type, &most->most, NULL);
}

static void free_most(void *state) {
    struct most *most = state;
    milieu_expression_free(most->of);
    milieu_expression_free(most->by);
    free(most);
}

static milieu_result root(void *user, const milieu_event *event, milieu_answer *answer) {
    (void)user;
    double number = number_of(event);
    if (number < 0) return milieu_fail(TEXT("no root of a negative number"));
    return milieu_answer_give(answer, milieu_datum_number(number == 4 ? 2.0 : number));
}

/* It makes two events of each, or none. */
static milieu_result halves(void *user, const milieu_event *event, milieu_output *output) {
    (void)user;
    double half = number_of(event) / 2;
    milieu_event *kept;
    if (half < 0) return milieu_fail(TEXT("what is owed is not halved"));
    if (half == 0) return milieu_output_drop(output, TEXT("outlier"));
    EXPECT(MILIEU_INVALID, milieu_output_hold(output));
    EXPECT(MILIEU_INVALID, milieu_output_wake_at(output, 5));
    SAYS("milieu_operator_define");
    OK(milieu_event_keep(event, &kept));
    EXPECT(MILIEU_INVALID, milieu_output_pass_held(output, kept));
    OK(milieu_event_free(kept));
    OK(milieu_output_publish(output, number_type, &half, NULL));
    return milieu_output_publish(output, number_type, &half, NULL);
}

static bool graph_says(const char *part) {
    milieu_picture *picture;
    milieu_text json;
    OK(milieu_picture_of_graph(streams, &picture));
    OK(milieu_picture_json(picture, &json));
    char *text = strndup(json.bytes, json.length);
    bool says = strstr(text, part) != NULL;
    if (!says) fprintf(stderr, "%s\n", text);
    free(text);
    milieu_picture_free(picture);
    return says;
}

static void expressions_and_functions(void) {
    const milieu_parameter parameters[] = {
        { "of", MILIEU_EXPRESSION, 0, NULL, "value", "What counts.", true },
        { "by", MILIEU_EXPRESSION, 0, NULL, "", "What is published.", false },
    };
    const milieu_operator most = { MILIEU_ABI, 1, 0, 2, "most", "Publishes each new maximum.",
        parameters, make_most, step_most, NULL, NULL, NULL, free_most };
    OK(milieu_coordinator_new(&coordinator));
    OK(milieu_operator_define(coordinator, &most, NULL, NULL));
    OK(milieu_function_define(coordinator, TEXT("root"), root, false, NULL, NULL));
    OK(milieu_transform_define(coordinator, TEXT("halves"), halves, false, NULL, NULL));
    milieu_transform none = NULL;
    EXPECT(MILIEU_NULL,
        milieu_transform_define(coordinator, TEXT("none"), none, false, NULL, NULL));
    begin(true);
    milieu_publisher *publisher = publisher_of("/n", number_type);
    milieu_subscription *plain = subscribe("/n | most"),
                        *roots = subscribe("/n | most $root"),
                        *texts = subscribe("/n | most value * 2.0 by=(value > 3.0 ? 'high' : 'low')"),
                        *two = subscribe("/n | transform $halves"), *wrong;
    EXPECT(MILIEU_WRONG_FLOW,
        milieu_subscription_new(streams, TEXT("/n | most $roof"), NULL, &wrong));
    SAYS("`$roof`");
    publish(publisher, 4);
    publish(publisher, 3);
    CHECK(number_of(next(plain, 0)) == 4 && next(plain, 0) == NULL);
    CHECK(number_of(next(roots, 0)) == 2 && number_of(next(roots, 0)) == 3);
    const milieu_text *word;
    OK(milieu_event_body(next(texts, 0), text_type, (const void **)&word));
    CHECK(milieu_text_is(*word, "high") && next(texts, 0) == NULL);
    CHECK(number_of(next(two, 0)) == 2 && number_of(next(two, 0)) == 2);
    CHECK(number_of(next(two, 0)) == 1.5 && number_of(next(two, 0)) == 1.5);

    /* What a function says of a failure is not lost. */
    publish(publisher, 0);
    publish(publisher, -4);
    CHECK(next(roots, 0) == NULL && next(two, 0) == NULL);
    CHECK(graph_says("`$root` has failed: no root of a negative number"));
    CHECK(graph_says("`$halves` has failed: what is owed is not halved"));
    CHECK(graph_says("\"outlier\":1"));

    milieu_delivery terms = { MILIEU_ABI, 1, MILIEU_DROP_NEWEST };
    milieu_subscription *short_queue;
    OK(milieu_subscription_new(streams, TEXT("/n"), &terms, &short_queue));
    for (int i = 0; i < 3; i++) publish(publisher, i);
    uint64_t lost;
    OK(milieu_subscription_dropped(short_queue, TEXT("overflow"), &lost));
    CHECK(lost == 2);
    OK(milieu_subscription_dropped(short_queue, TEXT("late"), &lost));
    CHECK(lost == 0);
    EXPECT(MILIEU_INVALID, milieu_subscription_dropped(short_queue, TEXT("lots"), &lost));
    OK(milieu_subscription_free(short_queue));
    OK(milieu_subscription_free(plain));
    OK(milieu_subscription_free(roots));
    OK(milieu_subscription_free(texts));
    OK(milieu_subscription_free(two));
    milieu_publisher_free(publisher);
    end();
}

static milieu_result poll_once(void *user, milieu_feed *feed) {
    (void)user;
    double number = 3;
    OK(milieu_feed_publish(feed, number_type, &number, NULL));
    return milieu_feed_end(feed);
}

static void waiting_for_sources(void) {
    begin(false);
    milieu_source *source;
    bool polled = false;
    OK(milieu_source_new(streams, TEXT("/once"), poll_once, NULL, NULL, &source));
    OK(milieu_streams_wait_for_sources(streams, -1, &polled));
    CHECK(polled);
    milieu_subscription *late = subscribe("/once");
    CHECK(number_of(next(late, 0)) == 3);
    OK(milieu_subscription_free(late));
    milieu_source_free(source);
    end();
}

static milieu_result poll_and_wait(void *user, milieu_feed *feed) {
    (void)user;
    return milieu_feed_wait(feed, INT64_MAX);
}

/* What a source had frees another one, whose thread it is done in. */
static milieu_source *other;

static void free_other(void *freed) {
    ++*(int *)freed;
    milieu_source_free(other);
    milieu_source *more;
    int unused = 0;
    EXPECT(MILIEU_FREED, milieu_source_status(other, &(uint32_t){ 0 }, NULL));
    EXPECT(MILIEU_NULL, milieu_source_new(streams, TEXT("/more"), NULL, &unused, NULL, &more));
    EXPECT(MILIEU_BUSY, milieu_streams_wait_for_sources(streams, -1, &(bool){ false }));
}

static void count_it(void *freed) { __atomic_add_fetch((int *)freed, 1, __ATOMIC_ACQ_REL); }

static void sources_that_free_others(bool virtual_time) {
    milieu_source *first;
    int freed = 0, other_freed = 0;
    begin(virtual_time);
    OK(milieu_source_new(streams, TEXT("/first"), poll_and_wait, &freed, free_other, &first));
    OK(milieu_source_new(streams, TEXT("/other"), poll_and_wait, &other_freed, count_it, &other));
    if (!virtual_time) {
        bool polled = false;
        OK(milieu_streams_wait_for_sources(streams, -1, &polled));
    }
    milieu_source_free(first);
    CHECK(freed == 1);
    /* The other one goes when it can. */
    for (int i = 0; i < 5000 && __atomic_load_n(&other_freed, __ATOMIC_ACQUIRE) == 0; i++) {
        if (virtual_time) OK(milieu_streams_pass(streams, i));
        usleep(1000);
    }
    CHECK(__atomic_load_n(&other_freed, __ATOMIC_ACQUIRE) == 1);
    end();
}

int main(void) {
    OK(milieu_event_type_new(&number_layout, &number_type));
    OK(milieu_event_type_new(&text_layout, &text_type));
    what_blocks();
    several_threads();
    handles_that_go_first();
    names_that_flows_bind();
    services_and_watches();
    the_socket_for_tools();
    readers_with_callbacks();
    expressions_and_functions();
    waiting_for_sources();
    sources_that_free_others(false);
    sources_that_free_others(true);
    puts("ok");
    return 0;
}
