/* Many threads, one coordinator: they enter and leave, activate and deactivate, synchronize,
 * assign, hold, persist, and hand layers to each other, all at once. What each did is there in the
 * end, in memory and in the file. */

#include "check.h"
#include "station.h"

#include <pthread.h>
#include <stdatomic.h>

enum { WORKERS = 4, ROUNDS = 200 };

static milieu_coordinator *coordinator;
static atomic_uint activated, deactivated, destroyed;
static _Atomic(milieu_captured *) on_its_way;

static milieu_result on_alarm(void *user, milieu_activation *activation) {
    milieu_text value;
    (void)user;
    OK(milieu_activation_value(activation, &value));
    CHECK(milieu_text_is(value, "1"));
    atomic_fetch_add(&activated, 1);
    return MILIEU_OK;
}

static milieu_result on_quiet(void *user, milieu_activation *activation) {
    milieu_text id;
    (void)user;
    OK(milieu_activation_layer(activation, &id));
    CHECK(milieu_text_is(id, "tamper"));
    atomic_fetch_add(&deactivated, 1);
    return MILIEU_OK;
}

/* Of those with a role, the odd ones save power. */
static milieu_result saving(void *user, milieu_scope *scope) {
    milieu_text role = milieu_scope_role(scope);
    CHECK(*(const int *)user == 42);
    if (role.length && role.bytes[role.length - 1] % 2) {
        return milieu_scope_answer(scope, milieu_text_of("saving"));
    }
    return MILIEU_OK;
}

static void destroy(void *user) {
    CHECK(*(int *)user == 42);
    *(int *)user = 0;
    atomic_fetch_add(&destroyed, 1);
}

/* Whoever comes takes the layers that are on their way and leaves its own. */
static void exchange(milieu_context *cx, const struct station *env, const char *mine) {
    milieu_captured *captured, *other;
    milieu_frame frame;
    OK(milieu_captured_new(cx, &captured));
    other = atomic_exchange(&on_its_way, captured);
    if (other) {
        OK(milieu_context_enter_captured(cx, other, &frame));
        CHECK(env->station.language.length == 2);
        OK(milieu_context_leave(cx, frame));
        milieu_captured_free(other);
    }
    CHECK(milieu_text_is(env->station.language, mine));
}

static void *work(void *argument) {
    int worker = (int)(intptr_t)argument;
    char session[16], language[8], role[16];
    milieu_context_options options = MILIEU_CONTEXT_OPTIONS;
    milieu_context *cx, *fork;
    const struct station *env;
    const void *forked;
    milieu_frame outer, inner;
    milieu_text value;
    milieu_hold *hold;
    const milieu_key *keys;
    size_t count, written;
    bool news;

    snprintf(session, sizeof session, "session%d", worker);
    snprintf(language, sizeof language, "l%d", worker);
    snprintf(role, sizeof role, "/pool/%d", worker);
    options.role = milieu_text_of(role);
    OK(station_new(coordinator, &options, &cx, &env));
    for (int round = 0; round < ROUNDS; round++) {
        OK(milieu_context_enter(cx, station_layer_session(milieu_text_of(session)), &outer));
        OK(station_set_station_language(cx, milieu_text_of(language)));
        OK(station_set_station_factor(cx, round));
        CHECK(milieu_text_is(env->station.language, language) && env->station.factor == round);

        OK(milieu_context_enter(cx, milieu_layer_of("power", "full"), &inner));
        OK(milieu_context_layer(cx, milieu_text_of("power"), &value));
        CHECK(milieu_text_is(value, "full"));
        OK(milieu_context_leave(cx, inner));

        OK(milieu_context_activate(cx, milieu_layer_of("tamper", "1")));
        OK(station_set_value(cx, worker));
        exchange(cx, env, language);
        OK(milieu_context_deactivate(cx, milieu_text_of("tamper")));
        OK(milieu_context_sync(cx));
        CHECK(env->value >= 0 && env->value < WORKERS);

        OK(milieu_context_fork(cx, milieu_text_of(""), &fork, &forked));
        /* The layer `session` is inherited, and what has it was assigned here alone. */
        CHECK(milieu_text_is(((const struct station *)forked)->station.language, language));
        OK(milieu_context_free(fork));

        if (round % 8 == worker) {
            OK(milieu_hold_new(coordinator, &hold));
            OK(milieu_hold_keys(hold, &keys, &count));
            CHECK(count > 0 && keys[count - 1].name.length > 0);
            OK(milieu_hold_free(hold));
            OK(milieu_coordinator_persist(coordinator, milieu_text_of("/station"), &written));
        }
        OK(milieu_context_has_news(cx, &news));
        OK(milieu_context_wait(cx, 0, NULL));
        /* A mistake of one is told to that one. */
        EXPECT(MILIEU_INVALID, milieu_context_set_signed(cx, STATION_AT_STATION_INTERVAL, -worker));
        SAYS("/interval");
        OK(milieu_context_leave(cx, outer));
        CHECK(milieu_text_is(env->station.language, "en"));
    }
    OK(milieu_context_free(cx));
    return NULL;
}

/* Comes and goes with actions while the others switch. */
static void *register_and_leave(void *unused) {
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        milieu_registration *registration;
        int *user = malloc(sizeof *user);
        CHECK(user != NULL);
        *user = 42;
        OK(milieu_coordinator_on_activation(coordinator, milieu_text_of("tamper"), on_alarm, user,
            free, &registration));
        milieu_registration_free(registration);
    }
    return NULL;
}

static void *assign_keys(void *unused) {
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        OK(milieu_coordinator_assign(coordinator, milieu_text_of("/station/saving/interval"),
            milieu_text_of(round % 2 ? "600" : "601")));
        OK(milieu_coordinator_remove(coordinator, milieu_text_of("/no/such")));
    }
    return NULL;
}

static void open_in(const char *folder, milieu_coordinator **opened) {
    milieu_options options = MILIEU_OPTIONS;
    options.user_folder = milieu_text_of(folder);
    options.system_folder = milieu_text_of(folder);
    OK(milieu_coordinator_open(milieu_text_of("threads"), &options, opened));
}

static void check_sessions(milieu_coordinator *of) {
    milieu_context *cx;
    const struct station *env;
    OK(station_new(of, NULL, &cx, &env));
    for (int worker = 0; worker < WORKERS; worker++) {
        char session[16], language[8];
        milieu_frame frame;
        snprintf(session, sizeof session, "session%d", worker);
        snprintf(language, sizeof language, "l%d", worker);
        OK(milieu_context_enter(cx, station_layer_session(milieu_text_of(session)), &frame));
        CHECK(milieu_text_is(env->station.language, language));
        CHECK(env->station.factor == ROUNDS - 1);
        OK(milieu_context_leave(cx, frame));
    }
    OK(milieu_context_free(cx));
}

int main(int argc, char **argv) {
    CHECK(argc > 1);
    milieu_registration *alarm, *quiet;
    milieu_context *cx;
    const struct station *env;
    pthread_t threads[WORKERS + 2];
    static int user = 42;
    size_t written;

    open_in(argv[1], &coordinator);
    OK(milieu_coordinator_on_activation(
        coordinator, milieu_text_of("tamper"), on_alarm, NULL, NULL, &alarm));
    OK(milieu_coordinator_on_deactivation(
        coordinator, milieu_text_of("tamper"), on_quiet, NULL, NULL, &quiet));
    OK(station_new(coordinator, NULL, &cx, &env));
    OK(milieu_context_activate_each(
        cx, milieu_text_of("power"), NULL, 0, saving, &user, destroy));

    for (int worker = 0; worker < WORKERS; worker++) {
        CHECK(pthread_create(&threads[worker], NULL, work, (void *)(intptr_t)worker) == 0);
    }
    CHECK(pthread_create(&threads[WORKERS], NULL, register_and_leave, NULL) == 0);
    CHECK(pthread_create(&threads[WORKERS + 1], NULL, assign_keys, NULL) == 0);
    for (int thread = 0; thread < WORKERS + 2; thread++) {
        CHECK(pthread_join(threads[thread], NULL) == 0);
    }

    /* Somebody has switched it on and off, and the last one off. */
    OK(milieu_context_sync(cx));
    milieu_text value;
    OK(milieu_context_layer(cx, milieu_text_of("tamper"), &value));
    CHECK(value.length == 0);
    CHECK(atomic_load(&activated) > 0 && atomic_load(&deactivated) > 0);
    milieu_captured_free(atomic_load(&on_its_way));
    OK(milieu_context_deactivate(cx, milieu_text_of("power")));
    OK(milieu_context_free(cx));
    milieu_registration_free(alarm);
    milieu_registration_free(quiet);

    check_sessions(coordinator);
    OK(milieu_coordinator_persist(coordinator, milieu_text_of("/"), &written));
    milieu_coordinator_free(coordinator);
    CHECK(atomic_load(&destroyed) == 1);

    open_in(argv[1], &coordinator);
    check_sessions(coordinator);
    milieu_coordinator_free(coordinator);
    return 0;
}
