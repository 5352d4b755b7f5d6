/* What C can get wrong and the library can know: a result with a message, never a crash. */

#include "check.h"
#include "station.h"

#include <pthread.h>
#include <sched.h>

static milieu_coordinator *coordinator;

static void null_pointers(void) {
    milieu_context *cx;
    milieu_frame frame;
    milieu_text text = {NULL, 3}, none = {NULL, 0};
    bool news;
    EXPECT(MILIEU_NULL, milieu_coordinator_new(NULL));
    SAYS("`coordinator` is null");
    EXPECT(MILIEU_NULL, milieu_context_new(NULL, station_layout(), NULL, &cx, NULL));
    EXPECT(MILIEU_NULL, milieu_context_new(coordinator, NULL, NULL, &cx, NULL));
    EXPECT(MILIEU_NULL, milieu_context_new(coordinator, station_layout(), NULL, NULL, NULL));
    EXPECT(MILIEU_NULL, milieu_context_enter(NULL, milieu_layer_of("a", "b"), &frame));
    EXPECT(MILIEU_NULL, milieu_context_sync(NULL));
    EXPECT(MILIEU_NULL, milieu_context_has_news(NULL, &news));
    EXPECT(MILIEU_NULL, milieu_activation_layer(NULL, &text));
    EXPECT(MILIEU_NULL, milieu_scope_answer(NULL, none));
    CHECK(milieu_scope_identity(NULL) == 0);
    OK(station_new(coordinator, NULL, &cx, NULL));
    EXPECT(MILIEU_NULL, milieu_context_enter(cx, milieu_layer_of("a", "b"), NULL));
    EXPECT(MILIEU_NULL, milieu_context_enter_all(cx, NULL, 2, &frame));
    EXPECT(MILIEU_NULL, milieu_context_set_text(cx, STATION_AT_STATION_LANGUAGE, text));
    EXPECT(MILIEU_NULL, milieu_context_activate_each(
                            cx, milieu_text_of("a"), NULL, 0, NULL, NULL, NULL));
    OK(milieu_context_set_text(cx, STATION_AT_STATION_LANGUAGE, none));
    /* Null may be given back. */
    OK(milieu_context_free(NULL));
    OK(milieu_hold_free(NULL));
    milieu_coordinator_free(NULL);
    milieu_registration_free(NULL);
    milieu_captured_free(NULL);
    OK(milieu_context_free(cx));
}

/* Functions that headers define: null is empty, or leads nowhere. */
static void null_inline(void) {
    milieu_text none = {NULL, 0}, empty = milieu_text_of(NULL), wrong = {NULL, 1};
    milieu_layer layer = milieu_layer_of(NULL, NULL);
    CHECK(empty.length == 0 && layer.id.length == 0 && layer.value.length == 0);
    CHECK(milieu_text_is(none, NULL) && milieu_text_is(none, "") && milieu_text_is(empty, NULL));
    CHECK(milieu_text_is(milieu_text_of(""), NULL) && !milieu_text_is(milieu_text_of("a"), NULL));
    CHECK(!milieu_text_is(none, "a") && !milieu_text_is(wrong, "a") && !milieu_text_is(wrong, NULL));
    CHECK(milieu_context_of(NULL) == NULL);
    EXPECT(MILIEU_NULL, milieu_context_sync(milieu_context_of(NULL)));
}

static void handles(void) {
    milieu_context *cx;
    milieu_coordinator *gone;
    uint64_t words[64] = {0};
    milieu_frame frame;
    OK(station_new(coordinator, NULL, &cx, NULL));
    EXPECT(MILIEU_WRONG_HANDLE, milieu_context_sync((milieu_context *)coordinator));
    SAYS("this is no `milieu_context`");
    EXPECT(MILIEU_WRONG_HANDLE, milieu_context_sync((milieu_context *)words));
    EXPECT(MILIEU_WRONG_HANDLE, milieu_context_sync((milieu_context *)((char *)words + 1)));
    EXPECT(MILIEU_WRONG_HANDLE, milieu_activation_activate(
                                    (milieu_activation *)words, milieu_layer_of("a", "b")));
    OK(milieu_context_enter(cx, milieu_layer_of("security", "A"), &frame));
    OK(milieu_context_free(cx));
    EXPECT(MILIEU_FREED, milieu_context_leave(cx, frame));
    SAYS("was freed");
    EXPECT(MILIEU_FREED, milieu_context_free(cx));
    OK(milieu_coordinator_new(&gone));
    OK(station_new(gone, NULL, &cx, NULL));
    milieu_coordinator_free(gone);
    milieu_coordinator_free(gone);
    EXPECT(MILIEU_FREED,
        milieu_coordinator_assign(gone, milieu_text_of("/value"), milieu_text_of("1")));
    /* A context goes on with what it shares. */
    OK(station_set_value(cx, 3));
    OK(milieu_context_free(cx));
    /* Handles are used again, and a frame of one context is none of another. */
    milieu_context *contexts[200];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 200; i++) {
            OK(station_new(coordinator, NULL, &contexts[i], NULL));
            milieu_frame own;
            OK(milieu_context_enter(contexts[i], milieu_layer_of("security", "A"), &own));
            EXPECT(MILIEU_WRONG_FRAME, milieu_context_leave(contexts[i], frame));
            frame = own;
        }
        for (int i = 0; i < 200; i++)
            OK(milieu_context_free(contexts[i]));
    }
}

static void texts(void) {
    milieu_context *cx;
    milieu_frame frame;
    OK(station_new(coordinator, NULL, &cx, NULL));
    milieu_layer layer = milieu_layer_of("security", "\xff\xfe");
    EXPECT(MILIEU_NOT_UTF8, milieu_context_enter(cx, layer, &frame));
    SAYS("`value` is not UTF-8");
    EXPECT(MILIEU_NOT_UTF8, milieu_context_set_text(
                                cx, STATION_AT_STATION_LANGUAGE, milieu_text_of("\xc3")));
    EXPECT(MILIEU_NOT_UTF8, milieu_coordinator_assign(
                                coordinator, milieu_text_of("/\x80"), milieu_text_of("1")));
    OK(milieu_context_free(cx));
}

milieu_result nothing(void *user, milieu_scope *scope);

/* A length that is none: a difference below zero, or the -1 of a function that has failed. */
static void lengths(void) {
    static const size_t wrong[] = {(size_t)-1, SIZE_MAX / 2 + 1};
    static const char memory[] __attribute__((aligned(16))) = "some text that is there";
    milieu_context *cx, *other;
    milieu_frame frame;
    milieu_text text = milieu_text_of(memory), found;
    milieu_registration *registration;
    const milieu_text *found_all;
    size_t count;
    OK(station_new(coordinator, NULL, &cx, NULL));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        text.length = wrong[i];
        milieu_layer layer = milieu_layer_of("security", "A");
        layer.value = text;
        EXPECT(MILIEU_INVALID, milieu_context_enter(cx, layer, &frame));
        SAYS("`value` is said to have a length of");
        EXPECT(MILIEU_INVALID, milieu_context_activate(cx, layer));
        EXPECT(MILIEU_INVALID, milieu_context_deactivate(cx, text));
        EXPECT(MILIEU_INVALID, milieu_context_set_text(cx, STATION_AT_STATION_LANGUAGE, text));
        EXPECT(MILIEU_INVALID, milieu_context_set_elements(cx, STATION_AT_STATION_HOSTS, &text, 1));
        EXPECT(MILIEU_INVALID, milieu_context_text(cx, text, &found));
        EXPECT(MILIEU_INVALID, milieu_context_elements(cx, text, &found_all, &count));
        EXPECT(MILIEU_INVALID, milieu_coordinator_assign(coordinator, text, text));
        EXPECT(MILIEU_INVALID, milieu_coordinator_on_activation(
                                   coordinator, text, NULL, NULL, NULL, &registration));
        EXPECT(MILIEU_INVALID, milieu_fail(text));
        /* As many elements, and as many as the bytes of which are too many. */
        text = milieu_text_of("A");
        layer.value = text;
        EXPECT(MILIEU_INVALID, milieu_context_enter_all(cx, &layer, wrong[i], &frame));
        SAYS("`layers`");
        EXPECT(MILIEU_INVALID,
            milieu_context_enter_all(cx, &layer, wrong[i] / sizeof layer + 1, &frame));
        EXPECT(MILIEU_INVALID,
            milieu_context_set_elements(cx, STATION_AT_STATION_HOSTS, &text, wrong[i]));
        EXPECT(MILIEU_INVALID, milieu_context_activate_each(
                                   cx, text, &text, wrong[i], nothing, NULL, NULL));
    }
    /* An address that no element has. */
    const void *between = memory + 1;
    EXPECT(MILIEU_INVALID, milieu_context_enter_all(cx, between, 1, &frame));
    SAYS("`layers` begins at");
    EXPECT(MILIEU_INVALID,
        milieu_context_set_elements(cx, STATION_AT_STATION_HOSTS, between, 1));
    OK(milieu_context_set_elements(cx, STATION_AT_STATION_HOSTS, between, 0));
    OK(milieu_context_unset(cx, STATION_AT_STATION_HOSTS));
    milieu_layout layout = *station_layout();
    layout.values = between;
    EXPECT(MILIEU_INVALID, milieu_context_new(coordinator, &layout, NULL, &other, NULL));
    OK(milieu_context_free(cx));
}

static milieu_context *acting;

static milieu_result meddle(void *user, milieu_activation *activation) {
    milieu_frame frame;
    (void)user;
    (void)activation;
    EXPECT(MILIEU_BUSY, milieu_context_enter(acting, milieu_layer_of("a", "b"), &frame));
    SAYS("in use");
    EXPECT(MILIEU_BUSY, milieu_context_activate(acting, milieu_layer_of("a", "b")));
    EXPECT(MILIEU_BUSY, milieu_context_free(acting));
    /* One of its own is as good as any. */
    milieu_context *cx;
    OK(station_new(coordinator, NULL, &cx, NULL));
    OK(milieu_context_activate(cx, milieu_layer_of("security", "A")));
    OK(milieu_context_free(cx));
    return MILIEU_OK;
}

static milieu_activation *kept;
static milieu_scope *kept_scope;

static void *use_elsewhere(void *activation) {
    milieu_text value;
    EXPECT(MILIEU_WRONG_THREAD, milieu_activation_value(activation, &value));
    SAYS("another thread's");
    return NULL;
}

static milieu_result keep(void *user, milieu_activation *activation) {
    pthread_t thread;
    milieu_text value;
    (void)user;
    kept = activation;
    CHECK(pthread_create(&thread, NULL, use_elsewhere, activation) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    OK(milieu_activation_value(activation, &value));
    CHECK(milieu_text_is(value, "1"));
    return MILIEU_OK;
}

static milieu_result keep_scope(void *user, milieu_scope *scope) {
    (void)user;
    kept_scope = scope;
    return milieu_scope_answer(scope, milieu_text_of("kept"));
}

/* Also when its thread has ended. */
static void *keep_in_a_thread(void *cx) {
    OK(milieu_context_activate(cx, milieu_layer_of("tamper", "1")));
    OK(milieu_context_activate_each(
        cx, milieu_text_of("load"), NULL, 0, keep_scope, NULL, NULL));
    return NULL;
}

static void what_was_lent_is_gone(void) {
    milieu_text value;
    EXPECT(MILIEU_FREED, milieu_activation_value(kept, &value));
    SAYS("gone");
    EXPECT(MILIEU_FREED, milieu_activation_activate(kept, milieu_layer_of("a", "b")));
    EXPECT(MILIEU_FREED, milieu_scope_answer(kept_scope, milieu_text_of("late")));
    SAYS("gone");
    CHECK(milieu_scope_identity(kept_scope) == 0);
}

static void callbacks(void) {
    milieu_registration *registration;
    OK(station_new(coordinator, NULL, &acting, NULL));
    OK(milieu_coordinator_on_activation(
        coordinator, milieu_text_of("tamper"), meddle, NULL, NULL, &registration));
    OK(milieu_context_activate(acting, milieu_layer_of("tamper", "1")));
    OK(milieu_context_deactivate(acting, milieu_text_of("tamper")));
    OK(milieu_context_deactivate(acting, milieu_text_of("security")));
    milieu_registration_free(registration);
    OK(milieu_coordinator_on_activation(
        coordinator, milieu_text_of("tamper"), keep, NULL, NULL, &registration));
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, keep_in_a_thread, acting) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    what_was_lent_is_gone();
    OK(milieu_context_deactivate(acting, milieu_text_of("load")));
    OK(milieu_context_deactivate(acting, milieu_text_of("tamper")));
    milieu_registration_free(registration);
    OK(milieu_context_free(acting));
}

static void cycles(void) {
    milieu_context *cx;
    milieu_text language;
    OK(station_new(coordinator, NULL, &cx, NULL));
    OK(milieu_context_activate_value(cx, STATION_AT_STATION_LANGUAGE));
    /* `session` following a value that depends on `session` would follow itself. */
    milieu_text depends_on = milieu_text_of("/station/%session%/language");
    EXPECT(MILIEU_CYCLE, milieu_context_activate_each(cx, milieu_text_of("session"), &depends_on, 1,
                             nothing, NULL, NULL));
    SAYS("/station/%session%/language");
    OK(milieu_context_layer(cx, milieu_text_of("session"), &language));
    CHECK(language.length == 0);
    OK(milieu_context_deactivate(cx, milieu_text_of("language")));
    OK(milieu_context_free(cx));
}

milieu_result nothing(void *user, milieu_scope *scope) {
    (void)user;
    (void)scope;
    return MILIEU_OK;
}

static void *use_hold(void *hold) {
    const milieu_key *keys;
    size_t count;
    EXPECT(MILIEU_WRONG_THREAD, milieu_hold_keys(hold, &keys, &count));
    SAYS("belongs to the thread");
    EXPECT(MILIEU_WRONG_THREAD, milieu_hold_free(hold));
    return NULL;
}

/* Two threads at one context: whoever comes while the other is in is told, also in the same
 * moment, and nothing is broken. */
static void *assign_at_once(void *cx) {
    for (int done = 0; done < 50;) {
        milieu_result result = milieu_context_set_signed(cx, STATION_AT_VALUE, done);
        CHECK(result == MILIEU_OK || result == MILIEU_BUSY);
        if (result == MILIEU_OK) done++;
        /* The other may have lost its processor while it is in. */
        else sched_yield();
    }
    return NULL;
}

static void at_once(void) {
    milieu_context *cx;
    pthread_t others[2];
    for (int round = 0; round < 4; round++) {
        OK(station_new(coordinator, NULL, &cx, NULL));
        for (int i = 0; i < 2; i++) {
            CHECK(pthread_create(&others[i], NULL, assign_at_once, cx) == 0);
        }
        for (int i = 0; i < 2; i++) CHECK(pthread_join(others[i], NULL) == 0);
        OK(milieu_context_free(cx));
    }
}

static void threads(void) {
    milieu_hold *hold, *again;
    pthread_t thread;
    OK(milieu_hold_new(coordinator, &hold));
    OK(milieu_hold_new(coordinator, &again));
    CHECK(pthread_create(&thread, NULL, use_hold, hold) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    OK(milieu_hold_free(again));
    OK(milieu_hold_free(hold));
    EXPECT(MILIEU_FREED, milieu_hold_free(hold));
}

static void tables(void) {
    milieu_context *cx;
    milieu_layout layout = *station_layout();
    milieu_context_options options = MILIEU_CONTEXT_OPTIONS;
    options.abi = 7;
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_context_new(coordinator, &layout, &options, &cx, NULL));
    layout.abi = 0;
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_context_new(coordinator, &layout, NULL, &cx, NULL));
    SAYS("compile with the library's own header");
    layout = *station_layout();
    layout.size = 8;
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_context_new(coordinator, &layout, NULL, &cx, NULL));
    SAYS("ends behind the struct");
    milieu_value value = {"/value", 1, MILIEU_I32, 0, NULL};
    layout.values = &value;
    layout.count = 1;
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_context_new(coordinator, &layout, NULL, &cx, NULL));
    value.kind = 99;
    EXPECT(MILIEU_WRONG_LAYOUT, milieu_context_new(coordinator, &layout, NULL, &cx, NULL));
    value.pattern = NULL;
    EXPECT(MILIEU_NULL, milieu_context_new(coordinator, &layout, NULL, &cx, NULL));
    /* A name that is known with another type. */
    milieu_entry type = {"type", "boolean"};
    milieu_value other = {"/value", 0, MILIEU_BOOL, 1, &type};
    layout.values = &other;
    layout.size = 8;
    EXPECT(MILIEU_UNFIT, milieu_context_new(coordinator, &layout, NULL, &cx, NULL));
    SAYS("/value and /value can both name one key but differ in type");
    /* Fields that do not hold what their keys can be: no type is that of a text. */
    other.pattern = "/untyped";
    other.metadata_count = 0;
    EXPECT(MILIEU_UNFIT, milieu_context_new(coordinator, &layout, NULL, &cx, NULL));
    SAYS("/untyped: a field of kind Bool does not hold every string; state the field's own type");
    type.text = "long";
    other.metadata_count = 1;
    other.kind = MILIEU_I16;
    EXPECT(MILIEU_UNFIT, milieu_context_new(coordinator, &layout, NULL, &cx, NULL));
    SAYS("a field of kind I16 does not hold every long");
    /* The same table, in the same place, and right: it is not what it was. */
    other.kind = MILIEU_I32;
    OK(milieu_context_new(coordinator, &layout, NULL, &cx, NULL));
    OK(milieu_context_set_signed(cx, 0, 70000));
    OK(milieu_context_free(cx));
    other.pattern = "/elsewhere";
    OK(milieu_context_new(coordinator, &layout, NULL, &cx, NULL));
    milieu_text name;
    OK(milieu_context_name(cx, 0, &name));
    CHECK(milieu_text_is(name, "/elsewhere"));
    OK(milieu_context_free(cx));
    /* Keys that break its rules. */
    milieu_coordinator *wrong;
    OK(milieu_coordinator_new(&wrong));
    OK(milieu_coordinator_assign(wrong, milieu_text_of("/value"), milieu_text_of("many")));
    EXPECT(MILIEU_UNFIT, station_new(wrong, NULL, &cx, NULL));
    SAYS("many");
    milieu_coordinator_free(wrong);
}

int main(void) {
    CHECK(strcmp(milieu_message(), "") == 0);
    CHECK(strcmp(milieu_result_name(MILIEU_BUSY), "MILIEU_BUSY") == 0);
    CHECK(strcmp(milieu_result_name((milieu_result)12345), "MILIEU_UNKNOWN") == 0);
    OK(milieu_coordinator_new(&coordinator));
    null_pointers();
    null_inline();
    handles();
    texts();
    lengths();
    callbacks();
    cycles();
    threads();
    at_once();
    tables();
    milieu_coordinator_free(coordinator);
    return 0;
}
