/* Every function of modes.h with every kind of misuse that it can be told of. `list` prints their
 * names, which have to be those of the header. */

#include "check.h"

#include <milieu/modes.h>

/* What functions are handed; one of it is wrong at a time. */
struct arguments {
    milieu_coordinator *coordinator;
    milieu_streams *streams;
    milieu_publisher *publisher;
    milieu_subscription *subscription;
    milieu_event *event;
    milieu_encoder *encoder;
    milieu_decoder *decoder;
    milieu_encoding *encoding;
    milieu_decoding *decoding;
    milieu_text text;
    /* Where results go: null, or the address of some memory. */
    void *out;
    /* Whether callbacks are handed over. */
    bool calls;
};

#include "every.h"

static milieu_result encode(void *state, const milieu_event *event, uint32_t asked,
    milieu_encoding *encoding);
static milieu_result decode(void *state, milieu_text bytes, uint32_t asked,
    milieu_decoding *decoding);

static milieu_mode mode(struct arguments *a) {
    milieu_mode mode = { MILIEU_ABI, 1, a->text.bytes, "application/x-some", false, false, NULL,
        a->calls ? encode : NULL, decode, NULL };
    return mode;
}

static const milieu_event_type *type;

static milieu_header header(struct arguments *a) {
    milieu_header header = { a->text, { NULL, 0 }, 1, 1, MILIEU_QUALITY };
    header.quality.time_ns = 1;
    return header;
}

static const double body = 1;

#define FUNCTIONS(R, S)                                                                       \
    R(milieu_encoder_new, OF(streams), TEXT | OUT, a->streams, a->text, false, a->out)        \
    R(milieu_encoder_encode, OF(encoder), OUT, a->encoder, a->event, 0, a->out)               \
    S(milieu_encoder_free, OF(encoder), GIVEN, a->encoder)                                    \
    R(milieu_decoder_new, OF(streams), TEXT | OUT, a->streams, a->text, false, 0, 0, a->out)  \
    R(milieu_decoder_expect, OF(decoder), 0, a->decoder, type)                                \
    R(milieu_decoder_decode, OF(decoder), OUT, a->decoder, a->text, 0, a->out)                \
    S(milieu_decoder_free, OF(decoder), GIVEN, a->decoder)                                    \
    R(milieu_mode_define, OF(coordinator), CALLBACK, a->coordinator,                          \
        (milieu_mode[]){ mode(a) }, NULL, destroy)                                            \
    R(milieu_encoding_put, OF(encoding), LENT, a->encoding, "a", 1)                           \
    R(milieu_encoding_event, OF(encoding), TEXT | LENT, a->encoding, a->event, a->text)       \
    R(milieu_decoding_header, OF(decoding), TEXT | LENT, a->decoding,                         \
        (milieu_header[]){ header(a) })                                                       \
    R(milieu_decoding_body, OF(decoding), LENT, a->decoding, type, &body)                     \
    R(milieu_decoding_datum, OF(decoding), LENT, a->decoding, milieu_datum_text(a->text))     \
    R(milieu_decoding_event, OF(decoding), TEXT | LENT, a->decoding, a->text, a->text)        \
    R(milieu_decoding_lost, OF(decoding), LENT, a->decoding)

DEFINE(FUNCTIONS)

#include "every_lent.h"

static char memory[64];

static milieu_result encode(void *state, const milieu_event *event, uint32_t asked,
    milieu_encoding *encoding) {
    (void)state;
    (void)event;
    (void)asked;
    good.encoding = encoding;
    misuse_lent(OF(encoding), encoding);
    for (size_t i = 0; i < count; i++) {
        if (rows[i].handle == OF(encoding)) mishandle(&rows[i], &good, &freed, good.streams);
    }
    EXPECT(MILIEU_NULL, milieu_encoding_put(encoding, NULL, 1));
    EXPECT(MILIEU_NULL, milieu_encoding_event(encoding, NULL, milieu_text_of("json")));
    return MILIEU_OK;
}

static milieu_result decode(void *state, milieu_text bytes, uint32_t asked,
    milieu_decoding *decoding) {
    (void)state;
    (void)bytes;
    (void)asked;
    good.decoding = decoding;
    misuse_lent(OF(decoding), decoding);
    for (size_t i = 0; i < count; i++) {
        if (rows[i].handle == OF(decoding)) mishandle(&rows[i], &good, &freed, good.streams);
    }
    EXPECT(MILIEU_NULL, milieu_decoding_header(decoding, NULL));
    EXPECT(MILIEU_NULL, milieu_decoding_body(decoding, NULL, &body));
    EXPECT(MILIEU_NULL, milieu_decoding_body(decoding, type, NULL));
    EXPECT(MILIEU_INVALID, milieu_decoding_datum(decoding, (milieu_datum){ .kind = 99 }));
    return MILIEU_OK;
}

static const milieu_event_field number_field = { "", 0, MILIEU_F64, 0, NULL, NULL };
static const milieu_event_layout number = { MILIEU_ABI, 1, "number", &number_field,
    sizeof(double), MILIEU_ALIGNOF(double) };

static void make(struct arguments *a) {
    milieu_streams_options options = MILIEU_STREAMS_OPTIONS;
    const milieu_event *event;
    options.virtual_time = true;
    a->calls = true;
    a->out = memory;
    a->text = milieu_text_of("some");
    OK(milieu_coordinator_new(&a->coordinator));
    OK(milieu_streams_new(a->coordinator, &options, &a->streams));
    OK(milieu_publisher_new(a->streams, milieu_text_of("/a"), type, false, &a->publisher));
    OK(milieu_subscription_new(a->streams, milieu_text_of("/a"), NULL, &a->subscription));
    OK(milieu_publisher_publish(a->publisher, &body, NULL, NULL));
    OK(milieu_subscription_next(a->subscription, 0, &event));
    OK(milieu_event_keep(event, &a->event));
    const milieu_mode some = mode(a);
    OK(milieu_mode_define(a->coordinator, &some, NULL, NULL));
    OK(milieu_encoder_new(a->streams, a->text, false, &a->encoder));
    OK(milieu_decoder_new(a->streams, a->text, false, 0, 0, &a->decoder));
}

static void unmake(struct arguments *a) {
    milieu_encoder_free(a->encoder);
    milieu_decoder_free(a->decoder);
    OK(milieu_event_free(a->event));
    milieu_subscription_free(a->subscription);
    milieu_publisher_free(a->publisher);
    milieu_streams_free(a->streams);
    milieu_coordinator_free(a->coordinator);
}

int main(int argc, char **argv) {
    milieu_text bytes;
    milieu_event *event;
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        for (size_t i = 0; i < count; i++) puts(rows[i].name);
        return 0;
    }
    OK(milieu_event_type_new(&number, &type));
    make(&freed);
    unmake(&freed);
    make(&good);
    OK(milieu_encoder_encode(good.encoder, good.event, 0, &bytes));
    EXPECT(MILIEU_UNFIT, milieu_decoder_decode(good.decoder, milieu_text_of("a"), 0, &event));
    CHECK(good.encoding && good.decoding);
    for (size_t i = 0; i < count; i++) {
        if (rows[i].kinds & LENT) {
            expect(&rows[i], &good, MILIEU_FREED, "after the callback");
            continue;
        }
        misuse(&rows[i], &good);
        mishandle(&rows[i], &good, &freed, good.event);
    }
    EXPECT(MILIEU_NULL, milieu_encoder_encode(good.encoder, NULL, 0, &bytes));
    EXPECT(MILIEU_NULL, milieu_decoder_expect(good.decoder, NULL));
    EXPECT(MILIEU_NULL, milieu_mode_define(good.coordinator, NULL, NULL, NULL));
    unmake(&good);
    printf("%d\n", made);
    return 0;
}
