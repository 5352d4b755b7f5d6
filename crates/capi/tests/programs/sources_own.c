/* What a program brings along for sources that have names, from C: formats, and recordings that lie
 * in memory, which are stopped and moved within. The argument is an empty folder. */

#define _POSIX_C_SOURCE 200809L

#include "streams_check.h"

#include <fcntl.h>
#include <math.h>
#include <milieu/sources.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const int64_t second = 1000000000;

static milieu_streams *opened(bool virtual_time) {
    milieu_coordinator *coordinator;
    milieu_streams *streams;
    milieu_streams_options options = MILIEU_STREAMS_OPTIONS;
    options.virtual_time = virtual_time;
    OK(milieu_coordinator_new(&coordinator));
    OK(milieu_streams_new(coordinator, &options, &streams));
    milieu_coordinator_free(coordinator);
    return streams;
}

static milieu_text why_of(milieu_source *source, uint32_t *status) {
    milieu_text why;
    OK(milieu_source_status(source, status, &why));
    return why;
}

static uint32_t status_of(milieu_source *source) {
    uint32_t status;
    (void)why_of(source, &status);
    return status;
}

/* Waits until a source is as it should be, and says so. */
static void await(milieu_source *source, uint32_t expected, const char *part) {
    uint32_t status;
    milieu_text why;
    for (int i = 0; i < 1000; i++) {
        why = why_of(source, &status);
        if (status == expected && has(why, part)) return;
        nanosleep(&(struct timespec){ 0, 10000000 }, NULL);
    }
    fprintf(stderr, "the source is %u and not %u `%s`: " MILIEU_TEXT_FORMAT "\n", status, expected,
        part, MILIEU_TEXT_ARGUMENTS(why));
    exit(1);
}

/* ---------------------------------------------------------------- formats */

struct weight {
    double grams;
};
static const milieu_event_field weight_fields[] = { MILIEU_EVENT_FIELD(struct weight, grams) };
static const milieu_event_layout weight_layout = MILIEU_EVENT_LAYOUT(struct weight, weight_fields);

struct word {
    milieu_text word;
};
static const milieu_event_field word_fields[] = { MILIEU_EVENT_FIELD(struct word, word) };
static const milieu_event_layout word_layout = MILIEU_EVENT_LAYOUT(struct word, word_fields);

/* What a format has. */
struct scale {
    milieu_streams *streams;
    const milieu_event_type *weight, *word;
    milieu_feed *feed;
    int calls;
    int gone;
};

static void let_go(void *user) { ((struct scale *)user)->gone++; }

/* A format says what becomes of texts, and waits for nothing. */
static void feed_is_misused(struct scale *scale, milieu_feed *feed) {
    struct weight weight = { 1 };
    bool polled;
    EXPECT(MILIEU_INVALID, milieu_feed_wait(feed, 0));
    SAYS("its source sees to what it waits for");
    EXPECT(MILIEU_INVALID, milieu_feed_wait_readable(feed));
    SAYS("its source sees to what it waits for");
    EXPECT(MILIEU_INVALID, milieu_feed_descriptor(feed, 0));
    EXPECT(MILIEU_INVALID, milieu_feed_descriptor(feed, -1));
    EXPECT(MILIEU_INVALID, milieu_feed_end(feed));
    EXPECT(MILIEU_NULL, milieu_feed_publish(feed, NULL, &weight, NULL));
    EXPECT(MILIEU_NULL, milieu_feed_publish(feed, scale->weight, NULL, NULL));
    EXPECT(MILIEU_NOT_UTF8, milieu_feed_failing(feed, text("\xff")));
    EXPECT(MILIEU_BUSY, milieu_streams_wait_for_sources(scale->streams, 0, &polled));
}

/* `3.5 g` is a weight and its unit. */
static milieu_result weigh(void *user, milieu_feed *feed, milieu_text given) {
    struct scale *scale = user;
    struct weight weight;
    struct word unit;
    char line[64], *end;
    int64_t now;
    CHECK(given.length < sizeof line);
    memcpy(line, given.bytes, given.length);
    line[given.length] = 0;
    scale->feed = feed;
    if (scale->calls++ == 0) feed_is_misused(scale, feed);
    OK(milieu_feed_now(feed, &now));
    if (is(given, "tare")) return milieu_feed_working(feed);
    if (is(given, "empty")) return milieu_feed_failing(feed, text("nothing lies on it"));
    if (is(given, "both")) {
        OK(milieu_feed_failing(feed, text("not this")));
        OK(milieu_feed_working(feed));
        OK(milieu_feed_failing(feed, text("it counts what was said so")));
        return milieu_fail(text("and not otherwise"));
    }
    if (is(given, "broken")) return MILIEU_CALLBACK;
    weight.grams = strtod(line, &end);
    if (end == line) return milieu_fail(text("that is no weight"));
    milieu_quality quality = MILIEU_QUALITY;
    quality.time_ns = now - second;
    OK(milieu_feed_publish(feed, scale->weight, &weight, &quality));
    unit.word = text(end + (*end == ' '));
    return unit.word.length ? milieu_feed_publish(feed, scale->word, &unit, NULL) : MILIEU_OK;
}

static milieu_result opened_with(struct scale *scale, const char *what,
    const milieu_attribute *parameters, size_t count, const milieu_source_terms *terms,
    milieu_source **source) {
    return milieu_source_open_with(scale->streams, text("/scale"), text(what), parameters, count,
        terms, scale, let_go, source);
}

static struct scale scale_of(milieu_streams *streams) {
    struct scale scale = { 0 };
    scale.streams = streams;
    OK(milieu_event_type_new(&weight_layout, &scale.weight));
    OK(milieu_event_type_new(&word_layout, &scale.word));
    return scale;
}

static void say(int pipe, const char *lines) {
    CHECK(write(pipe, lines, strlen(lines)) == (ssize_t)strlen(lines));
}

static double grams_of(const milieu_event *event) {
    milieu_datum datum;
    OK(milieu_event_get(event, text("grams"), &datum));
    CHECK(datum.kind == MILIEU_F64);
    return datum.content.number;
}

/* A program that says what it is told, line by line. */
static void lines_become_events(void) {
    struct scale scale = scale_of(opened(false));
    milieu_source_terms terms = MILIEU_SOURCE_TERMS;
    milieu_source *source;
    milieu_header header;
    const struct weight *weight;
    char run[4200];
    terms.format = weigh;
    CHECK(mkfifo(path_of("pipe"), 0600) == 0);
    int pipe = open(path_of("pipe"), O_RDWR);
    CHECK(pipe >= 0);
    snprintf(run, sizeof run, "exec cat '%s'", path_of("pipe"));
    milieu_subscription *all = subscribed(scale.streams, "/scale");
    milieu_attribute parameter = told("run", run);
    OK(opened_with(&scale, "command.shell", &parameter, 1, &terms, &source));

    say(pipe, "3.5 g\n");
    const milieu_event *event = next(all);
    OK(milieu_event_header(event, &header));
    int64_t before = header.quality.time_ns;
    OK(milieu_event_body(event, scale.weight, (const void **)&weight));
    CHECK(weight->grams == 3.5);
    event = next(all);
    milieu_datum datum;
    OK(milieu_event_get(event, text("word"), &datum));
    CHECK(is(datum.content.text, "g"));
    OK(milieu_event_header(event, &header));
    CHECK(header.quality.time_ns == before + second);
    await(source, MILIEU_WORKING, "");

    say(pipe, "heavy\n");
    await(source, MILIEU_FAILING, "line 2: `heavy`: that is no weight");
    await(source, MILIEU_FAILING, run);
    /* Blank lines are none, and what says nothing of the source is no news. */
    say(pipe, "\n  \ntare\r\n");
    await(source, MILIEU_WORKING, "");
    CHECK(scale.calls == 3 && !has_more(all));
    say(pipe, "empty\n");
    await(source, MILIEU_FAILING, "line 6: `empty`: nothing lies on it");
    say(pipe, "both\n");
    await(source, MILIEU_FAILING, "line 7: `both`: it counts what was said so");
    say(pipe, "broken\n");
    await(source, MILIEU_FAILING, "line 8: `broken`: it has failed, and has not said why");
    say(pipe, "\xff 2\n");
    await(source, MILIEU_FAILING, "line 9: `\xef\xbf\xbd 2`: that is no weight");
    say(pipe, "5\n");
    CHECK(grams_of(next(all)) == 5);
    await(source, MILIEU_WORKING, "");
    EXPECT(MILIEU_INVALID, milieu_replay_pause(source));
    SAYS("this source replays no recording; those of `replay.csv`");

    CHECK(scale.gone == 0);
    milieu_source_free(source);
    CHECK(scale.gone == 1);
    EXPECT(MILIEU_FREED, milieu_feed_working(scale.feed));
    close(pipe);
    OK(milieu_subscription_free(all));
    milieu_streams_free(scale.streams);
}

static void contents_become_events_in_virtual_time(void) {
    struct scale scale = scale_of(opened(true));
    milieu_source_terms terms = MILIEU_SOURCE_TERMS;
    milieu_source *source;
    uint32_t status;
    terms.format = weigh;
    milieu_attribute parameters[] = { told("path", path_of("weight")), told("every", "1s") };
    write_file("weight", " 21 kg \n");
    OK(opened_with(&scale, "file.content", parameters, 2, &terms, &source));
    milieu_subscription *all = subscribed(scale.streams, "/scale");
    milieu_subscription *heavy = subscribed(scale.streams, "/scale | filter grams > 20");
    OK(milieu_streams_pass(scale.streams, 0));
    CHECK(grams_of(next(all)) == 21 && grams_of(next(heavy)) == 21);
    CHECK(!has_more(heavy));
    milieu_datum datum;
    OK(milieu_event_get(next(all), text("word"), &datum));
    CHECK(is(datum.content.text, "kg") && status_of(source) == MILIEU_WORKING);
    write_file("weight", "much");
    OK(milieu_streams_pass(scale.streams, 10 * second));
    milieu_text why = why_of(source, &status);
    CHECK(status == MILIEU_FAILING && has(why, "weight: `much`: that is no weight"));
    CHECK(!has_more(all));
    write_file("weight", "7");
    OK(milieu_streams_pass(scale.streams, 20 * second));
    CHECK(grams_of(next(all)) == 7 && status_of(source) == MILIEU_WORKING);
    CHECK(scale.gone == 0);
    milieu_source_free(source);
    CHECK(scale.gone == 1);
    OK(milieu_subscription_free(all));
    OK(milieu_subscription_free(heavy));
    milieu_streams_free(scale.streams);
}

/* Whoever is refused lets go of what was handed over, once. */
static void what_is_of_no_use_is_refused(void) {
    struct scale scale = scale_of(opened(true));
    milieu_source *untouched = (milieu_source *)&folder, *source = untouched;
    milieu_source_terms formats = MILIEU_SOURCE_TERMS, content = MILIEU_SOURCE_TERMS;
    milieu_attribute run[] = { told("run", "true"), told("format", "number") };
    milieu_attribute path = told("path", path_of("nothing"));
    int gone = 0;
    formats.format = weigh;
    content.content = text("time\n");
#define REFUSED(result, says, ...)                                                            \
    do {                                                                                      \
        EXPECT(result, opened_with(&scale, __VA_ARGS__, &source));                            \
        SAYS(says);                                                                           \
        CHECK(scale.gone == ++gone && source == untouched);                                   \
    } while (0)
    REFUSED(MILIEU_NULL, "`terms` is null", "file.content", &path, 1, NULL);
    REFUSED(MILIEU_INVALID, "`machine.load`: it reads no texts", "machine.load", NULL, 0, &formats);
    REFUSED(MILIEU_INVALID, "there are command.shell, file.content, serial.lines", "replay.csv",
        &path, 1, &formats);
    REFUSED(MILIEU_INVALID, "parameter `format`: the program has a format of its own",
        "command.shell", run, 2, &formats);
    REFUSED(MILIEU_INVALID, "`file.content`: it replays no recording", "file.content", &path, 1,
        &content);
    REFUSED(MILIEU_INVALID, "parameter `run`: this must be given", "command.shell", NULL, 0,
        &formats);
    REFUSED(MILIEU_NO_SUCH, "there is no such source", "machine.lode", NULL, 0, &formats);
    REFUSED(MILIEU_NULL, "`parameters` is null", "file.content", NULL, 1, &formats);
    content.content = (milieu_text){ NULL, 3 };
    REFUSED(MILIEU_NULL, "`content` is null", "replay.csv", &path, 1, &content);
    formats.abi = 0;
    REFUSED(MILIEU_WRONG_LAYOUT, "`terms`", "file.content", &path, 1, &formats);
    formats.abi = MILIEU_ABI;
    EXPECT(MILIEU_WRONG_NAME, milieu_source_open_with(scale.streams, text("no name"),
        text("file.content"), &path, 1, &formats, &scale, let_go, &source));
    CHECK(scale.gone == ++gone && source == untouched);
    /* Terms that say nothing are none. Nobody has what was handed over. */
    milieu_source_terms terms = MILIEU_SOURCE_TERMS;
    OK(opened_with(&scale, "machine.load", NULL, 0, &terms, &source));
    CHECK(scale.gone == ++gone);
    milieu_source_free(source);
    CHECK(scale.gone == gone && scale.calls == 0);
    milieu_streams_free(scale.streams);
}

/* ---------------------------------------------------------------- recordings */

/* Rows at 0, 10 and 40 seconds from then on. */
static const char rows[] = "time,n\n"
                           "2013-01-01T00:26:40Z,1\n"
                           "2013-01-01T00:26:50Z,2\n"
                           "2013-01-01T00:27:20Z,3\n";
static const int64_t start = 1357000000 * INT64_C(1000000000);

/* Opens a recording that lies in memory; what lay there is something else then. */
static milieu_source *recorded(milieu_streams *streams, const char *content,
    const milieu_attribute *parameters, size_t count) {
    milieu_source_terms terms = MILIEU_SOURCE_TERMS;
    milieu_source *source;
    char copy[256];
    snprintf(copy, sizeof copy, "%s", content);
    terms.content = text(copy);
    OK(milieu_source_open_with(streams, text("/rows"), text("replay.csv"), parameters, count, &terms,
        NULL, NULL, &source));
    memset(copy, 0, sizeof copy);
    return source;
}

static int64_t position(milieu_source *source) {
    int64_t time;
    OK(milieu_replay_position(source, &time));
    return time == MILIEU_NOW ? time : (time - start) / second;
}

/* Which row has come, if one has. */
static double row(milieu_subscription *subscription) {
    const milieu_event *event;
    milieu_datum datum;
    OK(milieu_subscription_next(subscription, 0, &event));
    if (!event) return 0;
    OK(milieu_event_get(event, text("n"), &datum));
    return datum.content.number;
}

static void pass(milieu_streams *streams, int64_t seconds) {
    int64_t now;
    OK(milieu_streams_now(streams, &now));
    OK(milieu_streams_pass(streams, now + seconds * second));
}

static void recordings_are_stopped_and_moved_within(void) {
    milieu_streams *streams = opened(true);
    milieu_source *source = recorded(streams, rows, NULL, 0);
    milieu_subscription *all = subscribed(streams, "/rows");
    CHECK(position(source) == MILIEU_NOW);
    pass(streams, 0);
    CHECK(row(all) == 1 && position(source) == 0);
    pass(streams, 4);
    CHECK(row(all) == 0 && position(source) == 4);
    OK(milieu_replay_pause(source));
    pass(streams, 100);
    CHECK(row(all) == 0 && position(source) == 4 && status_of(source) == MILIEU_WORKING);
    OK(milieu_replay_resume(source));
    pass(streams, 5);
    CHECK(row(all) == 0 && position(source) == 9);
    pass(streams, 1);
    CHECK(row(all) == 2 && position(source) == 10);
    /* Ten times as fast from here on. */
    OK(milieu_replay_pace(source, 10));
    pass(streams, 1);
    CHECK(position(source) == 20 && row(all) == 0);
    /* Back, where it begins at once; nobody waits for that. */
    OK(milieu_replay_seek(source, start));
    CHECK(position(source) == 0 && row(all) == 0);
    pass(streams, 0);
    CHECK(row(all) == 1 && row(all) == 0);
    pass(streams, 1);
    CHECK(row(all) == 2 && row(all) == 0);
    OK(milieu_replay_pace(source, INFINITY));
    pass(streams, 0);
    CHECK(row(all) == 3 && status_of(source) == MILIEU_OVER && position(source) == MILIEU_NOW);
    /* It is over. */
    OK(milieu_replay_seek(source, start));
    OK(milieu_replay_pause(source));
    pass(streams, 100);
    CHECK(row(all) == 0 && position(source) == MILIEU_NOW);
    EXPECT(MILIEU_INVALID, milieu_replay_pace(source, 0));
    SAYS("nothing is 0 times as fast; give a number above 0, INFINITY");
    EXPECT(MILIEU_INVALID, milieu_replay_pace(source, -1));
    EXPECT(MILIEU_INVALID, milieu_replay_pace(source, -INFINITY));
    EXPECT(MILIEU_INVALID, milieu_replay_pace(source, NAN));
    SAYS("NaN");
    milieu_source_free(source);
    EXPECT(MILIEU_FREED, milieu_replay_pause(source));

    /* With a lead it is exactly there, and what was shortly before comes at once. */
    milieu_attribute parameters[] = { told("lead", "20s"), told("passes", "forever") };
    source = recorded(streams, rows, parameters, 2);
    OK(milieu_replay_pause(source));
    OK(milieu_replay_seek(source, start + 25 * second));
    CHECK(position(source) == 25);
    pass(streams, 100);
    CHECK(row(all) == 2 && row(all) == 0 && position(source) == 25);
    OK(milieu_replay_resume(source));
    pass(streams, 15);
    CHECK(row(all) == 3 && position(source) == 40);
    OK(milieu_replay_seek(source, INT64_MAX));
    pass(streams, 0);
    CHECK(row(all) == 1);
    milieu_source_free(source);

    /* What is in a file as well. */
    write_file("rows.csv", rows);
    milieu_attribute path = told("path", path_of("rows.csv"));
    OK(milieu_source_open(streams, text("/rows"), text("replay.csv"), &path, 1, &source));
    OK(milieu_replay_seek(source, start + 40 * second));
    pass(streams, 1);
    CHECK(row(all) == 3 && status_of(source) == MILIEU_OVER);
    milieu_source_free(source);
    /* An empty one is one, and what is wrong with another is said of what it is called. */
    source = recorded(streams, "", NULL, 0);
    pass(streams, 1);
    CHECK(row(all) == 0 && status_of(source) == MILIEU_OVER);
    milieu_source_free(source);
    for (int named = 0; named < 2; named++) {
        uint32_t status;
        path = told("path", "the morning");
        source = recorded(streams, "n\n1\n", &path, (size_t)named);
        pass(streams, 1);
        milieu_text why = why_of(source, &status);
        CHECK(status == MILIEU_FAILING && has(why, named ? "the morning: " : "recording: "));
        milieu_source_free(source);
    }
    OK(milieu_subscription_free(all));
    milieu_streams_free(streams);
}

struct row {
    double n;
    int32_t other;
    int64_t time;
    MILIEU_OPTIONAL_OF(milieu_text) name;
};
static const milieu_event_field row_fields[] = { MILIEU_EVENT_FIELD(struct row, n),
    MILIEU_EVENT_FIELD(struct row, other), MILIEU_EVENT_FIELD_OF(struct row, time, MILIEU_TIME),
    MILIEU_EVENT_OPTIONAL(struct row, name) };
static const milieu_event_layout row_layout = MILIEU_EVENT_LAYOUT(struct row, row_fields);

/* Rows become a struct, of their fields by name; what lacks one is left out, and told. */
static void rows_have_a_type(void) {
    milieu_streams *streams = opened(true);
    milieu_subscription *all = subscribed(streams, "/rows");
    milieu_source_terms terms = MILIEU_SOURCE_TERMS;
    milieu_attribute path = told("path", path_of("nothing"));
    const milieu_event_type *type, *found;
    const milieu_event *event;
    const struct row *body;
    milieu_source *source;
    uint32_t status;
    OK(milieu_event_type_new(&row_layout, &type));
    terms.rows = type;
    terms.content = text("time,n,name,other\n"
                         "2013-01-01T00:26:40Z,1.5,one,7\n"
                         "2013-01-01T00:26:41Z,,none,7\n"
                         "2013-01-01T00:26:42Z,2,,7\n"
                         "2013-01-01T00:27:20Z,3,three,7\n");
    OK(milieu_source_open_with(streams, text("/rows"), text("replay.csv"), NULL, 0, &terms, NULL,
        NULL, &source));
    pass(streams, 2);
    event = next(all);
    OK(milieu_event_type_of(event, &found));
    OK(milieu_event_body(event, type, (const void **)&body));
    CHECK(found == type && body->n == 1.5 && body->other == 7 && body->time == start);
    CHECK(body->name.is_there && is(body->name.value, "one"));
    OK(milieu_event_body(next(all), type, (const void **)&body));
    CHECK(body->n == 2 && !body->name.is_there && !has_more(all));
    milieu_text why = why_of(source, &status);
    CHECK(status == MILIEU_FAILING && has(why, "line 3: ") && has(why, "`n`"));
    milieu_source_free(source);

    /* When it was recorded is a time, in whatever format. */
    for (int i = 0; i < 2; i++) {
        milieu_attribute format = told("time_format", i ? "seconds" : "rfc3339");
        terms.content = text(i ? "{\"time\": 1357000000, \"n\": 4, \"other\": 1, \"name\": null}\n"
                               : "{\"time\": \"2013-01-01T00:26:40Z\", \"n\": 4, \"other\": 1}\n");
        OK(milieu_source_open_with(streams, text("/rows"), text("replay.json_lines"), &format, 1,
            &terms, NULL, NULL, &source));
        pass(streams, 0);
        OK(milieu_event_body(next(all), type, (const void **)&body));
        CHECK(body->n == 4 && !body->name.is_there && body->time == start);
        milieu_source_free(source);
    }

    terms.content = (milieu_text){ NULL, 0 };
    EXPECT(MILIEU_INVALID, milieu_source_open_with(streams, text("/a"), text("replay.nmea"), &path,
        1, &terms, NULL, NULL, &source));
    SAYS("`replay.nmea`: it replays no rows, of which a type could be made; there are replay.csv, "
         "replay.json_lines");
    EXPECT(MILIEU_INVALID, milieu_source_open_with(streams, text("/a"), text("machine.load"), NULL,
        0, &terms, NULL, NULL, &source));
    terms.rows = (const milieu_event_type *)streams;
    EXPECT(MILIEU_WRONG_HANDLE, milieu_source_open_with(streams, text("/a"), text("replay.csv"),
        &path, 1, &terms, NULL, NULL, &source));
    OK(milieu_subscription_free(all));
    milieu_streams_free(streams);
}

/* A callback stops it at what it was looking for. */
static milieu_result stop(void *user, const milieu_event *event) {
    (void)event;
    milieu_source *source = *(milieu_source **)user;
    CHECK(position(source) == 10);
    OK(milieu_replay_pause(source));
    return MILIEU_OK;
}

static milieu_result look(void *user, milieu_feed *feed) {
    (void)user;
    return milieu_feed_wait(feed, INT64_MAX);
}

static void callbacks_stop_recordings(void) {
    milieu_streams *streams = opened(true);
    milieu_source *source = recorded(streams, rows, NULL, 0), *own;
    milieu_listener *listener;
    uint64_t failures;
    milieu_subscription *all = subscribed(streams, "/rows");
    OK(milieu_listener_new(
        streams, text("/rows | filter n == 2.0"), stop, &source, NULL, &listener));
    pass(streams, 100);
    CHECK(row(all) == 1 && row(all) == 2 && row(all) == 0 && position(source) == 10);
    OK(milieu_listener_failures(listener, &failures, NULL));
    CHECK(failures == 0);
    OK(milieu_replay_resume(source));
    pass(streams, 30);
    CHECK(row(all) == 3);
    /* One of the program's own replays nothing. */
    OK(milieu_source_new(streams, text("/own"), look, NULL, NULL, &own));
    int64_t time = 7;
    EXPECT(MILIEU_INVALID, milieu_replay_resume(own));
    EXPECT(MILIEU_INVALID, milieu_replay_seek(own, 0));
    EXPECT(MILIEU_INVALID, milieu_replay_pace(own, 1));
    EXPECT(MILIEU_INVALID, milieu_replay_position(own, &time));
    CHECK(time == 7);
    milieu_source_free(own);
    milieu_listener_free(listener);
    milieu_source_free(source);
    OK(milieu_subscription_free(all));
    milieu_streams_free(streams);
}

/* Where time is real it does so at once. */
static void recordings_are_told_at_once(void) {
    milieu_streams *streams = opened(false);
    milieu_subscription *all = subscribed(streams, "/rows");
    milieu_source *source = recorded(streams, rows, NULL, 0);
    next(all);
    OK(milieu_replay_pause(source));
    OK(milieu_replay_seek(source, start + 30 * second));
    OK(milieu_replay_pace(source, INFINITY));
    OK(milieu_replay_resume(source));
    milieu_datum datum;
    OK(milieu_event_get(next(all), text("n"), &datum));
    CHECK(datum.content.number == 3);
    await(source, MILIEU_OVER, "");
    milieu_source_free(source);
    OK(milieu_subscription_free(all));
    milieu_streams_free(streams);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    folder = argv[1];
    lines_become_events();
    contents_become_events_in_virtual_time();
    what_is_of_no_use_is_refused();
    recordings_are_stopped_and_moved_within();
    rows_have_a_type();
    callbacks_stop_recordings();
    recordings_are_told_at_once();
    puts("ok");
    return 0;
}
