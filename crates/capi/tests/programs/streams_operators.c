/* Operators that are told several fields, or several functions. */

#include "check.h"

#include <milieu/streams.h>

#define TEXT milieu_text_of

static const milieu_event_field number_field = { "", 0, MILIEU_F64, 0, NULL, NULL };
static const milieu_event_layout number_layout = { MILIEU_ABI, 1, "number", &number_field,
    sizeof(double), MILIEU_ALIGNOF(double) };
static const milieu_event_field text_field = { "", 0, MILIEU_TEXT, 0, NULL, NULL };
static const milieu_event_layout text_layout = { MILIEU_ABI, 1, "text", &text_field,
    sizeof(milieu_text), MILIEU_ALIGNOF(milieu_text) };
static const milieu_event_type *number_type, *text_type;

/* Says of each event what it was told, with the values of fields. */
struct report {
    char functions[256];
    size_t count;
    char names[4][32];
    milieu_expression *fields[4];
    milieu_expression *whole;
};
static int reports;

static milieu_result make_report(void *user, const milieu_arguments *arguments, void **state) {
    struct report *report = calloc(1, sizeof *report);
    size_t count, at;
    milieu_datum datum;
    milieu_text name;
    milieu_function_call call;
    (void)user;
    CHECK(report != NULL);
    *state = report;
    reports++;

    OK(milieu_arguments_count(arguments, TEXT("functions"), &count));
    for (at = 0; at < count; at++) {
        OK(milieu_arguments_function(arguments, TEXT("functions"), at, &call));
        size_t length = strlen(report->functions);
        snprintf(report->functions + length, sizeof report->functions - length,
            MILIEU_TEXT_FORMAT "[", MILIEU_TEXT_ARGUMENTS(call.name));
        for (size_t i = 0; i < call.argument_count; i++) {
            const milieu_datum *told = &call.arguments[i];
            length = strlen(report->functions);
            char *end = report->functions + length;
            size_t left = sizeof report->functions - length;
            if (told->kind == MILIEU_I64) snprintf(end, left, "i%d ", (int)told->content.whole);
            if (told->kind == MILIEU_F64) snprintf(end, left, "f%g ", told->content.number);
            if (told->kind == MILIEU_SPAN) snprintf(end, left, "s%d ", (int)(told->content.whole / 1000000000));
            if (told->kind == MILIEU_TEXT)
                snprintf(end, left, "t" MILIEU_TEXT_FORMAT " ",
                    MILIEU_TEXT_ARGUMENTS(told->content.text));
        }
        strcat(report->functions, "]");
    }
    EXPECT(MILIEU_NO_SUCH, milieu_arguments_function(arguments, TEXT("functions"), count, &call));
    SAYS("no part");
    OK(milieu_arguments_get(arguments, TEXT("functions"), &datum));
    CHECK(datum.kind == 0);

    OK(milieu_arguments_count(arguments, TEXT("into"), &report->count));
    CHECK(report->count <= 4);
    for (at = 0; at < report->count; at++) {
        OK(milieu_arguments_field(arguments, TEXT("into"), at, &name, &report->fields[at]));
        snprintf(report->names[at], sizeof report->names[at], MILIEU_TEXT_FORMAT,
            MILIEU_TEXT_ARGUMENTS(name));
    }
    milieu_expression *none;
    EXPECT(MILIEU_NO_SUCH,
        milieu_arguments_field(arguments, TEXT("into"), report->count, &name, &none));
    OK(milieu_arguments_expression(arguments, TEXT("into"), &report->whole));
    CHECK(report->count == 0 || report->whole == NULL);

    /* Each has its kind. */
    EXPECT(MILIEU_NO_SUCH, milieu_arguments_count(arguments, TEXT("title"), &count));
    SAYS("MILIEU_FIELDS or MILIEU_FUNCTIONS");
    EXPECT(MILIEU_NO_SUCH, milieu_arguments_count(arguments, TEXT("other"), &count));
    SAYS("`other`");
    EXPECT(MILIEU_NO_SUCH, milieu_arguments_function(arguments, TEXT("into"), 0, &call));
    EXPECT(MILIEU_NO_SUCH,
        milieu_arguments_field(arguments, TEXT("functions"), 0, &name, &none));
    EXPECT(MILIEU_NO_SUCH, milieu_arguments_expression(arguments, TEXT("functions"), &none));
    OK(milieu_arguments_get(arguments, TEXT("title"), &datum));
    CHECK(datum.kind == MILIEU_TEXT && milieu_text_is(datum.content.text, "a \"b\" | c"));
    OK(milieu_arguments_get(arguments, TEXT("of"), &datum));
    CHECK(datum.kind == MILIEU_TEXT && milieu_text_is(datum.content.text, "value + 1"));
    return MILIEU_OK;
}

static milieu_result step_report(void *state, uint32_t input, const milieu_event *event,
    milieu_output *output) {
    struct report *report = state;
    char said[512];
    milieu_datum datum;
    (void)input;
    snprintf(said, sizeof said, "%s", report->functions);
    for (size_t at = 0; at < report->count; at++) {
        OK(milieu_expression_value(report->fields[at], event, &datum));
        CHECK(datum.kind == MILIEU_F64);
        size_t length = strlen(said);
        snprintf(said + length, sizeof said - length, " %s=%g", report->names[at],
            datum.content.number);
    }
    if (report->whole) {
        OK(milieu_expression_value(report->whole, event, &datum));
        size_t length = strlen(said);
        snprintf(said + length, sizeof said - length, " whole %g",
            datum.kind == MILIEU_F64 ? datum.content.number : -1);
    }
    milieu_text text = TEXT(said);
    return milieu_output_publish(output, text_type, &text, NULL);
}

static void free_report(void *state) {
    struct report *report = state;
    for (size_t at = 0; at < report->count; at++) milieu_expression_free(report->fields[at]);
    milieu_expression_free(report->whole);
    free(report);
    reports--;
}

static milieu_result ten(void *user, const milieu_event *event, milieu_answer *answer) {
    (void)user;
    (void)event;
    return milieu_answer_give(answer, milieu_datum_number(10));
}

static const char *const words[] = { "mean", "p95", "percentile" };
static milieu_parameter parameters[] = {
    { "functions", MILIEU_FUNCTIONS, 3, words, "p95, percentile(50)", "What is computed.", true },
    { "into", MILIEU_FIELDS, 0, NULL, "{whole: value}", "What it becomes.", true },
    { "title", MILIEU_TEXT, 0, NULL, "a \"b\" | c", "What it is called.", false },
    { "of", MILIEU_EXPRESSION, 0, NULL, "value+1", "What counts.", false },
};

static bool reports_so(milieu_streams *streams, milieu_publisher *publisher, const char *flow,
    const char *expected) {
    milieu_subscription *subscription;
    const milieu_event *event;
    const milieu_text *text;
    double number = 2;
    OK(milieu_subscription_new(streams, TEXT(flow), NULL, &subscription));
    OK(milieu_publisher_publish(publisher, &number, NULL, NULL));
    OK(milieu_subscription_next(subscription, 0, &event));
    CHECK(event != NULL);
    OK(milieu_event_body(event, text_type, (const void **)&text));
    bool is_so = milieu_text_is(*text, expected);
    if (!is_so) fprintf(stderr, MILIEU_TEXT_FORMAT "\n", MILIEU_TEXT_ARGUMENTS(*text));
    OK(milieu_subscription_free(subscription));
    return is_so;
}

int main(void) {
    milieu_coordinator *coordinator;
    milieu_streams *streams;
    milieu_publisher *publisher;
    milieu_subscription *subscription;
    OK(milieu_event_type_new(&number_layout, &number_type));
    OK(milieu_event_type_new(&text_layout, &text_type));
    OK(milieu_coordinator_new(&coordinator));
    OK(milieu_function_define(coordinator, TEXT("ten"), ten, false, NULL, NULL));
    milieu_operator report = { MILIEU_ABI, 1, MILIEU_OPERATOR_STATELESS, 4, "report",
        "Says what it was told.", parameters, make_report, step_report, NULL, NULL, NULL,
        free_report };

    /* Defaults are of their kind, and functions have names. */
    parameters[0].otherwise = "p96";
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_operator_define(coordinator, &report, NULL, NULL));
    SAYS("`functions` has a default");
    parameters[0].otherwise = "p95, percentile(50)";
    parameters[0].choice_count = 0;
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_operator_define(coordinator, &report, NULL, NULL));
    SAYS("MILIEU_FUNCTIONS");
    parameters[0].choice_count = 3;
    parameters[1].otherwise = "{whole: }";
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_operator_define(coordinator, &report, NULL, NULL));
    SAYS("`into` has a default");
    parameters[1].otherwise = "{whole: value}";
    OK(milieu_operator_define(coordinator, &report, NULL, NULL));

    OK(milieu_streams_new(coordinator, NULL, &streams));
    OK(milieu_publisher_new(streams, TEXT("/n"), number_type, false, &publisher));
    CHECK(reports_so(streams, publisher, "/n | report", "p95[]percentile[i50 ] whole=2"));
    CHECK(reports_so(streams, publisher, "/n | report mean", "mean[] whole=2"));
    CHECK(reports_so(streams, publisher,
        "/n | report mean, percentile(95), percentile(2.5, 10s, wide)  {a: value * 2.0, `b c`: 1.0 + value}",
        "mean[]percentile[i95 ]percentile[f2.5 s10 twide ] a=4 b c=3"));
    CHECK(reports_so(streams, publisher, "/n | report mean value / 2.0", "mean[] whole 1"));
    CHECK(reports_so(streams, publisher, "/n | report into=$ten", "p95[]percentile[i50 ] whole 10"));

    /* What is no function, and what no function has the name of, is told with its place. */
    EXPECT(MILIEU_WRONG_FLOW,
        milieu_subscription_new(streams, TEXT("/n | report meen"), NULL, &subscription));
    SAYS("did you mean `mean`?");
    EXPECT(MILIEU_WRONG_FLOW,
        milieu_subscription_new(streams, TEXT("/n | report mean {a: }"), NULL, &subscription));

    milieu_publisher_free(publisher);
    milieu_streams_free(streams);
    milieu_coordinator_free(coordinator);
    CHECK(reports == 0);
    puts("ok");
    return 0;
}
