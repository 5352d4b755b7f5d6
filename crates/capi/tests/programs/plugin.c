/* A library that is loaded while a program runs, with a coordinator of its own. */

#include "check.h"
#include "plugin.h"
#include "station.h"

#include <pthread.h>

static plugin_meanwhile host;
static int destroyed;

static milieu_result fails(void *user, milieu_activation *activation) {
    (void)activation;
    ++*(int *)user;
    host();
    return milieu_fail(milieu_text_of("the plug-in's bus is off"));
}

static void destroy(void *user) {
    (void)user;
    destroyed++;
}

/* The last handle of this thread goes when the thread does. */
static void *in_a_thread(void *coordinator) {
    milieu_context *cx;
    const struct station *env;
    OK(station_new(coordinator, NULL, &cx, &env));
    CHECK(env->value > 0 && milieu_text_is(env->station.language, "en"));
    EXPECT(MILIEU_CALLBACK, milieu_context_activate(cx, milieu_layer_of("tamper", "thread")));
    SAYS("`tamper`");
    OK(milieu_context_deactivate(cx, milieu_text_of("tamper")));
    OK(milieu_context_free(cx));
    return NULL;
}

const char *plugin_milieu(void) { return milieu_version(); }

int plugin_run(int value, plugin_meanwhile meanwhile) {
    milieu_coordinator *coordinator;
    milieu_registration *registration;
    milieu_context *cx;
    const struct station *env;
    milieu_frame frame;
    pthread_t thread;
    int acted = 0;
    host = meanwhile;
    destroyed = 0;
    OK(milieu_coordinator_new(&coordinator));
    OK(station_new(coordinator, NULL, &cx, &env));
    CHECK(env->value == 0 && !env->station.alarm);
    OK(milieu_coordinator_on_activation(coordinator, milieu_text_of("tamper"), fails, &acted,
        destroy, &registration));
    OK(milieu_context_enter(cx, station_layer_session(milieu_text_of("plugin")), &frame));
    OK(station_set_value(cx, value));
    OK(station_set_station_language(cx, milieu_text_of("de")));
    meanwhile();
    CHECK(milieu_text_is(env->station.language, "de"));
    EXPECT(MILIEU_CALLBACK, milieu_context_activate(cx, milieu_layer_of("tamper", "1")));
    CHECK(acted == 1);
    OK(milieu_context_leave(cx, frame));
    CHECK(milieu_text_is(env->station.language, "en"));
    CHECK(pthread_create(&thread, NULL, in_a_thread, coordinator) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(acted == 2);
    OK(milieu_context_sync(cx));
    milieu_text tamper;
    OK(milieu_context_layer(cx, milieu_text_of("tamper"), &tamper));
    CHECK(tamper.length == 0);
    int seen = env->value;
    OK(milieu_context_free(cx));
    milieu_registration_free(registration);
    CHECK(destroyed == 1);
    milieu_coordinator_free(coordinator);
    return seen;
}
