/* Streams over HTTP and MQTT, from C. With a port and a number as arguments it is the program that a
 * broker is tested with; without, that of HTTP. */

#define _POSIX_C_SOURCE 200809L

#include "streams_check.h"

#include <arpa/inet.h>
#include <milieu/foreign.h>
#include <milieu/modes.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const milieu_event_field number_field = { "", 0, MILIEU_F64, 0, NULL, NULL };
static const milieu_event_layout number_layout = { MILIEU_ABI, 1, "number", &number_field,
    sizeof(double), MILIEU_ALIGNOF(double) };
static const milieu_event_type *number;

static milieu_streams *opened(void) {
    milieu_coordinator *coordinator;
    milieu_streams *streams;
    OK(milieu_coordinator_new(&coordinator));
    OK(milieu_streams_new(coordinator, NULL, &streams));
    milieu_coordinator_free(coordinator);
    return streams;
}

static void pause_briefly(void) { nanosleep(&(struct timespec){ 0, 10000000 }, NULL); }

static void publish(milieu_publisher *publisher, double value) {
    OK(milieu_publisher_publish(publisher, &value, NULL, NULL));
}

/* ---------------------------------------------------------------- HTTP */

#define TOKEN "0123456789abcdef"
#define BEARER "Authorization: Bearer " TOKEN "\r\n"

static int connected(unsigned port) {
    struct sockaddr_in to = { 0 };
    to.sin_family = AF_INET;
    to.sin_port = htons((uint16_t)port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int peer = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(peer >= 0);
    if (connect(peer, (struct sockaddr *)&to, sizeof to) == 0) return peer;
    close(peer);
    return -1;
}

/* The whole answer to a request, which is valid until the next. */
static const char *answer(unsigned port, const char *line, const char *head, const char *body) {
    static char buffer[65536];
    int peer = connected(port);
    CHECK(peer >= 0);
    int length = snprintf(buffer, sizeof buffer,
        "%s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nConnection: close\r\n%sContent-Length: %zu\r\n\r\n%s",
        line, port, head, strlen(body), body);
    CHECK(write(peer, buffer, (size_t)length) == length);
    size_t got = 0;
    for (;;) {
        ssize_t more = read(peer, buffer + got, sizeof buffer - 1 - got);
        CHECK(more >= 0);
        if (more == 0) break;
        got += (size_t)more;
    }
    buffer[got] = 0;
    close(peer);
    return buffer;
}

static bool is_answered(unsigned port, const char *line, const char *head, const char *status) {
    return strncmp(answer(port, line, head, "") + 9, status, 3) == 0;
}

static unsigned port_of(milieu_component *server) {
    milieu_text id;
    OK(milieu_component_id(server, &id));
    CHECK(id.length > 17 && memcmp(id.bytes, "http://127.0.0.1:", 17) == 0);
    unsigned port = 0;
    for (size_t i = 17; i < id.length; i++) port = port * 10 + (unsigned)(id.bytes[i] - '0');
    return port;
}

static uint64_t errors(milieu_component *component, const char *why) {
    uint64_t count;
    OK(milieu_component_errors(component, text(why), &count));
    return count;
}

/* A server may be freed by what one of its clients publishes. */
static milieu_component *to_free;

static milieu_result free_it(void *user, const milieu_event *event) {
    (void)event;
    ++*(int *)user;
    milieu_component_free(to_free);
    EXPECT(MILIEU_FREED, milieu_component_id(to_free, &(milieu_text){ NULL, 0 }));
    return MILIEU_OK;
}

/* A mode of the program: a number in words of its own, `<21.5>`. */
static milieu_result quote(void *user, const milieu_event *event, uint32_t asked,
    milieu_encoding *encoding) {
    char words[64];
    milieu_datum datum;
    (void)user;
    (void)asked;
    OK(milieu_event_get(event, text("value"), &datum));
    snprintf(words, sizeof words, "<%g>", datum.content.number);
    return milieu_encoding_put(encoding, words, strlen(words));
}

static milieu_result unquote(void *user, milieu_text bytes, uint32_t asked,
    milieu_decoding *decoding) {
    char words[64];
    double value;
    (void)user;
    CHECK(asked & MILIEU_MODE_BODY);
    snprintf(words, sizeof words, MILIEU_TEXT_FORMAT, MILIEU_TEXT_ARGUMENTS(bytes));
    if (sscanf(words, "<%lf>", &value) != 1) return milieu_fail(text("it is not quoted"));
    return milieu_decoding_body(decoding, number, &value);
}

static void modes_are_served(void) {
    const milieu_mode quoted = { MILIEU_ABI, 1, "quoted", "text/x-quoted", false, false, NULL,
        quote, unquote, NULL };
    const char *as_quoted = BEARER "Content-Type: text/x-quoted\r\n";
    milieu_coordinator *coordinator;
    milieu_streams *streams;
    milieu_publisher *heat;
    milieu_component *server;
    milieu_text may_read = text("/weather/*"), may_publish = text("/guests/*");
    milieu_http_access access = MILIEU_HTTP_ACCESS;
    milieu_http_options options = MILIEU_HTTP_OPTIONS;
    OK(milieu_coordinator_new(&coordinator));
    OK(milieu_mode_define(coordinator, &quoted, NULL, NULL));
    OK(milieu_streams_new(coordinator, NULL, &streams));
    milieu_coordinator_free(coordinator);
    OK(milieu_publisher_new(streams, text("/weather/heat"), number, true, &heat));
    publish(heat, 21.5);
    access.token = text(TOKEN);
    access.rights.read = (milieu_names){ &may_read, 1 };
    access.rights.publish = (milieu_names){ &may_publish, 1 };
    options.accesses = &access;
    options.access_count = 1;
    OK(milieu_http_serve(streams, &options, &server));
    unsigned port = port_of(server);
    const char *told = answer(port, "GET /latest?flow=/weather/heat&mode=quoted", BEARER, "");
    CHECK(strstr(told, "text/x-quoted") && strstr(told, "<21.5>"));
    CHECK(strstr(answer(port, "GET /latest?flow=/weather/heat", BEARER, ""), "\"value\":21.5"));

    milieu_subscription *read = subscribed(streams, "/guests/heat");
    const char *post = "POST /events?name=/guests/heat";
    milieu_datum datum;
    CHECK(strstr(answer(port, post, as_quoted, "<7>"), "{\"accepted\":1}"));
    OK(milieu_event_get(next(read), text("value"), &datum));
    CHECK(datum.kind == MILIEU_F64 && datum.content.number == 7);
    told = answer(port, post, as_quoted, "7");
    CHECK(strncmp(told + 9, "400", 3) == 0 && strstr(told, "quoted: it is not quoted"));

    milieu_component_free(server);
    milieu_subscription_free(read);
    milieu_publisher_free(heat);
    milieu_streams_free(streams);
}

static void streams_are_served(void) {
    milieu_streams *streams = opened();
    milieu_publisher *heat, *hidden;
    milieu_component *server, *other;
    milieu_text may_read = text("/weather/*"), may_publish[] = { text("/guests/*") };
    milieu_http_access access = MILIEU_HTTP_ACCESS;
    milieu_http_options options = MILIEU_HTTP_OPTIONS;
    OK(milieu_publisher_new(streams, text("/weather/heat"), number, true, &heat));
    OK(milieu_publisher_new(streams, text("/secret"), number, true, &hidden));
    publish(heat, 21.5);
    publish(hidden, 7);

    milieu_component *untouched = (milieu_component *)&options;
    server = untouched;
    EXPECT(MILIEU_INVALID, milieu_http_serve(streams, &options, &server));
    SAYS("say by `accesses` who may do what");
    options.accesses = &access;
    options.access_count = 1;
    access.token = text("short");
    EXPECT(MILIEU_INVALID, milieu_http_serve(streams, &options, &server));
    SAYS("openssl rand");
    access.token = text(TOKEN);
    access.rights.read = (milieu_names){ &(milieu_text){ "no name", 7 }, 1 };
    EXPECT(MILIEU_WRONG_NAME, milieu_http_serve(streams, &options, &server));
    SAYS("`read`: ");
    access.rights.read = (milieu_names){ NULL, 1 };
    EXPECT(MILIEU_NULL, milieu_http_serve(streams, &options, &server));
    access.rights.read = (milieu_names){ &may_read, 1 };
    access.rights.publish = (milieu_names){ may_publish, 1 };
    options.address = text("nowhere");
    EXPECT(MILIEU_INVALID, milieu_http_serve(streams, &options, &server));
    SAYS("write one such as 127.0.0.1:8080");
    options.address = text("0.0.0.0:0");
    EXPECT(MILIEU_INVALID, milieu_http_serve(streams, &options, &server));
    SAYS("say so by `for_others`");
    options.address = (milieu_text){ NULL, 0 };
    options.abi = 0;
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_http_serve(streams, &options, &server));
    options.abi = MILIEU_ABI;
    CHECK(server == untouched);

    options.body_bytes = 64;
    OK(milieu_http_serve(streams, &options, &server));
    unsigned port = port_of(server);
    uint32_t status;
    milieu_text why;
    OK(milieu_component_status(server, &status, &why));
    CHECK(status == MILIEU_WORKING && why.length == 0);
    CHECK(is_answered(port, "GET /ping", "", "200"));
    CHECK(is_answered(port, "GET /latest?flow=/weather/heat", "", "401"));
    CHECK(errors(server, "token") == 1 && errors(server, "right") == 0);
    CHECK(strstr(answer(port, "GET /latest?flow=/weather/heat", BEARER, ""), "\"value\":21.5"));
    CHECK(is_answered(port, "GET /latest?flow=/secret", BEARER, "403"));
    CHECK(errors(server, "right") == 1);
    CHECK(is_answered(port, "GET /metrics", BEARER, "403"));

    milieu_subscription *door = subscribed(streams, "/guests/door");
    const char *post = "POST /events?name=/guests/door";
    const char *json = BEARER "Content-Type: application/json\r\n";
    CHECK(strstr(answer(port, post, json, "{\"open\": true}"), "{\"accepted\":1}"));
    milieu_datum datum;
    OK(milieu_event_get(next(door), text("open"), &datum));
    CHECK(datum.kind == MILIEU_BOOL && datum.content.boolean);
    const char *long_body = "{\"a\": \"0123456789012345678901234567890123456789012345678901234567\"}";
    CHECK(strncmp(answer(port, post, json, long_body) + 9, "413", 3) == 0);
    CHECK(strncmp(answer(port, "POST /events?name=/own", json, "1") + 9, "403", 3) == 0);
    uint64_t received, sent, discarded;
    OK(milieu_component_events(server, &received, &sent));
    CHECK(received == 1 && sent == 1);
    OK(milieu_component_discarded(server, text("overflow"), &discarded));
    CHECK(discarded == 0);
    EXPECT(MILIEU_INVALID, milieu_mqtt_withdraw(server));
    SAYS("no connection to a broker");

    /* The port is taken while it runs. */
    char address[64];
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    options.address = text(address);
    EXPECT(MILIEU_SYSTEM, milieu_http_serve(streams, &options, &other));
    SAYS("choose another port");
    milieu_component_free(server);
    CHECK(connected(port) < 0);

    /* Freed by what a client publishes, while that waits for the answer. */
    int calls = 0;
    milieu_listener *listener;
    access.measures = true;
    OK(milieu_http_serve(streams, &options, &to_free));
    CHECK(port_of(to_free) == port);
    CHECK(strstr(answer(port, "GET /metrics", BEARER, ""), "component_received_events_total"));
    OK(milieu_listener_new(streams, text("/guests/quit"), free_it, &calls, NULL, &listener));
    answer(port, "POST /events?name=/guests/quit", json, "1");
    CHECK(calls == 1);
    int peer, tries = 0;
    while ((peer = connected(port)) >= 0 && tries++ < 1000) {
        close(peer);
        pause_briefly();
    }
    CHECK(peer < 0);

    milieu_listener_free(listener);
    OK(milieu_subscription_free(door));
    milieu_publisher_free(heat);
    milieu_publisher_free(hidden);
    milieu_streams_free(streams);
}

static milieu_result served(milieu_streams *streams, const milieu_http_page *pages, size_t count,
    milieu_component **server) {
    milieu_http_access access = MILIEU_HTTP_ACCESS;
    milieu_http_options options = MILIEU_HTTP_OPTIONS;
    access.token = text(TOKEN);
    access.measures = true;
    options.accesses = &access;
    options.access_count = 1;
    options.pages = pages;
    options.page_count = count;
    return milieu_http_serve(streams, &options, server);
}

static void pages_are_shown_to_everybody(void) {
    milieu_streams *streams = opened();
    milieu_component *untouched = (milieu_component *)&number, *server = untouched;
    char content[] = "<p>Hello";
    milieu_http_page pages[] = {
        { text("/"), text("text/html; charset=utf-8"), text(content) },
        { text("/raw/a%20b"), text("application/octet-stream"), { "\0\xff\r\n", 4 } },
        { text("/empty"), text("text/plain"), { NULL, 0 } },
    };
    OK(served(streams, pages, 3, &server));
    memset(content, '!', sizeof content);
    memset(&pages, 0, sizeof pages);
    unsigned port = port_of(server);
    const char *heads[] = { "", BEARER, "Authorization: Bearer wrong\r\n" };
    for (int i = 0; i < 3; i++) {
        const char *page = answer(port, "GET /", heads[i], "");
        CHECK(strncmp(page + 9, "200", 3) == 0);
        CHECK(strstr(page, "content-type: text/html; charset=utf-8\r\n"));
        CHECK(strstr(page, "\r\n\r\n<p>Hello"));
        page = answer(port, "GET /raw/a%20b", heads[i], "");
        CHECK(strstr(page, "content-length: 4\r\n"));
        page = strstr(page, "\r\n\r\n") + 4;
        CHECK(memcmp(page, "\0\xff\r\n", 4) == 0);
        CHECK(is_answered(port, "GET /empty", heads[i], "200"));
    }
    CHECK(is_answered(port, "GET /other", "", "401"));
    CHECK(is_answered(port, "GET /other", BEARER, "404"));
    CHECK(is_answered(port, "POST /", BEARER, "405"));
    milieu_component_free(server);

    server = untouched;
    const struct {
        const char *path, *media_type, *says;
    } wrong[] = {
        { "", "text/plain", "the page ``: a path begins with `/`" },
        { "page", "text/plain", "the page `page`: a path begins with `/`" },
        { "/ready", "text/plain", "the page `/ready`: the server answers there itself" },
        { "/events", "text/plain", "the server answers there itself" },
        { "/a", "text/plain", "the page `/a`: another page has this path" },
        { "/{a}", "text/plain", "a blank as `%20`" },
        { "/b\r\nb", "text/plain", "the page `/b\\r\\nb`: a path has" },
        { "/caf\xc3\xa9", "text/plain", "other bytes as browsers do" },
        { "/b", "", "the page `/b`: `` is no media type" },
        { "/b", "text/plain\r\nA: b", "`text/plain\\r\\nA: b` is no media type" },
    };
    milieu_http_page two[] = { { text("/a"), text("text/plain"), { NULL, 0 } }, pages[0] };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        two[1].path = text(wrong[i].path);
        two[1].media_type = text(wrong[i].media_type);
        EXPECT(MILIEU_INVALID, served(streams, two, 2, &server));
        SAYS(wrong[i].says);
    }
    two[1].path = text("/b");
    two[1].media_type = text("text/\xff");
    EXPECT(MILIEU_NOT_UTF8, served(streams, two, 2, &server));
    SAYS("`media_type` is not UTF-8");
    two[1].path = text("/\xff");
    EXPECT(MILIEU_NOT_UTF8, served(streams, two, 2, &server));
    two[1] = (milieu_http_page){ text("/b"), text("text/plain"), { NULL, 1 } };
    EXPECT(MILIEU_NULL, served(streams, two, 2, &server));
    SAYS("`content` is null");
    EXPECT(MILIEU_NULL, served(streams, NULL, 1, &server));
    SAYS("`pages` is null");
    CHECK(server == untouched);
    milieu_streams_free(streams);
}

/* A component may be told how it is by what a client publishes. */
static milieu_result tell(void *user, const milieu_event *event) {
    (void)event;
    return milieu_component_tell(user, MILIEU_OVER, text(""));
}

static void the_program_says_how_it_is(void) {
    milieu_streams *streams = opened(), *others = opened();
    milieu_component *untouched = (milieu_component *)&number, *display = untouched, *server, *far;
    EXPECT(MILIEU_INVALID, milieu_component_new(streams, text(""), text("spi"), &display));
    SAYS("`id` is empty");
    EXPECT(MILIEU_INVALID, milieu_component_new(streams, text("display"), text(""), &display));
    SAYS("`kind` is empty");
    CHECK(display == untouched);
    OK(milieu_component_new(streams, text("display"), text("spi"), &display));
    OK(served(streams, NULL, 0, &server));
    OK(served(others, NULL, 0, &far));
    unsigned port = port_of(server);
    uint32_t status;
    uint64_t received, sent;
    milieu_text id, why;
    OK(milieu_component_id(display, &id));
    OK(milieu_component_status(display, &status, &why));
    CHECK(has(id, "display") && id.length == 7 && status == MILIEU_STARTING && why.length == 0);
    CHECK(is_answered(port, "GET /ready", "", "503"));
    CHECK(is_answered(port_of(far), "GET /ready", "", "200"));
    CHECK(strstr(answer(port, "GET /ready", BEARER, ""), "\r\n\r\ndisplay: starting\n"));
    OK(milieu_component_tell(display, MILIEU_WORKING, text("nothing to say")));
    CHECK(is_answered(port, "GET /ready", "", "200"));
    OK(milieu_component_tell(display, MILIEU_FAILING, text("it is dark; plug it in")));
    CHECK(strstr(answer(port, "GET /ready", BEARER, ""),
        "\r\n\r\ndisplay: failing: it is dark; plug it in\n"));
    OK(milieu_component_status(display, &status, &why));
    CHECK(status == MILIEU_FAILING && has(why, "it is dark; plug it in"));
    CHECK(strstr(answer(port, "GET /metrics", BEARER, ""),
        "component_errors_total{component_id=\"display\"") == NULL);
    CHECK(strstr(answer(port, "GET /metrics", BEARER, ""),
        "component_sent_events_total{component_id=\"display\",component_type=\"spi\""));
    OK(milieu_component_events(display, &received, &sent));
    CHECK(received == 0 && sent == 0 && errors(display, "any") == 0);

    EXPECT(MILIEU_INVALID, milieu_component_tell(display, 4, text("")));
    SAYS("there is no status 4");
    EXPECT(MILIEU_INVALID, milieu_component_tell(display, MILIEU_FAILING, text("")));
    SAYS("`why` is empty");
    EXPECT(MILIEU_INVALID, milieu_component_tell(server, MILIEU_WORKING, text("")));
    SAYS("a server or a connection says itself how it is");
    EXPECT(MILIEU_INVALID, milieu_mqtt_withdraw(display));
    SAYS("no connection to a broker");
    OK(milieu_component_status(display, &status, NULL));
    CHECK(status == MILIEU_FAILING);

    /* Within a callback of streams, and freed in one. */
    const double value = 1;
    milieu_publisher *publisher;
    milieu_listener *telling, *freeing;
    int calls = 0;
    OK(milieu_publisher_new(streams, text("/end"), number, false, &publisher));
    OK(milieu_listener_new(streams, text("/end"), tell, display, NULL, &telling));
    publish(publisher, value);
    OK(milieu_component_status(display, &status, NULL));
    CHECK(status == MILIEU_OVER && is_answered(port, "GET /ready", "", "200"));
    milieu_listener_free(telling);
    OK(milieu_component_tell(display, MILIEU_STARTING, text("")));
    to_free = display;
    OK(milieu_listener_new(streams, text("/end"), free_it, &calls, NULL, &freeing));
    publish(publisher, value);
    CHECK(calls == 1 && is_answered(port, "GET /ready", "", "200"));
    CHECK(strstr(answer(port, "GET /metrics", BEARER, ""), "\"display\"") == NULL);
    EXPECT(MILIEU_FREED, milieu_component_tell(display, MILIEU_WORKING, text("")));
    milieu_listener_free(freeing);
    milieu_publisher_free(publisher);
    milieu_component_free(server);
    milieu_component_free(far);
    milieu_streams_free(others);
    milieu_streams_free(streams);
}

/* ---------------------------------------------------------------- MQTT */

static void await_status(milieu_component *component, uint32_t expected) {
    uint32_t status;
    milieu_text why;
    for (int i = 0; i < 2000; i++) {
        OK(milieu_component_status(component, &status, &why));
        if (status == expected) return;
        pause_briefly();
    }
    fprintf(stderr, "it is %u and not %u: " MILIEU_TEXT_FORMAT "\n", status, expected,
        MILIEU_TEXT_ARGUMENTS(why));
    exit(1);
}

static milieu_mqtt_options to_broker(unsigned port, const char *id) {
    milieu_mqtt_options options = MILIEU_MQTT_OPTIONS;
    options.host = text("127.0.0.1");
    options.port = (uint16_t)port;
    options.client_id = text(id);
    return options;
}

static void what_is_wrong_with_a_connection_is_told(milieu_streams *streams) {
    milieu_component *connection;
    milieu_mqtt_input input = MILIEU_MQTT_INPUT;
    milieu_mqtt_output output = MILIEU_MQTT_OUTPUT;
    milieu_mqtt_options options = to_broker(1, "no id");
    EXPECT(MILIEU_INVALID, milieu_mqtt_connect(streams, &options, &connection));
    SAYS("the client id `no id`");
    options = to_broker(1, "station");
    options.host.length = 0;
    EXPECT(MILIEU_INVALID, milieu_mqtt_connect(streams, &options, &connection));
    SAYS("`host` is empty");
    options = to_broker(1, "station");
    options.inputs = &input;
    options.input_count = 1;
    input.filter = text("a/#/b");
    input.under = text("/home");
    EXPECT(MILIEU_INVALID, milieu_mqtt_connect(streams, &options, &connection));
    SAYS("the filter `a/#/b`");
    input.filter = text("a");
    input.mode = text("yaml");
    EXPECT(MILIEU_NO_SUCH, milieu_mqtt_connect(streams, &options, &connection));
    SAYS("there is no mode `yaml`; there are");
    input.mode.length = 0;
    input.qos = 3;
    EXPECT(MILIEU_INVALID, milieu_mqtt_connect(streams, &options, &connection));
    SAYS("there are 0, 1 and 2");
    options.input_count = 0;
    options.outputs = &output;
    options.output_count = 1;
    output.topic = text("weather");
    output.flow = text("/weather | fliter true");
    EXPECT(MILIEU_WRONG_FLOW, milieu_mqtt_connect(streams, &options, &connection));
    SAYS("there is no operator `fliter`");
    options.output_count = 0;
    milieu_mqtt_option option = { text("mf"), milieu_datum_nothing() };
    milieu_mqtt_device device = { text("d"), text("D"), &option, 1, NULL, 0 };
    options.devices = &device;
    options.device_count = 1;
    EXPECT(MILIEU_INVALID, milieu_mqtt_connect(streams, &options, &connection));
    SAYS("an option cannot be of kind 0");
    options.abi = 0;
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_mqtt_connect(streams, &options, &connection));

    /* A broker that is down is a status. */
    options = to_broker(1, "station");
    OK(milieu_mqtt_connect(streams, &options, &connection));
    await_status(connection, MILIEU_FAILING);
    uint32_t status;
    milieu_text why, id;
    OK(milieu_component_status(connection, &status, &why));
    CHECK(has(why, "is the broker running there?"));
    OK(milieu_component_id(connection, &id));
    CHECK(has(id, "mqtt://127.0.0.1:1") && id.length == 18);
    CHECK(errors(connection, "connection") > 0);
    milieu_component_free(connection);
}

/* What it sends comes back: an output's topic is covered by the filter of an input. */
static void a_broker_is_spoken_to(unsigned port, const char *client) {
    milieu_streams *streams = opened();
    milieu_publisher *heat;
    milieu_component *connection;
    what_is_wrong_with_a_connection_is_told(streams);
    OK(milieu_publisher_new(streams, text("/weather/heat"), number, true, &heat));
    milieu_mqtt_input inputs[] = { MILIEU_MQTT_INPUT, MILIEU_MQTT_INPUT };
    milieu_mqtt_output outputs[] = { MILIEU_MQTT_OUTPUT, MILIEU_MQTT_OUTPUT };
    milieu_delivery delivery = MILIEU_DELIVERY;
    inputs[0].filter = text("weather/+");
    inputs[0].under = text("/home");
    inputs[1].filter = text("homeassistant/device/+/config");
    inputs[1].under = text("/seen");
    inputs[1].mode = text("json");
    outputs[0].flow = text("/weather/heat | filter value > 20");
    outputs[0].topic = text("weather/heat");
    outputs[0].retained = true;
    delivery.capacity = 16;
    outputs[0].delivery = &delivery;
    outputs[1].flow = text("/weather/heat");
    outputs[1].topic = text("weather/whole");
    outputs[1].whole_events = true;
    milieu_mqtt_option about[] = { { text("mf"), milieu_datum_text(text("Milieu")) } };
    milieu_mqtt_option more[] = { { text("expire_after"), milieu_datum_whole(60) },
        { text("force_update"), milieu_datum_bool(true) } };
    milieu_mqtt_entity entity
        = { text("heat"), text("sensor"), text("Heat"), text("weather/heat"), more, 2 };
    milieu_mqtt_device device = { text(client), text("A station"), about, 1, &entity, 1 };
    milieu_mqtt_options options = to_broker(port, client);
    options.keep_alive_seconds = 10;
    options.inputs = inputs;
    options.input_count = 2;
    options.outputs = outputs;
    options.output_count = 2;
    options.devices = &device;
    options.device_count = 1;
    milieu_subscription *home = subscribed(streams, "/home/weather/heat");
    milieu_subscription *whole = subscribed(streams, "/home/weather/whole");
    milieu_subscription *seen = subscribed(streams, "/seen/**");
    OK(milieu_mqtt_connect(streams, &options, &connection));
    await_status(connection, MILIEU_WORKING);
    publish(heat, 18);
    publish(heat, 21.5);

    milieu_datum datum;
    const milieu_event *event = next(home);
    OK(milieu_event_get(event, text("value"), &datum));
    CHECK(datum.kind == MILIEU_F64 && datum.content.number == 21.5);
    milieu_text json;
    OK(milieu_event_json(next(whole), &json));
    CHECK(has(json, "\"name\":\"/weather/heat\"") && has(json, "\"value\":18"));
    OK(milieu_event_json(next(seen), &json));
    CHECK(has(json, "\"expire_after\":60") && has(json, "\"force_update\":true"));
    CHECK(has(json, "\"mf\":\"Milieu\"") && has(json, "\"name\":\"A station\""));
    uint64_t received, sent;
    do {
        OK(milieu_component_events(connection, &received, &sent));
        pause_briefly();
    } while (sent < 3 || received < 4);
    CHECK(sent == 3);
    OK(milieu_mqtt_withdraw(connection));
    EXPECT(MILIEU_FREED, milieu_mqtt_withdraw(connection));
    OK(milieu_subscription_free(home));
    OK(milieu_subscription_free(whole));
    OK(milieu_subscription_free(seen));
    milieu_publisher_free(heat);
    milieu_streams_free(streams);
}

/* What stands in the place of JSON is what outputs write where nothing is said. */
static void a_broker_is_sent_what_the_program_has_for_json(unsigned port) {
    const milieu_mode loud = { MILIEU_ABI, 1, "json", "application/json", false, true, NULL,
        quote, unquote, NULL };
    milieu_coordinator *coordinator;
    milieu_streams *streams;
    milieu_publisher *heat;
    milieu_component *connection;
    milieu_datum datum;
    milieu_mqtt_input input = MILIEU_MQTT_INPUT;
    milieu_mqtt_output output = MILIEU_MQTT_OUTPUT;
    milieu_mqtt_options options = to_broker(port, "in-the-place-of-json");
    OK(milieu_coordinator_new(&coordinator));
    OK(milieu_mode_define(coordinator, &loud, NULL, NULL));
    OK(milieu_streams_new(coordinator, NULL, &streams));
    OK(milieu_publisher_new(streams, text("/quoted/heat"), number, true, &heat));
    input.filter = text("quoted/heat");
    input.under = text("/home");
    input.mode = text("json");
    output.flow = text("/quoted/heat");
    output.topic = text("quoted/heat");
    options.inputs = &input;
    options.outputs = &output;
    options.input_count = options.output_count = 1;
    milieu_subscription *home = subscribed(streams, "/home/quoted/heat");
    OK(milieu_mqtt_connect(streams, &options, &connection));
    await_status(connection, MILIEU_WORKING);
    publish(heat, 21.5);
    OK(milieu_event_get(next(home), text("value"), &datum));
    CHECK(datum.kind == MILIEU_F64 && datum.content.number == 21.5);
    OK(milieu_mqtt_withdraw(connection));
    OK(milieu_subscription_free(home));
    milieu_publisher_free(heat);
    milieu_streams_free(streams);
    milieu_coordinator_free(coordinator);
}

int main(int argc, char **argv) {
    CHECK(argc == 1 || argc == 3);
    OK(milieu_event_type_new(&number_layout, &number));
    if (argc == 1) {
        streams_are_served();
        modes_are_served();
        pages_are_shown_to_everybody();
        the_program_says_how_it_is();
    } else {
        a_broker_is_spoken_to((unsigned)atoi(argv[1]), argv[2]);
        a_broker_is_sent_what_the_program_has_for_json((unsigned)atoi(argv[1]));
    }
    puts("ok");
    return 0;
}
