/* Every function of milieu.h, of milieu/actions.h, which it includes, and of milieu/files.h with every
 * kind of misuse that it can be told of. With an empty folder as its argument all rows are run; `list`
 * prints their names, which have to be those of the headers. */

#include "check.h"
#include "station.h"

#include <milieu/files.h>
#include <pthread.h>

/* What functions are handed; one of it is wrong at a time. */
struct arguments {
    milieu_coordinator *coordinator;
    milieu_context *cx;
    milieu_hold *hold;
    milieu_captured *captured;
    milieu_registration *registration;
    milieu_watch *watch;
    milieu_activation *activation;
    milieu_scope *scope;
    milieu_notices *notices;
    milieu_log *log;
    milieu_decision *decision;
    milieu_text text;
    milieu_frame frame;
    uint32_t value;
    /* Where results go: null, or the address of some memory. */
    void *out;
    milieu_action action;
    milieu_evaluate evaluate;
    milieu_decide decide;
};

#include "every.h"

/* Beside what may be wrong of any row: no function that decides, which has no `destroy`. */
enum { DECIDES = 1 << 15 };

static milieu_result acts(void *user, milieu_activation *activation) {
    (void)user;
    (void)activation;
    return MILIEU_OK;
}

static milieu_result evaluates(void *user, milieu_scope *scope) {
    (void)user;
    (void)scope;
    return MILIEU_OK;
}

static milieu_result decides(void *user, const milieu_conflict *conflict, milieu_decision *decision) {
    (void)user;
    (void)conflict;
    return milieu_decision_choose(decision, MILIEU_OURS);
}

static milieu_layer layer(struct arguments *a) {
    milieu_layer made = milieu_layer_of("security", "");
    made.value = a->text;
    return made;
}

#define FUNCTIONS(R, S)                                                                       \
    S(milieu_result_name, NONE, 0, MILIEU_BUSY)                                               \
    S(milieu_message, NONE, 0, )                                                              \
    S(milieu_version, NONE, 0, )                                                              \
    R(milieu_fail, NONE, TEXT, a->text)                                                       \
    R(milieu_fail_with, NONE, 0, a->text, NULL, destroy)                                      \
    S(milieu_failed_with, NONE, 0, NULL)                                                      \
    R(milieu_coordinator_new, NONE, OUT, a->out)                                              \
    R(milieu_coordinator_open, NONE, TEXT, a->text, NULL, a->out)                             \
    S(milieu_coordinator_free, OF(coordinator), GIVEN, a->coordinator)                        \
    R(milieu_coordinator_assign, OF(coordinator), TEXT, a->coordinator,                       \
        milieu_text_of("/x"), a->text)                                                        \
    R(milieu_coordinator_remove, OF(coordinator), TEXT, a->coordinator, a->text)              \
    R(milieu_coordinator_defaults, OF(coordinator), TEXT, a->coordinator, &a->text, 1)        \
    R(milieu_coordinator_persist, OF(coordinator), TEXT, a->coordinator, a->text, NULL)       \
    R(milieu_coordinator_persist_with, OF(coordinator), TEXT, a->coordinator, a->text,        \
        MILIEU_OURS, NULL)                                                                    \
    R(milieu_coordinator_check, OF(coordinator), TEXT, a->coordinator, a->text, a->text)      \
    R(milieu_coordinator_check_layer, OF(coordinator), TEXT, a->coordinator, a->text)         \
    R(milieu_hold_new, OF(coordinator), OUT, a->coordinator, a->out)                          \
    R(milieu_hold_free, OF(hold), GIVEN, a->hold)                                             \
    R(milieu_hold_keys, OF(hold), OUT, a->hold, a->out, a->out)                               \
    R(milieu_context_new, OF(coordinator), OUT, a->coordinator, station_layout(), NULL,       \
        a->out, NULL)                                                                         \
    R(milieu_context_fork, OF(cx), TEXT | OUT, a->cx, a->text, a->out, NULL)                  \
    R(milieu_context_free, OF(cx), GIVEN, a->cx)                                              \
    R(milieu_context_enter, OF(cx), TEXT | OUT, a->cx, layer(a), a->out)                      \
    R(milieu_context_enter_all, OF(cx), TEXT | OUT, a->cx, &(milieu_layer){a->text, a->text, false}, \
        1, a->out)                                                                            \
    R(milieu_context_enter_value, OF(cx), VALUE | OUT, a->cx, a->value, a->out)               \
    R(milieu_context_enter_mixed, OF(cx), TEXT | VALUE | OUT, a->cx,                          \
        ((milieu_any_layer[]){{MILIEU_FIXED, 0, layer(a), NULL},                              \
            {MILIEU_FOLLOWING, a->value, layer(a), NULL}}), 2, a->out)                        \
    R(milieu_context_leave, OF(cx), FRAME, a->cx, a->frame)                                   \
    R(milieu_context_activate, OF(cx), TEXT, a->cx, layer(a))                                 \
    R(milieu_context_activate_value, OF(cx), VALUE, a->cx, a->value)                          \
    R(milieu_context_deactivate, OF(cx), TEXT, a->cx, a->text)                                \
    R(milieu_context_sync, OF(cx), 0, a->cx)                                                  \
    R(milieu_context_has_news, OF(cx), OUT, a->cx, a->out)                                    \
    R(milieu_context_wait, OF(cx), 0, a->cx, 0, NULL)                                         \
    R(milieu_context_set_text, OF(cx), TEXT | VALUE, a->cx, a->value, a->text)                \
    R(milieu_context_set_bool, OF(cx), VALUE, a->cx, a->value, true)                          \
    R(milieu_context_set_signed, OF(cx), VALUE, a->cx, a->value, -1)                          \
    R(milieu_context_set_unsigned, OF(cx), VALUE, a->cx, a->value, 1)                         \
    R(milieu_context_set_float, OF(cx), VALUE, a->cx, a->value, 1)                            \
    R(milieu_context_set_double, OF(cx), VALUE, a->cx, a->value, 1)                           \
    R(milieu_context_set_variant, OF(cx), VALUE, a->cx, a->value, 1)                          \
    R(milieu_context_set_elements, OF(cx), TEXT | VALUE, a->cx, a->value, &a->text, 1)        \
    R(milieu_context_unset, OF(cx), VALUE, a->cx, a->value)                                   \
    R(milieu_context_forget, OF(cx), TEXT, a->cx, layer(a))                                   \
    R(milieu_context_name, OF(cx), VALUE | OUT, a->cx, a->value, a->out)                      \
    R(milieu_context_text, OF(cx), TEXT | OUT, a->cx, a->text, a->out)                        \
    R(milieu_context_elements, OF(cx), TEXT | OUT, a->cx, a->text, a->out, a->out)            \
    R(milieu_context_origin, OF(cx), VALUE | OUT, a->cx, a->value, a->out)                    \
    R(milieu_context_is_default, OF(cx), VALUE | OUT, a->cx, a->value, a->out)                \
    R(milieu_context_role, OF(cx), OUT, a->cx, a->out)                                        \
    R(milieu_context_layer, OF(cx), TEXT | OUT, a->cx, a->text, a->out)                       \
    R(milieu_context_layers, OF(cx), OUT, a->cx, a->out, a->out)                              \
    R(milieu_context_identity, OF(cx), OUT, a->cx, a->out)                                    \
    R(milieu_captured_new, OF(cx), OUT, a->cx, a->out)                                        \
    S(milieu_captured_free, OF(captured), GIVEN, a->captured)                                 \
    R(milieu_context_enter_captured, OF(captured), OUT, a->cx, a->captured, a->out)           \
    R(milieu_coordinator_on_activation, OF(coordinator), TEXT | OUT | CALLBACK,               \
        a->coordinator, a->text, a->action, NULL, destroy, a->out)                            \
    R(milieu_coordinator_on_deactivation, OF(coordinator), TEXT | OUT | CALLBACK,             \
        a->coordinator, a->text, a->action, NULL, destroy, a->out)                            \
    S(milieu_registration_free, OF(registration), GIVEN, a->registration)                     \
    R(milieu_activation_layer, OF(activation), LENT | OUT, a->activation, a->out)             \
    R(milieu_activation_value, OF(activation), LENT | OUT, a->activation, a->out)             \
    R(milieu_activation_activate, OF(activation), LENT | TEXT, a->activation, layer(a))       \
    R(milieu_activation_activate_value, OF(activation), LENT | VALUE, a->activation,          \
        station_layout(), a->value)                                                           \
    R(milieu_activation_activate_each, OF(activation), LENT | TEXT | CALLBACK, a->activation, \
        a->text, NULL, 0, a->evaluate, NULL, destroy)                                         \
    R(milieu_activation_deactivate, OF(activation), LENT | TEXT, a->activation, a->text)      \
    S(milieu_scope_identity, OF(scope), LENT, a->scope)                                       \
    S(milieu_scope_role, OF(scope), LENT, a->scope)                                           \
    S(milieu_scope_get, OF(scope), LENT, a->scope, a->text)                                   \
    R(milieu_scope_answer, OF(scope), LENT | TEXT, a->scope, a->text)                         \
    R(milieu_context_activate_each, OF(cx), TEXT | CALLBACK, a->cx, a->text, NULL, 0,         \
        a->evaluate, NULL, destroy)                                                           \
    R(milieu_watch_new, OF(coordinator), OUT | CALLBACK, a->coordinator, NULL, NULL, destroy, \
        a->out)                                                                               \
    S(milieu_watch_free, OF(watch), GIVEN, a->watch)                                          \
    R(milieu_decision_choose, OF(decision), LENT, a->decision, MILIEU_THEIRS)                 \
    R(milieu_decision_value, OF(decision), LENT | TEXT, a->decision, a->text)                 \
    R(milieu_decision_remove, OF(decision), LENT, a->decision)                                \
    R(milieu_coordinator_persist_deciding, OF(coordinator), TEXT | DECIDES, a->coordinator,   \
        a->text, a->decide, NULL, NULL)                                                       \
    R(milieu_notices_new, OF(coordinator), OUT, a->coordinator, a->out)                       \
    S(milieu_notices_free, OF(notices), GIVEN, a->notices)                                    \
    R(milieu_notices_all, OF(notices), OUT, a->notices, a->out, a->out)                       \
    R(milieu_log_new, OF(coordinator), OUT, a->coordinator, a->out)                           \
    S(milieu_log_free, OF(log), GIVEN, a->log)                                                \
    R(milieu_log_commits, OF(log), OUT, a->log, a->out, a->out)                               \
    R(milieu_coordinator_undo, OF(coordinator), TEXT, a->coordinator, a->text, 1,             \
        MILIEU_OURS, NULL)                                                                    \
    R(milieu_coordinator_undo_deciding, OF(coordinator), TEXT | DECIDES, a->coordinator,      \
        a->text, 1, a->decide, NULL, NULL)

DEFINE(FUNCTIONS)

/* All that is wrong without a look at the handle. */
static void misuse(const struct row *row, const struct arguments *good) {
    struct arguments a = *good;
    misuse_texts(row, good);
    if (row->kinds & VALUE) {
        for (a.value = STATION_AT_STATION_SERIAL + 100; a.value < UINT32_MAX / 2; a.value *= 7)
            expect(row, &a, MILIEU_NO_SUCH, "no such value");
        a = *good;
    }
    if (row->kinds & FRAME) {
        expect(row, &a, MILIEU_WRONG_FRAME, "a frame that was left");
        a.frame = 0;
        expect(row, &a, MILIEU_WRONG_FRAME, "no frame");
        a = *good;
    }
    if ((row->kinds & CALLBACK) && row->handle != OF(coordinator)) {
        a.evaluate = NULL;
        expect(row, &a, MILIEU_NULL, "no callback");
    } else if ((row->kinds & (CALLBACK | TEXT)) == (CALLBACK | TEXT)) {
        a.action = NULL;
        expect(row, &a, MILIEU_NULL, "no callback");
    } else if (row->kinds & DECIDES) {
        a.decide = NULL;
        expect(row, &a, MILIEU_NULL, "no callback");
    }
}

static struct arguments good;

/* While a context is in use, nothing else is done with it. */
static void *use(void *unused) {
    (void)unused;
    for (size_t i = 0; i < count; i++) {
        bool enters = strcmp(rows[i].name, "milieu_context_enter_captured") == 0;
        if (enters || rows[i].handle == OF(cx)) expect(&rows[i], &good, MILIEU_BUSY, "in use");
    }
    return NULL;
}

/* In a callback: neither here nor by another thread. What is shared is as good as ever. */
static void use_within(struct arguments *a, size_t lent) {
    pthread_t thread;
    use(NULL);
    CHECK(pthread_create(&thread, NULL, use, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    for (size_t i = 0; i < count; i++)
        if (rows[i].handle == lent || rows[i].handle == OF(coordinator)) misuse(&rows[i], a);
}

static milieu_result reenter(void *user, milieu_activation *activation) {
    bool *was = user;
    struct arguments a = good;
    a.activation = activation;
    use_within(&a, OF(activation));
    *was = true;
    return MILIEU_OK;
}

static milieu_result ask(void *user, milieu_scope *scope) {
    bool *was = user;
    struct arguments a = good;
    a.scope = scope;
    use_within(&a, OF(scope));
    *was = true;
    return MILIEU_OK;
}

static milieu_result decide(void *user, const milieu_conflict *conflict, milieu_decision *decision) {
    bool *was = user;
    struct arguments a = good;
    CHECK(milieu_text_is(conflict->name, "/value"));
    a.decision = decision;
    for (size_t i = 0; i < count; i++)
        if (rows[i].handle == OF(decision) || rows[i].handle == OF(coordinator)) misuse(&rows[i], &a);
    *was = true;
    return MILIEU_OK;
}

/* Two programs with one file; misuse has decided nothing, so that the conflict is refused. */
static void decide_within(const char *folder) {
    milieu_coordinator *two[2];
    milieu_options options = MILIEU_OPTIONS;
    bool was = false;
    options.user_folder = options.system_folder = milieu_text_of(folder);
    for (int i = 0; i < 2; i++) OK(milieu_coordinator_open(milieu_text_of("every"), &options, &two[i]));
    OK(milieu_coordinator_assign(two[0], milieu_text_of("/value"), milieu_text_of("1")));
    OK(milieu_coordinator_persist(two[0], milieu_text_of("/"), NULL));
    OK(milieu_coordinator_assign(two[1], milieu_text_of("/value"), milieu_text_of("2")));
    EXPECT(MILIEU_FILES, milieu_coordinator_persist_deciding(
                             two[1], milieu_text_of("/"), decide, &was, NULL));
    CHECK(was);
    for (int i = 0; i < 2; i++) milieu_coordinator_free(two[i]);
}

static void *of_another_thread(void *unused) {
    (void)unused;
    for (size_t i = 0; i < count; i++)
        if (rows[i].handle == OF(hold)) expect(&rows[i], &good, MILIEU_WRONG_THREAD, "another thread");
    return NULL;
}

static void make(struct arguments *a) {
    milieu_frame left;
    OK(milieu_coordinator_new(&a->coordinator));
    OK(station_new(a->coordinator, NULL, &a->cx, NULL));
    OK(milieu_hold_new(a->coordinator, &a->hold));
    OK(milieu_captured_new(a->cx, &a->captured));
    OK(milieu_coordinator_on_activation(
        a->coordinator, milieu_text_of("x"), acts, NULL, NULL, &a->registration));
    OK(milieu_watch_new(a->coordinator, NULL, NULL, NULL, &a->watch));
    OK(milieu_notices_new(a->coordinator, &a->notices));
    OK(milieu_log_new(a->coordinator, &a->log));
    OK(milieu_context_enter(a->cx, milieu_layer_of("x", "y"), &left));
    OK(milieu_context_leave(a->cx, left));
    a->frame = left;
}

static void unmake(struct arguments *a) {
    milieu_log_free(a->log);
    milieu_notices_free(a->notices);
    milieu_watch_free(a->watch);
    milieu_registration_free(a->registration);
    milieu_captured_free(a->captured);
    OK(milieu_hold_free(a->hold));
    OK(milieu_context_free(a->cx));
    milieu_coordinator_free(a->coordinator);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    if (strcmp(argv[1], "list") == 0) {
        for (size_t i = 0; i < count; i++) puts(rows[i].name);
        return 0;
    }
    static char memory[4096];
    struct arguments freed = {0};
    milieu_registration *on;
    const struct station *env;
    struct station before;
    pthread_t thread;
    bool was = false;
    make(&freed);
    unmake(&freed);
    make(&good);
    good.out = memory;
    good.text = milieu_text_of("a");
    good.action = acts;
    good.evaluate = evaluates;
    good.decide = decides;
    milieu_context *watched;
    OK(station_new(good.coordinator, NULL, &watched, &env));
    memcpy(&before, env, sizeof before);
    for (size_t i = 0; i < count; i++) {
        bool lent = rows[i].kinds & LENT;
        if (!lent) misuse(&rows[i], &good);
        if (rows[i].handle != NONE) mishandle(&rows[i], &good, &freed, rows[i].handle == OF(cx) ? (void *)good.coordinator : (void *)good.cx);
    }
    CHECK(pthread_create(&thread, NULL, of_another_thread, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);

    OK(milieu_coordinator_on_activation(
        good.coordinator, milieu_text_of("tamper"), reenter, &was, NULL, &on));
    OK(milieu_context_activate(good.cx, milieu_layer_of("tamper", "1")));
    CHECK(was);
    milieu_registration_free(on);
    was = false;
    OK(milieu_context_activate_each(
        good.cx, milieu_text_of("security"), NULL, 0, ask, &was, NULL));
    CHECK(was);
    OK(milieu_context_deactivate(good.cx, milieu_text_of("security")));
    OK(milieu_context_deactivate(good.cx, milieu_text_of("tamper")));

    decide_within(argv[1]);

    /* Nothing of it has changed anything. */
    OK(milieu_hold_free(good.hold));
    OK(milieu_hold_new(good.coordinator, &good.hold));
    const milieu_key *keys;
    size_t held;
    OK(milieu_hold_keys(good.hold, &keys, &held));
    CHECK(held == 0);
    OK(milieu_context_sync(watched));
    CHECK(memcmp(&before, env, sizeof before) == 0);
    OK(milieu_context_free(watched));
    unmake(&good);
    printf("%d\n", made);
    return 0;
}
