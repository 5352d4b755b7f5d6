/*
 * Functions and operators of the program, which flows name. Included by streams.h, which says what
 * holds of all of it.
 */
/* It includes this in its place, wherever a program begins. */
#include <milieu/streams.h>

#ifndef MILIEU_OPERATORS_H
#define MILIEU_OPERATORS_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- functions */

/** What a function has to say; valid during the callback. */
typedef struct milieu_answer milieu_answer;

/**
 * Computes something of an event, which is lent, and says it by milieu_answer_give. It may be called
 * by several threads at once.
 */
typedef milieu_result (*milieu_compute)(void *user, const milieu_event *event,
    milieu_answer *answer);

/** Says what was computed; texts are copied. MILIEU_JSON cannot be said. */
milieu_result milieu_answer_give(milieu_answer *answer, milieu_datum datum);

/** Nothing. */
static inline milieu_datum milieu_datum_nothing(void) {
    milieu_datum datum;
    memset(&datum, 0, sizeof datum);
    return datum;
}
/** True or false. */
static inline milieu_datum milieu_datum_bool(bool boolean) {
    milieu_datum datum = milieu_datum_nothing();
    datum.kind = MILIEU_BOOL;
    datum.content.boolean = boolean;
    return datum;
}
/** A whole number. */
static inline milieu_datum milieu_datum_whole(int64_t whole) {
    milieu_datum datum = milieu_datum_nothing();
    datum.kind = MILIEU_I64;
    datum.content.whole = whole;
    return datum;
}
/** A number. */
static inline milieu_datum milieu_datum_number(double number) {
    milieu_datum datum = milieu_datum_nothing();
    datum.kind = MILIEU_F64;
    datum.content.number = number;
    return datum;
}
/** A text. */
static inline milieu_datum milieu_datum_text(milieu_text text) {
    milieu_datum datum = milieu_datum_nothing();
    datum.kind = MILIEU_TEXT;
    datum.content.text = text;
    return datum;
}

/**
 * Registers a function that flows name by `$name`, as in `filter $hot`: a condition, a number, a
 * key. An event with which it fails is dropped as `fault`, and the picture of the graph shows with
 * the operator what it said. With `blocks`, it may take long, and runs
 * where it holds up nothing else. Flows with functions of one name run as one.
 *
 * MILIEU_LATE: streams are in use already; it comes before the first milieu_streams_new.
 */
MILIEU_CHECKED milieu_result milieu_function_define(const milieu_coordinator *coordinator,
    milieu_text name, milieu_compute compute, bool blocks, void *user, milieu_destroy destroy);

/** Where functions and operators put what they publish; valid during the callback. */
typedef struct milieu_output milieu_output;

/**
 * Makes other events of one, which is lent, by milieu_output_publish; or lets it go on or drops it,
 * as a milieu_step does. It may be called by several threads at once.
 */
typedef milieu_result (*milieu_transform)(void *user, const milieu_event *event,
    milieu_output *output);

/**
 * Registers a function that `transform $name` calls. It remembers nothing, so that it can neither
 * hold events nor be woken. As milieu_function_define in all else.
 */
MILIEU_CHECKED milieu_result milieu_transform_define(const milieu_coordinator *coordinator,
    milieu_text name, milieu_transform transform, bool blocks, void *user,
    milieu_destroy destroy);

/* ---------------------------------------------------------------- operators */

/** What an operator is made with; valid during the callback. */
typedef struct milieu_arguments milieu_arguments;

/** Where an operator puts what it remembers; valid during the callback. */
typedef struct milieu_snapshot milieu_snapshot;

/** Makes the state of an operator, for a flow that names it; if it fails, milieu_fail says why. */
typedef milieu_result (*milieu_make)(void *user, const milieu_arguments *arguments,
    void **state);

/**
 * An event has come at an input, counted from 0; it is lent. What becomes of it is said by
 * milieu_output_pass, milieu_output_drop or milieu_output_hold; otherwise it went into what was
 * published, or into the state. If this fails the event is dropped as `fault`.
 */
typedef milieu_result (*milieu_step)(void *state, uint32_t input, const milieu_event *event,
    milieu_output *output);

/** The time has come that was asked for by milieu_output_wake_at. */
typedef milieu_result (*milieu_wake)(void *state, milieu_output *output);

/** Says by milieu_snapshot_put what has to be remembered across a restart. */
typedef milieu_result (*milieu_save)(void *state, milieu_snapshot *snapshot);

/** Goes on from what milieu_save has said, bytes that belong to the library. */
typedef milieu_result (*milieu_restore)(void *state, milieu_text bytes);

/** A parameter of an operator. */
typedef struct milieu_parameter {
    const char *name;
    /**
     * MILIEU_BOOL, MILIEU_I64, MILIEU_F64, MILIEU_SPAN, MILIEU_TEXT, MILIEU_EXPRESSION,
     * MILIEU_FIELDS, or MILIEU_ENUM or MILIEU_FUNCTIONS with `choices`: words.
     */
    uint32_t kind;
    uint32_t choice_count;
    const char *const *choices;
    /** What holds where it is not given, as flows write it: `10m`. Null: it has to be given. Empty: there is none. */
    const char *otherwise;
    /** What it means, in one sentence. */
    const char *summary;
    /** Whether its name may be left out, in the order of the parameters. */
    bool positional;
} milieu_parameter;

/** What an operator is. */
enum {
    /** It may take long over an event, and runs where it holds up nothing else. */
    MILIEU_OPERATOR_BLOCKS = 1,
    /** Its last event says how things are until the next: late subscribers to its name get it. */
    MILIEU_OPERATOR_RETAINS = 2,
    /** It remembers nothing from event to event, so that late subscribers may share it at once. */
    MILIEU_OPERATOR_STATELESS = 4
};

/** What a program says of an operator. The library keeps a copy. Callbacks that are null are not there. */
typedef struct milieu_operator {
    /** MILIEU_ABI */
    uint32_t abi;
    /** How many flows it reads; 0: one or more, whose order does not matter. */
    uint32_t inputs;
    /** MILIEU_OPERATOR_*, or-ed. */
    uint32_t flags;
    uint32_t parameter_count;
    /** What flows call it: a word. That of an operator of Milieu takes its place. */
    const char *name;
    /** What it does, in one sentence. */
    const char *summary;
    const milieu_parameter *parameters;
    /** Makes the state; without it, that is null. */
    milieu_make make;
    /** It has to be there. */
    milieu_step step;
    milieu_wake wake;
    /**
     * Without it, an operator that is not stateless is shared by those subscribers only who came
     * before its first event, and begins anew after a restart.
     */
    milieu_save save;
    milieu_restore restore;
    /** Lets go of a state. */
    milieu_destroy free;
} milieu_operator;

/**
 * Defines an operator, which flows and files of subscriptions name like those of Milieu, and share
 * where parameters and inputs are equal. One state is used by one thread at a time.
 *
 * MILIEU_LATE: streams are in use already; it comes before the first milieu_streams_new.
 */
MILIEU_CHECKED milieu_result milieu_operator_define(const milieu_coordinator *coordinator,
    const milieu_operator *definition, void *user, milieu_destroy destroy);

/**
 * A parameter: as it was given, or its default; 0 where there is none. Valid during the callback.
 * Of an expression it is the text; fields and functions, which are 0 here, are got one by one.
 */
MILIEU_CHECKED milieu_result milieu_arguments_get(const milieu_arguments *arguments,
    milieu_text name, milieu_datum *datum);

/** An expression of a flow, or `$name` of a function, which an operator computes of events. */
typedef struct milieu_expression milieu_expression;

/**
 * A parameter that is a MILIEU_EXPRESSION, as it was given or by default; null where there is none.
 * Of MILIEU_FIELDS it is the one that makes the whole; null where there are fields.
 * It belongs to the operator, which gives it back with its state.
 *
 * MILIEU_NO_SUCH: there is no such parameter. MILIEU_UNFIT: no function has this name.
 */
MILIEU_CHECKED milieu_result milieu_arguments_expression(const milieu_arguments *arguments,
    milieu_text name, milieu_expression **expression);

/**
 * How many fields a parameter has that is MILIEU_FIELDS, or how many functions one that is
 * MILIEU_FUNCTIONS. MILIEU_NO_SUCH: there is no such parameter.
 */
MILIEU_CHECKED milieu_result milieu_arguments_count(const milieu_arguments *arguments,
    milieu_text name, size_t *count);

/**
 * One of the fields, counted from 0, in the order in which the flow has them: its name, which is
 * valid during the callback, and the expression that it becomes, which belongs to the operator.
 *
 * MILIEU_NO_SUCH: there are fewer, or there is no such parameter.
 */
MILIEU_CHECKED milieu_result milieu_arguments_field(const milieu_arguments *arguments,
    milieu_text name, size_t index, milieu_text *field, milieu_expression **expression);

/** A function that an operator is told: `percentile(95)`. */
typedef struct milieu_function_call {
    /** One of the `choices`. */
    milieu_text name;
    /** Whole and other numbers, distances in time, and words. */
    const milieu_datum *arguments;
    size_t argument_count;
} milieu_function_call;

/** One of the functions, counted from 0; valid during the callback. MILIEU_NO_SUCH: there are fewer. */
MILIEU_CHECKED milieu_result milieu_arguments_function(const milieu_arguments *arguments,
    milieu_text name, size_t index, milieu_function_call *function);

/**
 * What it makes of an event; valid until the next call with this expression.
 *
 * MILIEU_UNFIT: it cannot be computed. A milieu_step that returns this drops the event, and the
 * message is shown with the operator.
 */
MILIEU_CHECKED milieu_result milieu_expression_value(milieu_expression *expression,
    const milieu_event *event, milieu_datum *datum);

/** Gives an expression back. */
void milieu_expression_free(milieu_expression *expression);

/** What time it is. */
MILIEU_CHECKED milieu_result milieu_output_now(const milieu_output *output, int64_t *now_ns);

/**
 * Publishes a copy of a struct. Without a `quality` it has the time of the event that has come, and
 * what is wrong with its sensor; MILIEU_NOW is the time of that event too, or now where there is
 * none.
 */
milieu_result milieu_output_publish(milieu_output *output, const milieu_event_type *type,
    const void *body, const milieu_quality *quality);

/** The event goes on as it is. */
milieu_result milieu_output_pass(milieu_output *output);

/** The event goes no further, for one of the reasons in docs/operators.md, such as `late`; empty is `filtered`. */
milieu_result milieu_output_drop(milieu_output *output, milieu_text why);

/** The operator keeps the event, and settles its fate later. It has kept it by milieu_event_keep. */
milieu_result milieu_output_hold(milieu_output *output);

/** Sends an event on that was held; it is still to be freed. */
milieu_result milieu_output_pass_held(milieu_output *output, const milieu_event *kept);

/** Settles held events: so many have gone into what was published, so many go no further. */
milieu_result milieu_output_settle_held(milieu_output *output, uint32_t used, uint32_t dropped,
    milieu_text why);

/** Asks to be woken at this time, and not at the one that was asked for before; INT64_MAX is never. */
milieu_result milieu_output_wake_at(milieu_output *output, int64_t at_ns);

/** Adds to what is remembered. */
milieu_result milieu_snapshot_put(milieu_snapshot *snapshot, const void *bytes, size_t length);

#ifdef __cplusplus
}
#endif

#endif
