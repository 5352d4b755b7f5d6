/*
 * Milieu: events as bytes, and transfer modes of the program's own. The C++ interface; header only,
 * C++17, over modes.h, which says what holds of them.
 *
 *   milieu::Encoder encoder(streams, "cbor");
 *   file << encoder.encode(event);
 *
 *   milieu::Decoder decoder(streams, "cbor");
 *   milieu::KeptEvent event = decoder.decode(bytes);
 *
 *   milieu::define_mode(coordinator, {"packed", 1, "application/x-packed"},
 *       [] { return [](const milieu::Event &event, milieu::Encoding &encoding) { … }; },
 *       [] { return [](std::string_view bytes, milieu::Decoding &decoding) { … }; });
 */
#ifndef MILIEU_MODES_HPP
#define MILIEU_MODES_HPP

#include <milieu/modes.h>
#include <milieu/streams.hpp>

namespace milieu {

/* ---------------------------------------------------------------- by hand */

/** Makes bytes of events, in any mode. One thread uses it at a time. */
class Encoder {
public:
    /** Of this mode; `with_private` lets private fields go along. */
    Encoder(const Streams &streams, std::string_view mode, bool with_private = false) {
        milieu_encoder *encoder;
        detail::check(
            milieu_encoder_new(streams.c(), detail::text(mode), with_private, &encoder));
        encoder_.reset(encoder);
    }

    /** The frame of an event, which builds on those before in some modes. Valid until the next call. */
    std::string_view encode(const Event &event) { return frame(event, 0); }
    /** The event that was encoded last, in a frame that stands alone. */
    std::string_view encode_whole(const Event &event) { return frame(event, MILIEU_MODE_WHOLE); }
    /** The body alone. */
    std::string_view encode_body(const Event &event) { return frame(event, MILIEU_MODE_BODY); }
    /** The encoder of the C interface. */
    milieu_encoder *c() const noexcept { return encoder_.get(); }

private:
    std::string_view frame(const Event &event, std::uint32_t asked) {
        milieu_text bytes;
        detail::check(milieu_encoder_encode(encoder_.get(), event.c(), asked, &bytes));
        return detail::view(bytes);
    }

    std::unique_ptr<milieu_encoder, detail::Freeing<milieu_encoder, milieu_encoder_free>> encoder_;
};

/** How much a frame may be that has come. */
struct FrameLimits {
    /** How many bytes; 0: 16 MiB. */
    std::size_t bytes_max = 0;
    /** How deep lists and maps may lie in each other; 0: 128. */
    std::size_t depth_max = 0;
};

/** Makes events of the frames of one encoder. One thread uses it at a time. */
class Decoder {
public:
    /** Of this mode; with `with_private`, the sender may set private fields. */
    Decoder(const Streams &streams, std::string_view mode, bool with_private = false,
        FrameLimits limits = {}) {
        milieu_decoder *decoder;
        detail::check(milieu_decoder_new(streams.c(), detail::text(mode), with_private,
            limits.bytes_max, limits.depth_max, &decoder));
        decoder_.reset(decoder);
    }

    /** Bodies whose bytes say that they are of this type get it; others become it by get(). */
    template <class T>
    Decoder &expect() {
        detail::check(milieu_decoder_expect(decoder_.get(), detail::type_of<T>()));
        return *this;
    }
    /** The event of a frame. What it is not throws; MILIEU_LATE where frames are missing before it. */
    KeptEvent decode(std::string_view bytes) { return event(bytes, 0); }
    /** The same of a body alone; its header says nothing. */
    KeptEvent decode_body(std::string_view bytes) { return event(bytes, MILIEU_MODE_BODY); }
    /** The decoder of the C interface. */
    milieu_decoder *c() const noexcept { return decoder_.get(); }

private:
    KeptEvent event(std::string_view bytes, std::uint32_t asked) {
        milieu_event *event;
        detail::check(milieu_decoder_decode(decoder_.get(), detail::text(bytes), asked, &event));
        return KeptEvent(event);
    }

    std::unique_ptr<milieu_decoder, detail::Freeing<milieu_decoder, milieu_decoder_free>> decoder_;
};

/* ---------------------------------------------------------------- modes of the program */

/** Where a mode puts the bytes of a frame; it is lent. */
class Encoding {
public:
    Encoding(milieu_encoding *encoding, std::uint32_t asked) noexcept
        : encoding_(encoding), asked_(asked) {}

    /** Whether the receiver may see what is private: milieu::Event::field with MILIEU_READ_PRIVATE. */
    bool with_private() const noexcept { return (asked_ & MILIEU_MODE_PRIVATE) != 0; }
    /** Whether the frame has to say all of the event that was encoded last. */
    bool whole() const noexcept { return (asked_ & MILIEU_MODE_WHOLE) != 0; }
    /** Whether it is a body alone. */
    bool is_body() const noexcept { return (asked_ & MILIEU_MODE_BODY) != 0; }
    /** Appends bytes. */
    void put(std::string_view bytes) const {
        detail::check(milieu_encoding_put(encoding_, bytes.data(), bytes.size()));
    }
    /** Appends an event, or its body where that is asked for, as a mode of Milieu has it. */
    void put(const Event &event, std::string_view mode) const {
        detail::check(milieu_encoding_event(encoding_, event.c(), detail::text(mode)));
    }

private:
    milieu_encoding *encoding_;
    std::uint32_t asked_;
};

/** What every event has, as a mode says it. */
struct EventHeader {
    /** The name of its stream. */
    std::string_view name;
    /** Who publishes. */
    std::string_view origin = {};
    /** Which life of the publisher it is of, and its number in that. */
    std::uint64_t incarnation = 0;
    std::uint64_t sequence = 0;
    /** When it was, which has to be said, and how well that is known. */
    Quality quality = {};
};

/** Where a mode says what a frame means; it is lent. */
class Decoding {
public:
    Decoding(milieu_decoding *decoding, std::uint32_t asked) noexcept
        : decoding_(decoding), asked_(asked) {}

    /** Whether the sender may set what is private. */
    bool with_private() const noexcept { return (asked_ & MILIEU_MODE_PRIVATE) != 0; }
    /** Whether it is a body alone, which has no header. */
    bool is_body() const noexcept { return (asked_ & MILIEU_MODE_BODY) != 0; }
    /** What the event is called, when it was and how well that is known. */
    void header(const EventHeader &header) const {
        const milieu_header given = {detail::text(header.name), detail::text(header.origin),
            header.incarnation, header.sequence, detail::quality(header.quality)};
        detail::check(milieu_decoding_header(decoding_, &given));
    }
    /** The body, as a struct that MILIEU_EVENT names, or a plain value. */
    template <class T>
    void body(const T &body) const {
        detail::check(milieu_decoding_body(decoding_, detail::type_of<T>(), &body));
    }
    /** The body, a list or a map, as JSON. */
    void json(std::string_view text) const {
        milieu_datum datum = milieu_datum_text(detail::text(text));
        datum.kind = MILIEU_JSON;
        detail::check(milieu_decoding_datum(decoding_, datum));
    }
    /** What bytes mean in a mode of Milieu. */
    void event(std::string_view mode, std::string_view bytes) const {
        detail::check(
            milieu_decoding_event(decoding_, detail::text(mode), detail::text(bytes)));
    }
    /** Frames are missing that this one builds on: the sender is asked for one that says all. */
    void lost() const { detail::check(milieu_decoding_lost(decoding_)); }

private:
    milieu_decoding *decoding_;
    std::uint32_t asked_;
};

/** What is to be known of a mode. */
struct ModeInfo {
    /** By which it is chosen: letters, digits, `-` and `_`. */
    const char *name;
    /** The version of its encoding; both sides have to have the same. */
    std::uint32_t version;
    /** What its frames are: `application/x-packed`. */
    const char *media_type;
    /** Whether a frame can be understood only with those before it. */
    bool builds_on_frames = false;
    /** Whether it stands in the place of Milieu's mode of its name. */
    bool replaces = false;
};

namespace detail {

/** What makes encoders and decoders of a mode. */
template <class MakeEncoder, class MakeDecoder>
struct ModeOfC {
    MakeEncoder encoder;
    MakeDecoder decoder;

    /** One of the two. */
    struct State {
        std::optional<std::decay_t<decltype(std::declval<MakeEncoder &>()())>> encode;
        std::optional<std::decay_t<decltype(std::declval<MakeDecoder &>()())>> decode;
    };

    static milieu_result begin(void *user, bool decodes, void **state) {
        return told([&] {
            auto &mode = *static_cast<ModeOfC *>(user);
            auto made = std::make_unique<State>();
            if (decodes) made->decode.emplace(mode.decoder());
            else made->encode.emplace(mode.encoder());
            *state = made.release();
        });
    }
    static milieu_result encode(
        void *state, const milieu_event *event, std::uint32_t asked, milieu_encoding *raw) {
        return told([&] {
            Encoding encoding(raw, asked);
            (*static_cast<State *>(state)->encode)(Event(event), encoding);
        });
    }
    static milieu_result decode(
        void *state, milieu_text bytes, std::uint32_t asked, milieu_decoding *raw) {
        return told([&] {
            Decoding decoding(raw, asked);
            (*static_cast<State *>(state)->decode)(view(bytes), decoding);
        });
    }
};

} // namespace detail

/**
 * Makes a transfer mode known to a coordinator. `encoder` makes what encodes the events of one
 * stream, which is called with an Event and an Encoding; `decoder` what decodes their frames, which
 * is called with their bytes and a Decoding. What these throw is why there is no frame, or no event.
 * Several threads may make some at once.
 */
template <class MakeEncoder, class MakeDecoder>
void define_mode(const Coordinator &coordinator, const ModeInfo &info, MakeEncoder encoder,
    MakeDecoder decoder) {
    using Mode = detail::ModeOfC<MakeEncoder, MakeDecoder>;
    std::unique_ptr<Mode> kept(new Mode{std::move(encoder), std::move(decoder)});
    milieu_mode mode = {};
    mode.abi = MILIEU_ABI;
    mode.version = info.version;
    mode.name = info.name;
    mode.media_type = info.media_type;
    mode.builds_on_frames = info.builds_on_frames;
    mode.replaces = info.replaces;
    mode.begin = Mode::begin;
    mode.encode = Mode::encode;
    mode.decode = Mode::decode;
    mode.end = detail::destroy<typename Mode::State>;
    detail::check(milieu_mode_define(
        coordinator.c(), &mode, kept.release(), detail::destroy<Mode>));
}

} // namespace milieu

#endif
