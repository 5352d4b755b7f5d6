/* From within each kind of callback a program asks for whatever it likes. Nothing is locked
 * meanwhile, so that all of it is done but what needs the context that is in use, and what would
 * cause itself; the results are those of milieu.h. argv[1] is an empty folder. */

#include "check.h"
#include "station.h"

#include <milieu/files.h>
#include <pthread.h>
#include <time.h>

#define T milieu_text_of

static milieu_coordinator *coordinator;
/* The context whose call runs the callback, where one does. */
static milieu_context *in_use;
/* Whether this thread holds the key set still meanwhile, and so sees what was before. */
static bool is_held;
/* Whether what is to be persisted has a conflict meanwhile. */
static bool is_deciding;
/* What callbacks have done. */
static int asked, destroyed;

static milieu_result act(void *user, milieu_activation *activation) {
    (void)user;
    (void)activation;
    return MILIEU_OK;
}

static milieu_result evaluate(void *user, milieu_scope *scope) {
    (void)user;
    return milieu_scope_answer(scope, T("A"));
}

static void tell(void *user, const milieu_news *news) {
    (void)user;
    (void)news;
}

static void count(void *user) { ++*(int *)user; }

static milieu_result refuse(void *user, const milieu_conflict *conflict, milieu_decision *decision) {
    (void)user;
    (void)conflict;
    return milieu_decision_choose(decision, MILIEU_REFUSE_CONFLICT);
}

/* Keys, files, what is registered, what is watched. */
static void ask_coordinator(void) {
    milieu_hold *hold, *again;
    milieu_registration *registration;
    milieu_watch *watch;
    milieu_log *log;
    milieu_notices *notices;
    const milieu_key *keys;
    size_t held, written;
    int gone = 0;
    OK(milieu_coordinator_check(coordinator, T("/value"), T("41")));
    OK(milieu_coordinator_assign(coordinator, T("/value"), T("41")));
    EXPECT(MILIEU_INVALID, milieu_coordinator_assign(coordinator, T("/value"), T("many")));
    SAYS("/value");
    EXPECT(MILIEU_INVALID, milieu_coordinator_check(coordinator, T("/value"), T("many")));
    EXPECT(MILIEU_WRONG_NAME, milieu_coordinator_assign(coordinator, T("value"), T("41")));
    EXPECT(MILIEU_WRONG_NAME, milieu_coordinator_remove(coordinator, T("value")));

    OK(milieu_hold_new(coordinator, &hold));
    OK(milieu_hold_new(coordinator, &again));
    OK(milieu_hold_keys(again, &keys, &held));
    bool is_there = false;
    for (size_t i = 0; i < held; i++)
        is_there = is_there
            || (milieu_text_is(keys[i].name, "/value") && milieu_text_is(keys[i].value, "41"));
    CHECK(is_there == !is_held);
    OK(milieu_hold_free(hold));
    OK(milieu_hold_free(again));

    EXPECT(is_deciding ? MILIEU_FILES : MILIEU_OK,
        milieu_coordinator_persist(coordinator, T("/"), &written));
    OK(milieu_coordinator_persist_with(coordinator, T("/value"), MILIEU_OURS, &written));
    CHECK(written <= (size_t)is_deciding);
    EXPECT(is_deciding ? MILIEU_FILES : MILIEU_OK,
        milieu_coordinator_persist_deciding(coordinator, T("/"), refuse, NULL, &written));
    EXPECT(MILIEU_NO_SUCH,
        milieu_coordinator_persist_with(coordinator, T("/"), (milieu_strategy)9, &written));
    OK(milieu_log_new(coordinator, &log));
    milieu_log_free(log);
    OK(milieu_notices_new(coordinator, &notices));
    milieu_notices_free(notices);
    EXPECT(MILIEU_NO_SUCH,
        milieu_coordinator_undo(coordinator, T(""), 4711, MILIEU_OURS, &written));
    EXPECT(MILIEU_NO_SUCH, milieu_coordinator_check_layer(coordinator, T("sesion")));
    OK(milieu_coordinator_defaults(coordinator, NULL, 0));
    milieu_text none = T("/no/such.ini");
    EXPECT(MILIEU_FILES, milieu_coordinator_defaults(coordinator, &none, 1));

    OK(milieu_coordinator_on_activation(coordinator, T("alarm"), act, &gone, count, &registration));
    milieu_registration_free(registration);
    OK(milieu_coordinator_on_deactivation(coordinator, T("alarm"), act, &gone, count, &registration));
    milieu_registration_free(registration);
    OK(milieu_watch_new(coordinator, tell, &gone, count, &watch));
    milieu_watch_free(watch);
    EXPECT(MILIEU_NULL,
        milieu_coordinator_on_activation(coordinator, T("alarm"), NULL, &gone, count, &registration));
    CHECK(gone == 4);
    OK(milieu_coordinator_remove(coordinator, T("/value")));
}

/* With a context of its own it does what it likes. */
static void ask_context(void) {
    milieu_context *cx, *fork;
    const struct station *env;
    milieu_captured *captured;
    milieu_frame outer, inner;
    milieu_text depends_on = T("/station/%session%/language");
    bool news;
    /* It may be kept for a while after its end. */
    static int gone;
    OK(station_new(coordinator, NULL, &cx, &env));
    OK(milieu_context_enter(cx, station_layer_session(T("guest")), &outer));
    OK(station_set_station_language(cx, T("it")));
    CHECK(milieu_text_is(env->station.language, "it"));
    OK(milieu_captured_new(cx, &captured));
    OK(milieu_context_fork(cx, T("/guest"), &fork, NULL));
    OK(milieu_context_enter_captured(fork, captured, &inner));
    OK(milieu_context_leave(fork, inner));
    milieu_captured_free(captured);
    OK(milieu_context_activate(cx, milieu_layer_of("power", "full")));
    OK(milieu_context_activate_each(cx, T("guard"), &depends_on, 1, evaluate, &gone, count));
    OK(milieu_context_sync(fork));
    OK(milieu_context_has_news(fork, &news));
    OK(milieu_context_wait(fork, 0, &news));
    CHECK(!news);
    OK(milieu_context_deactivate(cx, T("guard")));
    OK(milieu_context_deactivate(cx, T("power")));
    OK(milieu_context_forget(cx, station_layer_session(T("guest"))));
    CHECK(milieu_text_is(env->station.language, "en"));
    OK(milieu_context_leave(cx, outer));
    OK(milieu_context_free(fork));
    OK(milieu_context_free(cx));
}

static void *ask_context_in_use(void *unused) {
    milieu_frame frame;
    (void)unused;
    EXPECT(MILIEU_BUSY, milieu_context_enter(in_use, milieu_layer_of("a", "b"), &frame));
    EXPECT(MILIEU_BUSY, milieu_context_sync(in_use));
    EXPECT(MILIEU_BUSY, milieu_context_set_signed(in_use, STATION_AT_VALUE, 1));
    EXPECT(MILIEU_BUSY, milieu_context_free(in_use));
    SAYS("in use, by another thread or by the call that runs this callback");
    return NULL;
}

/* Everything, once for each callback: what is asked for may run callbacks in its turn. */
static void ask_all(void) {
    static bool is_asking;
    if (is_asking) return;
    is_asking = true;
    if (in_use) {
        pthread_t thread;
        ask_context_in_use(NULL);
        CHECK(pthread_create(&thread, NULL, ask_context_in_use, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    ask_coordinator();
    ask_context();
    asked++;
    is_asking = false;
}

/* ---------------------------------------------------------------- actions */

static milieu_registration *own;

static milieu_result acts(void *user, milieu_activation *activation) {
    milieu_context *cx;
    const char *layer = user;
    ask_all();
    /* What has caused it is refused, by whatever way. */
    OK(station_new(coordinator, NULL, &cx, NULL));
    if (strcmp(layer, "activation") == 0) {
        EXPECT(MILIEU_CYCLE, milieu_activation_activate(activation, milieu_layer_of("tamper", "2")));
        EXPECT(MILIEU_CYCLE, milieu_context_activate(cx, milieu_layer_of("tamper", "2")));
    } else {
        /* Nothing is to be done, so that it causes nothing. */
        OK(milieu_activation_deactivate(activation, T("tamper")));
    }
    OK(milieu_context_free(cx));
    return MILIEU_OK;
}

/* Takes itself away, and is there until it ends. */
static milieu_result acts_once(void *user, milieu_activation *activation) {
    milieu_text id;
    CHECK(user == &destroyed);
    milieu_registration_free(own);
    milieu_registration_free(own);
    ask_all();
    CHECK(destroyed == 0);
    OK(milieu_activation_layer(activation, &id));
    CHECK(milieu_text_is(id, "tamper"));
    return MILIEU_OK;
}

static void actions(void) {
    milieu_registration *on, *off;
    char activation[] = "activation", deactivation[] = "deactivation";
    asked = destroyed = 0;
    OK(milieu_coordinator_on_activation(coordinator, T("tamper"), acts, activation, NULL, &on));
    OK(milieu_coordinator_on_deactivation(coordinator, T("tamper"), acts, deactivation, NULL, &off));
    OK(milieu_context_activate(in_use, milieu_layer_of("tamper", "1")));
    CHECK(asked == 1);
    OK(milieu_context_deactivate(in_use, T("tamper")));
    CHECK(asked == 2);
    milieu_registration_free(on);
    milieu_registration_free(off);
    OK(milieu_coordinator_on_activation(
        coordinator, T("tamper"), acts_once, &destroyed, count, &own));
    OK(milieu_context_activate(in_use, milieu_layer_of("tamper", "1")));
    CHECK(asked == 3 && destroyed == 1);
    OK(milieu_context_activate(in_use, milieu_layer_of("tamper", "2")));
    CHECK(asked == 3);
    /* And while this thread holds the key set still. */
    milieu_hold *hold;
    OK(milieu_coordinator_on_deactivation(coordinator, T("tamper"), acts, deactivation, NULL, &off));
    OK(milieu_hold_new(coordinator, &hold));
    is_held = true;
    OK(milieu_context_deactivate(in_use, T("tamper")));
    is_held = false;
    OK(milieu_hold_free(hold));
    CHECK(asked == 4);
    milieu_registration_free(off);
}

/* ---------------------------------------------------------------- evaluations */

static milieu_result evaluates(void *user, milieu_scope *scope) {
    ++*(int *)user;
    ask_all();
    return milieu_scope_answer(scope, T("A"));
}

static void evaluations(void) {
    milieu_context *other;
    milieu_text depends_on = T("/station/%session%/language"), value;
    milieu_frame frame;
    int evaluated = 0;
    asked = 0;
    OK(milieu_context_activate_each(
        in_use, T("security"), &depends_on, 1, evaluates, &evaluated, NULL));
    CHECK(asked > 0 && evaluated >= asked);
    /* As a value is another one that it depends on, in whichever way. */
    int before = asked;
    OK(milieu_context_enter(in_use, station_layer_session(T("anna")), &frame));
    OK(station_set_station_language(in_use, T("de")));
    CHECK(asked > before);
    OK(milieu_context_leave(in_use, frame));
    before = asked;
    OK(milieu_coordinator_assign(coordinator, T("/station/%/language"), T("fr")));
    OK(milieu_context_sync(in_use));
    CHECK(asked > before);
    before = asked;
    OK(milieu_context_enter(in_use, station_layer_session(T("anna")), &frame));
    CHECK(asked > before);
    OK(milieu_context_leave(in_use, frame));
    OK(milieu_context_layer(in_use, T("security"), &value));
    CHECK(milieu_text_is(value, "A"));
    /* And in a context that is new. */
    milieu_context *was = in_use;
    in_use = NULL;
    before = asked;
    OK(station_new(coordinator, NULL, &other, NULL));
    CHECK(asked > before);
    in_use = was;
    OK(milieu_context_free(other));
    OK(milieu_context_deactivate(in_use, T("security")));
    OK(milieu_coordinator_remove(coordinator, T("/station/%/language")));
    OK(milieu_context_forget(in_use, station_layer_session(T("anna"))));
}

/* ---------------------------------------------------------------- letting go */

static void destroys(void *user) {
    ++*(int *)user;
    ask_all();
}

/* Whatever lets go of it: nobody has it then. */
static void destructions(void) {
    milieu_registration *registration;
    milieu_watch *watch;
    milieu_context *cx, *was = in_use;
    milieu_text depends_on = T("/station/%session%/language");
    asked = destroyed = 0;
    in_use = NULL;
    OK(milieu_coordinator_on_activation(
        coordinator, T("tamper"), act, &destroyed, destroys, &registration));
    milieu_registration_free(registration);
    CHECK(asked == 1 && destroyed == 1);
    OK(milieu_watch_new(coordinator, tell, &destroyed, destroys, &watch));
    milieu_watch_free(watch);
    CHECK(asked == 2 && destroyed == 2);
    /* What was never handed over. */
    EXPECT(MILIEU_NULL, milieu_coordinator_on_deactivation(
                            coordinator, T("tamper"), NULL, &destroyed, destroys, &registration));
    SAYS("`action` is null");
    EXPECT(MILIEU_NULL, milieu_watch_new(coordinator, tell, &destroyed, destroys, NULL));
    EXPECT(MILIEU_NOT_UTF8,
        milieu_context_activate_each(was, T("\xc3("), NULL, 0, evaluate, &destroyed, destroys));
    EXPECT(MILIEU_CYCLE, milieu_context_activate_each(was, T("session"), &depends_on, 1, evaluate,
                             &destroyed, destroys));
    CHECK(asked == 6 && destroyed == 6);
    /* A layer: by another in its place, and by its end, here or elsewhere. */
    for (int way = 0; way < 3; way++) {
        OK(station_new(coordinator, NULL, &cx, NULL));
        OK(milieu_context_activate_each(
            cx, T("security"), &depends_on, 1, evaluate, &destroyed, destroys));
        OK(milieu_context_sync(was));
        CHECK(destroyed == 6 + way);
        if (way == 0) OK(milieu_context_activate(cx, milieu_layer_of("security", "B")));
        else OK(milieu_context_deactivate(way == 1 ? cx : was, T("security")));
        OK(milieu_context_sync(was));
        OK(milieu_context_free(cx));
        CHECK(destroyed == 7 + way && asked == 7 + way);
        OK(milieu_context_deactivate(was, T("security")));
    }
    /* The key set, held still, has it last; and then, as it is held, whoever publishes another. */
    milieu_hold *hold;
    OK(station_new(coordinator, NULL, &cx, NULL));
    OK(milieu_context_activate_each(
        cx, T("security"), &depends_on, 1, evaluate, &destroyed, destroys));
    OK(milieu_hold_new(coordinator, &hold));
    OK(milieu_context_deactivate(cx, T("security")));
    OK(milieu_context_free(cx));
    CHECK(destroyed == 9);
    OK(milieu_hold_free(hold));
    CHECK(destroyed == 10 && asked == 10);
    OK(milieu_hold_new(coordinator, &hold));
    is_held = true;
    OK(station_new(coordinator, NULL, &cx, NULL));
    OK(milieu_context_activate_each(
        cx, T("security"), &depends_on, 1, evaluate, &destroyed, destroys));
    OK(milieu_context_free(cx));
    CHECK(destroyed == 10);
    OK(milieu_context_activate(was, milieu_layer_of("security", "B")));
    CHECK(destroyed == 11 && asked == 11);
    is_held = false;
    OK(milieu_hold_free(hold));
    OK(milieu_context_deactivate(was, T("security")));
    in_use = was;
}

/* A handle that is given back in the same breath is none any more. */
static void destroys_late(void *user) {
    milieu_hold *hold;
    ++*(int *)user;
    EXPECT(MILIEU_FREED, milieu_coordinator_assign(coordinator, T("/value"), T("41")));
    EXPECT(MILIEU_FREED, milieu_hold_new(coordinator, &hold));
    EXPECT(MILIEU_FREED, milieu_coordinator_persist(coordinator, T("/"), NULL));
    EXPECT(MILIEU_FREED, milieu_context_free(in_use));
}

/* ---------------------------------------------------------------- news */

struct told {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    milieu_watch *own;
    bool gone;
};

static void tells(void *user, const milieu_news *news) {
    struct told *told = user;
    CHECK(news->kind == MILIEU_CHANGED && news->count == 1);
    ask_all();
    CHECK(pthread_mutex_lock(&told->mutex) == 0);
    milieu_watch *own = told->own;
    CHECK(pthread_mutex_unlock(&told->mutex) == 0);
    milieu_watch_free(own);
    milieu_watch_free(own);
    ask_all();
    /* What it was told is there, whatever was asked meanwhile. */
    CHECK(milieu_text_is(news->changes->name, "/station/%/interval"));
    CHECK(milieu_text_is(news->changes->after, "90") && !told->gone);
}

/* When it has been told, and its watch is gone. */
static void untold(void *user) {
    struct told *told = user;
    ask_all();
    CHECK(pthread_mutex_lock(&told->mutex) == 0);
    told->gone = true;
    CHECK(pthread_cond_signal(&told->condition) == 0);
    CHECK(pthread_mutex_unlock(&told->mutex) == 0);
}

static void watches(const milieu_options *options) {
    struct told told = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, false};
    struct timespec late;
    milieu_coordinator *other;
    milieu_context *was = in_use;
    asked = 0;
    /* Nobody's call runs it. */
    in_use = NULL;
    CHECK(pthread_mutex_lock(&told.mutex) == 0);
    OK(milieu_watch_new(coordinator, tells, &told, untold, &told.own));
    CHECK(pthread_mutex_unlock(&told.mutex) == 0);
    OK(milieu_coordinator_open(T("station"), options, &other));
    OK(milieu_coordinator_assign(other, T("/station/%/interval"), T("90")));
    OK(milieu_coordinator_persist(other, T("/"), NULL));
    milieu_coordinator_free(other);
    CHECK(clock_gettime(CLOCK_REALTIME, &late) == 0);
    late.tv_sec += 120;
    CHECK(pthread_mutex_lock(&told.mutex) == 0);
    while (!told.gone)
        CHECK(pthread_cond_timedwait(&told.condition, &told.mutex, &late) == 0);
    CHECK(pthread_mutex_unlock(&told.mutex) == 0);
    CHECK(asked == 3);
    in_use = was;
}

/* ---------------------------------------------------------------- conflicts */

static milieu_result decides(void *user, const milieu_conflict *conflict, milieu_decision *decision) {
    milieu_watch **watch = user;
    CHECK(milieu_text_is(conflict->name, "/station/%/interval"));
    ask_all();
    /* Who is told of files would wait for whoever writes them, and this for it. */
    OK(milieu_watch_new(coordinator, tell, NULL, NULL, watch));
    milieu_watch_free(*watch);
    milieu_watch_free(*watch);
    CHECK(milieu_text_is(conflict->theirs, is_deciding ? "95" : "98"));
    CHECK(milieu_text_is(conflict->ours, "96"));
    return milieu_decision_choose(decision, MILIEU_OURS);
}

static void decisions(const milieu_options *options) {
    milieu_coordinator *other;
    milieu_context *was = in_use;
    milieu_watch *watch = NULL;
    size_t written;
    asked = 0;
    /* No context runs it. */
    in_use = NULL;
    OK(milieu_coordinator_open(T("station"), options, &other));
    OK(milieu_coordinator_assign(other, T("/station/%/interval"), T("95")));
    OK(milieu_coordinator_persist(other, T("/"), NULL));
    OK(milieu_coordinator_assign(coordinator, T("/station/%/interval"), T("96")));
    is_deciding = true;
    OK(milieu_coordinator_persist_deciding(coordinator, T("/"), decides, &watch, &written));
    is_deciding = false;
    CHECK(asked == 1);
    /* And so for what is taken back: others have changed it since. */
    OK(milieu_coordinator_assign(coordinator, T("/station/%/interval"), T("97")));
    OK(milieu_coordinator_persist(coordinator, T("/"), NULL));
    OK(milieu_coordinator_assign(other, T("/station/%/interval"), T("98")));
    OK(milieu_coordinator_persist_with(other, T("/"), MILIEU_OURS, NULL));
    milieu_coordinator_free(other);
    milieu_log *log;
    const milieu_commit *commits;
    size_t count;
    OK(milieu_log_new(coordinator, &log));
    OK(milieu_log_commits(log, &commits, &count));
    CHECK(count > 1);
    OK(milieu_coordinator_undo_deciding(
        coordinator, T(""), commits[count - 2].id, decides, &watch, &written));
    CHECK(asked == 2 && written == 1);
    milieu_log_free(log);
    in_use = was;
}

int main(int argc, char **argv) {
    milieu_options options = MILIEU_OPTIONS;
    milieu_registration *registration;
    CHECK(argc == 2);
    options.user_folder = options.system_folder = T(argv[1]);
    OK(milieu_coordinator_open(T("station"), &options, &coordinator));
    OK(station_new(coordinator, NULL, &in_use, NULL));
    actions();
    evaluations();
    destructions();
    watches(&options);
    decisions(&options);
    destroyed = 0;
    OK(milieu_coordinator_on_activation(
        coordinator, T("tamper"), act, &destroyed, destroys_late, &registration));
    OK(milieu_context_activate_each(
        in_use, T("security"), NULL, 0, evaluate, &destroyed, destroys_late));
    milieu_coordinator_free(coordinator);
    OK(milieu_context_free(in_use));
    milieu_registration_free(registration);
    CHECK(destroyed == 2);
    return 0;
}
