/*
 * Milieu: engines of the program's own, which carry frames between machines over whatever it has:
 * sockets, a bus, a radio. The C interface, beside links in milieu/links.h.
 *
 *   link --> submit, credit, grant, shut, leave, request, reply, close --> the engine
 *        <-- milieu_arrivals_joined and the like, when it is polled    <--
 *
 * An engine is one end, a port. It knows which other ports there are and carries frames to them,
 * which it does not look into. What names are, who may read them, what is sent again and what is
 * kept is none of its business. It keeps this:
 *
 * - It never waits: no callback blocks or takes long. They come one at a time, from any thread, as
 *   callbacks of streams do. The engine may have threads of its own.
 * - Presence: milieu_arrivals_joined tells of a peer before anything else of it, and
 *   milieu_arrivals_left after everything else. A peer that comes back is another one, with a
 *   number that this port has not seen before.
 * - Channels are numbers that the receiver chooses; 0 is for what machines say of themselves.
 *   Frames of one channel come in their order where the engine is MILIEU_ENGINE_ORDERED.
 * - Credit: a channel is closed until its receiver grants credit, the number of frames that the
 *   sender may have submitted on it altogether, of which the engine tells the other port. A smaller
 *   number than before is no grant; one beyond `credit_max` more than has come is cut to that. What
 *   is submitted without credit is MILIEU_NO_CREDIT; whoever was told so, or was told of a credit of
 *   0, is told by milieu_arrivals_credit once there is some.
 * - Frames arrive as they were submitted, or not at all. With MILIEU_ENGINE_RECEIPTS exactly one
 *   milieu_arrivals_receipt comes for each parcel that wants one; without, no frame is lost while
 *   the peer stays.
 * - Requests: a question gets exactly one milieu_arrivals_reply, also where the peer leaves.
 *   Nobody is told of an answer that was not asked for.
 * - Waking: after a poll that had nothing to tell, milieu_waker_wake is called once there is
 *   something, from any thread.
 */
#ifndef MILIEU_ENGINES_H
#define MILIEU_ENGINES_H

#include <milieu/links.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A frame, and where it goes or comes from. Its numbers are for machines, not for engines. */
typedef struct milieu_parcel {
    /** To whom it goes, or from whom it comes. */
    uint64_t peer;
    /** On which of the receiver's channels. */
    uint32_t channel;
    uint32_t mode;
    uint32_t schema;
    uint64_t incarnation;
    uint64_t sequence;
    int64_t time_ns;
    /** What it says: any bytes, valid during the call. */
    milieu_text payload;
    /** Whether milieu_arrivals_receipt has to tell what has become of it, under this number. */
    bool wants_receipt;
    uint64_t receipt;
} milieu_parcel;

/** Why an engine takes something not, or no more. */
typedef enum milieu_refusal {
    /** It is taken. */
    MILIEU_ACCEPTED = 0,
    /** The receiver takes no more now. */
    MILIEU_NO_CREDIT = 1,
    /** There is no such peer, or no longer. */
    MILIEU_GONE = 2,
    /** It is larger than the engine carries. */
    MILIEU_TOO_LARGE = 3,
    /** The engine carries nothing any more. */
    MILIEU_CLOSED = 4
} milieu_refusal;

/** Why a peer is no longer there. */
typedef enum milieu_close_reason {
    /** It has said that it leaves. */
    MILIEU_LEFT_DONE = 0,
    /** Nothing is heard of it any more. */
    MILIEU_LEFT_LOST = 1,
    /** It has sent what nobody can understand, or more than was granted. */
    MILIEU_LEFT_MISBEHAVED = 2
} milieu_close_reason;

/** Where an engine tells what has happened; valid during the callback. */
typedef struct milieu_arrivals milieu_arrivals;

/** What an engine can do. */
enum {
    /** Frames of a channel come in their order, as far as they come. */
    MILIEU_ENGINE_ORDERED = 1,
    /** Frames may be lost, and there are receipts that tell. */
    MILIEU_ENGINE_RECEIPTS = 2
};

/** What a program says of an engine. The library keeps a copy. All callbacks have to be there. */
typedef struct milieu_carrier {
    /** MILIEU_ABI */
    uint32_t abi;
    /** MILIEU_ENGINE_*, or-ed. */
    uint32_t flags;
    /** The largest payload, question and answer, in bytes; the library hands over none larger. */
    size_t bytes_max;
    /** How many questions a peer may have to answer at most. */
    size_t requests_max;
    /** How many frames may be under way on a channel at most. */
    uint64_t credit_max;
    /**
     * Submits parcels from the front, until all are taken or one is refused: then `taken` says how
     * many were before it.
     */
    milieu_refusal (*submit)(void *user, const milieu_parcel *parcels, size_t count,
        size_t *taken);
    /** How many frames a peer takes on a channel now; 0 where it has left. */
    uint64_t (*credit)(void *user, uint64_t to, uint32_t channel);
    /** Allows a peer to have submitted so many frames on a channel altogether. */
    void (*grant)(void *user, uint64_t from, uint32_t channel, uint64_t frames);
    /** A channel from a peer is used no more; what is under way may still come. */
    void (*shut)(void *user, uint64_t from, uint32_t channel);
    /** Nothing more is sent to a peer on a channel: what is known of it may be forgotten. */
    void (*leave)(void *user, uint64_t to, uint32_t channel);
    /** Asks a peer something, any bytes. MILIEU_NO_CREDIT: it has `requests_max` to answer. */
    milieu_refusal (*request)(void *user, uint64_t to, uint64_t number, milieu_text question);
    /** Answers what a peer has asked under this number, if it has and is still there. */
    void (*reply)(void *user, uint64_t to, uint64_t number, milieu_text answer);
    /**
     * Tells by milieu_arrivals_joined and the like what has happened since. If this fails the engine carries nothing
     * any more: all of its peers are lost, and nothing but `destroy` is called again.
     */
    milieu_result (*poll)(void *user, milieu_arrivals *arrivals);
    /** Ends it: the others are to be told that this port has left, for this milieu_close_reason. */
    void (*close)(void *user, uint32_t reason);
} milieu_carrier;

/** Wakes the link of an engine. It may be used by several threads at once. */
typedef struct milieu_waker milieu_waker;

/**
 * An engine of the program's own, for milieu_link_new. `user` is what its callbacks are handed;
 * `destroy` is called after the last of them. The waker may outlive it, and wakes nobody then.
 *
 * MILIEU_INVALID: it could carry nothing.
 */
MILIEU_CHECKED milieu_result milieu_engine_new(const milieu_carrier *carrier, void *user,
    milieu_destroy destroy, milieu_engine **engine, milieu_waker **waker);

/** Says that there is something to poll for. */
milieu_result milieu_waker_wake(const milieu_waker *waker);

/** Gives a waker back. */
void milieu_waker_free(milieu_waker *waker);

/*
 * What has happened. Each of these returns MILIEU_INVALID where it makes no sense, such as a frame
 * of a peer that has not come, and MILIEU_REFUSED where 256 were told already: the engine keeps it
 * and is polled again at once.
 */

/** A peer has come, under a number that no other one has had. */
MILIEU_CHECKED milieu_result milieu_arrivals_joined(milieu_arrivals *arrivals, uint64_t peer,
    milieu_text name);

/** A peer has left, for this milieu_close_reason; nothing more of it will come. */
MILIEU_CHECKED milieu_result milieu_arrivals_left(milieu_arrivals *arrivals, uint64_t peer,
    uint32_t reason);

/** A frame has come; its bytes are copied. What it says of receipts does not count. */
MILIEU_CHECKED milieu_result milieu_arrivals_frame(milieu_arrivals *arrivals,
    const milieu_parcel *parcel);

/** What has become of a parcel: the other port has handed it over, or it will not come. */
MILIEU_CHECKED milieu_result milieu_arrivals_receipt(milieu_arrivals *arrivals,
    uint64_t receipt, bool delivered);

/** There is credit again where there was none. */
MILIEU_CHECKED milieu_result milieu_arrivals_credit(milieu_arrivals *arrivals, uint64_t peer,
    uint32_t channel);

/** A peer asks something, under a number of its own. */
MILIEU_CHECKED milieu_result milieu_arrivals_request(milieu_arrivals *arrivals, uint64_t peer,
    uint64_t number, milieu_text question);

/** What a peer has answered to the question of this number; null: it did not. */
MILIEU_CHECKED milieu_result milieu_arrivals_reply(milieu_arrivals *arrivals, uint64_t peer,
    uint64_t number, const milieu_text *answer);

#ifdef __cplusplus
}
#endif

#endif
