/* Fields of events beyond plain ones: structs, what may be missing, what is private, units, and
 * types that extend others. */

#include "check.h"

#include <milieu/streams.h>

#define TEXT milieu_text_of

/* A part of an event that is described by itself. */
struct gust {
    int32_t speed;
    milieu_text from;
};
static const milieu_entry speed_entries[] = { { "unit", "m/s" } };
static const milieu_event_field gust_fields[] = {
    MILIEU_EVENT_FIELD_WITH(struct gust, speed, MILIEU_I32, speed_entries),
    MILIEU_EVENT_FIELD(struct gust, from),
};
static const milieu_event_layout gust_layout = MILIEU_EVENT_LAYOUT(struct gust, gust_fields);

struct temperature {
    double degrees;
    MILIEU_OPTIONAL_OF(float) humidity;
};
static const milieu_entry degrees_entries[] = { { "id", "1" }, { "unit", "°C" } };
static const milieu_event_field temperature_fields[] = {
    MILIEU_EVENT_FIELD_WITH(struct temperature, degrees, MILIEU_F64, degrees_entries),
    MILIEU_EVENT_OPTIONAL(struct temperature, humidity),
};
static const milieu_event_layout temperature_layout
    = MILIEU_EVENT_LAYOUT(struct temperature, temperature_fields);

/* It extends a temperature by all kinds of things. */
struct weather {
    MILIEU_OPTIONAL_OF(milieu_text) station;
    struct temperature temperature;
    struct gust strongest;
    const struct gust *gusts;
    size_t gust_count;
    MILIEU_OPTIONAL_OF(struct gust) last;
    MILIEU_OPTIONAL_OF(uint16_t) pulse;
};
static const milieu_entry pulse_entries[] = { { "private", "" } };
static const milieu_event_field weather_fields[] = {
    MILIEU_EVENT_OPTIONAL(struct weather, station),
    MILIEU_EVENT_EXTENDS(struct weather, temperature, &temperature_layout),
    MILIEU_EVENT_STRUCT(struct weather, strongest, 0, &gust_layout),
    MILIEU_EVENT_STRUCT(struct weather, gusts, MILIEU_ARRAY, &gust_layout),
    MILIEU_EVENT_STRUCT(struct weather, last, MILIEU_OPTIONAL, &gust_layout),
    MILIEU_EVENT_FIELD_WITH(struct weather, pulse, MILIEU_OPTIONAL | MILIEU_U16, pulse_entries),
};
static const milieu_event_layout weather_layout
    = MILIEU_EVENT_LAYOUT(struct weather, weather_fields);

/* As much as is wanted of what is there. */
struct reading {
    double degrees;
    MILIEU_OPTIONAL_OF(int64_t) floor;
};
static const milieu_event_field reading_fields[] = {
    MILIEU_EVENT_FIELD_WITH(struct reading, degrees, MILIEU_F64, degrees_entries),
    MILIEU_EVENT_OPTIONAL(struct reading, floor),
};
static const milieu_event_layout reading_layout
    = MILIEU_EVENT_LAYOUT(struct reading, reading_fields);

/* The same in another unit. */
static const milieu_entry fahrenheit_entries[] = { { "id", "1" }, { "unit", "°F" } };
static const milieu_event_field fahrenheit_fields[] = {
    MILIEU_EVENT_FIELD_WITH(struct reading, degrees, MILIEU_F64, fahrenheit_entries),
    MILIEU_EVENT_OPTIONAL(struct reading, floor),
};
static const milieu_event_layout fahrenheit_layout
    = MILIEU_EVENT_LAYOUT(struct reading, fahrenheit_fields);

static const milieu_event_type *defined(const milieu_event_layout *layout) {
    const milieu_event_type *type;
    OK(milieu_event_type_new(layout, &type));
    return type;
}

static milieu_coordinator *coordinator;
static milieu_streams *streams;
static const milieu_event_type *weather_type, *temperature_type, *reading_type, *gust_type;

static const milieu_event *take(milieu_subscription *subscription) {
    const milieu_event *event;
    OK(milieu_subscription_next(subscription, 0, &event));
    return event;
}

static milieu_subscription *subscribe(const char *flow) {
    milieu_subscription *subscription;
    OK(milieu_subscription_new(streams, TEXT(flow), NULL, &subscription));
    return subscription;
}

static milieu_datum get(const milieu_event *event, const char *path) {
    milieu_datum datum;
    OK(milieu_event_get(event, TEXT(path), &datum));
    return datum;
}

static void structs_in_structs(void) {
    milieu_publisher *publisher;
    OK(milieu_publisher_new(streams, TEXT("/weather"), weather_type, false, &publisher));
    milieu_subscription *all = subscribe("/weather"),
                        *strong = subscribe("/weather | filter strongest.speed > 8");
    char from[] = "north";
    struct gust gusts[] = { { 7, TEXT(from) }, { 9, TEXT("west") } };
    struct weather weather = { .temperature = { .degrees = 21.5 }, .strongest = gusts[1],
        .gusts = gusts, .gust_count = 2, .last = { gusts[0], true }, .pulse = { 71, true } };
    /* What is not there may be anything. */
    weather.station.value.bytes = (const char *)8;
    weather.station.value.length = 17;
    OK(milieu_publisher_publish(publisher, &weather, NULL, NULL));
    memset(from, 'x', sizeof from - 1);
    memset(gusts, 0, sizeof gusts);

    const milieu_event *event = take(all);
    const struct weather *seen;
    OK(milieu_event_body(event, weather_type, (const void **)&seen));
    CHECK(!seen->station.is_there && seen->station.value.bytes == NULL);
    CHECK(seen->gust_count == 2 && seen->gusts[1].speed == 9);
    CHECK(milieu_text_is(seen->gusts[0].from, "north"));
    CHECK(milieu_text_is(seen->gusts[1].from, "west"));
    CHECK(seen->last.is_there && milieu_text_is(seen->last.value.from, "north"));
    CHECK(seen->strongest.speed == 9 && milieu_text_is(seen->strongest.from, "west"));
    CHECK(seen->pulse.is_there && seen->pulse.value == 71);
    CHECK(get(event, "temperature.degrees").content.number == 21.5);
    CHECK(get(event, "temperature.humidity").kind == 0);
    CHECK(milieu_text_is(get(event, "gusts[1].from").content.text, "west"));
    CHECK(get(event, "last.speed").content.whole == 7);
    /* Expressions do not see what is private. */
    CHECK(get(event, "pulse").kind == 0);
    milieu_text json;
    OK(milieu_event_json(event, &json));
    CHECK(milieu_text_is(json,
        "{\"station\":null,\"temperature\":{\"degrees\":21.5,\"humidity\":null},"
        "\"strongest\":{\"speed\":9,\"from\":\"west\"},"
        "\"gusts\":[{\"speed\":7,\"from\":\"north\"},{\"speed\":9,\"from\":\"west\"}],"
        "\"last\":{\"speed\":7,\"from\":\"north\"},\"pulse\":null}"));
    CHECK(take(strong) != NULL);

    /* It is a temperature too, without a copy. */
    const struct temperature *base;
    OK(milieu_event_body(event, temperature_type, (const void **)&base));
    CHECK(base == &seen->temperature && base->degrees == 21.5);
    const milieu_event_type *type;
    OK(milieu_event_type_of(event, &type));
    CHECK(type == weather_type);

    /* Of what is wrong in a struct that is part of another the place is told. */
    weather.gusts = NULL;
    EXPECT(MILIEU_NULL, milieu_publisher_publish(publisher, &weather, NULL, NULL));
    weather.gust_count = 0;
    weather.last.value.from = TEXT("\xff");
    EXPECT(MILIEU_NOT_UTF8, milieu_publisher_publish(publisher, &weather, NULL, NULL));
    SAYS("`from`");
    weather.last.is_there = false;
    OK(milieu_publisher_publish(publisher, &weather, NULL, NULL));
    memset(&weather.last.is_there, 9, 1);
    EXPECT(MILIEU_INVALID, milieu_publisher_publish(publisher, &weather, NULL, NULL));
    SAYS("`last` of `struct weather`");
    OK(milieu_subscription_free(all));
    OK(milieu_subscription_free(strong));
    milieu_publisher_free(publisher);
}

static void what_is_missing(void) {
    milieu_publisher *publisher;
    OK(milieu_publisher_new(streams, TEXT("/t"), temperature_type, false, &publisher));
    milieu_subscription *all = subscribe("/t"),
                        *made = subscribe("/t | transform {degrees: degrees * 2.0}"),
                        *whole = subscribe("/t | transform {degrees: degrees, floor: 3}"),
                        *none = subscribe("/t | transform {floor: 3}");
    struct temperature temperature = { .degrees = 4 };
    OK(milieu_publisher_publish(publisher, &temperature, NULL, NULL));
    const struct reading *reading;
    OK(milieu_event_body(take(made), reading_type, (const void **)&reading));
    CHECK(reading->degrees == 8 && !reading->floor.is_there);
    OK(milieu_event_body(take(whole), reading_type, (const void **)&reading));
    CHECK(reading->degrees == 4 && reading->floor.is_there && reading->floor.value == 3);
    EXPECT(MILIEU_UNFIT, milieu_event_body(take(none), reading_type, (const void **)&reading));
    SAYS("degrees");

    /* A reading in the same unit is one, and in another one it is not. */
    const milieu_event *event = take(all);
    OK(milieu_event_body(event, reading_type, (const void **)&reading));
    CHECK(reading->degrees == 4);
    const milieu_event_type *fahrenheit = defined(&fahrenheit_layout);
    EXPECT(MILIEU_UNFIT, milieu_event_body(event, fahrenheit, (const void **)&reading));
    SAYS("`degrees` of this event is in °C, and not in °F");
    const milieu_event_type *type = temperature_type;
    OK(milieu_subscription_free(none));
    none = subscribe("/t | transform degrees");
    OK(milieu_publisher_publish(publisher, &temperature, NULL, NULL));
    OK(milieu_event_type_of(take(none), &type));
    CHECK(type == NULL);
    milieu_text unit;
    OK(milieu_event_type_unit(temperature_type, TEXT("degrees"), &unit));
    CHECK(milieu_text_is(unit, "°C"));
    OK(milieu_event_type_unit(weather_type, TEXT("strongest.speed"), &unit));
    CHECK(milieu_text_is(unit, "m/s"));
    OK(milieu_event_type_unit(weather_type, TEXT("pulse"), &unit));
    CHECK(unit.length == 0);
    EXPECT(MILIEU_NO_SUCH, milieu_event_type_unit(gust_type, TEXT("from.here"), &unit));
    SAYS("speed, from");
    OK(milieu_subscription_free(all));
    OK(milieu_subscription_free(made));
    OK(milieu_subscription_free(whole));
    OK(milieu_subscription_free(none));
    milieu_publisher_free(publisher);
}

/* A struct that would have itself as a part. */
static milieu_event_field endless_fields[1];
static const milieu_event_layout endless_layout
    = { MILIEU_ABI, 1, "endless", endless_fields, sizeof(size_t) * 2, MILIEU_ALIGNOF(size_t) };

static void wrong_layouts(void) {
    const milieu_event_type *none;
    milieu_event_field wrong[6];
    milieu_event_layout layout = weather_layout;
    memcpy(wrong, weather_fields, sizeof wrong);
    layout.fields = wrong;
    wrong[2].layout = NULL;
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_event_type_new(&layout, &none));
    SAYS("`strongest` is a struct without `layout`");
    wrong[2] = weather_fields[2];
    wrong[2].metadata = wrong[1].metadata;
    wrong[2].metadata_count = 1;
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_event_type_new(&layout, &none));
    SAYS("extends both `temperature` and `strongest`");
    memcpy(wrong, weather_fields, sizeof wrong);
    wrong[3].metadata = wrong[1].metadata;
    wrong[3].metadata_count = 1;
    wrong[1].metadata_count = 0;
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_event_type_new(&layout, &none));
    SAYS("`gusts` cannot be what it extends");
    memcpy(wrong, weather_fields, sizeof wrong);
    wrong[5].kind |= MILIEU_ARRAY;
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_event_type_new(&layout, &none));
    SAYS("`pulse`");
    milieu_event_field endless = { "next", 0, MILIEU_STRUCT | MILIEU_ARRAY, 0, NULL, &endless_layout };
    endless_fields[0] = endless;
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_event_type_new(&endless_layout, &none));
    SAYS("itself");
}

int main(void) {
    wrong_layouts();
    weather_type = defined(&weather_layout);
    temperature_type = defined(&temperature_layout);
    reading_type = defined(&reading_layout);
    gust_type = defined(&gust_layout);
    CHECK(gust_type != weather_type && temperature_type == defined(&temperature_layout));
    OK(milieu_coordinator_new(&coordinator));
    OK(milieu_streams_new(coordinator, NULL, &streams));
    structs_in_structs();
    what_is_missing();
    milieu_streams_free(streams);
    milieu_coordinator_free(coordinator);
    puts("ok");
    return 0;
}
