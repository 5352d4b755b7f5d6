/*
 * Milieu: what stands in files of settings, and who has written it. The C interface, beside
 * contexts in milieu.h.
 *
 *   milieu_conflict   a key that this program and another one have changed differently
 *   milieu_decision   what becomes of it, as a function of the program says
 *   milieu_notices    keys in the files that have other names today, or are deprecated
 *   milieu_log        who has changed what in the files, to be taken back
 *
 * What holds beside what milieu.h says:
 *
 * - A milieu_notices and a milieu_log say what was so when they were made. They may be used by
 *   several threads at once, and what they hand out is valid until they are freed.
 * - A function that decides conflicts runs in the thread that has called, while nothing is locked,
 *   and may call whatever it likes. It runs during that call only, and so has no `destroy`.
 * - Values of keys that the specification calls secret are not handed out, but to those who decide.
 *   Nobody knows which these are before a context is made.
 */
#ifndef MILIEU_FILES_H
#define MILIEU_FILES_H

#include <milieu.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- conflicts */

/** Who has written something, as the history of the file has it. */
typedef struct milieu_author {
    milieu_text user;
    milieu_text program;
    /** The machine. */
    milieu_text host;
    /** The number of the program's process. */
    uint32_t process;
} milieu_author;

/**
 * A key that this program and another one have changed differently; valid while it is decided. The
 * `bytes` of a value are null where the key was not there, or is to go.
 */
typedef struct milieu_conflict {
    milieu_text name;
    /** What this program has known. */
    milieu_text base;
    /** What this program makes of it. */
    milieu_text ours;
    /** What the other one has made of it. */
    milieu_text theirs;
    /** The other one; the texts are empty where no history knows it. */
    milieu_author by;
    /** The specification calls the key a secret: show the values to nobody. */
    bool secret;
} milieu_conflict;

/** Where a milieu_decide says what becomes of the key; valid while it runs. */
typedef struct milieu_decision milieu_decision;

/**
 * Decides a conflict, by the functions below, of which the last counts; by none of them it is
 * refused. If the key has changed once more meanwhile, it is asked once more. If it fails, nothing
 * is written, and who has called is told MILIEU_CALLBACK, with its message.
 */
typedef milieu_result (*milieu_decide)(void *user, const milieu_conflict *conflict,
    milieu_decision *decision);

/** The key gets the value of this program, or keeps that of the other one; or it is refused. */
MILIEU_CHECKED milieu_result milieu_decision_choose(milieu_decision *decision,
    milieu_strategy strategy);

/** The key gets another value, which is copied. Where the rules refuse it, nothing is written: MILIEU_INVALID. */
MILIEU_CHECKED milieu_result milieu_decision_value(milieu_decision *decision, milieu_text value);

/** The key goes. */
MILIEU_CHECKED milieu_result milieu_decision_remove(milieu_decision *decision);

/**
 * As milieu_coordinator_persist_with, with a function that decides each conflict. Where it decides
 * for another value than this program's, that is this program's too, and in contexts at their next
 * synchronization.
 */
MILIEU_CHECKED milieu_result milieu_coordinator_persist_deciding(
    const milieu_coordinator *coordinator, milieu_text branch, milieu_decide decide, void *user,
    size_t *written);

/* ---------------------------------------------------------------- keys of before */

/** What became of a key that a file has and the specification does not know so. */
typedef enum milieu_fate {
    /** It has another name today, or several: `targets`. */
    MILIEU_RENAMED = 1,
    /** It still counts: `reason` says why it should not be used, and what instead. */
    MILIEU_DEPRECATED = 2
} milieu_fate;

/** Whether a key of today has its value from the old one. */
typedef enum milieu_outcome {
    /** It has. */
    MILIEU_TAKEN = 1,
    /** It has not: there is one under the name of today, or under a later one. */
    MILIEU_OUTRANKED = 2,
    /** It has not: the value is not allowed today. */
    MILIEU_NOT_ALLOWED = 3
} milieu_outcome;

/** A key of today. */
typedef struct milieu_target {
    milieu_text name;
    /** A milieu_outcome. */
    uint32_t outcome;
} milieu_target;

/** A key as a file has it, and what became of it. */
typedef struct milieu_notice {
    /** As it is called in the file. */
    milieu_text name;
    /** Its value there; the `bytes` are null where it is a secret. */
    milieu_text value;
    /** The file and line, such as `/home/anna/.config/station/station.ini:3`. */
    milieu_text origin;
    const milieu_target *targets;
    size_t count;
    /** As the specification says it; empty for MILIEU_RENAMED. */
    milieu_text reason;
    /** For people: all of it, and what to do. */
    milieu_text message;
    /** A milieu_fate. */
    uint32_t fate;
    /** The program goes without a value that somebody meant to give it. */
    bool is_error;
    bool secret;
} milieu_notice;

/** Notices of keys of before. */
typedef struct milieu_notices milieu_notices;

/**
 * What the files say under names of before, as they were read last. The old names are those of the
 * specification, so that there is nothing to tell before the first context. Generated code does not
 * name keys that were removed; `milieu key check` tells of them.
 */
MILIEU_CHECKED milieu_result milieu_notices_new(const milieu_coordinator *coordinator,
    milieu_notices **notices);

/** Gives notices back. */
void milieu_notices_free(milieu_notices *notices);

/** All of them, those of one file in the order of its lines. Valid until they are freed. */
MILIEU_CHECKED milieu_result milieu_notices_all(const milieu_notices *notices,
    const milieu_notice **all, size_t *count);

/* ---------------------------------------------------------------- the history of files */

/** What was written into a file at once. */
typedef struct milieu_commit {
    milieu_text file;
    /** Whose file it is: `user` or `system`. */
    milieu_text whose;
    /** Its number among those of the file, from 1. */
    uint64_t id;
    /** When, in nanoseconds since 1970. */
    int64_t time_ns;
    milieu_author author;
    /** The commit that it takes back; 0 if it takes none back. */
    uint64_t undoes;
    /** The commit that has taken it back; 0 if it is in force. */
    uint64_t undone_by;
    /** What it has changed; nobody knows the lines any more, so that `origin` is empty. */
    const milieu_change *changes;
    size_t count;
} milieu_commit;

/** What programs, and `milieu key`, have written into the files; what was written by hand is not known. */
typedef struct milieu_log milieu_log;

/** Reads the histories of all files. MILIEU_FILES: a file or its history cannot be read. */
MILIEU_CHECKED milieu_result milieu_log_new(const milieu_coordinator *coordinator,
    milieu_log **log);

/** Gives a log back. */
void milieu_log_free(milieu_log *log);

/** The commits that are still known, the last one last. Valid until the log is freed. */
MILIEU_CHECKED milieu_result milieu_log_commits(const milieu_log *log,
    const milieu_commit **commits, size_t *count);

/**
 * Takes a commit of the user's file back: every key gets the value that it had before. In contexts
 * it is so at their next synchronization; no milieu_watch tells it as news. What this program has
 * assigned and not yet persisted stays in force. A key that has changed in the file since is a
 * conflict, in which what was before is this program's side.
 *
 * `file` is needed where the user has several files, and otherwise may be empty. `id` 0 is the last
 * commit that is neither taken back nor takes one back. `written`, which may be null, gets the
 * number of keys that changed in the file.
 *
 * MILIEU_NO_SUCH: there is no such commit. MILIEU_FILES: it is taken back already, or the value of
 * a secret is not known, or there is a conflict. MILIEU_INVALID: the rules of today refuse a value.
 * Nothing has changed then.
 */
MILIEU_CHECKED milieu_result milieu_coordinator_undo(const milieu_coordinator *coordinator,
    milieu_text file, uint64_t id, milieu_strategy strategy, size_t *written);

/** As milieu_coordinator_undo, with a function that decides each conflict. */
MILIEU_CHECKED milieu_result milieu_coordinator_undo_deciding(
    const milieu_coordinator *coordinator, milieu_text file, uint64_t id, milieu_decide decide,
    void *user, size_t *written);

#ifdef __cplusplus
}
#endif

#endif
