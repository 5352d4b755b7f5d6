/* Events as bytes, by hand and in transfer modes of the program's own. */

#include "check.h"

#include <milieu/links.h>
#include <milieu/modes.h>

struct room {
    double celsius;
    milieu_text name;
    MILIEU_OPTIONAL_OF(int64_t) code;
};

static const milieu_entry secret[] = { { "private", "" } };
static const milieu_event_field fields[] = {
    MILIEU_EVENT_FIELD(struct room, celsius),
    MILIEU_EVENT_FIELD(struct room, name),
    MILIEU_EVENT_FIELD_WITH(struct room, code, MILIEU_OPTIONAL | MILIEU_I64, secret),
};
static const milieu_event_layout layout = MILIEU_EVENT_LAYOUT(struct room, fields);
static const milieu_event_type *type;

static milieu_coordinator *coordinator;
static milieu_streams *streams;
static milieu_publisher *publisher;
static milieu_subscription *subscription;

static void start(void) {
    milieu_streams_options options = MILIEU_STREAMS_OPTIONS;
    options.virtual_time = true;
    options.now_ns = 1000;
    OK(milieu_coordinator_new(&coordinator));
    OK(milieu_streams_new(coordinator, &options, &streams));
    OK(milieu_publisher_new(streams, milieu_text_of("/room"), type, false, &publisher));
    OK(milieu_subscription_new(streams, milieu_text_of("/room"), NULL, &subscription));
}

static void stop(void) {
    milieu_subscription_free(subscription);
    milieu_publisher_free(publisher);
    milieu_streams_free(streams);
    milieu_coordinator_free(coordinator);
}

/* The next event, valid until this is asked again. */
static const milieu_event *publish(double celsius) {
    struct room room = { celsius, milieu_text_of("kitchen"), { 4711, true } };
    const milieu_event *event;
    OK(milieu_publisher_publish(publisher, &room, NULL, NULL));
    OK(milieu_subscription_next(subscription, 0, &event));
    CHECK(event);
    return event;
}

static void is_room(const milieu_event *event, double celsius, bool with_code) {
    milieu_header header;
    const struct room *room;
    OK(milieu_event_header(event, &header));
    CHECK(milieu_text_is(header.name, "/room"));
    CHECK(header.quality.time_ns == 1000);
    OK(milieu_event_body(event, type, (const void **)&room));
    CHECK(room->celsius == celsius);
    CHECK(milieu_text_is(room->name, "kitchen"));
    CHECK(room->code.is_there == with_code);
    CHECK(!with_code || room->code.value == 4711);
}

/* ---------------------------------------------------------------- by hand */

static void every_mode(const char *name, bool with_private) {
    milieu_encoder *encoder;
    milieu_decoder *decoder;
    milieu_event *event;
    milieu_text bytes;
    const milieu_text mode = milieu_text_of(name);
    OK(milieu_encoder_new(streams, mode, with_private, &encoder));
    OK(milieu_decoder_new(streams, mode, with_private, 0, 0, &decoder));
    for (int i = 0; i < 3; i++) {
        OK(milieu_encoder_encode(encoder, publish(20 + i), 0, &bytes));
        OK(milieu_decoder_decode(decoder, bytes, 0, &event));
        is_room(event, 20 + i, with_private);
        OK(milieu_event_free(event));
    }
    OK(milieu_encoder_encode(encoder, publish(7), MILIEU_MODE_BODY, &bytes));
    OK(milieu_decoder_decode(decoder, bytes, MILIEU_MODE_BODY, &event));
    milieu_datum datum;
    OK(milieu_event_get(event, milieu_text_of("celsius"), &datum));
    CHECK(datum.kind == MILIEU_F64 ? datum.content.number == 7 : datum.content.whole == 7);
    OK(milieu_event_free(event));
    milieu_encoder_free(encoder);
    milieu_decoder_free(decoder);
}

static void frames_that_are_missing(void) {
    milieu_encoder *encoder;
    milieu_decoder *decoder;
    milieu_event *event;
    milieu_text bytes;
    const milieu_event *of_type;
    const milieu_event_type *found;
    const milieu_text mode = milieu_text_of("delta");
    OK(milieu_encoder_new(streams, mode, false, &encoder));
    OK(milieu_decoder_new(streams, mode, false, 0, 0, &decoder));
    OK(milieu_decoder_expect(decoder, type));
    OK(milieu_encoder_encode(encoder, publish(1), 0, &bytes));
    of_type = publish(2);
    OK(milieu_encoder_encode(encoder, of_type, 0, &bytes));
    EXPECT(MILIEU_LATE, milieu_decoder_decode(decoder, bytes, 0, &event));
    OK(milieu_encoder_encode(encoder, of_type, MILIEU_MODE_WHOLE, &bytes));
    OK(milieu_decoder_decode(decoder, bytes, 0, &event));
    is_room(event, 2, false);
    OK(milieu_event_type_of(event, &found));
    CHECK(found == type);
    OK(milieu_event_free(event));
    OK(milieu_encoder_encode(encoder, publish(3), 0, &bytes));
    OK(milieu_decoder_decode(decoder, bytes, 0, &event));
    is_room(event, 3, false);
    OK(milieu_event_free(event));
    milieu_encoder_free(encoder);
    milieu_decoder_free(decoder);
}

static void what_is_wrong_by_hand(void) {
    milieu_encoder *encoder;
    milieu_decoder *decoder;
    milieu_event *event;
    milieu_text bytes;
    const milieu_text json = milieu_text_of("json");
    EXPECT(MILIEU_NO_SUCH, milieu_encoder_new(streams, milieu_text_of("smoke"), false, &encoder));
    SAYS("there is no mode `smoke`; there are delta, data-stream, cbor");
    EXPECT(MILIEU_NO_SUCH,
        milieu_decoder_new(streams, milieu_text_of("smoke"), false, 0, 0, &decoder));
    OK(milieu_encoder_new(streams, json, false, &encoder));
    EXPECT(MILIEU_INVALID, milieu_encoder_encode(encoder, publish(1), 64, &bytes));
    SAYS("64 asks for nothing");
    OK(milieu_decoder_new(streams, json, false, 100, 0, &decoder));
    EXPECT(MILIEU_INVALID,
        milieu_decoder_decode(decoder, json, MILIEU_MODE_WHOLE, &event));
    EXPECT(MILIEU_UNFIT, milieu_decoder_decode(decoder, milieu_text_of("{"), 0, &event));
    SAYS("this is not json");
    OK(milieu_encoder_encode(encoder, publish(1), 0, &bytes));
    EXPECT(MILIEU_UNFIT, milieu_decoder_decode(decoder, bytes, 0, &event));
    SAYS("larger than 100");
    milieu_decoder_free(decoder);
    milieu_encoder_free(encoder);

    /* Who has no right to set what is private. */
    OK(milieu_encoder_new(streams, json, true, &encoder));
    OK(milieu_encoder_encode(encoder, publish(1), 0, &bytes));
    OK(milieu_decoder_new(streams, json, false, 0, 0, &decoder));
    EXPECT(MILIEU_UNFIT, milieu_decoder_decode(decoder, bytes, 0, &event));
    SAYS("a private field would be set");
    milieu_decoder_free(decoder);
    milieu_encoder_free(encoder);
}

/* ---------------------------------------------------------------- a mode that wraps another */

/* What `sealed` counts. */
struct seals {
    int begun, ended, encoded, destroyed;
    bool refuses;
};

/* What each encoder and decoder has. */
struct sealing {
    struct seals *seals;
    bool decodes;
};

static milieu_result begin(void *user, bool decodes, void **state) {
    struct seals *seals = user;
    struct sealing *sealing = malloc(sizeof *sealing);
    CHECK(sealing);
    sealing->seals = seals;
    sealing->decodes = decodes;
    seals->begun++;
    *state = sealing;
    return MILIEU_OK;
}

static void end(void *state) {
    struct sealing *sealing = state;
    sealing->seals->ended++;
    free(sealing);
}

static void destroyed(void *user) { ((struct seals *)user)->destroyed++; }

static milieu_result seal(void *state, const milieu_event *event, uint32_t asked,
    milieu_encoding *encoding) {
    struct sealing *sealing = state;
    (void)asked;
    CHECK(!sealing->decodes);
    OK(milieu_encoding_put(encoding, "seal", 4));
    if (sealing->seals->refuses) return milieu_fail(milieu_text_of("the wax is cold"));
    sealing->seals->encoded++;
    EXPECT(MILIEU_NO_SUCH, milieu_encoding_event(encoding, event, milieu_text_of("sealed")));
    OK(milieu_encoding_put(encoding, NULL, 0));
    return milieu_encoding_event(encoding, event, milieu_text_of("cbor"));
}

static milieu_result unseal(void *state, milieu_text bytes, uint32_t asked,
    milieu_decoding *decoding) {
    struct sealing *sealing = state;
    CHECK(sealing->decodes);
    /* Streams wait for this. */
    EXPECT(MILIEU_BUSY, milieu_streams_pass(streams, 2000));
    if (bytes.length < 4 || memcmp(bytes.bytes, "seal", 4) != 0)
        return milieu_fail(milieu_text_of("the seal is broken"));
    bytes.bytes += 4;
    bytes.length -= 4;
    const milieu_result result
        = milieu_decoding_event(decoding, milieu_text_of("cbor"), bytes);
    const milieu_header header = { milieu_text_of("/a"), milieu_text_of("b"), 1, 1,
        { 1, 0, -1, { NULL, 0 } } };
    if (result == MILIEU_OK && !(asked & MILIEU_MODE_BODY)) {
        /* It has a header and a body. */
        EXPECT(MILIEU_INVALID, milieu_decoding_header(decoding, &header));
        EXPECT(MILIEU_INVALID, milieu_decoding_datum(decoding, milieu_datum_number(1)));
    }
    return result;
}

static const milieu_mode sealed = { MILIEU_ABI, 1, "sealed", "application/x-sealed", false, false,
    begin, seal, unseal, end };

static void a_mode_wraps_another(void) {
    struct seals seals = { 0, 0, 0, 0, false };
    milieu_encoder *encoder;
    milieu_decoder *decoder;
    milieu_event *event;
    milieu_text bytes;
    start();
    OK(milieu_mode_define(coordinator, &sealed, &seals, destroyed));
    EXPECT(MILIEU_WRONG_NAME, milieu_mode_define(coordinator, &sealed, &seals, destroyed));
    SAYS("there is a mode `sealed` already");
    CHECK(seals.destroyed == 1);
    every_mode("sealed", false);
    every_mode("sealed", true);
    CHECK(seals.encoded == 8);

    OK(milieu_encoder_new(streams, milieu_text_of("sealed"), false, &encoder));
    OK(milieu_decoder_new(streams, milieu_text_of("sealed"), false, 0, 0, &decoder));
    seals.refuses = true;
    EXPECT(MILIEU_UNFIT, milieu_encoder_encode(encoder, publish(1), 0, &bytes));
    SAYS("sealed: the wax is cold");
    seals.refuses = false;
    OK(milieu_encoder_encode(encoder, publish(1), 0, &bytes));
    CHECK(bytes.length > 4 && memcmp(bytes.bytes, "sealseal", 8) != 0);
    bytes.length -= 1;
    EXPECT(MILIEU_UNFIT, milieu_decoder_decode(decoder, bytes, 0, &event));
    SAYS("this is not cbor");
    bytes.length = 3;
    EXPECT(MILIEU_UNFIT, milieu_decoder_decode(decoder, bytes, 0, &event));
    SAYS("sealed: the seal is broken");
    milieu_encoder_free(encoder);
    OK(milieu_encoder_new(streams, milieu_text_of("sealed"), true, &encoder));
    OK(milieu_encoder_encode(encoder, publish(1), 0, &bytes));
    EXPECT(MILIEU_UNFIT, milieu_decoder_decode(decoder, bytes, 0, &event));
    CHECK(strcmp(milieu_message(),
              "a private field would be set, which the sender has no right to do")
        == 0);
    milieu_encoder_free(encoder);
    milieu_decoder_free(decoder);
    CHECK(seals.begun == seals.ended);
    CHECK(seals.destroyed == 1);
    stop();
    CHECK(seals.destroyed == 2);
}

/* ---------------------------------------------------------------- a mode from the bottom */

/* What goes over for a room: its number, and the temperature or how much warmer it is. */
struct frame {
    uint32_t number;
    bool is_whole;
    double celsius;
};

struct counting {
    uint32_t number;
    double celsius;
};

static milieu_result count_begin(void *user, bool decodes, void **state) {
    (void)user;
    (void)decodes;
    *state = calloc(1, sizeof(struct counting));
    return *state ? MILIEU_OK : milieu_fail(milieu_text_of("no memory"));
}

static milieu_result count_encode(void *state, const milieu_event *event, uint32_t asked,
    milieu_encoding *encoding) {
    struct counting *before = state;
    milieu_datum celsius, code;
    struct frame frame;
    OK(milieu_event_get(event, milieu_text_of("celsius"), &celsius));
    OK(milieu_event_get_with(event, milieu_text_of("code"), MILIEU_READ_PRIVATE, &code));
    CHECK((code.kind != 0) == ((asked & MILIEU_MODE_PRIVATE) != 0));
    if (celsius.kind != MILIEU_F64) return milieu_fail(milieu_text_of("it has no `celsius`"));
    memset(&frame, 0, sizeof frame);
    frame.is_whole = before->number == 0 || (asked & (MILIEU_MODE_WHOLE | MILIEU_MODE_BODY));
    if (!(asked & MILIEU_MODE_WHOLE)) before->number++;
    frame.number = before->number;
    frame.celsius = celsius.content.number - (frame.is_whole ? 0 : before->celsius);
    before->celsius = celsius.content.number;
    return milieu_encoding_put(encoding, &frame, sizeof frame);
}

static milieu_result count_decode(void *state, milieu_text bytes, uint32_t asked,
    milieu_decoding *decoding) {
    struct counting *before = state;
    struct frame frame;
    milieu_header header = { milieu_text_of("/room"), milieu_text_of("counted"), 1, 0,
        MILIEU_QUALITY };
    if (bytes.length != sizeof frame) return milieu_fail(milieu_text_of("no frame"));
    memcpy(&frame, bytes.bytes, sizeof frame);
    if (asked & MILIEU_MODE_BODY) {
        EXPECT(MILIEU_INVALID, milieu_decoding_lost(decoding));
        milieu_datum datum = milieu_datum_text(milieu_text_of("{\"celsius\":"));
        datum.kind = MILIEU_JSON;
        EXPECT(MILIEU_UNFIT, milieu_decoding_datum(decoding, datum));
        return milieu_decoding_datum(decoding, milieu_datum_number(frame.celsius));
    }
    if (!frame.is_whole && frame.number != before->number + 1) {
        return milieu_decoding_lost(decoding);
    }
    before->celsius = frame.celsius + (frame.is_whole ? 0 : before->celsius);
    before->number = frame.number;
    header.sequence = frame.number;
    EXPECT(MILIEU_INVALID, milieu_decoding_header(decoding, &header));
    SAYS("set `quality.time_ns`");
    header.quality.time_ns = 1000;
    header.name = milieu_text_of("no name");
    EXPECT(MILIEU_WRONG_NAME, milieu_decoding_header(decoding, &header));
    header.name = milieu_text_of("/room");
    OK(milieu_decoding_header(decoding, &header));
    struct room room = { before->celsius, milieu_text_of("kitchen"), { 4711, true } };
    if (!(asked & MILIEU_MODE_PRIVATE)) {
        EXPECT(MILIEU_UNFIT, milieu_decoding_body(decoding, type, &room));
        room.code.is_there = false;
    }
    return milieu_decoding_body(decoding, type, &room);
}

static const milieu_mode counted = { MILIEU_ABI, 3, "counted", "application/x-counted", true,
    false, count_begin, count_encode, count_decode, free };

static void a_mode_builds_on_frames(void) {
    milieu_encoder *encoder;
    milieu_decoder *decoder;
    milieu_event *event;
    milieu_text bytes;
    milieu_datum datum;
    start();
    OK(milieu_mode_define(coordinator, &counted, NULL, NULL));
    OK(milieu_encoder_new(streams, milieu_text_of("counted"), true, &encoder));
    OK(milieu_decoder_new(streams, milieu_text_of("counted"), true, 0, 0, &decoder));
    for (int i = 1; i < 6; i++) {
        const milieu_event *given = publish(i * i);
        OK(milieu_encoder_encode(encoder, given, 0, &bytes));
        /* One is lost, and mended. */
        if (i == 3) continue;
        if (i == 4) {
            EXPECT(MILIEU_LATE, milieu_decoder_decode(decoder, bytes, 0, &event));
            OK(milieu_encoder_encode(encoder, given, MILIEU_MODE_WHOLE, &bytes));
        }
        OK(milieu_decoder_decode(decoder, bytes, 0, &event));
        is_room(event, i * i, true);
        OK(milieu_event_free(event));
    }
    OK(milieu_encoder_encode(encoder, publish(21), MILIEU_MODE_BODY, &bytes));
    OK(milieu_decoder_decode(decoder, bytes, MILIEU_MODE_BODY, &event));
    OK(milieu_event_get(event, milieu_text_of("value"), &datum));
    CHECK(datum.kind == MILIEU_F64 && datum.content.number == 21);
    OK(milieu_event_free(event));
    milieu_encoder_free(encoder);
    milieu_decoder_free(decoder);
    stop();
}

/* ---------------------------------------------------------------- over a link */

static void settle(milieu_link *one, milieu_link *other) {
    bool was_busy = true, is_busy = true;
    while (was_busy || is_busy) {
        OK(milieu_link_poll(one, &was_busy));
        OK(milieu_link_poll(other, &is_busy));
    }
}

static void over_a_link(const milieu_mode *mode, void *user) {
    milieu_streams_options options = MILIEU_STREAMS_OPTIONS;
    milieu_coordinator *outside;
    milieu_streams *garden;
    milieu_hub *hub;
    milieu_engine *engines[2];
    milieu_link *links[2];
    milieu_subscription *read;
    const milieu_event *event;
    const milieu_text name = milieu_text_of(mode->name);
    milieu_terms terms = MILIEU_TERMS;
    terms.is_open = true;
    terms.modes = &name;
    terms.mode_count = 1;
    start();
    options.virtual_time = true;
    options.now_ns = 1000;
    OK(milieu_coordinator_new(&outside));
    OK(milieu_streams_new(outside, &options, &garden));
    OK(milieu_hub_new(true, &hub));
    OK(milieu_hub_join(hub, milieu_text_of("kitchen"), &engines[0]));
    OK(milieu_hub_join(hub, milieu_text_of("garden"), &engines[1]));
    EXPECT(MILIEU_NO_SUCH, milieu_link_new(streams, engines[0], &terms, NULL, NULL, &links[0]));
    OK(milieu_mode_define(coordinator, mode, user, NULL));
    OK(milieu_mode_define(outside, mode, user, NULL));
    OK(milieu_link_new(streams, engines[0], &terms, NULL, NULL, &links[0]));
    OK(milieu_link_new(garden, engines[1], &terms, NULL, NULL, &links[1]));
    OK(milieu_subscription_new(garden, milieu_text_of("/room"), NULL, &read));
    settle(links[0], links[1]);
    for (int i = 0; i < 3; i++) {
        (void)publish(30 + i);
        settle(links[0], links[1]);
        OK(milieu_subscription_next(read, 0, &event));
        CHECK(event);
        is_room(event, 30 + i, true);
    }
    milieu_subscription_free(read);
    milieu_link_free(links[0]);
    milieu_link_free(links[1]);
    milieu_hub_free(hub);
    milieu_streams_free(garden);
    milieu_coordinator_free(outside);
    stop();
}

/* ---------------------------------------------------------------- what is private */

static milieu_result says_nothing(void *state, milieu_text bytes, uint32_t asked,
    milieu_decoding *decoding) {
    (void)state;
    (void)bytes;
    (void)asked;
    (void)decoding;
    return MILIEU_OK;
}

struct person {
    double celsius;
};
struct patient {
    struct person person;
    MILIEU_OPTIONAL_OF(int64_t) pulse;
};
static const milieu_event_field of_person[] = { MILIEU_EVENT_FIELD(struct person, celsius) };
static const milieu_event_layout person_layout = MILIEU_EVENT_LAYOUT(struct person, of_person);
static const milieu_event_field of_patient[] = {
    MILIEU_EVENT_EXTENDS(struct patient, person, &person_layout),
    MILIEU_EVENT_FIELD_WITH(struct patient, pulse, MILIEU_OPTIONAL | MILIEU_I64, secret),
};
static const milieu_event_layout patient_layout = MILIEU_EVENT_LAYOUT(struct patient, of_patient);

/* Whether the pulse may be seen. */
static milieu_result peek(void *user, const milieu_event *event, uint32_t asked,
    milieu_encoding *encoding) {
    milieu_datum pulse;
    milieu_text json;
    const bool may_see = *(const bool *)user;
    CHECK(may_see == ((asked & MILIEU_MODE_PRIVATE) != 0));
    OK(milieu_event_get_with(event, milieu_text_of("pulse"), MILIEU_READ_PRIVATE, &pulse));
    CHECK(pulse.kind == (may_see ? (uint32_t)MILIEU_I64 : 0));
    OK(milieu_event_json_with(event, MILIEU_READ_PRIVATE, &json));
    CHECK(json.length < 64 && (memchr(json.bytes, '7', json.length) != NULL) == may_see);
    return milieu_encoding_event(encoding, event, milieu_text_of("delta"));
}

/* Of a type that is not known, of which only what it extends is. */
static void what_is_private_of_others(void) {
    static bool may_see;
    const milieu_mode peeking = { MILIEU_ABI, 1, "peeking", "application/x-peeking", false,
        false, NULL, peek, says_nothing, NULL };
    const struct patient ill = { { 39.5 }, { 77, true } };
    const milieu_event_type *person, *patient, *found;
    const milieu_event *event;
    const struct patient *again;
    milieu_publisher *patients;
    milieu_subscription *read;
    milieu_encoder *encoder;
    milieu_decoder *decoder;
    milieu_event *known, *come;
    milieu_text bytes;
    start();
    OK(milieu_mode_define(coordinator, &peeking, &may_see, NULL));
    OK(milieu_event_type_new(&person_layout, &person));
    OK(milieu_event_type_new(&patient_layout, &patient));
    OK(milieu_publisher_new(streams, milieu_text_of("/patient"), patient, false, &patients));
    OK(milieu_subscription_new(streams, milieu_text_of("/patient"), NULL, &read));
    OK(milieu_publisher_publish(patients, &ill, NULL, NULL));
    OK(milieu_subscription_next(read, 0, &event));

    OK(milieu_encoder_new(streams, milieu_text_of("delta"), true, &encoder));
    OK(milieu_decoder_new(streams, milieu_text_of("delta"), true, 0, 0, &decoder));
    OK(milieu_decoder_expect(decoder, person));
    OK(milieu_encoder_encode(encoder, event, 0, &bytes));
    OK(milieu_decoder_decode(decoder, bytes, 0, &known));
    milieu_encoder_free(encoder);
    milieu_decoder_free(decoder);
    OK(milieu_event_type_of(known, &found));
    CHECK(found == person);

    for (int i = 0; i < 2; i++) {
        may_see = i == 1;
        OK(milieu_encoder_new(streams, milieu_text_of("peeking"), may_see, &encoder));
        OK(milieu_encoder_encode(encoder, known, 0, &bytes));
        /* Its schema has gone along. */
        OK(milieu_decoder_new(streams, milieu_text_of("delta"), true, 0, 0, &decoder));
        OK(milieu_decoder_expect(decoder, patient));
        OK(milieu_decoder_decode(decoder, bytes, 0, &come));
        OK(milieu_event_body(come, patient, (const void **)&again));
        CHECK(again->person.celsius == 39.5 && again->pulse.is_there == may_see);
        OK(milieu_event_free(come));
        milieu_encoder_free(encoder);
        milieu_decoder_free(decoder);
    }
    OK(milieu_event_free(known));
    milieu_subscription_free(read);
    milieu_publisher_free(patients);
    stop();
}

/* ---------------------------------------------------------------- in the place of Milieu's */

static milieu_result shout(void *state, const milieu_event *event, uint32_t asked,
    milieu_encoding *encoding) {
    (void)state;
    CHECK(asked & MILIEU_MODE_BODY);
    OK(milieu_encoding_put(encoding, "!", 1));
    /* Milieu's own, which is there still. */
    return milieu_encoding_event(encoding, event, milieu_text_of("json"));
}

static milieu_result hear(void *state, milieu_text bytes, uint32_t asked,
    milieu_decoding *decoding) {
    const milieu_text behind = { bytes.bytes + 1, bytes.length - 1 };
    (void)state;
    CHECK(asked & MILIEU_MODE_BODY);
    if (bytes.length == 0 || *bytes.bytes != '!') return milieu_fail(milieu_text_of("too low"));
    return milieu_decoding_event(decoding, milieu_text_of("json"), behind);
}

static void a_mode_replaces_one_of_milieu(void) {
    const milieu_mode loud = { MILIEU_ABI, 1, "json", "application/json", false, true, NULL,
        shout, hear, NULL };
    milieu_encoder *before, *encoder;
    milieu_decoder *decoder;
    milieu_event *event;
    milieu_text bytes;
    milieu_datum datum;
    start();
    OK(milieu_encoder_new(streams, milieu_text_of("json"), true, &before));
    OK(milieu_mode_define(coordinator, &loud, NULL, NULL));
    EXPECT(MILIEU_WRONG_NAME, milieu_mode_define(coordinator, &loud, NULL, NULL));
    SAYS("the mode `json` was replaced already");
    OK(milieu_encoder_new(streams, milieu_text_of("json"), true, &encoder));
    OK(milieu_decoder_new(streams, milieu_text_of("json"), true, 0, 0, &decoder));
    /* What was opened before has what was there. */
    OK(milieu_encoder_encode(before, publish(21), MILIEU_MODE_BODY, &bytes));
    CHECK(bytes.bytes[0] == '{');
    EXPECT(MILIEU_UNFIT, milieu_decoder_decode(decoder, bytes, MILIEU_MODE_BODY, &event));
    SAYS("json: too low");
    OK(milieu_encoder_encode(encoder, publish(22), MILIEU_MODE_BODY, &bytes));
    CHECK(bytes.bytes[0] == '!' && bytes.bytes[1] == '{');
    OK(milieu_decoder_decode(decoder, bytes, MILIEU_MODE_BODY, &event));
    OK(milieu_event_get(event, milieu_text_of("celsius"), &datum));
    CHECK(datum.kind == MILIEU_F64 ? datum.content.number == 22 : datum.content.whole == 22);
    OK(milieu_event_free(event));
    milieu_encoder_free(before);
    milieu_encoder_free(encoder);
    milieu_decoder_free(decoder);
    stop();
}

/* ---------------------------------------------------------------- what is no mode */

static milieu_result cannot_begin(void *user, bool decodes, void **state) {
    (void)user;
    (void)decodes;
    (void)state;
    return milieu_fail(milieu_text_of("nothing to begin with"));
}

static void what_is_no_mode(void) {
    milieu_encoder *encoder;
    milieu_decoder *decoder;
    milieu_event *event;
    milieu_text bytes;
    milieu_mode mode = counted;
    start();
    mode.abi = 0;
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_mode_define(coordinator, &mode, NULL, NULL));
    mode = counted;
    mode.name = "a b";
    EXPECT(MILIEU_WRONG_NAME, milieu_mode_define(coordinator, &mode, NULL, NULL));
    SAYS("a mode cannot be called `a b`");
    mode = counted;
    mode.media_type = "text/plain\r\nSet-Cookie: a=b";
    EXPECT(MILIEU_WRONG_NAME, milieu_mode_define(coordinator, &mode, NULL, NULL));
    SAYS("`text/plain\\r\\nSet-Cookie: a=b` is no media type");
    mode = counted;
    mode.media_type = "application/CBOR";
    EXPECT(MILIEU_WRONG_NAME, milieu_mode_define(coordinator, &mode, NULL, NULL));
    SAYS("is what the mode `cbor` makes");
    mode = counted;
    mode.name = "json";
    EXPECT(MILIEU_WRONG_NAME, milieu_mode_define(coordinator, &mode, NULL, NULL));
    SAYS("there is a mode `json` already");
    mode = counted;
    mode.replaces = true;
    EXPECT(MILIEU_WRONG_NAME, milieu_mode_define(coordinator, &mode, NULL, NULL));
    SAYS("Milieu has no mode `counted` that another one could replace; it has delta,");
    mode.name = "json";
    mode.media_type = "application/cbor";
    EXPECT(MILIEU_WRONG_NAME, milieu_mode_define(coordinator, &mode, NULL, NULL));
    SAYS("is what the mode `cbor` makes");

    mode = counted;
    mode.name = "broken";
    mode.media_type = "application/x-broken";
    mode.begin = cannot_begin;
    OK(milieu_mode_define(coordinator, &mode, NULL, NULL));
    OK(milieu_encoder_new(streams, milieu_text_of("broken"), false, &encoder));
    EXPECT(MILIEU_UNFIT, milieu_encoder_encode(encoder, publish(1), 0, &bytes));
    SAYS("broken: nothing to begin with");
    milieu_encoder_free(encoder);

    mode = counted;
    mode.name = "silent";
    mode.decode = says_nothing;
    OK(milieu_mode_define(coordinator, &mode, NULL, NULL));
    OK(milieu_decoder_new(streams, milieu_text_of("silent"), false, 0, 0, &decoder));
    bytes = milieu_text_of("bytes");
    EXPECT(MILIEU_UNFIT, milieu_decoder_decode(decoder, bytes, 0, &event));
    SAYS("silent: the callback has not said the header of the event");
    EXPECT(MILIEU_UNFIT, milieu_decoder_decode(decoder, bytes, MILIEU_MODE_BODY, &event));
    SAYS("silent: the callback has not said the body");
    milieu_decoder_free(decoder);
    stop();
}

int main(void) {
    static const char *const modes[] = { "delta", "data-stream", "cbor", "messagepack", "json",
        "xml" };
    struct seals seals = { 0, 0, 0, 0, false };
    OK(milieu_event_type_new(&layout, &type));
    start();
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        every_mode(modes[i], false);
        every_mode(modes[i], true);
    }
    frames_that_are_missing();
    what_is_wrong_by_hand();
    stop();
    a_mode_wraps_another();
    a_mode_builds_on_frames();
    over_a_link(&sealed, &seals);
    CHECK(seals.begun == seals.ended && seals.encoded == 3);
    over_a_link(&counted, NULL);
    what_is_private_of_others();
    a_mode_replaces_one_of_milieu();
    what_is_no_mode();
    puts("ok");
    return 0;
}
