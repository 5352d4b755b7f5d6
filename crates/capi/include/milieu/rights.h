/*
 * Milieu: who may read and publish what. The C interface, beside streams in milieu/streams.h.
 *
 *   milieu_text queries[] = { milieu_text_of("/labs/005/heat") };
 *   milieu_rights rights = MILIEU_RIGHTS;
 *   rights.read.queries = queries;
 *   rights.read.count = 1;
 *   milieu_reader_new_with(streams, context, &rights, &reader);
 */
#ifndef MILIEU_RIGHTS_H
#define MILIEU_RIGHTS_H

#include <milieu/streams.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A set of names: those that these queries mean, which may have wildcards (docs/names.md), but
 * neither placeholders nor conditions. All zero is no name.
 */
typedef struct milieu_names {
    const milieu_text *queries;
    size_t count;
} milieu_names;

/** What somebody may do. Begin with MILIEU_RIGHTS, which is nothing. */
typedef struct milieu_rights {
    /** MILIEU_ABI */
    uint32_t abi;
    /** Names whose events, and what else stands there, may be read. */
    milieu_names read;
    /** Names at which may be published. */
    milieu_names publish;
    /** Names whose private fields may be read. */
    milieu_names read_private;
    /** Names whose private fields may be set by events from outside. */
    milieu_names set_private;
} milieu_rights;

/** Nothing is allowed. */
#define MILIEU_RIGHTS { MILIEU_ABI, { NULL, 0 }, { NULL, 0 }, { NULL, 0 }, { NULL, 0 } }

/**
 * A reader that may read what these rights allow, under the layers that are active in a context now.
 * What a flow asks for with wildcards is narrowed to that. Otherwise as milieu_reader_new.
 *
 * MILIEU_WRONG_NAME: a right is no query, or has placeholders or conditions.
 */
MILIEU_CHECKED milieu_result milieu_reader_new_with(const milieu_streams *streams,
    const milieu_context *context, const milieu_rights *rights, milieu_reader **reader);

#ifdef __cplusplus
}
#endif

#endif
