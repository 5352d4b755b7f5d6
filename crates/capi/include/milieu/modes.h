/*
 * Milieu: events as bytes, and transfer modes of the program's own. The C interface, beside streams
 * in milieu/streams.h.
 *
 *   milieu_encoder   makes bytes of events, in any mode
 *   milieu_decoder   makes events of bytes
 *   milieu_mode      what a program says of a mode of its own
 *
 *   milieu_encoder_new(streams, milieu_text_of("cbor"), false, &encoder);
 *   milieu_encoder_encode(encoder, event, 0, &bytes);
 *   fwrite(bytes.bytes, 1, bytes.length, file);
 *
 *   milieu_decoder_new(streams, milieu_text_of("cbor"), false, 0, 0, &decoder);
 *   milieu_decoder_decode(decoder, bytes, 0, &event);
 *   milieu_event_header(event, &header);
 *
 * docs/transfer.md says what the modes of Milieu are: `delta`, `data-stream`, `cbor`, `messagepack`,
 * `json` and `xml`. A mode of the program's own stands beside them, or in the place of one of them,
 * from milieu_mode_define on: links and brokers know it by its name, servers by its name and media type, and so do tools of the same
 * user. Whoever is at the other end has to know it too.
 *
 * A mode makes a frame of an event and an event of a frame. It may look at the event as any program
 * does, and write what it likes; or it takes what another mode makes of it by milieu_encoding_event,
 * and compresses, signs or wraps that, which keeps everything that an event has.
 *
 * An encoder and a decoder are used by one thread at a time.
 */
#ifndef MILIEU_MODES_H
#define MILIEU_MODES_H

#include <milieu/streams.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What is asked for, or-ed. */
enum {
    /** Private fields go along: the receiver may read them, or the sender may set them. */
    MILIEU_MODE_PRIVATE = 1,
    /**
     * The event that was encoded last, once more: in a frame that says all of it, for who does not
     * have the frames before. Those who have them go on with the same next frame.
     */
    MILIEU_MODE_WHOLE = 2,
    /** A body alone, without name, time and quality. */
    MILIEU_MODE_BODY = 4
};

/* ---------------------------------------------------------------- by hand */

/** Makes bytes of events, one frame each. */
typedef struct milieu_encoder milieu_encoder;

/**
 * An encoder of this mode; `with_private` lets private fields go along.
 *
 * MILIEU_NO_SUCH: there is no such mode.
 */
MILIEU_CHECKED milieu_result milieu_encoder_new(const milieu_streams *streams, milieu_text mode,
    bool with_private, milieu_encoder **encoder);

/**
 * The frame of an event, valid until the next call with this encoder. Frames of `delta` and
 * `data-stream` build on those before; `asked` is 0, MILIEU_MODE_WHOLE for the same event once more
 * in a frame that stands alone, or MILIEU_MODE_BODY.
 *
 * MILIEU_UNFIT: this mode cannot say it; nothing is said then, and the next event builds on those
 * before it.
 */
MILIEU_CHECKED milieu_result milieu_encoder_encode(const milieu_encoder *encoder,
    const milieu_event *event, uint32_t asked, milieu_text *bytes);

/** Gives an encoder back. */
void milieu_encoder_free(milieu_encoder *encoder);

/** Makes events of the frames of one encoder. */
typedef struct milieu_decoder milieu_decoder;

/**
 * A decoder of this mode. With `with_private`, whoever has sent the bytes may set private fields. A
 * frame has at most `bytes_max` bytes, and lists and maps in it lie at most `depth_max` deep in each
 * other; 0: 16 MiB, 128.
 *
 * MILIEU_NO_SUCH: there is no such mode.
 */
MILIEU_CHECKED milieu_result milieu_decoder_new(const milieu_streams *streams, milieu_text mode,
    bool with_private, size_t bytes_max, size_t depth_max, milieu_decoder **decoder);

/** Bodies whose bytes say that they are of this type get it; others become it by milieu_event_body. */
MILIEU_CHECKED milieu_result milieu_decoder_expect(const milieu_decoder *decoder,
    const milieu_event_type *type);

/**
 * The event of a frame, as one that was kept: milieu_event_free gives it back. `asked` is 0, or
 * MILIEU_MODE_BODY where the bytes are a body alone; its header says nothing then.
 *
 * MILIEU_UNFIT: the bytes are not what the mode prescribes, and the message says where.
 * MILIEU_LATE: frames are missing that this one builds on; one that says all mends that.
 */
MILIEU_CHECKED milieu_result milieu_decoder_decode(const milieu_decoder *decoder,
    milieu_text bytes, uint32_t asked, milieu_event **event);

/** Gives a decoder back. */
void milieu_decoder_free(milieu_decoder *decoder);

/* ---------------------------------------------------------------- modes of the program */

/** Where a mode puts the bytes of a frame; valid during the callback. */
typedef struct milieu_encoding milieu_encoding;

/** Where a mode says what a frame means; valid during the callback. */
typedef struct milieu_decoding milieu_decoding;

/**
 * Makes what an encoder or a decoder is to have, and is handed as `state`. If this fails, so does
 * each frame.
 */
typedef milieu_result (*milieu_mode_begin)(void *user, bool decodes, void **state);

/**
 * Makes a frame of an event, by milieu_encoding_put and milieu_encoding_event. What the receiver may
 * not see is not in the event: `asked` says what for, MILIEU_MODE_*, and without MILIEU_MODE_PRIVATE
 * there is nothing private in it, so that it is no struct with private fields that are not
 * MILIEU_OPTIONAL. If this fails, the event counts as not sent.
 */
typedef milieu_result (*milieu_mode_encode)(void *state, const milieu_event *event,
    uint32_t asked, milieu_encoding *encoding);

/**
 * Says what a frame means: by milieu_decoding_header and milieu_decoding_body or
 * milieu_decoding_datum, or by milieu_decoding_event; with MILIEU_MODE_BODY without a header. The
 * bytes are whatever the other side has sent. If this fails, what milieu_fail has said is why; where
 * something private would have been set, that is.
 */
typedef milieu_result (*milieu_mode_decode)(void *state, milieu_text bytes, uint32_t asked,
    milieu_decoding *decoding);

/** What a program says of a transfer mode of its own. The library keeps a copy. */
typedef struct milieu_mode {
    /** MILIEU_ABI */
    uint32_t abi;
    /** The version of its encoding; both sides have to have the same. */
    uint32_t version;
    /** By which it is chosen: letters, digits, `-` and `_`. */
    const char *name;
    /** What its frames are: `application/x-packed`. */
    const char *media_type;
    /** Whether a frame can be understood only with those before it. */
    bool builds_on_frames;
    /**
     * Whether it stands in the place of Milieu's mode of its name. Whoever is at the other end has to
     * have it, too: no name tells the two apart. One called `json` writes a line for each frame, as
     * servers send them as lines. Milieu's is meant all the same inside another mode
     * (milieu_encoding_event, milieu_decoding_event), by the command `milieu`, and by an input of a
     * broker that takes whatever comes.
     */
    bool replaces;
    /** Makes a state for each encoder and decoder; null: all have `user`, which several threads use at once. */
    milieu_mode_begin begin;
    milieu_mode_encode encode;
    milieu_mode_decode decode;
    /** Lets go of a state that `begin` has made. */
    milieu_destroy end;
} milieu_mode;

/**
 * Makes a mode known to a coordinator, at any time; what is opened afterwards has it. Callbacks come
 * from any thread, those of one state one at a time; they run as callbacks of streams do. `destroy`
 * is called when neither the coordinator nor anybody else has the mode any more.
 *
 * MILIEU_WRONG_NAME: its name or media type is none, or another mode has it; or it `replaces` what
 * is no mode of Milieu, or has been replaced already.
 */
MILIEU_CHECKED milieu_result milieu_mode_define(const milieu_coordinator *coordinator,
    const milieu_mode *mode, void *user, milieu_destroy destroy);

/** Appends bytes to the frame. */
MILIEU_CHECKED milieu_result milieu_encoding_put(milieu_encoding *encoding, const void *bytes,
    size_t length);

/**
 * Appends an event as a mode of Milieu has it, in a frame that stands alone: with the body alone for
 * MILIEU_MODE_BODY. MILIEU_NO_SUCH: Milieu has no such mode. MILIEU_UNFIT: it cannot say it.
 */
MILIEU_CHECKED milieu_result milieu_encoding_event(milieu_encoding *encoding,
    const milieu_event *event, milieu_text mode);

/** What the event is called, its number, when it was and how well that is known. */
MILIEU_CHECKED milieu_result milieu_decoding_header(milieu_decoding *decoding,
    const milieu_header *header);

/**
 * The body of the event, a struct of this type, which is copied.
 *
 * MILIEU_UNFIT: it has something in a private field, and there is no MILIEU_MODE_PRIVATE.
 */
MILIEU_CHECKED milieu_result milieu_decoding_body(milieu_decoding *decoding,
    const milieu_event_type *type, const void *body);

/** The body of the event: one value, or with MILIEU_JSON a list or a map. */
MILIEU_CHECKED milieu_result milieu_decoding_datum(milieu_decoding *decoding, milieu_datum datum);

/**
 * The event that bytes mean in a mode of Milieu, header and body; with MILIEU_MODE_BODY the body.
 *
 * MILIEU_INVALID: header or body was said already; or these are said afterwards. MILIEU_NO_SUCH: Milieu has no such mode. MILIEU_UNFIT: they are not what it prescribes.
 */
MILIEU_CHECKED milieu_result milieu_decoding_event(milieu_decoding *decoding, milieu_text mode,
    milieu_text bytes);

/**
 * Frames are missing that this one builds on. There is no event then, and the sender is asked for a
 * frame that says all.
 */
MILIEU_CHECKED milieu_result milieu_decoding_lost(milieu_decoding *decoding);

#ifdef __cplusplus
}
#endif

#endif
