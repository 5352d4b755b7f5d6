/*
 * Flows that are put together of values, written in other languages, and rehearsed. Included by
 * streams.h, which says what holds of all of it.
 */
/* It includes this in its place, wherever a program begins. */
#include <milieu/streams.h>

#ifndef MILIEU_FLOWS_H
#define MILIEU_FLOWS_H

#include <milieu/operators.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- flows of values */

/**
 * A flow that is put together of values: whatever these say, they are names and parameters, and
 * nothing else. Its text serves wherever a flow is asked for.
 *
 *   milieu_flow_new(streams, milieu_text_of("/weather"), &flow);
 *   const milieu_told least = { milieu_text_of("least"), milieu_datum_number(2) };
 *   milieu_flow_then(flow, milieu_text_of("rise"), &least, 1);
 *   milieu_flow_text(flow, &text);
 */
typedef struct milieu_flow milieu_flow;

/** Something that an operator is told. */
typedef struct milieu_told {
    /** Which parameter; empty: the next one, in their order. */
    milieu_text name;
    /**
     * True or false, a number, a distance in time, or a MILIEU_TEXT: a text, or what flows write of
     * it, as an expression, `$name` of a function, `{a: b}` or `mean, percentile(95)`.
     */
    milieu_datum value;
} milieu_told;

/**
 * The events of a name, which may have wildcards and placeholders.
 *
 * MILIEU_WRONG_FLOW: it is no name.
 */
MILIEU_CHECKED milieu_result milieu_flow_new(const milieu_streams *streams, milieu_text name,
    milieu_flow **flow);

/** Lets the next operator read another flow as well, as it is now: `merge`, `join`. */
MILIEU_CHECKED milieu_result milieu_flow_and(milieu_flow *flow, const milieu_flow *other);

/**
 * Adds an operator, which reads all that there was.
 *
 * MILIEU_WRONG_FLOW: there is none of this name, or it cannot be told so; the message shows what is
 * wrong, and the flow is as it was. MILIEU_INVALID: no parameter is of such a kind.
 */
MILIEU_CHECKED milieu_result milieu_flow_then(milieu_flow *flow, milieu_text operation,
    const milieu_told *told, size_t count);

/**
 * The flow as one line, which is the same for all that run as one; valid until the next call with
 * it. MILIEU_WRONG_FLOW: several flows wait for an operator that reads them.
 */
MILIEU_CHECKED milieu_result milieu_flow_text(const milieu_flow *flow, milieu_text *text);

/** Gives a flow back; what was subscribed to by its text goes on. */
void milieu_flow_free(milieu_flow *flow);

/**
 * Writes a value as expressions have it, so that a part of one can come from elsewhere: a text in
 * quotes, `room == "a \"b\""`. It is followed by a zero byte; `length`, which may be null, gets how
 * long it is without that. With a null `buffer` it only says how long.
 *
 * MILIEU_INVALID: it has no room, or is a number without end, or MILIEU_JSON.
 */
MILIEU_CHECKED milieu_result milieu_literal(milieu_datum value, char *buffer, size_t size,
    size_t *length);

/* ---------------------------------------------------------------- other languages */

/** The languages of files of subscriptions. */
typedef enum milieu_language {
    MILIEU_PIPELINE = 0, /**< lines of flows: .flow */
    MILIEU_TOML = 1,     /**< .toml */
    MILIEU_XML = 2,      /**< .xml */
    MILIEU_RUST = 3      /**< calls of the builder in Rust, which is written and not read */
} milieu_language;

/** A text that was written. */
typedef struct milieu_writing milieu_writing;

/**
 * Writes a file of subscriptions, whose text this is, in a milieu_language. `file` is its name, for
 * messages; how it ends says in which language it is. What is written says the same; in the same
 * language it is how Milieu writes it.
 *
 * MILIEU_WRONG_FLOW: the message shows the places. MILIEU_INVALID: no such language.
 */
MILIEU_CHECKED milieu_result milieu_writing_of_flows(const milieu_streams *streams,
    milieu_text file, milieu_text text, uint32_t language, milieu_writing **writing);

/** The XML Schema of such files in XML, with the operators of the program. */
MILIEU_CHECKED milieu_result milieu_writing_of_schema(const milieu_streams *streams,
    milieu_writing **writing);

/** The text; valid until it is freed. */
MILIEU_CHECKED milieu_result milieu_writing_text(const milieu_writing *writing,
    milieu_text *text);

/** Gives it back. */
void milieu_writing_free(milieu_writing *writing);

/* ---------------------------------------------------------------- rehearsals */

/** What came of a case of a rehearsal; valid until that is freed. */
typedef struct milieu_case {
    milieu_text title;
    /** What was to happen, and what has happened: lines of events, and of what was published. */
    milieu_text expected;
    milieu_text found;
    /** Both by lines, with `-` and `+` where they differ; empty where they do not. */
    milieu_text difference;
    bool passed;
} milieu_case;

/** Cases, and what came of them. */
typedef struct milieu_rehearsal milieu_rehearsal;

/**
 * Lets flows run in a time of their own, as `milieu stream test` does, with the operators and
 * functions of the program, in this thread. A case is a title behind `#`, a flow, an empty line, and
 * what happens; a line of three dashes stands between cases:
 *
 *   # heat
 *   /weather | filter temperature > 90
 *
 *   1 /weather {"temperature": 88.0}
 *   2 /weather {"temperature": 91.5}
 *   @2 {"temperature": 91.5}
 *
 * Nothing of it reaches the streams. `file` is the name of the text, for messages.
 *
 * MILIEU_WRONG_FLOW: a case cannot be read or run; the message shows the place. MILIEU_BUSY: within
 * a callback.
 */
MILIEU_CHECKED milieu_result milieu_rehearsal_new(const milieu_streams *streams,
    milieu_text file, milieu_text text, milieu_rehearsal **rehearsal);

/** The cases in their order. */
MILIEU_CHECKED milieu_result milieu_rehearsal_cases(const milieu_rehearsal *rehearsal,
    const milieu_case **cases, size_t *count);

/** Gives a rehearsal back. */
void milieu_rehearsal_free(milieu_rehearsal *rehearsal);

#ifdef __cplusplus
}
#endif

#endif
