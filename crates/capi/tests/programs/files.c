/* What stands in files, and who has written it: conflicts, keys of before, the history. argv[1] is
 * an empty folder. */

#include "check.h"
#include "files.h"

#include <milieu/files.h>
#include <time.h>
#include <unistd.h>

#define T milieu_text_of
#define NONE ((milieu_text){NULL, 0})

static milieu_options options = MILIEU_OPTIONS;
static milieu_coordinator *coordinator;
static milieu_context *cx;
static const struct files *env;

static bool is_value(milieu_text text, const char *value) {
    return value ? milieu_text_is(text, value) && text.bytes : !text.bytes;
}

/* Another program. */
static void elsewhere(const char *name, const char *value) {
    milieu_coordinator *other;
    OK(milieu_coordinator_open(T("files"), &options, &other));
    if (value) OK(milieu_coordinator_assign(other, T(name), T(value)));
    else OK(milieu_coordinator_remove(other, T(name)));
    OK(milieu_coordinator_persist(other, T("/"), NULL));
    milieu_coordinator_free(other);
}

/* What the file says. */
static void expect_file(const char *name, const char *value) {
    milieu_coordinator *other;
    milieu_hold *hold;
    const milieu_key *keys;
    size_t count;
    bool found = false;
    OK(milieu_coordinator_open(T("files"), &options, &other));
    OK(milieu_hold_new(other, &hold));
    OK(milieu_hold_keys(hold, &keys, &count));
    for (size_t i = 0; i < count; i++)
        if (milieu_text_is(keys[i].name, name)) {
            CHECK(value && milieu_text_is(keys[i].value, value));
            found = true;
        }
    CHECK(found == (value != NULL));
    OK(milieu_hold_free(hold));
    milieu_coordinator_free(other);
}

/* ---------------------------------------------------------------- conflicts */

enum way { NOTHING, OURS, THEIRS, ANOTHER, REMOVE, NOT_ALLOWED, LAST_COUNTS, MISTAKEN, FAIL, FAIL_SILENTLY };

struct asked {
    enum way way;
    const char *base, *ours, *theirs;
    int times;
};

static milieu_result decide(void *user, const milieu_conflict *conflict, milieu_decision *decision) {
    struct asked *asked = user;
    static const char *name = "/files/level";
    asked->times++;
    CHECK(milieu_text_is(conflict->name, name) && !conflict->secret);
    CHECK(is_value(conflict->base, asked->base));
    CHECK(is_value(conflict->ours, asked->ours));
    CHECK(is_value(conflict->theirs, asked->theirs));
    CHECK(conflict->by.process == (uint32_t)getpid());
    CHECK(conflict->by.user.length && conflict->by.program.length && conflict->by.host.length);
    switch (asked->way) {
    case NOTHING: return MILIEU_OK;
    case OURS: return milieu_decision_choose(decision, MILIEU_OURS);
    case THEIRS: return milieu_decision_choose(decision, MILIEU_THEIRS);
    case ANOTHER: {
        /* It is copied. */
        char text[] = "77";
        milieu_result result = milieu_decision_value(decision, T(text));
        memset(text, 'x', 2);
        return result;
    }
    case REMOVE: return milieu_decision_remove(decision);
    case NOT_ALLOWED: return milieu_decision_value(decision, T("many"));
    case LAST_COUNTS:
        OK(milieu_decision_value(decision, T("many")));
        OK(milieu_decision_remove(decision));
        OK(milieu_decision_choose(decision, MILIEU_OURS));
        return milieu_decision_choose(decision, MILIEU_REFUSE_CONFLICT);
    case MISTAKEN:
        OK(milieu_decision_choose(decision, MILIEU_OURS));
        /* What is wrong changes nothing of it. */
        EXPECT(MILIEU_NO_SUCH, milieu_decision_choose(decision, (milieu_strategy)9));
        SAYS("milieu_strategy");
        EXPECT(MILIEU_NOT_UTF8, milieu_decision_value(decision, T("\xc3(")));
        EXPECT(MILIEU_NULL, milieu_decision_value(decision, (milieu_text){NULL, 3}));
        return MILIEU_OK;
    case FAIL: return milieu_fail(T("nobody is here to ask"));
    case FAIL_SILENTLY:
        OK(milieu_decision_choose(decision, MILIEU_OURS));
        return MILIEU_SYSTEM;
    }
    return MILIEU_OK;
}

/* This program has level 5, as it knows; it makes 6 of it, and another one 7. */
static struct asked conflict(enum way way) {
    struct asked asked = {way, "5", "6", "7", 0};
    OK(milieu_coordinator_assign(coordinator, T("/files/level"), T("5")));
    OK(milieu_coordinator_persist_with(coordinator, T("/"), MILIEU_OURS, NULL));
    elsewhere("/files/level", "7");
    OK(milieu_coordinator_assign(coordinator, T("/files/level"), T("6")));
    OK(milieu_coordinator_assign(coordinator, T("/files/interval"), T("61")));
    return asked;
}

static void conflicts(void) {
    size_t written = 99;
    struct asked asked = conflict(NOTHING);
    milieu_result (*const persist)(const milieu_coordinator *, milieu_text, milieu_decide, void *,
        size_t *) = milieu_coordinator_persist_deciding;
    EXPECT(MILIEU_NULL, persist(coordinator, T("/"), NULL, &asked, &written));
    SAYS("`decide` is null");
    /* Refused, in each way, nothing is written. */
    EXPECT(MILIEU_FILES, persist(coordinator, T("/"), decide, &asked, &written));
    SAYS("/files/level");
    asked.way = LAST_COUNTS;
    EXPECT(MILIEU_FILES, persist(coordinator, T("/"), decide, &asked, &written));
    asked.way = NOT_ALLOWED;
    EXPECT(MILIEU_INVALID, persist(coordinator, T("/"), decide, &asked, &written));
    SAYS("many");
    asked.way = FAIL;
    EXPECT(MILIEU_CALLBACK, persist(coordinator, T("/"), decide, &asked, &written));
    SAYS("the decision about `/files/level` has failed: nobody is here to ask");
    asked.way = FAIL_SILENTLY;
    EXPECT(MILIEU_CALLBACK, persist(coordinator, T("/"), decide, &asked, &written));
    CHECK(asked.times == 5 && written == 99);
    expect_file("/files/level", "7");
    expect_file("/files/interval", NULL);

    asked.way = OURS;
    OK(persist(coordinator, NONE, decide, &asked, &written));
    CHECK(asked.times == 6 && written == 2);
    expect_file("/files/level", "6");
    expect_file("/files/interval", "61");
    asked = conflict(MISTAKEN);
    OK(persist(coordinator, T("/files"), decide, &asked, NULL));
    expect_file("/files/level", "6");
    /* Another branch has no conflict. */
    asked = conflict(FAIL);
    OK(milieu_coordinator_assign(coordinator, T("/files/interval"), T("62")));
    OK(persist(coordinator, T("/files/interval"), decide, &asked, &written));
    CHECK(asked.times == 0 && written == 1);
    asked.way = THEIRS;
    OK(persist(coordinator, T("/"), decide, &asked, &written));
    CHECK(asked.times == 1 && written == 0);
    OK(milieu_context_sync(cx));
    CHECK(env->files.level == 7);
    asked = conflict(ANOTHER);
    OK(persist(coordinator, T("/"), decide, &asked, &written));
    expect_file("/files/level", "77");
    OK(milieu_context_sync(cx));
    CHECK(env->files.level == 77);
    asked = conflict(REMOVE);
    OK(persist(coordinator, T("/"), decide, &asked, &written));
    expect_file("/files/level", NULL);
    OK(milieu_context_sync(cx));
    CHECK(env->files.level == 1);
    /* Gone, and gone here. */
    asked = conflict(OURS);
    asked.theirs = NULL;
    elsewhere("/files/level", NULL);
    OK(persist(coordinator, T("/"), decide, &asked, &written));
    asked = conflict(OURS);
    asked.ours = NULL;
    OK(milieu_coordinator_remove(coordinator, T("/files/level")));
    OK(persist(coordinator, T("/"), decide, &asked, &written));
    CHECK(asked.times == 1);
    expect_file("/files/level", NULL);
}

/* Whoever decides has a secret's values, and is told that it is one. */
static milieu_result decide_secret(void *user, const milieu_conflict *conflict, milieu_decision *decision) {
    CHECK(conflict->secret && milieu_text_is(conflict->theirs, "hunter2"));
    ++*(int *)user;
    return milieu_decision_choose(decision, MILIEU_OURS);
}

static void secrets(void) {
    int asked = 0;
    OK(milieu_coordinator_assign(coordinator, T("/files/token"), T("hunter1")));
    elsewhere("/files/token", "hunter2");
    EXPECT(MILIEU_FILES, milieu_coordinator_persist(coordinator, T("/"), NULL));
    CHECK(!strstr(milieu_message(), "hunter"));
    OK(milieu_coordinator_persist_deciding(coordinator, T("/"), decide_secret, &asked, NULL));
    CHECK(asked == 1);
    expect_file("/files/token", "hunter1");
}

/* Whoever decides gives back the very coordinator. */
static milieu_result decide_last(void *user, const milieu_conflict *conflict, milieu_decision *decision) {
    (void)conflict;
    milieu_coordinator_free(user);
    EXPECT(MILIEU_FREED, milieu_coordinator_persist(user, T("/"), NULL));
    return milieu_decision_choose(decision, MILIEU_OURS);
}

static void last(void) {
    milieu_coordinator *other;
    OK(milieu_coordinator_open(T("files"), &options, &other));
    OK(milieu_coordinator_assign(other, T("/files/level"), T("11")));
    elsewhere("/files/level", "12");
    OK(milieu_coordinator_persist_deciding(other, T("/"), decide_last, other, NULL));
    expect_file("/files/level", "11");
    elsewhere("/files/level", NULL);
}

/* ---------------------------------------------------------------- keys of before */

static const milieu_notice *find(const milieu_notice *all, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (milieu_text_is(all[i].name, name)) return &all[i];
    fprintf(stderr, "there is no notice of %s\n", name);
    exit(1);
}

static bool contains(milieu_text text, const char *part) {
    size_t length = strlen(part);
    for (size_t i = 0; i + length <= text.length; i++)
        if (memcmp(text.bytes + i, part, length) == 0) return true;
    return false;
}

static void notices(void) {
    static const char *const old[][2] = {{"/files/anna/lang", "de"}, {"/files/pause", "9999"},
        {"/files/password", "hunter3"}, {"/files/port", "81"}};
    milieu_coordinator *other;
    milieu_context *theirs;
    const struct files *seen;
    milieu_notices *told;
    const milieu_notice *all, *one;
    size_t count;
    elsewhere("/files/interval", NULL);
    for (size_t i = 0; i < sizeof old / sizeof *old; i++) elsewhere(old[i][0], old[i][1]);
    OK(milieu_coordinator_open(T("files"), &options, &other));
    OK(milieu_notices_new(other, &told));
    OK(milieu_notices_all(told, &all, &count));
    CHECK(count == 0);
    milieu_notices_free(told);
    OK(files_new(other, NULL, &theirs, &seen));
    CHECK(seen->files.port == 81);
    OK(milieu_notices_new(other, &told));
    /* They are what was told, whatever becomes of the rest. */
    OK(milieu_context_free(theirs));
    milieu_coordinator_free(other);
    OK(milieu_notices_all(told, &all, &count));
    CHECK(count == 4);

    one = find(all, count, "/files/anna/lang");
    CHECK(one->fate == MILIEU_RENAMED && one->count == 1 && !one->is_error && !one->secret);
    CHECK(milieu_text_is(one->targets->name, "/files/anna/language"));
    CHECK(one->targets->outcome == MILIEU_TAKEN && milieu_text_is(one->value, "de"));
    CHECK(one->reason.length == 0 && contains(one->origin, "files.ini:"));
    CHECK(contains(one->message, "`/files/anna/lang` is now `/files/anna/language`"));

    one = find(all, count, "/files/pause");
    CHECK(one->fate == MILIEU_RENAMED && one->is_error);
    CHECK(one->count == 1 && one->targets->outcome == MILIEU_NOT_ALLOWED);
    CHECK(contains(one->message, "check/range=1-3600"));

    /* There is one under the name of today. */
    one = find(all, count, "/files/password");
    CHECK(one->secret && !one->value.bytes && !contains(one->message, "hunter"));
    CHECK(one->count == 1 && one->targets->outcome == MILIEU_OUTRANKED);

    one = find(all, count, "/files/port");
    CHECK(one->fate == MILIEU_DEPRECATED && milieu_text_is(one->reason, "use a socket"));
    CHECK(one->count == 0 && contains(one->message, "is deprecated"));
    milieu_notices_free(told);
    EXPECT(MILIEU_FREED, milieu_notices_all(told, &all, &count));
    for (size_t i = 0; i < sizeof old / sizeof *old; i++) elsewhere(old[i][0], NULL);
}

/* ---------------------------------------------------------------- the history */

static void set_level(const char *value) {
    OK(milieu_coordinator_assign(coordinator, T("/files/level"), T(value)));
    OK(milieu_coordinator_persist(coordinator, T("/"), NULL));
}

static milieu_result decide_undo(void *user, const milieu_conflict *conflict, milieu_decision *decision) {
    size_t *asked = user;
    ++*asked;
    CHECK(is_value(conflict->base, "3") && is_value(conflict->ours, "2"));
    CHECK(is_value(conflict->theirs, "9"));
    /* It may look, and write. */
    milieu_log *log;
    OK(milieu_log_new(coordinator, &log));
    milieu_log_free(log);
    OK(milieu_coordinator_assign(coordinator, T("/files/interval"), T("63")));
    OK(milieu_coordinator_persist_with(coordinator, T("/"), MILIEU_OURS, NULL));
    if (*asked == 1) return milieu_fail(T("later"));
    return milieu_decision_value(decision, T("4"));
}

static void history(void) {
    milieu_log *log, *later;
    const milieu_commit *commits, *last;
    size_t count, written, asked = 0;
    time_t now = time(NULL);
    OK(milieu_coordinator_persist(coordinator, T("/"), NULL));
    set_level("2");
    set_level("3");
    OK(milieu_log_new(coordinator, &log));
    OK(milieu_log_commits(log, &commits, &count));
    CHECK(count > 2);
    last = &commits[count - 1];
    CHECK(contains(last->file, "files.ini") && milieu_text_is(last->whose, "user"));
    CHECK(last->id == commits[count - 2].id + 1 && last->undoes == 0 && last->undone_by == 0);
    CHECK(last->time_ns / 1000000000 >= now - 1 && last->time_ns / 1000000000 <= now + 600);
    CHECK(last->author.process == (uint32_t)getpid());
    CHECK(last->author.user.length && last->author.program.length && last->author.host.length);
    CHECK(last->count == 1 && milieu_text_is(last->changes->name, "/files/level"));
    CHECK(is_value(last->changes->before, "2") && is_value(last->changes->after, "3"));
    CHECK(last->changes->origin.length == 0 && !last->changes->secret);
    /* Of a secret there is the name alone, and nobody noted what it was. */
    const milieu_commit *of_secret = NULL;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < commits[i].count; k++) {
            const milieu_change *change = &commits[i].changes[k];
            if (!milieu_text_is(change->name, "/files/token")) continue;
            CHECK(change->secret && !change->before.bytes && !change->after.bytes);
            of_secret = &commits[i];
        }
    CHECK(of_secret);
    EXPECT(MILIEU_FILES,
        milieu_coordinator_undo(coordinator, of_secret->file, of_secret->id, MILIEU_OURS, NULL));
    SAYS("is secret");

    /* The last one; contexts see it when they synchronize, and it is the file's. */
    OK(milieu_context_sync(cx));
    CHECK(env->files.level == 3);
    OK(milieu_coordinator_undo(coordinator, NONE, 0, MILIEU_REFUSE_CONFLICT, &written));
    CHECK(written == 1 && env->files.level == 3);
    expect_file("/files/level", "2");
    OK(milieu_context_sync(cx));
    CHECK(env->files.level == 2);
    OK(milieu_coordinator_persist(coordinator, T("/"), &written));
    CHECK(written == 0);
    /* The list is what it was, and another one knows. */
    CHECK(last->undone_by == 0);
    OK(milieu_log_new(coordinator, &later));
    const milieu_commit *now_known;
    size_t more;
    OK(milieu_log_commits(later, &now_known, &more));
    CHECK(more == count + 1 && now_known[count].undoes == last->id);
    CHECK(now_known[count - 1].undone_by == now_known[count].id);
    /* It is taken back already; its taking back may be, too. */
    EXPECT(MILIEU_FILES, milieu_coordinator_undo(
                             coordinator, last->file, last->id, MILIEU_OURS, &written));
    SAYS("is taken back by");
    OK(milieu_coordinator_undo(
        coordinator, NONE, now_known[count].id, MILIEU_REFUSE_CONFLICT, NULL));
    OK(milieu_context_sync(cx));
    CHECK(env->files.level == 3);

    /* There is no such. */
    EXPECT(MILIEU_NO_SUCH, milieu_coordinator_undo(coordinator, NONE, 4711, MILIEU_OURS, &written));
    SAYS("no 4711 to take back");
    EXPECT(MILIEU_NO_SUCH,
        milieu_coordinator_undo(coordinator, T("/no/such.ini"), last->id, MILIEU_OURS, &written));
    SAYS("/no/such.ini");
    EXPECT(MILIEU_NO_SUCH,
        milieu_coordinator_undo(coordinator, NONE, last->id, (milieu_strategy)9, &written));

    /* What has changed since is decided. */
    elsewhere("/files/level", "9");
    EXPECT(MILIEU_FILES, milieu_coordinator_undo(
                             coordinator, NONE, last->id, MILIEU_REFUSE_CONFLICT, &written));
    SAYS("/files/level");
    EXPECT(MILIEU_NULL,
        milieu_coordinator_undo_deciding(coordinator, NONE, last->id, NULL, NULL, &written));
    EXPECT(MILIEU_CALLBACK, milieu_coordinator_undo_deciding(
                                coordinator, NONE, last->id, decide_undo, &asked, &written));
    SAYS("later");
    expect_file("/files/level", "9");
    OK(milieu_coordinator_undo_deciding(
        coordinator, last->file, last->id, decide_undo, &asked, &written));
    CHECK(asked == 2 && written == 1);
    expect_file("/files/level", "4");
    expect_file("/files/interval", "63");
    OK(milieu_context_sync(cx));
    CHECK(env->files.level == 4);
    milieu_log_free(later);
    milieu_log_free(log);
    EXPECT(MILIEU_FREED, milieu_log_commits(log, &commits, &count));
}

/* Layers that somebody names. */
static void layers(void) {
    milieu_coordinator *other;
    OK(milieu_coordinator_check_layer(coordinator, T("session")));
    EXPECT(MILIEU_NO_SUCH, milieu_coordinator_check_layer(coordinator, T("sesion")));
    SAYS("there is no layer `sesion`; did you mean `session`?");
    EXPECT(MILIEU_NO_SUCH, milieu_coordinator_check_layer(coordinator, NONE));
    OK(milieu_coordinator_new(&other));
    EXPECT(MILIEU_NO_SUCH, milieu_coordinator_check_layer(other, T("session")));
    milieu_coordinator_free(other);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    options.user_folder = options.system_folder = T(argv[1]);
    OK(milieu_coordinator_open(T("files"), &options, &coordinator));
    OK(files_new(coordinator, NULL, &cx, &env));
    conflicts();
    secrets();
    last();
    notices();
    history();
    layers();
    OK(milieu_context_free(cx));
    milieu_coordinator_free(coordinator);
    return 0;
}
