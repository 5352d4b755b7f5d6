/* Contexts from C: reading, entering, switching, assigning, synchronizing. */

#include "check.h"
#include "station.h"

#include <pthread.h>

static milieu_text name_of(milieu_context *cx, uint32_t value) {
    milieu_text name;
    OK(milieu_context_name(cx, value, &name));
    return name;
}

static milieu_text text_of(milieu_context *cx, const char *name) {
    milieu_text text;
    OK(milieu_context_text(cx, milieu_text_of(name), &text));
    return text;
}

static void reading_and_frames(void) {
    milieu_coordinator *coordinator;
    milieu_context *cx;
    const struct station *env;
    milieu_frame outer, inner, all;
    OK(milieu_coordinator_new(&coordinator));
    OK(milieu_coordinator_assign(
        coordinator, milieu_text_of("/watchdog/A/enable"), milieu_text_of("true")));
    OK(station_new(coordinator, NULL, &cx, &env));
    CHECK(milieu_context_of(env) == cx);

    /* Defaults of every type. */
    CHECK(!env->watchdog.enable && env->value == 0);
    CHECK(milieu_text_is(env->station.language, "en"));
    CHECK(env->station.interval == 60 && env->station.level == STATION_STATION_LEVEL_LOW);
    CHECK(env->station.factor == 0.5 && env->station.small == 0);
    CHECK(env->station.big == UINT64_MAX);
    CHECK(env->station.hosts.count == 0 && env->station.ports.count == 0);

    OK(milieu_context_enter(cx, milieu_layer_of("security", "A"), &outer));
    CHECK(env->watchdog.enable);
    CHECK(milieu_text_is(name_of(cx, STATION_AT_WATCHDOG_ENABLE), "/watchdog/A/enable"));
    /* Inactive, inside. */
    OK(milieu_context_enter(cx, milieu_layer_of("security", ""), &inner));
    CHECK(!env->watchdog.enable);
    EXPECT(MILIEU_WRONG_FRAME, milieu_context_leave(cx, outer));
    SAYS("1 frames that were entered later");
    OK(milieu_context_leave(cx, inner));
    CHECK(env->watchdog.enable);

    /* Several at once; any text is safe as a value. */
    milieu_layer layers[] = {
        station_layer_session(milieu_text_of("a/../b%")),
        milieu_layer_of("security", "B"),
        milieu_layer_of("security", "A"),
    };
    OK(milieu_context_enter_all(cx, layers, 3, &all));
    CHECK(env->watchdog.enable);
    CHECK(milieu_text_is(
        name_of(cx, STATION_AT_STATION_LANGUAGE), "/station/a\\/..\\/b\\%/language"));
    const milieu_layer *active;
    size_t count;
    OK(milieu_context_layers(cx, &active, &count));
    CHECK(count == 2);
    milieu_text value;
    OK(milieu_context_layer(cx, milieu_text_of("session"), &value));
    CHECK(milieu_text_is(value, "a/../b%"));
    OK(milieu_context_leave(cx, all));
    OK(milieu_context_leave(cx, outer));
    EXPECT(MILIEU_WRONG_FRAME, milieu_context_leave(cx, outer));
    SAYS("no such frame");
    OK(milieu_context_layer(cx, milieu_text_of("session"), &value));
    CHECK(value.length == 0);
    OK(milieu_context_free(cx));
    milieu_coordinator_free(coordinator);
}

static void assigning(void) {
    milieu_coordinator *coordinator;
    milieu_context *cx, *other;
    const struct station *env, *there;
    milieu_frame frame;
    bool news;
    OK(milieu_coordinator_new(&coordinator));
    OK(station_new(coordinator, NULL, &cx, &env));
    OK(station_new(coordinator, NULL, &other, &there));

    OK(station_set_value(cx, 8));
    CHECK(env->value == 8 && there->value == 0);
    OK(milieu_context_has_news(other, &news));
    CHECK(news);
    OK(milieu_context_sync(other));
    CHECK(there->value == 8);

    OK(station_set_watchdog_enable(cx, true));
    OK(station_set_station_factor(cx, 0.1));
    OK(station_set_station_small(cx, 0.1f));
    OK(station_set_station_big(cx, UINT64_MAX - 1));
    OK(station_set_station_level(cx, STATION_STATION_LEVEL_VERY_HIGH));
    CHECK(env->watchdog.enable);
    /* Constants have more digits than their types where the processor is an old one. */
    CHECK(env->station.factor == (double)0.1 && env->station.small == (float)0.1f);
    CHECK(env->station.big == UINT64_MAX - 1);
    CHECK(env->station.level == STATION_STATION_LEVEL_VERY_HIGH);
    milieu_text hosts[] = {milieu_text_of("oven"), milieu_text_of("fridge")};
    OK(station_set_station_hosts(cx, hosts, 2));
    CHECK(env->station.hosts.count == 2);
    CHECK(milieu_text_is(env->station.hosts.elements[1], "fridge"));
    milieu_text ports[] = {milieu_text_of("80"), milieu_text_of("443")};
    OK(station_set_station_ports(cx, ports, 2));
    CHECK(env->station.ports.elements[0] == 80 && env->station.ports.elements[1] == 443);
    const milieu_text *named;
    size_t count;
    OK(milieu_context_elements(cx, milieu_text_of("/station/%session%/hosts/#"), &named, &count));
    CHECK(count == 2 && milieu_text_is(named[1], "fridge"));
    EXPECT(MILIEU_WRONG_NAME,
        milieu_context_elements(cx, milieu_text_of("hosts"), &named, &count));

    /* An assignment is one of the name that the value has: it comes back with the session. */
    OK(milieu_context_enter(cx, station_layer_session(milieu_text_of("anna")), &frame));
    OK(station_set_station_language(cx, milieu_text_of("de")));
    CHECK(milieu_text_is(text_of(cx, "/station/%session%/language"), "de"));
    OK(milieu_context_leave(cx, frame));
    CHECK(milieu_text_is(env->station.language, "en"));
    CHECK(milieu_text_is(text_of(cx, "/station/%session%/language"), "en"));
    milieu_text text;
    EXPECT(MILIEU_NO_SUCH, milieu_context_text(cx, milieu_text_of("/station/de/language"), &text));
    SAYS("no environment of the coordinator describes `/station/de/language`");
    OK(milieu_context_sync(other));
    OK(milieu_context_enter(other, station_layer_session(milieu_text_of("anna")), &frame));
    CHECK(milieu_text_is(there->station.language, "de"));
    OK(milieu_context_leave(other, frame));
    OK(milieu_context_forget(cx, station_layer_session(milieu_text_of("anna"))));
    OK(milieu_context_unset(cx, STATION_AT_VALUE));
    CHECK(env->value == 0);

    /* What is refused changes nothing, and says why. */
    EXPECT(MILIEU_INVALID, milieu_context_set_signed(cx, STATION_AT_STATION_INTERVAL, 4000));
    SAYS("/station/%/interval");
    EXPECT(MILIEU_INVALID, milieu_context_set_signed(cx, STATION_AT_STATION_INTERVAL, -1));
    EXPECT(MILIEU_INVALID, milieu_context_set_bool(cx, STATION_AT_VALUE, true));
    EXPECT(MILIEU_INVALID, milieu_context_set_variant(cx, STATION_AT_STATION_LEVEL, 2));
    EXPECT(MILIEU_INVALID, milieu_context_set_variant(cx, STATION_AT_VALUE, 0));
    EXPECT(MILIEU_INVALID, milieu_context_set_text(cx, STATION_AT_STATION_HOSTS, hosts[0]));
    SAYS("is an array");
    EXPECT(MILIEU_INVALID, milieu_context_set_elements(cx, STATION_AT_VALUE, hosts, 2));
    EXPECT(MILIEU_READ_ONLY,
        milieu_context_set_text(cx, STATION_AT_STATION_SERIAL, milieu_text_of("1")));
    SAYS("readonly");
    EXPECT(MILIEU_READ_ONLY, milieu_context_unset(cx, STATION_AT_STATION_SERIAL));
    EXPECT(MILIEU_NO_SUCH, milieu_context_set_bool(cx, 99, true));
    CHECK(env->station.interval == 60 && env->value == 0);
    EXPECT(MILIEU_INVALID, milieu_coordinator_assign(coordinator,
                               milieu_text_of("/station/%/interval"), milieu_text_of("x")));
    EXPECT(MILIEU_WRONG_NAME,
        milieu_coordinator_assign(coordinator, milieu_text_of("no slash"), milieu_text_of("x")));

    /* The key set, held still. */
    milieu_hold *hold;
    const milieu_key *keys;
    OK(milieu_hold_new(coordinator, &hold));
    OK(milieu_hold_keys(hold, &keys, &count));
    bool found = false;
    for (size_t i = 0; i < count; i++)
        found |= milieu_text_is(keys[i].name, "/station/%/hosts/#1")
            && milieu_text_is(keys[i].value, "fridge") && keys[i].origin.length == 0;
    CHECK(found);
    OK(milieu_hold_free(hold));

    OK(milieu_context_free(other));
    OK(milieu_context_free(cx));
    milieu_coordinator_free(coordinator);
}

struct sleeper {
    milieu_context *cx;
    const struct station *env;
    milieu_text language;
    bool alarm;
};

static void *sleeper(void *argument) {
    struct sleeper *self = argument;
    bool news = false;
    OK(milieu_context_wait(self->cx, -1, &news));
    CHECK(news && !self->env->station.alarm);
    OK(milieu_context_sync(self->cx));
    self->alarm = self->env->station.alarm;
    return NULL;
}

static milieu_any_layer fixed(const char *id, const char *value) {
    milieu_any_layer layer = {MILIEU_FIXED, UINT32_MAX, {{NULL, 0}, {NULL, 0}, false}, NULL};
    layer.layer = milieu_layer_of(id, value);
    return layer;
}

/* Layers of any kind together: `captured` has a session anna and the security A. */
static void any_kinds(
    milieu_context *cx, const struct station *env, const milieu_captured *captured) {
    milieu_frame frame, untouched;
    milieu_layer none = {{NULL, 1}, {NULL, 1}, false};
    milieu_any_layer following = {
        MILIEU_FOLLOWING, STATION_AT_STATION_LANGUAGE, none, NULL};
    milieu_any_layer taken = {MILIEU_CAPTURED, UINT32_MAX, none, captured};
    OK(milieu_context_sync(cx));
    OK(milieu_context_enter(cx, milieu_layer_of("session", "anna"), &frame));
    OK(station_set_station_language(cx, milieu_text_of("de")));
    OK(milieu_context_leave(cx, frame));

    milieu_any_layer value_last[] = {fixed("session", "anna"), following};
    OK(milieu_context_enter_mixed(cx, value_last, 2, &frame));
    CHECK(milieu_text_is(env->station.hello, "Hallo"));
    OK(milieu_context_leave(cx, frame));
    milieu_any_layer fixed_last[] = {following, fixed("language", "de")};
    OK(milieu_context_enter_mixed(cx, fixed_last, 2, &frame));
    CHECK(milieu_text_is(env->station.hello, "Hallo"));
    OK(milieu_context_leave(cx, frame));
    milieu_any_layer all[] = {fixed("security", "B"), taken, following, fixed("power", "full")};
    OK(milieu_context_enter_mixed(cx, all, 4, &frame));
    CHECK(milieu_text_is(env->station.hello, "Hallo"));
    CHECK(milieu_text_is(name_of(cx, STATION_AT_WATCHDOG_ENABLE), "/watchdog/A/enable"));
    CHECK(milieu_text_is(name_of(cx, STATION_AT_STATION_INTERVAL), "/station/full/interval"));
    OK(milieu_context_leave(cx, frame));
    OK(milieu_context_enter_mixed(cx, NULL, 0, &frame));
    OK(milieu_context_leave(cx, frame));

    /* Those of several contexts, and the same twice: the last of an id wins. */
    milieu_layer own[] = {milieu_layer_of("security", "C"), milieu_layer_of("power", "full")};
    milieu_captured *further;
    OK(milieu_context_enter_all(cx, own, 2, &frame));
    OK(milieu_captured_new(cx, &further));
    OK(milieu_context_leave(cx, frame));
    milieu_any_layer second = {MILIEU_CAPTURED, UINT32_MAX, none, further};
    milieu_any_layer several[] = {taken, fixed("language", "de"), second};
    OK(milieu_context_enter_mixed(cx, several, 3, &frame));
    CHECK(milieu_text_is(name_of(cx, STATION_AT_STATION_LANGUAGE), "/station/anna/language"));
    CHECK(milieu_text_is(name_of(cx, STATION_AT_WATCHDOG_ENABLE), "/watchdog/C/enable"));
    CHECK(milieu_text_is(name_of(cx, STATION_AT_STATION_INTERVAL), "/station/full/interval"));
    CHECK(milieu_text_is(env->station.hello, "Hallo"));
    OK(milieu_context_leave(cx, frame));
    milieu_any_layer again[] = {taken, second, fixed("power", "saving"), taken};
    OK(milieu_context_enter_mixed(cx, again, 4, &frame));
    CHECK(milieu_text_is(name_of(cx, STATION_AT_WATCHDOG_ENABLE), "/watchdog/A/enable"));
    CHECK(milieu_text_is(name_of(cx, STATION_AT_STATION_INTERVAL), "/station/saving/interval"));
    OK(milieu_context_leave(cx, frame));
    milieu_captured_free(further);
    again[1].captured = further;
    EXPECT(MILIEU_FREED, milieu_context_enter_mixed(cx, again, 4, &frame));
    CHECK(milieu_text_is(env->station.hello, "Hello"));
    CHECK(milieu_text_is(name_of(cx, STATION_AT_WATCHDOG_ENABLE), "/watchdog/%/enable"));

    /* What is wrong of one of them enters none. */
    untouched = frame;
    milieu_any_layer wrong[] = {fixed("power", "full"), following};
    wrong[1].kind = 0;
    EXPECT(MILIEU_INVALID, milieu_context_enter_mixed(cx, wrong, 2, &frame));
    SAYS("there is no kind 0 of layers");
    wrong[1] = taken;
    wrong[1].captured = NULL;
    EXPECT(MILIEU_NULL, milieu_context_enter_mixed(cx, wrong, 2, &frame));
    wrong[1].captured = (const milieu_captured *)cx;
    EXPECT(MILIEU_WRONG_HANDLE, milieu_context_enter_mixed(cx, wrong, 2, &frame));
    wrong[1] = following;
    wrong[1].value = UINT32_MAX;
    EXPECT(MILIEU_NO_SUCH, milieu_context_enter_mixed(cx, wrong, 2, &frame));
    CHECK(frame == untouched);
    CHECK(milieu_text_is(name_of(cx, STATION_AT_STATION_INTERVAL), "/station/%/interval"));
}

static void switching(void) {
    milieu_coordinator *coordinator;
    milieu_context *cx, *fork;
    const struct station *env, *forked;
    struct sleeper other;
    milieu_frame frame;
    pthread_t thread;
    bool news;
    OK(milieu_coordinator_new(&coordinator));
    OK(milieu_coordinator_assign(
        coordinator, milieu_text_of("/station/active/alarm"), milieu_text_of("true")));
    OK(milieu_coordinator_assign(
        coordinator, milieu_text_of("/station/de/hello"), milieu_text_of("Hallo")));
    OK(station_new(coordinator, NULL, &cx, &env));
    OK(station_new(coordinator, NULL, &other.cx, &other.env));
    OK(milieu_context_wait(cx, 1000, &news));
    CHECK(!news);

    CHECK(pthread_create(&thread, NULL, sleeper, &other) == 0);
    OK(milieu_context_activate(cx, station_layer_tamper()));
    CHECK(env->station.alarm);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(other.alarm);
    OK(milieu_context_deactivate(cx, milieu_text_of("tamper")));
    CHECK(!env->station.alarm);

    /* A contextual value as a layer follows the value, in each context its own. */
    OK(milieu_context_activate_value(cx, STATION_AT_STATION_LANGUAGE));
    OK(milieu_context_sync(other.cx));
    OK(station_set_station_language(cx, milieu_text_of("de")));
    CHECK(milieu_text_is(env->station.hello, "Hallo"));
    CHECK(milieu_text_is(other.env->station.hello, "Hello"));
    OK(milieu_context_sync(other.cx));
    CHECK(milieu_text_is(other.env->station.hello, "Hallo"));
    OK(milieu_context_deactivate(cx, milieu_text_of("language")));
    OK(milieu_context_enter_value(cx, STATION_AT_STATION_LANGUAGE, &frame));
    CHECK(milieu_text_is(env->station.hello, "Hallo"));
    OK(milieu_context_leave(cx, frame));
    CHECK(milieu_text_is(env->station.hello, "Hello"));

    /* A fork keeps what is inherited; captured layers travel. */
    milieu_captured *captured;
    milieu_layer layers[] = {
        station_layer_session(milieu_text_of("anna")), milieu_layer_of("security", "A")};
    OK(milieu_context_enter_all(cx, layers, 2, &frame));
    OK(station_fork(cx, milieu_text_of("/pool/1"), &fork, &forked));
    CHECK(milieu_context_of(forked) == fork);
    milieu_text name = name_of(fork, STATION_AT_STATION_LANGUAGE);
    CHECK(milieu_text_is(name, "/station/anna/language"));
    CHECK(milieu_text_is(name_of(fork, STATION_AT_WATCHDOG_ENABLE), "/watchdog/%/enable"));
    OK(milieu_captured_new(cx, &captured));
    OK(milieu_context_leave(cx, frame));
    any_kinds(other.cx, other.env, captured);
    OK(milieu_context_enter_captured(other.cx, captured, &frame));
    milieu_captured_free(captured);
    milieu_any_layer gone = {MILIEU_CAPTURED, 0, {{NULL, 0}, {NULL, 0}, false}, captured};
    EXPECT(MILIEU_FREED, milieu_context_enter_mixed(other.cx, &gone, 1, &frame));
    CHECK(milieu_text_is(name_of(other.cx, STATION_AT_WATCHDOG_ENABLE), "/watchdog/A/enable"));
    OK(milieu_context_leave(other.cx, frame));
    OK(milieu_context_free(fork));
    OK(milieu_context_free(other.cx));
    OK(milieu_context_free(cx));
    milieu_coordinator_free(coordinator);
}

struct log {
    int runs, destroyed;
    char last[16];
    milieu_result fail;
    milieu_registration *own;
};

static milieu_result note(void *user, milieu_activation *activation) {
    struct log *log = user;
    milieu_text id, value;
    OK(milieu_activation_layer(activation, &id));
    OK(milieu_activation_value(activation, &value));
    CHECK(milieu_text_is(id, "tamper"));
    snprintf(log->last, sizeof log->last, MILIEU_TEXT_FORMAT, MILIEU_TEXT_ARGUMENTS(value));
    log->runs++;
    if (value.length > 0) {
        OK(milieu_activation_activate(activation, milieu_layer_of("security", "A")));
        EXPECT(MILIEU_CYCLE, milieu_activation_activate(activation, milieu_layer_of("tamper", "2")));
    } else {
        OK(milieu_activation_deactivate(activation, milieu_text_of("security")));
    }
    return log->fail;
}

static milieu_result once(void *user, milieu_activation *activation) {
    struct log *log = user;
    (void)activation;
    log->runs++;
    milieu_registration_free(log->own);
    return MILIEU_OK;
}

static void destroyed(void *user) {
    ((struct log *)user)->destroyed++;
}

static void actions(void) {
    milieu_coordinator *coordinator;
    milieu_context *cx;
    const struct station *env;
    milieu_registration *on, *off;
    struct log log = {0, 0, "", MILIEU_OK, NULL}, single = log;
    milieu_frame frame;
    milieu_text tamper = milieu_text_of("tamper");
    OK(milieu_coordinator_new(&coordinator));
    OK(station_new(coordinator, NULL, &cx, &env));
    OK(milieu_coordinator_on_activation(coordinator, tamper, note, &log, destroyed, &on));
    OK(milieu_coordinator_on_deactivation(coordinator, tamper, note, &log, destroyed, &off));
    OK(milieu_coordinator_on_activation(
        coordinator, tamper, once, &single, destroyed, &single.own));

    OK(milieu_context_enter(cx, milieu_layer_of("tamper", "1"), &frame));
    OK(milieu_context_leave(cx, frame));
    CHECK(log.runs == 0);
    OK(milieu_context_activate(cx, milieu_layer_of("tamper", "1")));
    CHECK(log.runs == 1 && strcmp(log.last, "1") == 0);
    CHECK(single.runs == 1 && single.destroyed == 1);
    CHECK(milieu_text_is(name_of(cx, STATION_AT_WATCHDOG_ENABLE), "/watchdog/A/enable"));
    OK(milieu_context_deactivate(cx, tamper));
    CHECK(log.runs == 2 && strcmp(log.last, "") == 0);
    CHECK(milieu_text_is(name_of(cx, STATION_AT_WATCHDOG_ENABLE), "/watchdog/%/enable"));

    /* One that fails stops nothing, and is told. */
    log.fail = MILIEU_CALLBACK;
    EXPECT(MILIEU_CALLBACK, milieu_context_activate(cx, milieu_layer_of("tamper", "3")));
    SAYS("layer `tamper`");
    milieu_text value;
    OK(milieu_context_layer(cx, tamper, &value));
    CHECK(milieu_text_is(value, "3"));
    milieu_registration_free(on);
    milieu_registration_free(off);
    CHECK(log.destroyed == 2);
    CHECK(milieu_coordinator_on_activation(coordinator, tamper, NULL, &log, destroyed, &on)
        == MILIEU_NULL);
    CHECK(log.destroyed == 3);
    OK(milieu_context_free(cx));
    milieu_coordinator_free(coordinator);
}

struct chosen {
    uint64_t identity;
    int destroyed;
    milieu_result fail;
};

static milieu_result choose(void *user, milieu_scope *scope) {
    struct chosen *chosen = user;
    milieu_text role = milieu_scope_role(scope);
    milieu_text language = milieu_scope_get(scope, milieu_text_of("/station/%session%/language"));
    CHECK(milieu_text_is(language, "en"));
    if (milieu_scope_identity(scope) == chosen->identity)
        OK(milieu_scope_answer(scope, milieu_text_of("A")));
    else if (milieu_text_is(role, "/pool/background"))
        OK(milieu_scope_answer(scope, milieu_text_of("B")));
    return chosen->fail;
}

static void let_go(void *user) {
    ((struct chosen *)user)->destroyed++;
}

static void thread_based_layers(void) {
    milieu_coordinator *coordinator;
    milieu_context *cx, *one, *pool;
    milieu_context_options options = MILIEU_CONTEXT_OPTIONS;
    struct chosen chosen = {0, 0, MILIEU_OK};
    milieu_text security = milieu_text_of("security"), value;
    milieu_text depends_on = milieu_text_of("/station/%session%/language");
    OK(milieu_coordinator_new(&coordinator));
    OK(station_new(coordinator, NULL, &cx, NULL));
    OK(station_new(coordinator, NULL, &one, NULL));
    options.role = milieu_text_of("/pool/background");
    OK(station_new(coordinator, &options, &pool, NULL));
    OK(milieu_context_identity(one, &chosen.identity));
    OK(milieu_context_activate_each(cx, security, &depends_on, 1, choose, &chosen, let_go));
    OK(milieu_context_sync(one));
    OK(milieu_context_sync(pool));
    OK(milieu_context_layer(cx, security, &value));
    CHECK(value.length == 0);
    OK(milieu_context_layer(one, security, &value));
    CHECK(milieu_text_is(value, "A"));
    OK(milieu_context_layer(pool, security, &value));
    CHECK(milieu_text_is(value, "B"));

    /* One that fails is inactive in that context, and everything else is done. */
    chosen.fail = MILIEU_CALLBACK;
    EXPECT(MILIEU_CALLBACK, milieu_context_activate(cx, milieu_layer_of("tamper", "1")));
    SAYS("the value of layer `security`");
    OK(milieu_context_layer(cx, milieu_text_of("tamper"), &value));
    CHECK(milieu_text_is(value, "1"));
    milieu_context *late;
    EXPECT(MILIEU_CALLBACK, station_new(coordinator, NULL, &late, NULL));
    chosen.fail = MILIEU_OK;
    OK(milieu_context_deactivate(cx, security));
    OK(milieu_context_sync(one));
    OK(milieu_context_sync(pool));
    CHECK(chosen.destroyed == 1);
    OK(milieu_context_free(cx));
    OK(milieu_context_free(one));
    OK(milieu_context_free(pool));
    milieu_coordinator_free(coordinator);
}

struct deferred {
    struct chosen *chosen;
    milieu_result expected;
};

static milieu_result choose_by_action(void *user, milieu_activation *activation) {
    struct deferred *deferred = user;
    milieu_text depends_on = milieu_text_of("/station/%session%/language");
    EXPECT(deferred->expected, milieu_activation_activate_each(activation,
        milieu_text_of("security"), &depends_on, 1, choose, deferred->chosen, let_go));
    return MILIEU_OK;
}

/* What an action activates, each context evaluates as well. */
static void thread_based_layers_of_actions(void) {
    milieu_coordinator *coordinator;
    milieu_context *cx, *one;
    milieu_registration *registration;
    struct chosen chosen = {0, 0, MILIEU_OK};
    struct deferred deferred = {&chosen, MILIEU_OK};
    milieu_text security = milieu_text_of("security"), value;
    OK(milieu_coordinator_new(&coordinator));
    OK(station_new(coordinator, NULL, &cx, NULL));
    OK(station_new(coordinator, NULL, &one, NULL));
    OK(milieu_context_identity(one, &chosen.identity));
    OK(milieu_coordinator_on_activation(
        coordinator, milieu_text_of("tamper"), choose_by_action, &deferred, NULL, &registration));
    OK(milieu_context_activate(cx, milieu_layer_of("tamper", "1")));
    OK(milieu_context_sync(one));
    OK(milieu_context_layer(cx, security, &value));
    CHECK(value.length == 0);
    OK(milieu_context_layer(one, security, &value));
    CHECK(milieu_text_is(value, "A"));
    CHECK(chosen.destroyed == 0);
    milieu_registration_free(registration);

    /* A cycle is refused, and what was handed over goes. */
    deferred.expected = MILIEU_CYCLE;
    OK(milieu_context_deactivate(cx, security));
    OK(milieu_context_sync(one));
    CHECK(chosen.destroyed == 1);
    OK(milieu_coordinator_on_activation(
        coordinator, security, choose_by_action, &deferred, NULL, &registration));
    OK(milieu_context_activate(cx, milieu_layer_of("security", "B")));
    CHECK(chosen.destroyed == 2);
    OK(milieu_context_layer(cx, security, &value));
    CHECK(milieu_text_is(value, "B"));
    milieu_registration_free(registration);
    OK(milieu_context_free(cx));
    OK(milieu_context_free(one));
    milieu_coordinator_free(coordinator);
}

struct followed {
    const milieu_layout *layout;
    uint32_t value;
    milieu_result expected;
    const char *says;
};

static milieu_result follow(void *user, milieu_activation *activation) {
    const struct followed *it = user;
    EXPECT(it->expected, milieu_activation_activate_value(activation, it->layout, it->value));
    if (it->says) SAYS(it->says);
    return MILIEU_OK;
}

/* An environment of one text. */
static milieu_layout of_one(const milieu_value *value) {
    milieu_layout layout = {
        MILIEU_ABI, 1, value, sizeof(milieu_text), MILIEU_ALIGNOF(milieu_text)};
    return layout;
}

/* An action activates values of any environment, whichever the context that switches has. */
static void values_of_actions(void) {
    milieu_coordinator *coordinator;
    milieu_context *cx, *other;
    const struct station *env, *there;
    milieu_registration *registration;
    milieu_frame frame;
    milieu_text tamper = milieu_text_of("tamper"), language = milieu_text_of("language"), value;
    const milieu_entry german[] = {{"default", "de"}}, back[] = {{"layer/name", "language"}};
    const milieu_value elsewhere = {"/other/%session%/language", 0, MILIEU_TEXT, 1, german};
    const milieu_value unnamed = {"no name", 0, MILIEU_TEXT, 0, NULL};
    const milieu_value closing = {"/other/%language%/name", 0, MILIEU_TEXT, 1, back};
    const milieu_value array = {"/other", 0, MILIEU_TEXT | MILIEU_ARRAY, 0, NULL};
    milieu_layout its = of_one(&elsewhere), wrong = of_one(&unnamed), cycle = of_one(&closing);
    milieu_layout old = its, longer = of_one(&array);
    old.abi = MILIEU_ABI + 1;
    longer.size = 2 * sizeof(milieu_text);
    struct followed follows = {station_layout(), STATION_AT_STATION_LANGUAGE, MILIEU_OK, NULL};
    OK(milieu_coordinator_new(&coordinator));
    OK(milieu_coordinator_assign(
        coordinator, milieu_text_of("/station/de/hello"), milieu_text_of("Hallo")));
    OK(milieu_coordinator_assign(
        coordinator, milieu_text_of("/station/anna/language"), milieu_text_of("de")));
    OK(station_new(coordinator, NULL, &cx, &env));
    OK(station_new(coordinator, NULL, &other, &there));
    OK(milieu_context_enter(other, milieu_layer_of("session", "anna"), &frame));
    OK(milieu_coordinator_on_activation(coordinator, tamper, follow, &follows, NULL, &registration));
    OK(milieu_context_activate(cx, milieu_layer_of("tamper", "1")));
    OK(milieu_context_sync(other));
    CHECK(milieu_text_is(env->station.hello, "Hello"));
    CHECK(milieu_text_is(there->station.hello, "Hallo"));
    OK(milieu_context_set_text(cx, STATION_AT_STATION_LANGUAGE, milieu_text_of("de")));
    CHECK(milieu_text_is(env->station.hello, "Hallo"));

    /* One that no context of the program has. */
    follows.layout = &its;
    follows.value = 0;
    OK(milieu_context_unset(cx, STATION_AT_STATION_LANGUAGE));
    CHECK(milieu_text_is(env->station.hello, "Hello"));
    OK(milieu_context_activate(cx, milieu_layer_of("tamper", "2")));
    CHECK(milieu_text_is(env->station.hello, "Hallo"));
    OK(milieu_context_deactivate(cx, language));

    /* What is wrong of it changes nothing. */
    const struct followed refused[] = {
        {NULL, 0, MILIEU_NULL, "`layout`"},
        {&its, 1, MILIEU_NO_SUCH, "there is no value 1: the environment has 1"},
        {station_layout(), UINT32_MAX, MILIEU_NO_SUCH, "there is no value"},
        {&old, 0, MILIEU_WRONG_LAYOUT, "`layout`"},
        {&wrong, 0, MILIEU_UNFIT, "no name"},
        {&longer, 0, MILIEU_UNFIT, "/other"},
        {&cycle, 0, MILIEU_CYCLE, "layer `language` would depend on itself"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        follows = refused[i];
        OK(milieu_context_activate(cx, milieu_layer_of("tamper", i % 2 ? "3" : "4")));
        OK(milieu_context_layer(cx, language, &value));
        CHECK(value.length == 0);
    }
    milieu_registration_free(registration);
    OK(milieu_context_free(cx));
    OK(milieu_context_free(other));
    milieu_coordinator_free(coordinator);
}

static void policies(void) {
    milieu_coordinator *coordinator;
    milieu_context *cx;
    const struct station *env;
    milieu_context_options options = MILIEU_CONTEXT_OPTIONS;
    milieu_frame frame;
    OK(milieu_coordinator_new(&coordinator));
    options.policy = MILIEU_WITHOUT_LAYERS | MILIEU_WITHOUT_SHARING;
    OK(station_new(coordinator, &options, &cx, &env));
    OK(milieu_context_enter(cx, milieu_layer_of("security", "A"), &frame));
    CHECK(milieu_text_is(name_of(cx, STATION_AT_WATCHDOG_ENABLE), "/watchdog/%/enable"));
    OK(milieu_context_leave(cx, frame));
    OK(milieu_coordinator_assign(coordinator, milieu_text_of("/value"), milieu_text_of("3")));
    OK(milieu_context_sync(cx));
    CHECK(env->value == 0);
    OK(milieu_context_free(cx));
    options.policy = MILIEU_WITHOUT_ASSIGNMENT;
    OK(station_new(coordinator, &options, &cx, &env));
    CHECK(env->value == 3);
    EXPECT(MILIEU_READ_ONLY, station_set_value(cx, 4));
    EXPECT(MILIEU_READ_ONLY, milieu_context_forget(cx, milieu_layer_of("session", "a")));
    OK(milieu_context_free(cx));
    milieu_coordinator_free(coordinator);
}

/* With the folder for the user's files as the argument. */
static void files(const char *folder) {
    milieu_coordinator *coordinator;
    milieu_context *cx;
    const struct station *env;
    milieu_options options = MILIEU_OPTIONS;
    milieu_text station = milieu_text_of("station"), origin;
    size_t written;
    options.user_folder = options.system_folder = milieu_text_of(folder);
    options.layout = station_layout();
    const char *arguments[] = {"station", "--language=fr"};
    options.arguments = arguments;
    options.argument_count = 2;
    OK(milieu_coordinator_open(station, &options, &coordinator));
    OK(station_new(coordinator, NULL, &cx, &env));
    CHECK(milieu_text_is(env->station.language, "fr"));
    OK(milieu_context_origin(cx, STATION_AT_STATION_LANGUAGE, &origin));
    CHECK(milieu_text_is(origin, "option --language"));
    OK(station_set_value(cx, 42));
    OK(milieu_coordinator_persist(coordinator, milieu_text_of("/station"), &written));
    CHECK(written == 0);
    OK(milieu_coordinator_persist(coordinator, milieu_text_of("/"), &written));
    CHECK(written == 1);
    OK(milieu_context_free(cx));
    milieu_coordinator_free(coordinator);

    options.arguments = NULL;
    OK(milieu_coordinator_open(station, &options, &coordinator));
    OK(station_new(coordinator, NULL, &cx, &env));
    CHECK(env->value == 42);
    OK(milieu_context_origin(cx, STATION_AT_VALUE, &origin));
    CHECK(origin.length > strlen(folder));
    OK(milieu_context_free(cx));
    milieu_coordinator_free(coordinator);

    options.arguments = arguments;
    arguments[1] = "--help";
    EXPECT(MILIEU_SAY, milieu_coordinator_open(station, &options, &coordinator));
    SAYS("Usage: station");
    arguments[1] = "--lang";
    EXPECT(MILIEU_USAGE, milieu_coordinator_open(station, &options, &coordinator));
    SAYS("--lang");
    milieu_coordinator *without;
    OK(milieu_coordinator_new(&without));
    OK(milieu_coordinator_assign(without, milieu_text_of("/value"), milieu_text_of("1")));
    EXPECT(MILIEU_FILES, milieu_coordinator_persist(without, milieu_text_of(""), NULL));
    milieu_coordinator_free(without);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    CHECK(strcmp(milieu_version(), "0.1.0") == 0);
    CHECK(MILIEU_VERSION_MAJOR == 0 && MILIEU_VERSION_MINOR == 1 && MILIEU_VERSION_PATCH == 0);
    reading_and_frames();
    assigning();
    switching();
    actions();
    thread_based_layers();
    thread_based_layers_of_actions();
    values_of_actions();
    policies();
    files(argv[1]);
    return 0;
}
