/*
 * Milieu: links between machines. The C interface, beside streams in milieu/streams.h and rights in
 * milieu/rights.h.
 *
 *   milieu_hub      joins machines of one process
 *   milieu_engine   carries frames between machines, until a link has it
 *   milieu_link     joins the streams of a machine to those of others
 *
 *   milieu_terms terms = MILIEU_TERMS;
 *   terms.is_open = true;
 *   milieu_hub_new(false, &hub);
 *   milieu_hub_join(hub, milieu_text_of("kitchen"), &engine);
 *   milieu_link_new(kitchen, engine, &terms, NULL, NULL, &link);
 *
 * What other machines publish stands at its name here, as if it were published here. Names are
 * announced; events set out only while somebody at the other end reads them, and travel once however
 * many do. A machine that leaves takes its names along, and subscriptions go on when one comes that
 * publishes such a name.
 *
 * A milieu_hub may be used by several threads at once; everything else by one at a time.
 */
#ifndef MILIEU_LINKS_H
#define MILIEU_LINKS_H

#include <milieu/rights.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- engines */

/**
 * One end of what carries frames between machines. A link takes it over; milieu/engines.h is for
 * engines of the program's own.
 */
typedef struct milieu_engine milieu_engine;

/** Gives an engine back that no link has taken over. */
void milieu_engine_free(milieu_engine *engine);

/** Joins machines of one process: coordinators of one program, or of libraries that it loads. */
typedef struct milieu_hub milieu_hub;

/**
 * A hub. With `apart`, frames are bytes alone, as if each machine were in a process of its own;
 * without, events go over as they are.
 */
MILIEU_CHECKED milieu_result milieu_hub_new(bool apart, milieu_hub **hub);

/** Gives a hub back. Links go on. */
void milieu_hub_free(milieu_hub *hub);

/** A port of a hub, under the name that the others get to see. */
MILIEU_CHECKED milieu_result milieu_hub_join(const milieu_hub *hub, milieu_text name,
    milieu_engine **engine);

/* ---------------------------------------------------------------- links */

/** Another machine, as the engine knows it; valid during the callback. */
typedef struct milieu_peer {
    /** What the engine calls it: as far as that can know, it is true. */
    milieu_text name;
    /** Its number, which no other one has had. */
    uint64_t id;
    /** Whether it is in this process, and takes events as they are. */
    bool is_here;
} milieu_peer;

/** Where a milieu_grant says what is allowed; valid during the callback. */
typedef struct milieu_granting milieu_granting;

/**
 * Says by milieu_granting_allow what a peer may do here; it is asked once, when that comes. A peer
 * may do nothing if this does not say so, or fails. It runs as callbacks of streams do.
 */
typedef milieu_result (*milieu_grant)(void *user, const milieu_peer *peer,
    milieu_granting *granting);

/** What the peer may do; the last call counts. */
MILIEU_CHECKED milieu_result milieu_granting_allow(milieu_granting *granting,
    const milieu_rights *rights);

/** On what terms a machine joins others. Begin with MILIEU_TERMS, and say `grant` or `is_open`. */
typedef struct milieu_terms {
    /** MILIEU_ABI */
    uint32_t abi;
    /** How many frames of an edge may be under way to here; 0: 256. */
    uint32_t window;
    /** Says what a peer may do. */
    milieu_grant grant;
    /** Every peer may do everything, where `grant` is null: for machines of one program. */
    bool is_open;
    /** The names of transfer modes that are known here, what is liked best first; none: all. */
    const milieu_text *modes;
    size_t mode_count;
    /** The types that bodies get which come as bytes and say that they are of such a type. */
    const milieu_event_type *const *types;
    size_t type_count;
    /** What this machine gets of others where it is slow; null: MILIEU_DELIVERY. */
    const milieu_delivery *delivery;
    /** How large an event may be that comes, in bytes; 0: 16 MiB. */
    size_t event_bytes_max;
    /** How deep lists and maps may lie in each other in it; 0: 128. */
    size_t event_depth_max;
    /** How many names a peer may announce; 0: 65,536. */
    size_t names_max;
    /** How many edges a peer may read at a time; 0: 65,536. */
    size_t edges_max;
    /** How many events may wait for a peer; 0: 65,536. */
    size_t waiting_max;
} milieu_terms;

/** Terms that do not say yet what others may do. */
#define MILIEU_TERMS { MILIEU_ABI, 0, NULL, false, NULL, 0, NULL, 0, NULL, 0, 0, 0, 0, 0 }

/** What joins a machine to others. */
typedef struct milieu_link milieu_link;

/**
 * Joins streams to those of all machines that an engine reaches. In real time the thread of sources
 * sees to it; in virtual time milieu_link_poll does. `user` is what `grant` is handed.
 *
 * The engine is the link's from then on, and also where this returns MILIEU_SYSTEM.
 *
 * MILIEU_INVALID: the terms do not say what others may do. MILIEU_NO_SUCH: there is no such mode.
 * MILIEU_SYSTEM: the system has no thread or descriptor left.
 */
MILIEU_CHECKED milieu_result milieu_link_new(const milieu_streams *streams,
    milieu_engine *engine, const milieu_terms *terms, void *user, milieu_destroy destroy,
    milieu_link **link);

/**
 * Leaves the others, who are told. When this has returned no callback of the link runs any more,
 * and `destroy` was called, that of an engine of the program included; within a callback of streams
 * nobody waits for that.
 */
void milieu_link_free(milieu_link *link);

/**
 * Takes in what others have sent, and tells them what has changed here; `was_busy`, which may be
 * null, says whether there was anything. MILIEU_BUSY: within a callback.
 */
MILIEU_CHECKED milieu_result milieu_link_poll(const milieu_link *link, bool *was_busy);

/**
 * Whom a link reaches, as JSON: `peers`, each with its `name`, its `presence` (`here`, or why it
 * has left: `done`, `lost`, `misbehaved`), its `origin` and `incarnation` if it has said them, and
 * how many `names` it has announced; `refusals`, what peers have sent and was not taken, by why;
 * `ended`, what became of the events of edges that are no more, those that went out and those that
 * came in; and `encodings`, how often an event was encoded for peers that keep up. MILIEU_BUSY:
 * within a callback.
 */
MILIEU_CHECKED milieu_result milieu_picture_of_link(const milieu_link *link,
    milieu_picture **picture);

#ifdef __cplusplus
}
#endif

#endif
