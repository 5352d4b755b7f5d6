/*
 * Milieu: streams for programs that are not this one: over HTTP, and from an MQTT broker and to it.
 * The C interface, beside streams.h.
 *
 *   milieu_component   a server or a connection: how it is, and what it has counted; or what the
 *                      program says of something else
 *
 *   milieu_text names = milieu_text_of("/weather/temperature");
 *   milieu_http_access access = MILIEU_HTTP_ACCESS;
 *   milieu_http_options http = MILIEU_HTTP_OPTIONS;
 *   access.token = milieu_text_of(getenv("TOKEN"));
 *   access.rights.read.queries = &names;
 *   access.rights.read.count = 1;
 *   http.accesses = &access;
 *   http.access_count = 1;
 *   milieu_http_serve(streams, &http, &server);
 *   milieu_component_id(server, &id);
 *
 * docs/foreign.md says what clients and brokers see, and what is counted under which reason. What
 * holds beside what streams.h says:
 *
 * - Each has a thread of its own, in which callbacks run of what comes from outside.
 * - Those of one coordinator tell of each other: the server's `/ready` and `/metrics` know the
 *   connections to brokers, and what the program says by milieu_component_tell.
 * - When milieu_component_free has returned, the thread has ended. Within a callback of streams nobody
 *   waits: there it ends later.
 *
 * These functions are in libraries that were built with the features `http` and `mqtt`, which are not
 * among the defaults.
 */
#ifndef MILIEU_FOREIGN_H
#define MILIEU_FOREIGN_H

#include <milieu/rights.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- components */

/**
 * A server, a connection, or what the program says of something else. One thread uses it at a time.
 */
typedef struct milieu_component milieu_component;

/**
 * Something that the program has besides, and without which it is not ready: a display, a device, a
 * database. `/ready` and `/metrics` of the servers of this coordinator tell of it until it is freed,
 * by its `id` and a word for what it is, its `kind`. At first it is MILIEU_STARTING.
 *
 * MILIEU_INVALID: one of them is empty.
 */
MILIEU_CHECKED milieu_result milieu_component_new(const milieu_streams *streams, milieu_text id,
    milieu_text kind, milieu_component **component);

/**
 * Says how it is, a milieu_status: ready is what is MILIEU_WORKING or MILIEU_OVER. Where it is
 * MILIEU_FAILING `why` says what is wrong and how it is mended; otherwise that counts for nothing.
 *
 * MILIEU_INVALID: it is a server or a connection, which say so themselves; there is no such status,
 * or no `why`.
 */
milieu_result milieu_component_tell(const milieu_component *component, uint32_t status,
    milieu_text why);

/**
 * What it is called: its id, or its address, which is `http://127.0.0.1:8080`, with the port that it
 * got, or `mqtt://broker:1883`. Valid until it is freed.
 */
MILIEU_CHECKED milieu_result milieu_component_id(const milieu_component *component,
    milieu_text *id);

/**
 * How it is, a milieu_status, and why; `why` may be null, and is valid until the next call with this
 * component.
 */
MILIEU_CHECKED milieu_result milieu_component_status(const milieu_component *component,
    uint32_t *status, milieu_text *why);

/** How many events came in and went out. */
MILIEU_CHECKED milieu_result milieu_component_events(const milieu_component *component,
    uint64_t *received, uint64_t *sent);

/** How many events were discarded for this reason, such as `overflow`. */
MILIEU_CHECKED milieu_result milieu_component_discarded(const milieu_component *component,
    milieu_text why, uint64_t *count);

/** How many errors there were for this reason, such as `token`. */
MILIEU_CHECKED milieu_result milieu_component_errors(const milieu_component *component,
    milieu_text why, uint64_t *count);

/** Ends it, and with it all that it was connected to. */
void milieu_component_free(milieu_component *component);

/* ---------------------------------------------------------------- HTTP */

/** What whoever shows a token may do. Begin with MILIEU_HTTP_ACCESS. */
typedef struct milieu_http_access {
    /**
     * 16 to 512 letters, digits, `-`, `.`, `_` and `~`, from a source of randomness:
     * `openssl rand -hex 32`.
     */
    milieu_text token;
    /** Names whose events may be read, and so on. */
    milieu_rights rights;
    /** Whether `/metrics` may be seen, which tell the names of all streams. */
    bool measures;
} milieu_http_access;

/** Somebody who may do nothing. */
#define MILIEU_HTTP_ACCESS { { NULL, 0 }, MILIEU_RIGHTS, false }

/** Something for browsers, which is shown to everybody, without a token too. It is copied. */
typedef struct milieu_http_page {
    /**
     * Where it is, as requests write it: `/`, `/page.html`, `/caf%C3%A9`. The server's own paths,
     * which docs/foreign.md lists, are taken.
     */
    milieu_text path;
    /** What it is: `text/html; charset=utf-8`. */
    milieu_text media_type;
    /** What it says: any bytes. */
    milieu_text content;
} milieu_http_page;

/** How streams are served. Begin with MILIEU_HTTP_OPTIONS. */
typedef struct milieu_http_options {
    /** MILIEU_ABI */
    uint32_t abi;
    /**
     * Whether an address may be one that others than this machine reach. What is said there is not
     * encrypted, tokens included: put a proxy with TLS in front of it where the network is not trusted.
     */
    bool for_others;
    /** `127.0.0.1:8080`; empty is a free port of 127.0.0.1. */
    milieu_text address;
    /** Who may do what: at least one. */
    const milieu_http_access *accesses;
    size_t access_count;
    /** Names by which clients call this host, beside addresses and `localhost`. */
    const milieu_text *hosts;
    size_t host_count;
    /** Origins of pages that are let in, beside those that come from here: `https://dashboard.example`. */
    const milieu_text *origins;
    size_t origin_count;
    /** What is shown to everybody. */
    const milieu_http_page *pages;
    size_t page_count;
    /** Connections at a time, and events that may wait for each. Here and below, 0 is what docs/foreign.md says. */
    uint32_t connections;
    uint32_t queue_events;
    /** The head of a request. */
    uint32_t head_bytes;
    uint32_t head_lines;
    /** What is sent in one request: how much it is, and how many lists and maps lie in each other. */
    uint32_t body_bytes;
    uint32_t body_depth;
    /** Names under which clients publish. */
    uint32_t names;
    /** Operators and names in one flow. */
    uint32_t operators;
    /** How long a client may take for its request, or take nothing of what was sent to it. */
    int64_t patience_ns;
} milieu_http_options;

/** A free port of this machine alone, which nobody may use yet. */
#define MILIEU_HTTP_OPTIONS                                                                    \
    { MILIEU_ABI, false, { NULL, 0 }, NULL, 0, NULL, 0, NULL, 0, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/**
 * Serves streams over HTTP.
 *
 * MILIEU_INVALID: nobody may use it; a token, a pattern, the address or a page is not what it should
 * be; or others could reach it, and that was not said. MILIEU_SYSTEM: the address is taken.
 */
MILIEU_CHECKED milieu_result milieu_http_serve(const milieu_streams *streams,
    const milieu_http_options *options, milieu_component **server);

/* ---------------------------------------------------------------- MQTT */

/** Topics that become events. Begin with MILIEU_MQTT_INPUT. */
typedef struct milieu_mqtt_input {
    /** Which topics: `zigbee2mqtt/+`. */
    milieu_text filter;
    /** Below which name: with `/home`, the topic `kitchen/heat` is `/home/kitchen/heat`. */
    milieu_text under;
    /** In which mode payloads are, one of docs/transfer.md; empty: any, numbers, text and bytes too. */
    milieu_text mode;
    /** Whether payloads are whole events, with time and quality, and not bodies alone. */
    bool whole_events;
    /** 0: at most once, 1: at least once, 2: exactly once. */
    uint32_t qos;
} milieu_mqtt_input;

/** At least once, in any mode. */
#define MILIEU_MQTT_INPUT { { NULL, 0 }, { NULL, 0 }, { NULL, 0 }, false, 1 }

/** A flow whose events are sent. Begin with MILIEU_MQTT_OUTPUT. */
typedef struct milieu_mqtt_output {
    milieu_text flow;
    milieu_text topic;
    /** In which mode; empty is JSON. */
    milieu_text mode;
    /** Whether as whole events, with name, time and quality, and not bodies alone. */
    bool whole_events;
    /** Whether the broker keeps the latest for those who come later. */
    bool retained;
    /** Whether private fields go along, for whoever may read the topic. */
    bool with_private;
    /** 0: at most once, 1: at least once, 2: exactly once. */
    uint32_t qos;
    /** What waits while the broker is down; null is MILIEU_DELIVERY. */
    const milieu_delivery *delivery;
} milieu_mqtt_output;

/** Bodies as JSON, at least once, not retained. */
#define MILIEU_MQTT_OUTPUT                                                                     \
    { { NULL, 0 }, { NULL, 0 }, { NULL, 0 }, false, false, false, 1, NULL }

/** More about a device or an entity, by Home Assistant's name: `unit_of_measurement` is `°C`. */
typedef struct milieu_mqtt_option {
    milieu_text name;
    /** A text, a number, true or false. */
    milieu_datum value;
} milieu_mqtt_option;

/** One thing that Home Assistant shows. */
typedef struct milieu_mqtt_entity {
    /** Letters, digits, `-` and `_`, which stay the same. */
    milieu_text id;
    /** `sensor`, `binary_sensor` */
    milieu_text platform;
    /** What people call it. */
    milieu_text name;
    /** Where its state comes: mostly the topic of an output. */
    milieu_text state_topic;
    const milieu_mqtt_option *options;
    size_t option_count;
} milieu_mqtt_entity;

/** A device that Home Assistant discovers. */
typedef struct milieu_mqtt_device {
    /** Letters, digits, `-` and `_`, which stay the same. */
    milieu_text id;
    /** What people call it. */
    milieu_text name;
    /** `mf` for who made it, `mdl` for the model, `sw` for the version. */
    const milieu_mqtt_option *about;
    size_t about_count;
    const milieu_mqtt_entity *entities;
    size_t entity_count;
} milieu_mqtt_device;

/** How a connection is made. Begin with MILIEU_MQTT_OPTIONS. */
typedef struct milieu_mqtt_options {
    /** MILIEU_ABI */
    uint32_t abi;
    /** The broker's port; 0 is 1883. */
    uint16_t port;
    /** After how much silence the other side is looked after; 0 is 30. */
    uint16_t keep_alive_seconds;
    /** The broker's host. Connections are not encrypted. */
    milieu_text host;
    /** Letters, digits, `-` and `_`: this program's alone, and the same after a restart. */
    milieu_text client_id;
    /** For a broker that asks who this is; empty otherwise. */
    milieu_text user;
    milieu_text password;
    /** Where `online` and `offline` are said; empty is `milieu/CLIENT-ID/status`. */
    milieu_text availability;
    /** Home Assistant's prefix; empty is `homeassistant`. */
    milieu_text discovery_prefix;
    const milieu_mqtt_input *inputs;
    size_t input_count;
    const milieu_mqtt_output *outputs;
    size_t output_count;
    const milieu_mqtt_device *devices;
    size_t device_count;
    /** What a broker may send: how large payloads are and how deep, and how many topics become names. 0: 1 MiB, 64, 4096. */
    uint32_t payload_bytes;
    uint32_t payload_depth;
    uint32_t names;
} milieu_mqtt_options;

/** A connection of which host and client id are still to be said. */
#define MILIEU_MQTT_OPTIONS                                                                    \
    { MILIEU_ABI, 0, 0, { NULL, 0 }, { NULL, 0 }, { NULL, 0 }, { NULL, 0 }, { NULL, 0 },       \
        { NULL, 0 }, NULL, 0, NULL, 0, NULL, 0, 0, 0, 0 }

/**
 * Connects to a broker, and keeps at it. One that is down is no error: milieu_component_status
 * says so, and what is for it waits.
 *
 * MILIEU_INVALID: a topic, a filter or an id is not what it should be. MILIEU_NO_SUCH: there is no
 * such mode. MILIEU_WRONG_FLOW.
 * MILIEU_SYSTEM.
 */
MILIEU_CHECKED milieu_result milieu_mqtt_connect(const milieu_streams *streams,
    const milieu_mqtt_options *options, milieu_component **connection);

/**
 * Ends a connection as milieu_component_free does, and takes its devices back, so that Home
 * Assistant forgets them. MILIEU_INVALID: it is a server, and goes on.
 */
MILIEU_CHECKED milieu_result milieu_mqtt_withdraw(milieu_component *connection);

#ifdef __cplusplus
}
#endif

#endif
