/* A library that is loaded while a program runs, with a coordinator of its own. */

#include "check.h"
#include "station.h"

int plugin_run(int value);
int plugin_run(int value) {
    milieu_coordinator *coordinator;
    milieu_context *cx;
    const struct station *env;
    milieu_frame frame;
    OK(milieu_coordinator_new(&coordinator));
    OK(station_new(coordinator, NULL, &cx, &env));
    CHECK(env->value == 0);
    OK(milieu_context_enter(cx, station_layer_session(milieu_text_of("plugin")), &frame));
    OK(station_set_value(cx, value));
    OK(station_set_station_language(cx, milieu_text_of("de")));
    CHECK(milieu_text_is(env->station.language, "de"));
    OK(milieu_context_leave(cx, frame));
    CHECK(milieu_text_is(env->station.language, "en"));
    int seen = env->value;
    OK(milieu_context_free(cx));
    milieu_coordinator_free(coordinator);
    return seen;
}
