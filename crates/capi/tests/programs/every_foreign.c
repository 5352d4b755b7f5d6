/* Every function of foreign.h with every kind of misuse that it can be told of. `list` prints their
 * names, which have to be those of the header. */

#include "check.h"

#include <milieu/foreign.h>

/* What functions are handed; one of it is wrong at a time. */
struct arguments {
    milieu_coordinator *coordinator;
    milieu_streams *streams;
    milieu_component *component;
    milieu_text text;
    /* Where results go: null, or the address of some memory. */
    void *out;
};

#include "every.h"

static uint64_t other;
static milieu_http_page page;
static milieu_http_access access = MILIEU_HTTP_ACCESS;

static milieu_http_options http(struct arguments *a) {
    milieu_http_options options = MILIEU_HTTP_OPTIONS;
    access.token = milieu_text_of("0123456789abcdef");
    options.accesses = &access;
    options.access_count = 1;
    options.hosts = &a->text;
    options.host_count = 1;
    page.path = milieu_text_of("/page");
    page.media_type = milieu_text_of("text/plain");
    options.pages = &page;
    options.page_count = 1;
    return options;
}

static milieu_mqtt_options mqtt(struct arguments *a) {
    milieu_mqtt_options options = MILIEU_MQTT_OPTIONS;
    options.host = milieu_text_of("127.0.0.1");
    options.client_id = milieu_text_of("every");
    options.user = a->text;
    return options;
}

#define FUNCTIONS(R, S)                                                                       \
    R(milieu_component_new, OF(streams), TEXT | OUT, a->streams, a->text,                     \
        milieu_text_of("kind"), a->out)                                                       \
    R(milieu_component_tell, OF(component), TEXT, a->component, MILIEU_FAILING, a->text)      \
    R(milieu_component_id, OF(component), OUT, a->component, a->out)                          \
    R(milieu_component_status, OF(component), OUT, a->component, a->out, NULL)                \
    R(milieu_component_events, OF(component), OUT, a->component, a->out, &other)              \
    R(milieu_component_discarded, OF(component), TEXT | OUT, a->component, a->text, a->out)   \
    R(milieu_component_errors, OF(component), TEXT | OUT, a->component, a->text, a->out)      \
    S(milieu_component_free, OF(component), GIVEN, a->component)                              \
    R(milieu_http_serve, OF(streams), TEXT | OUT, a->streams,                                 \
        (milieu_http_options[]){ http(a) }, a->out)                                           \
    R(milieu_mqtt_connect, OF(streams), TEXT | OUT, a->streams,                               \
        (milieu_mqtt_options[]){ mqtt(a) }, a->out)                                           \
    R(milieu_mqtt_withdraw, OF(component), 0, a->component)

DEFINE(FUNCTIONS)

static void *memory[8];

static milieu_result end_at_once(void *user, milieu_feed *feed) {
    (void)user;
    return milieu_feed_end(feed);
}

static void make(struct arguments *a) {
    a->text = milieu_text_of("station.example");
    a->out = memory;
    milieu_http_options options = http(a);
    OK(milieu_coordinator_new(&a->coordinator));
    OK(milieu_streams_new(a->coordinator, NULL, &a->streams));
    OK(milieu_http_serve(a->streams, &options, &a->component));
}

static void unmake(struct arguments *a) {
    milieu_component_free(a->component);
    milieu_streams_free(a->streams);
    milieu_coordinator_free(a->coordinator);
}

int main(int argc, char **argv) {
    CHECK(argc < 3);
    if (argc == 2) {
        CHECK(strcmp(argv[1], "list") == 0);
        for (size_t i = 0; i < count; i++) puts(rows[i].name);
        return 0;
    }
    struct arguments good, freed;
    make(&freed);
    unmake(&freed);
    make(&good);
    for (size_t i = 0; i < count; i++) {
        misuse_texts(&rows[i], &good);
        mishandle(&rows[i], &good, &freed, good.coordinator);
    }
    milieu_component *component;
    EXPECT(MILIEU_NULL, milieu_http_serve(good.streams, NULL, &component));
    EXPECT(MILIEU_NULL, milieu_mqtt_connect(good.streams, NULL, &component));
    EXPECT(MILIEU_NULL, milieu_component_events(good.component, memory[0], NULL));
    EXPECT(MILIEU_NULL, milieu_component_events(good.component, &other, NULL));
    milieu_text broken = { NULL, 3 }, good_text = milieu_text_of("a");
    EXPECT(MILIEU_NULL, milieu_component_new(good.streams, good_text, broken, &component));
    broken = milieu_text_of("\xc3(");
    EXPECT(MILIEU_NOT_UTF8, milieu_component_new(good.streams, good_text, broken, &component));
    EXPECT(MILIEU_INVALID, milieu_component_tell(good.component, MILIEU_WORKING, good_text));
    /* Callbacks are let go of, as everywhere. */
    milieu_source *source;
    OK(milieu_source_new(
        good.streams, milieu_text_of("/p"), end_at_once, NULL, destroy, &source));
    milieu_source_free(source);
    CHECK(destroyed == 1);
    /* Nothing of it has changed anything. */
    uint32_t status;
    OK(milieu_component_status(good.component, &status, NULL));
    CHECK(status == MILIEU_WORKING);
    unmake(&good);
    printf("%d\n", made);
    return 0;
}
