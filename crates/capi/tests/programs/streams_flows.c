/* Flows that are put together of values, written in other languages, and rehearsed. */

#include "check.h"

#include <milieu/flows.h>

#include <math.h>

#define TEXT milieu_text_of

static const milieu_event_field number_field = { "", 0, MILIEU_F64, 0, NULL, NULL };
static const milieu_event_layout number_layout = { MILIEU_ABI, 1, "number", &number_field,
    sizeof(double), MILIEU_ALIGNOF(double) };
static const milieu_event_type *number_type;

struct reading {
    double value;
    milieu_text room;
};
static const milieu_event_field reading_fields[] = {
    MILIEU_EVENT_FIELD(struct reading, value),
    MILIEU_EVENT_FIELD(struct reading, room),
};
static const milieu_event_layout reading_layout
    = MILIEU_EVENT_LAYOUT(struct reading, reading_fields);

static milieu_coordinator *coordinator;
static milieu_streams *streams;

/* What an operator was told, as it was meant. */
static char told_text[512];
static int64_t told_span;
static bool told_flag;

static milieu_result make_tell(void *user, const milieu_arguments *arguments, void **state) {
    milieu_datum datum;
    (void)user;
    *state = NULL;
    memset(&datum, 0xff, sizeof datum);
    OK(milieu_arguments_get(arguments, TEXT("text"), &datum));
    /* What was not told is no text either. */
    CHECK(datum.kind != 0 || datum.content.text.length == 0);
    snprintf(told_text, sizeof told_text, MILIEU_TEXT_FORMAT,
        MILIEU_TEXT_ARGUMENTS(datum.content.text));
    OK(milieu_arguments_get(arguments, TEXT("span"), &datum));
    told_span = datum.content.whole;
    OK(milieu_arguments_get(arguments, TEXT("flag"), &datum));
    told_flag = datum.content.boolean;
    return MILIEU_OK;
}

static milieu_result step_tell(void *state, uint32_t input, const milieu_event *event,
    milieu_output *output) {
    (void)state;
    (void)input;
    (void)event;
    return milieu_output_pass(output);
}

static int answers;

static milieu_result busy_result;

/* A function that is asked in rehearsals, where it can begin none. */
static milieu_result warm(void *user, const milieu_event *event, milieu_answer *answer) {
    milieu_rehearsal *inner;
    milieu_datum datum;
    (void)user;
    answers++;
    busy_result = milieu_rehearsal_new(streams, TEXT("inner.cases"), TEXT(""), &inner);
    OK(milieu_event_get(event, TEXT("temperature"), &datum));
    return milieu_answer_give(answer, milieu_datum_bool(datum.content.number > 20));
}

static milieu_flow *flow_of(const char *name) {
    milieu_flow *flow;
    OK(milieu_flow_new(streams, TEXT(name), &flow));
    return flow;
}

static milieu_result then(milieu_flow *flow, const char *operation, const char *name,
    milieu_datum value) {
    const milieu_told told = { TEXT(name), value };
    return milieu_flow_then(flow, TEXT(operation), &told, 1);
}

static bool is_flow(const milieu_flow *flow, const char *expected) {
    milieu_text text;
    OK(milieu_flow_text(flow, &text));
    if (milieu_text_is(text, expected)) return true;
    fprintf(stderr, MILIEU_TEXT_FORMAT "\n", MILIEU_TEXT_ARGUMENTS(text));
    return false;
}

/* Subscribes to it: what it says is what was meant. */
static void subscribe_to(const milieu_flow *flow) {
    milieu_subscription *subscription;
    milieu_text text;
    OK(milieu_flow_text(flow, &text));
    OK(milieu_subscription_new(streams, text, NULL, &subscription));
    OK(milieu_subscription_free(subscription));
}

static void values(void) {
    static const char *const odd[] = { "", "plain", "a b", "a | publish /taken", "\"quoted\" 'too'",
        "two\nlines\r\n\tand a tab", "back\\slash \\n", "# no comment", "; let x = /y", "a, b) (c",
        "span=5s", "$function", "{a: b}", "grün 😀", "%layer%", " blanks " };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        milieu_flow *flow = flow_of("/n");
        strcpy(told_text, "nothing");
        OK(then(flow, "tell", "text", milieu_datum_text(TEXT(odd[i]))));
        memset(told_text, 0, sizeof told_text);
        subscribe_to(flow);
        if (strcmp(told_text, odd[i]) != 0) {
            fprintf(stderr, "`%s` became `%s`\n", odd[i], told_text);
            exit(1);
        }
        milieu_flow_free(flow);
    }

    /* In their order or by name, of all kinds. */
    milieu_flow *flow = flow_of("/n");
    milieu_datum span = milieu_datum_nothing();
    span.kind = MILIEU_SPAN;
    span.content.whole = 90000000000;
    const milieu_told told[] = {
        { TEXT(""), milieu_datum_text(TEXT("x")) },
        { TEXT("flag"), milieu_datum_bool(true) },
        { TEXT("span"), span },
        { TEXT("share"), milieu_datum_number(0.25) },
        { TEXT("count"), milieu_datum_whole(-3) },
        { TEXT("if"), milieu_datum_text(TEXT("value   >  3")) },
    };
    OK(milieu_flow_then(flow, TEXT("tell"), told, sizeof told / sizeof *told));
    CHECK(is_flow(flow,
        "/n | tell x span=1m30s flag=true share=0.25 count=-3 if=value > 3"));
    subscribe_to(flow);
    CHECK(told_span == 90000000000 && told_flag && strcmp(told_text, "x") == 0);

    /* What is wrong changes nothing, and is told with what was said. */
    EXPECT(MILIEU_WRONG_FLOW, then(flow, "tell", "text", milieu_datum_text(TEXT("\x1b[0m"))));
    SAYS("control character");
    EXPECT(MILIEU_WRONG_FLOW, then(flow, "filter", "", milieu_datum_text(TEXT("true | publish /p"))));
    EXPECT(MILIEU_WRONG_FLOW, then(flow, "filter", "", milieu_datum_text(TEXT("value >"))));
    SAYS(".filter(\"value >\")");
    EXPECT(MILIEU_WRONG_FLOW, milieu_flow_then(flow, TEXT("tell\" | drop"), NULL, 0));
    EXPECT(MILIEU_WRONG_FLOW, milieu_flow_then(flow, TEXT("publish"), NULL, 0));
    EXPECT(MILIEU_WRONG_FLOW, milieu_flow_then(flow, TEXT("fliter"), NULL, 0));
    SAYS("did you mean `filter`?");
    EXPECT(MILIEU_WRONG_FLOW, then(flow, "tell", "txet", milieu_datum_bool(true)));
    SAYS("did you mean `text`?");
    milieu_datum time = milieu_datum_whole(0);
    time.kind = MILIEU_TIME;
    EXPECT(MILIEU_INVALID, then(flow, "tell", "text", time));
    time.kind = 99;
    EXPECT(MILIEU_INVALID, then(flow, "tell", "text", time));
    EXPECT(MILIEU_NULL, milieu_flow_then(flow, TEXT("tell"), NULL, 1));
    CHECK(is_flow(flow,
        "/n | tell x span=1m30s flag=true share=0.25 count=-3 if=value > 3"));
    milieu_flow *none;
    EXPECT(MILIEU_WRONG_FLOW, milieu_flow_new(streams, TEXT("n | publish /p"), &none));
    milieu_flow_free(flow);

    /* Names are names, whatever stands in them. */
    flow = flow_of("/rooms/a b, c | d/*");
    CHECK(is_flow(flow, "\"/rooms/a b, c | d/*\""));
    subscribe_to(flow);

    /* Several flows, of which one has grown since. */
    milieu_flow *other = flow_of("/roof");
    OK(milieu_flow_and(other, flow));
    milieu_text text = TEXT("untouched");
    EXPECT(MILIEU_WRONG_FLOW, milieu_flow_text(other, &text));
    SAYS("here are 2 flows");
    CHECK(milieu_text_is(text, "untouched"));
    EXPECT(MILIEU_WRONG_FLOW, milieu_flow_then(other, TEXT("change"), NULL, 0));
    SAYS("reads one flow");
    OK(milieu_flow_then(flow, TEXT("change"), NULL, 0));
    OK(milieu_flow_then(other, TEXT("merge"), NULL, 0));
    OK(milieu_flow_and(other, flow));
    OK(milieu_flow_then(other, TEXT("merge"), NULL, 0));
    subscribe_to(other);
    CHECK(is_flow(other, "(\"/rooms/a b, c | d/*\" | change), "
                         "(/roof, \"/rooms/a b, c | d/*\" | merge) | merge"));
    OK(milieu_flow_and(other, other));
    OK(milieu_flow_then(other, TEXT("merge"), NULL, 0));
    /* No number of calls makes more of it than memory holds. */
    milieu_result result = MILIEU_OK;
    for (int doubled = 0; doubled < 40 && result == MILIEU_OK; doubled++)
        result = milieu_flow_and(other, other);
    CHECK(result == MILIEU_WRONG_FLOW);
    SAYS("4096");
    result = MILIEU_OK;
    for (int length = 0; length < 1000 && result == MILIEU_OK; length++)
        result = milieu_flow_then(flow, TEXT("change"), NULL, 0);
    CHECK(result == MILIEU_WRONG_FLOW);
    SAYS("too large");
    milieu_flow_free(other);
    milieu_flow_free(flow);
    EXPECT(MILIEU_FREED, milieu_flow_text(flow, &text));
}

/* What others have said stands in expressions as it is. */
static void literals(void) {
    const milieu_event_type *type;
    OK(milieu_event_type_new(&reading_layout, &type));
    milieu_publisher *publisher;
    OK(milieu_publisher_new(streams, TEXT("/readings"), type, false, &publisher));
    static const char *const rooms[] = { "005", "a\" || true || \"", "it's", "\\", "\n",
        "| publish /p", "\x1b[31m", "ü" };
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        char literal[128], expression[160];
        size_t length, needed;
        OK(milieu_literal(milieu_datum_text(TEXT(rooms[i])), NULL, 0, &needed));
        OK(milieu_literal(milieu_datum_text(TEXT(rooms[i])), literal, needed + 1, &length));
        CHECK(length == needed && strlen(literal) == length);
        length = 7;
        EXPECT(MILIEU_INVALID,
            milieu_literal(milieu_datum_text(TEXT(rooms[i])), literal, needed, &length));
        CHECK(length == 7);
        snprintf(expression, sizeof expression, "room == %s", literal);
        milieu_flow *flow = flow_of("/readings");
        OK(then(flow, "filter", "", milieu_datum_text(TEXT(expression))));
        milieu_text text;
        milieu_subscription *subscription;
        OK(milieu_flow_text(flow, &text));
        OK(milieu_subscription_new(streams, text, NULL, &subscription));
        for (size_t j = 0; j < sizeof rooms / sizeof *rooms; j++) {
            struct reading reading = { (double)j, TEXT(rooms[j]) };
            OK(milieu_publisher_publish(publisher, &reading, NULL, NULL));
        }
        const milieu_event *event;
        milieu_datum value;
        OK(milieu_subscription_next(subscription, 0, &event));
        CHECK(event != NULL);
        OK(milieu_event_get(event, TEXT("value"), &value));
        CHECK(value.content.number == (double)i);
        OK(milieu_subscription_next(subscription, 0, &event));
        CHECK(event == NULL);
        OK(milieu_subscription_free(subscription));
        milieu_flow_free(flow);
    }
    milieu_publisher_free(publisher);

    char literal[64];
    milieu_datum datum = milieu_datum_whole(1500000000);
    datum.kind = MILIEU_SPAN;
    OK(milieu_literal(datum, literal, sizeof literal, NULL));
    CHECK(strcmp(literal, "duration(\"1.5s\")") == 0);
    datum.kind = MILIEU_TIME;
    OK(milieu_literal(datum, literal, sizeof literal, NULL));
    CHECK(strcmp(literal, "timestamp(\"1970-01-01T00:00:01.5Z\")") == 0);
    OK(milieu_literal(milieu_datum_number(2), literal, sizeof literal, NULL));
    CHECK(strcmp(literal, "2.0") == 0);
    OK(milieu_literal(milieu_datum_nothing(), literal, sizeof literal, NULL));
    CHECK(strcmp(literal, "null") == 0);
    EXPECT(MILIEU_INVALID, milieu_literal(milieu_datum_number(HUGE_VAL), literal, sizeof literal, NULL));
    datum.kind = MILIEU_JSON;
    EXPECT(MILIEU_INVALID, milieu_literal(datum, literal, sizeof literal, NULL));
}

static bool writes(const char *file, const char *text, uint32_t language, const char *part) {
    milieu_writing *writing;
    milieu_text written;
    OK(milieu_writing_of_flows(streams, TEXT(file), TEXT(text), language, &writing));
    OK(milieu_writing_text(writing, &written));
    char copy[4096];
    CHECK(written.length < sizeof copy);
    snprintf(copy, sizeof copy, MILIEU_TEXT_FORMAT, MILIEU_TEXT_ARGUMENTS(written));
    milieu_writing_free(writing);
    if (strstr(copy, part)) return true;
    fprintf(stderr, "%s\n", copy);
    return false;
}

static void languages(void) {
    const char *flows = "let warm = /weather | filter $warm\nwarm | tell \"a|b\" | publish /told\n";
    CHECK(writes("station.flow", flows, MILIEU_PIPELINE, "warm | tell \"a|b\" | publish /told\n"));
    CHECK(writes("station.flow", flows, MILIEU_TOML, "{ tell = \"a|b\" }"));
    CHECK(writes("station.flow", flows, MILIEU_XML, "<tell"));
    CHECK(writes("station.flow", flows, MILIEU_RUST, ".publish(\"/told\")"));
    /* And back again. */
    milieu_writing *writing;
    milieu_text written;
    char xml[4096];
    OK(milieu_writing_of_flows(streams, TEXT("s.flow"), TEXT(flows), MILIEU_XML, &writing));
    OK(milieu_writing_text(writing, &written));
    snprintf(xml, sizeof xml, MILIEU_TEXT_FORMAT, MILIEU_TEXT_ARGUMENTS(written));
    milieu_writing_free(writing);
    EXPECT(MILIEU_FREED, milieu_writing_text(writing, &written));
    CHECK(writes("station.xml", xml, MILIEU_PIPELINE, "warm | tell \"a|b\" | publish /told\n"));

    EXPECT(MILIEU_WRONG_FLOW, milieu_writing_of_flows(streams, TEXT("station.flow"),
        TEXT("/weather\n/weather | fliter true\n"), MILIEU_TOML, &writing));
    SAYS("station.flow:2:12");
    SAYS("did you mean `filter`?");
    EXPECT(MILIEU_INVALID,
        milieu_writing_of_flows(streams, TEXT("station.txt"), TEXT(""), MILIEU_TOML, &writing));
    SAYS(".flow");
    EXPECT(MILIEU_INVALID,
        milieu_writing_of_flows(streams, TEXT("station.flow"), TEXT(""), 4, &writing));
    SAYS("milieu_language");
    OK(milieu_writing_of_schema(streams, &writing));
    OK(milieu_writing_text(writing, &written));
    bool has_own = false;
    for (size_t at = 0; at + 4 < written.length && !has_own; at++)
        has_own = memcmp(written.bytes + at, "tell", 4) == 0;
    CHECK(has_own);
    milieu_writing_free(writing);
}

static void rehearsals(void) {
    milieu_rehearsal *rehearsal;
    const milieu_case *cases;
    size_t count;
    OK(milieu_rehearsal_new(streams, TEXT("station.cases"), TEXT(
        "# warm days\n/weather | filter $warm | tell x\n\n"
        "1 /weather {\"temperature\": 19.5}\n2 /weather {\"temperature\": 21.5}\n"
        "@2 {\"temperature\": 21.5}\n"
        "---\n"
        "# a sum\n/n | aggregate sum 10s\n\n1 /n 2.0\n3 /n 3.0\nclock 12\n"
        "@11 {\"sum\": 6.0, \"count\": 2, \"failed\": 0, \"start\": 0, \"end\": 10}\n"),
        &rehearsal));
    CHECK(answers == 2 && busy_result == MILIEU_BUSY);
    OK(milieu_rehearsal_cases(rehearsal, &cases, &count));
    CHECK(count == 2);
    CHECK(cases[0].passed && milieu_text_is(cases[0].title, "warm days"));
    CHECK(cases[0].difference.length == 0);
    CHECK(!cases[1].passed && milieu_text_is(cases[1].title, "a sum"));
    char difference[1024];
    snprintf(difference, sizeof difference, MILIEU_TEXT_FORMAT,
        MILIEU_TEXT_ARGUMENTS(cases[1].difference));
    CHECK(strstr(difference, "    1 /n 2.0\n    3 /n 3.0\n"));
    CHECK(strstr(difference, "  - @11 {\"sum\": 6.0"));
    CHECK(strstr(difference, "  + @11 {\"sum\": 5.0"));
    CHECK(cases[1].found.length > 0 && cases[1].expected.length > 0);
    milieu_rehearsal_free(rehearsal);
    EXPECT(MILIEU_FREED, milieu_rehearsal_cases(rehearsal, &cases, &count));

    EXPECT(MILIEU_WRONG_FLOW, milieu_rehearsal_new(streams, TEXT("station.cases"),
        TEXT("# odd\n/n | fliter true\n\n1 /n 2.0\n"), &rehearsal));
    SAYS("did you mean `filter`?");
    EXPECT(MILIEU_WRONG_FLOW, milieu_rehearsal_new(streams, TEXT("station.cases"),
        TEXT("# odd\n/n\n\n1 /n 2.0\n0 /n 3.0\n"), &rehearsal));
    SAYS("station.cases:5:1");
    EXPECT(MILIEU_WRONG_FLOW,
        milieu_rehearsal_new(streams, TEXT("station.cases"), TEXT("/n"), &rehearsal));
    /* After what was wrong one may rehearse again. */
    OK(milieu_rehearsal_new(streams, TEXT("n.cases"), TEXT("# n\n/n\n\n1 /n 2.0\n@1 2.0"), &rehearsal));
    OK(milieu_rehearsal_cases(rehearsal, &cases, &count));
    CHECK(count == 1 && cases[0].passed);
    milieu_rehearsal_free(rehearsal);
}

int main(void) {
    static milieu_parameter parameters[] = {
        { "text", MILIEU_TEXT, 0, NULL, "", "A text.", true },
        { "span", MILIEU_SPAN, 0, NULL, "1s", "A distance in time.", false },
        { "flag", MILIEU_BOOL, 0, NULL, "false", "Yes or no.", false },
        { "share", MILIEU_F64, 0, NULL, "1", "A number.", false },
        { "count", MILIEU_I64, 0, NULL, "1", "A whole number.", false },
        { "if", MILIEU_EXPRESSION, 0, NULL, "true", "A condition.", false },
    };
    milieu_operator tell = { MILIEU_ABI, 1, MILIEU_OPERATOR_STATELESS, 6, "tell",
        "Lets everything pass.", parameters, make_tell, step_tell, NULL, NULL, NULL, NULL };
    OK(milieu_event_type_new(&number_layout, &number_type));
    OK(milieu_coordinator_new(&coordinator));
    OK(milieu_operator_define(coordinator, &tell, NULL, NULL));
    OK(milieu_function_define(coordinator, TEXT("warm"), warm, false, NULL, NULL));
    OK(milieu_streams_new(coordinator, NULL, &streams));
    values();
    literals();
    languages();
    rehearsals();
    milieu_streams_free(streams);
    milieu_coordinator_free(coordinator);
    puts("ok");
    return 0;
}
