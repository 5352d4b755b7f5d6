/* Sources that have names, from C: what is known of them, what they publish, and what is refused. The
 * argument is an empty folder. */

#define _POSIX_C_SOURCE 200809L

#include "streams_check.h"

#include <milieu/sources.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Opens a source with one or two parameters, or none. */
#define OPEN(streams, name, what, source, ...)                                                \
    open_with(streams, name, what, (milieu_attribute[]){ __VA_ARGS__ },                       \
        sizeof((milieu_attribute[]){ __VA_ARGS__ }) / sizeof(milieu_attribute), source)

static milieu_result open_with(milieu_streams *streams, const char *name, const char *what,
    const milieu_attribute *parameters, size_t count, milieu_source **source) {
    return milieu_source_open(streams, text(name), text(what), parameters, count, source);
}

static milieu_datum field(const milieu_event *event, const char *path) {
    milieu_datum datum;
    OK(milieu_event_get(event, text(path), &datum));
    return datum;
}

static bool is_number(milieu_datum datum, double number) {
    return datum.kind == MILIEU_F64 && datum.content.number == number;
}

static int64_t time_of(const milieu_event *event) {
    milieu_header header;
    OK(milieu_event_header(event, &header));
    return header.quality.time_ns;
}

/* Waits until a source is as it should be; why it is so, if it says. */
static milieu_text awaited(milieu_source *source, uint32_t expected) {
    uint32_t status;
    milieu_text why;
    for (int i = 0; i < 1000; i++) {
        OK(milieu_source_status(source, &status, &why));
        if (status == expected) return why;
        nanosleep(&(struct timespec){ 0, 10000000 }, NULL);
    }
    fprintf(stderr, "the source is %u and not %u\n", status, expected);
    exit(1);
}

static const milieu_source_definition *known(const char *name) {
    const milieu_source_definition *all;
    size_t count;
    OK(milieu_sources(&all, &count));
    for (size_t i = 0; i < count; i++)
        if (strcmp(all[i].name, name) == 0) return &all[i];
    return NULL;
}

static const milieu_parameter *parameter(const char *of, const char *name) {
    const milieu_source_definition *source = known(of);
    CHECK(source != NULL);
    for (size_t i = 0; i < source->parameter_count; i++)
        if (strcmp(source->parameters[i].name, name) == 0) return &source->parameters[i];
    return NULL;
}

static void all_are_known(void) {
    const milieu_source_definition *all, *again;
    size_t count, others;
    OK(milieu_sources(&all, &count));
    OK(milieu_sources(&again, &others));
    CHECK(all == again && count == others && count >= 21);
    CHECK(known("gpio.lines") && known("serial.bytes") && !known("machine.lode"));
    const milieu_source_definition *load = known("machine.load");
    CHECK(load->parameter_count == 2 && strcmp(load->events, "Load") == 0);
    CHECK(strcmp(load->summary, "Load averages.") == 0 && load->needs[0] == 0);
    CHECK(strcmp(known("file.folder")->needs, "reading the folder") == 0);
    const milieu_parameter *every = parameter("machine.load", "every");
    CHECK(every->kind == MILIEU_SPAN && strcmp(every->otherwise, "5s") == 0 && !every->positional);
    const milieu_parameter *run = parameter("command.shell", "run");
    CHECK(run->kind == MILIEU_TEXT && run->otherwise == NULL && run->positional);
    CHECK(strcmp(run->summary, "what `sh` is to run") == 0);
    const milieu_parameter *folder_of = parameter("command.shell", "folder");
    CHECK(folder_of->otherwise[0] == 0);
    CHECK(parameter("command.shell", "once")->kind == MILIEU_BOOL);
    const milieu_parameter *format = parameter("command.shell", "format");
    CHECK(format->kind == MILIEU_ENUM && format->choice_count == 4);
    CHECK(strcmp(format->choices[1], "number") == 0);
    CHECK(parameter("serial.lines", "baud")->kind == MILIEU_I64);
}

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

/* What a program wants of the machine's load: not all of it, and not in its order. */
struct load {
    MILIEU_OPTIONAL_OF(uint32_t) threads;
    MILIEU_OPTIONAL_OF(uint32_t) processors;
    double fifteen_minutes;
};
static const milieu_event_field load_fields[] = {
    MILIEU_EVENT_OPTIONAL(struct load, threads),
    MILIEU_EVENT_OPTIONAL(struct load, processors),
    MILIEU_EVENT_FIELD(struct load, fifteen_minutes),
};
static const milieu_event_layout load_layout = MILIEU_EVENT_LAYOUT(struct load, load_fields);

enum charge { CHARGING, DISCHARGING, FULL };
struct battery {
    milieu_text supply;
    uint32_t charge;
    bool powers_machine;
    double level_percent;
};
static const milieu_entry charges[]
    = { { "variant", "charging" }, { "variant", "discharging" }, { "variant", "full" } };
static const milieu_event_field battery_fields[] = {
    MILIEU_EVENT_FIELD(struct battery, supply),
    MILIEU_EVENT_FIELD_WITH(struct battery, charge, MILIEU_ENUM, charges),
    MILIEU_EVENT_FIELD(struct battery, powers_machine),
    MILIEU_EVENT_FIELD(struct battery, level_percent),
};
static const milieu_event_layout battery_layout
    = MILIEU_EVENT_LAYOUT(struct battery, battery_fields);

/* A machine whose load and battery are files in the folder. */
static void the_machine_is_read_in_virtual_time(void) {
    const milieu_event_type *type, *of;
    const struct load *load;
    const struct battery *battery;
    milieu_source *source, *power;
    milieu_text json;
    milieu_streams *streams = opened(true);
    mkdir(path_of("proc"), 0777);
    mkdir(path_of("sys"), 0777);
    mkdir(path_of("sys/class"), 0777);
    mkdir(path_of("sys/class/power_supply"), 0777);
    mkdir(path_of("sys/class/power_supply/BAT0"), 0777);
    write_file("proc/loadavg", "0.25 1.50 4.75 2/345 6789\n");
    write_file("sys/class/power_supply/BAT0/type", "Battery\n");
    write_file("sys/class/power_supply/BAT0/capacity", "14\n");
    write_file("sys/class/power_supply/BAT0/status", "Discharging\n");
    OK(OPEN(streams, "/machine/load", "machine.load", &source, told("every", "10s"),
        told("root", folder)));
    OK(OPEN(streams, "/machine/battery", "machine.battery", &power, told("root", folder)));
    milieu_subscription *all = subscribed(streams, "/machine/load");
    milieu_subscription *high = subscribed(streams, "/machine/load | filter fifteen_minutes > 5");
    milieu_subscription *low
        = subscribed(streams, "/machine/battery | filter powers_machine && level_percent < 15");
    CHECK(!has_more(all));
    OK(milieu_streams_pass(streams, 0));

    const milieu_event *event = next(all);
    CHECK(is_number(field(event, "fifteen_minutes"), 4.75));
    CHECK(is_number(field(event, "one_minute"), 0.25));
    milieu_datum threads = field(event, "threads");
    CHECK(threads.kind == MILIEU_U64 && threads.content.natural == 345);
    CHECK(field(event, "processors").kind == 0 && field(event, "sixty_minutes").kind == 0);
    OK(milieu_event_json(event, &json));
    CHECK(is(json, "{\"one_minute\":0.25,\"five_minutes\":1.5,\"fifteen_minutes\":4.75,"
                   "\"runnable_threads\":2,\"threads\":345,\"processors\":null}"));
    OK(milieu_event_type_of(event, &of));
    CHECK(of == NULL);
    OK(milieu_event_type_new(&load_layout, &type));
    OK(milieu_event_body(event, type, (const void **)&load));
    CHECK(load->fifteen_minutes == 4.75);
    CHECK(load->threads.is_there && load->threads.value == 345 && !load->processors.is_there);
    CHECK(!has_more(all) && !has_more(high));

    event = next(low);
    OK(milieu_event_type_new(&battery_layout, &type));
    OK(milieu_event_body(event, type, (const void **)&battery));
    CHECK(is(battery->supply, "BAT0") && battery->charge == DISCHARGING);
    CHECK(battery->powers_machine && battery->level_percent == 14);
    /* It is another type, and says what is missing. */
    OK(milieu_event_type_new(&load_layout, &type));
    EXPECT(MILIEU_UNFIT, milieu_event_body(event, type, (const void **)&load));
    SAYS("it has no field `fifteen_minutes`");

    /* It looks again every ten seconds, and no sooner. */
    write_file("proc/loadavg", "0.25 1.50 6.75 2/345 6789\n");
    OK(milieu_streams_pass(streams, 9999999999));
    CHECK(!has_more(all));
    OK(milieu_streams_pass(streams, 10000000000));
    CHECK(is_number(field(next(high), "fifteen_minutes"), 6.75));
    /* What is not there is a status. */
    uint32_t status;
    milieu_text why;
    OK(milieu_source_status(source, &status, NULL));
    CHECK(status == MILIEU_WORKING);
    CHECK(unlink(path_of("proc/loadavg")) == 0);
    OK(milieu_streams_pass(streams, 20000000000));
    OK(milieu_source_status(source, &status, &why));
    CHECK(status == MILIEU_FAILING && has(why, "loadavg"));

    milieu_source_free(source);
    milieu_source_free(power);
    OK(milieu_subscription_free(all));
    OK(milieu_subscription_free(high));
    OK(milieu_subscription_free(low));
    milieu_streams_free(streams);
}

struct tick {
    uint64_t missed;
};
static const milieu_event_field tick_fields[] = { MILIEU_EVENT_FIELD(struct tick, missed) };
static const milieu_event_layout tick_layout = MILIEU_EVENT_LAYOUT(struct tick, tick_fields);

static void timers_tick_in_virtual_time(void) {
    const int64_t second = 1000000000;
    const milieu_event_type *type;
    const struct tick *tick;
    milieu_source *source;
    milieu_streams *streams = opened(true);
    OK(milieu_streams_pass(streams, 7 * second));
    OK(OPEN(streams, "/tick", "timer.every", &source, told("interval", "10s")));
    milieu_subscription *ticks = subscribed(streams, "/tick");
    milieu_subscription *third = subscribed(streams, "/tick | sample every=30s");
    OK(milieu_streams_pass(streams, 35 * second));
    OK(milieu_event_type_new(&tick_layout, &type));
    for (int64_t at = 10; at <= 30; at += 10) {
        const milieu_event *event = next(ticks);
        CHECK(time_of(event) == at * second);
        OK(milieu_event_body(event, type, (const void **)&tick));
        CHECK(tick->missed == 0);
    }
    CHECK(!has_more(ticks));
    OK(milieu_subscription_free(third));
    OK(milieu_subscription_free(ticks));
    milieu_source_free(source);
    milieu_streams_free(streams);
}

struct row {
    int64_t time;
    milieu_text station;
    MILIEU_OPTIONAL_OF(double) degrees;
    int64_t count;
};
static const milieu_event_field row_fields[] = {
    MILIEU_EVENT_FIELD_OF(struct row, time, MILIEU_TIME),
    MILIEU_EVENT_FIELD(struct row, station),
    MILIEU_EVENT_OPTIONAL(struct row, degrees),
    MILIEU_EVENT_FIELD(struct row, count),
};
static const milieu_event_layout row_layout = MILIEU_EVENT_LAYOUT(struct row, row_fields);

/* Rows come when they were recorded, and have that time. */
static void recordings_play_in_virtual_time(void) {
    const int64_t second = 1000000000, start = 1357000000 * second;
    const milieu_event_type *type;
    const struct row *row;
    milieu_source *source;
    uint32_t status;
    milieu_streams *streams = opened(true);
    write_file("weather.csv", "time,station,degrees,count\n"
                              "2013-01-01T00:26:40Z,JFK,3.5,7\n"
                              "2013-01-01T00:26:45Z,LGA,,8\n"
                              "2013-01-01T00:26:50Z,JFK,-1.25,9\n");
    milieu_attribute parameters[]
        = { told("path", path_of("weather.csv")), told("integers", "count") };
    OK(open_with(streams, "/weather", "replay.csv", parameters, 2, &source));
    milieu_subscription *rows = subscribed(streams, "/weather");
    milieu_subscription *cold = subscribed(streams, "/weather | filter degrees < 0");
    OK(milieu_streams_pass(streams, 1));
    OK(milieu_event_type_new(&row_layout, &type));
    const milieu_event *event = next(rows);
    OK(milieu_event_body(event, type, (const void **)&row));
    CHECK(time_of(event) == start && row->time == start);
    CHECK(is(row->station, "JFK") && row->degrees.is_there && row->degrees.value == 3.5);
    CHECK(row->count == 7);
    /* The second comes five seconds later. */
    CHECK(!has_more(rows));
    OK(milieu_streams_pass(streams, 4 * second));
    CHECK(!has_more(rows));
    OK(milieu_streams_pass(streams, 6 * second));
    event = next(rows);
    OK(milieu_event_body(event, type, (const void **)&row));
    CHECK(is(row->station, "LGA") && !row->degrees.is_there && row->count == 8);
    CHECK(time_of(event) == start + 5 * second);
    OK(milieu_source_status(source, &status, NULL));
    CHECK(status == MILIEU_WORKING);
    OK(milieu_streams_pass(streams, 60 * second));
    CHECK(is_number(field(next(cold), "degrees"), -1.25));
    CHECK(!has_more(cold));
    OK(milieu_source_status(source, &status, NULL));
    CHECK(status == MILIEU_OVER);
    milieu_source_free(source);
    OK(milieu_subscription_free(rows));
    OK(milieu_subscription_free(cold));
    milieu_streams_free(streams);
}

static void programs_and_files_are_read(void) {
    milieu_source *shell, *file, *folded, *load;
    milieu_text why;
    milieu_streams *streams = opened(false);
    milieu_subscription *lines = subscribed(streams, "/lines");
    milieu_attribute parameters[]
        = { told("run", "echo one; echo two"), told("once", "true"), told("folder", folder) };
    OK(open_with(streams, "/lines", "command.shell", parameters, 3, &shell));
    CHECK(is(field(next(lines), "text").content.text, "one"));
    CHECK(is(field(next(lines), "text").content.text, "two"));
    awaited(shell, MILIEU_OVER);
    CHECK(!has_more(lines));

    milieu_subscription *levels = subscribed(streams, "/level");
    parameters[0] = told("path", path_of("level"));
    parameters[1] = told("format", "number");
    OK(open_with(streams, "/level", "file.content", parameters, 2, &file));
    why = awaited(file, MILIEU_FAILING);
    CHECK(has(why, "level"));
    write_file("level", "21.5\n");
    CHECK(is_number(field(next(levels), "value"), 21.5));
    awaited(file, MILIEU_WORKING);
    write_file("level", "22\n");
    CHECK(is_number(field(next(levels), "value"), 22));

    milieu_subscription *changes = subscribed(streams, "/changes | filter name == 'new'");
    OK(OPEN(streams, "/changes", "file.folder", &folded, told("path", folder)));
    awaited(folded, MILIEU_WORKING);
    write_file("new", "");
    const milieu_event *event = next(changes);
    CHECK(is(field(event, "change").content.text, "created"));
    CHECK(!field(event, "is_folder").content.boolean);

    /* This machine's own load. */
    OK(open_with(streams, "/load", "machine.load", NULL, 0, &load));
    bool polled;
    OK(milieu_streams_wait_for_sources(streams, 10000000000, &polled));
    CHECK(polled);
    /* Who comes late gets the last event. */
    milieu_subscription *late = subscribed(streams, "/load");
    milieu_datum now = field(next(late), "one_minute");
    CHECK(now.kind == MILIEU_F64 && now.content.number >= 0);

    milieu_source_free(shell);
    milieu_source_free(file);
    milieu_source_free(folded);
    milieu_source_free(load);
    OK(milieu_subscription_free(lines));
    OK(milieu_subscription_free(levels));
    OK(milieu_subscription_free(changes));
    OK(milieu_subscription_free(late));
    milieu_streams_free(streams);
}

static void what_is_wrong_is_told(void) {
    milieu_source *untouched = (milieu_source *)&folder, *source = untouched;
    milieu_streams *streams = opened(true);
    EXPECT(MILIEU_NO_SUCH, open_with(streams, "/a", "machine.lode", NULL, 0, &source));
    SAYS("`machine.lode`: there is no such source; there are machine.load, ");
    SAYS("timer.every");
    EXPECT(MILIEU_INVALID,
        OPEN(streams, "/a", "machine.load", &source, told("evry", "10s")));
    SAYS("`machine.load`, parameter `evry`: there is no such parameter; there are `every`, `root`");
    EXPECT(MILIEU_INVALID,
        OPEN(streams, "/a", "machine.load", &source, told("every", "ten")));
    SAYS("parameter `every`: `ten` is no span; `250ms`, `1.5s` and `1h30m` are");
    EXPECT(MILIEU_INVALID, open_with(streams, "/a", "timer.every", NULL, 0, &source));
    SAYS("`timer.every`, parameter `interval`: this must be given");
    EXPECT(MILIEU_INVALID, OPEN(streams, "/a", "command.shell", &source, told("run", "true"),
        told("format", "xml")));
    SAYS("`xml` is not one of `text`, `number`, `json`, `positions`");
    EXPECT(MILIEU_NULL, open_with(streams, "/a", "machine.load", NULL, 1, &source));
    SAYS("`parameters` is null");
    milieu_attribute broken = { text("every"), { NULL, 3 } };
    EXPECT(MILIEU_NULL, open_with(streams, "/a", "machine.load", &broken, 1, &source));
    broken.value = text("\xc3(");
    EXPECT(MILIEU_NOT_UTF8, open_with(streams, "/a", "machine.load", &broken, 1, &source));
    broken.name = broken.value;
    EXPECT(MILIEU_NOT_UTF8, open_with(streams, "/a", "machine.load", &broken, 1, &source));
    EXPECT(MILIEU_WRONG_NAME, open_with(streams, "no name", "machine.load", NULL, 0, &source));
    CHECK(source == untouched);

    /* A name has one publisher at a time. */
    milieu_source *other;
    OK(open_with(streams, "/a", "machine.load", NULL, 0, &source));
    EXPECT(MILIEU_WRONG_NAME, open_with(streams, "/a", "machine.memory", NULL, 0, &other));
    milieu_source_free(source);
    OK(open_with(streams, "/a", "machine.memory", NULL, 0, &other));
    milieu_source_free(other);
    milieu_streams_free(streams);
}

/* A source that is opened within a callback, where time is the system's. */
static milieu_streams *inner;
static milieu_source *from_within;
static milieu_result expected_within;

static milieu_result open_within(void *user, const milieu_event *event) {
    (void)user;
    (void)event;
    EXPECT(expected_within, OPEN(inner, "/within", "timer.every", &from_within,
        told("interval", "10ms")));
    return MILIEU_OK;
}

static void callbacks_open_sources(bool virtual_time) {
    milieu_source *tick;
    milieu_listener *listener;
    inner = opened(virtual_time);
    expected_within = virtual_time ? MILIEU_BUSY : MILIEU_OK;
    from_within = NULL;
    milieu_subscription *ticks = subscribed(inner, "/within");
    OK(milieu_listener_new(inner, text("/lines"), open_within, NULL, NULL, &listener));
    milieu_attribute parameters[] = { told("run", "echo go"), told("once", "true") };
    if (virtual_time) {
        OK(OPEN(inner, "/lines", "timer.every", &tick, told("interval", "1s")));
        OK(milieu_streams_pass(inner, 1000000000));
        CHECK(from_within == NULL);
    } else {
        OK(open_with(inner, "/lines", "command.shell", parameters, 2, &tick));
        next(ticks);
        CHECK(from_within != NULL);
    }
    milieu_listener_free(listener);
    milieu_source_free(tick);
    milieu_source_free(from_within);
    OK(milieu_subscription_free(ticks));
    milieu_streams_free(inner);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    folder = argv[1];
    all_are_known();
    the_machine_is_read_in_virtual_time();
    timers_tick_in_virtual_time();
    recordings_play_in_virtual_time();
    programs_and_files_are_read();
    what_is_wrong_is_told();
    callbacks_open_sources(true);
    callbacks_open_sources(false);
    puts("ok");
    return 0;
}
