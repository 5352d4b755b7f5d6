/*
 * Loads a library, twice, while a coordinator and a layer of its own are in use. argv[1] is the
 * library; argv[2] is `shared` where both use one Milieu, and `own` where it has brought its own.
 */

#include "check.h"
#include "plugin.h"
#include "station.h"

#include <dlfcn.h>

static milieu_coordinator *coordinator;
static milieu_context *cx;
static const struct station *env;
static int acted, asked;

static milieu_result act(void *user, milieu_activation *activation) {
    (void)user;
    (void)activation;
    acted++;
    return MILIEU_OK;
}

/* The layers that are active here: that which was entered, and nothing else. */
static void only_session_is_active(void) {
    const milieu_layer *layers;
    size_t count;
    OK(milieu_context_layers(cx, &layers, &count));
    CHECK(count == 1 && milieu_text_is(layers[0].id, "session"));
    CHECK(milieu_text_is(layers[0].value, "host"));
}

/* Whatever a library does with what is its own, the host's is as the host has left it. */
static void is_as_it_was(void) {
    bool news;
    milieu_text name;
    only_session_is_active();
    OK(milieu_context_has_news(cx, &news));
    CHECK(!news && acted == 0);
    CHECK(env->value == -7 && milieu_text_is(env->station.language, "fr"));
    CHECK(env->station.interval == 60 && !env->station.alarm);
    OK(milieu_context_name(cx, STATION_AT_STATION_LANGUAGE, &name));
    CHECK(milieu_text_is(name, "/station/host/language"));
    OK(milieu_context_sync(cx));
    CHECK(env->value == -7 && milieu_text_is(env->station.language, "fr"));
}

/* And it goes on working: in the midst of what the library does, in whichever thread. */
static void meanwhile(void) {
    milieu_frame frame;
    asked++;
    is_as_it_was();
    OK(milieu_context_enter(cx, station_layer_session(milieu_text_of("guest")), &frame));
    CHECK(milieu_text_is(env->station.language, "en"));
    OK(station_set_station_language(cx, milieu_text_of("it")));
    CHECK(milieu_text_is(env->station.language, "it"));
    OK(milieu_context_unset(cx, STATION_AT_STATION_LANGUAGE));
    OK(milieu_context_leave(cx, frame));
    EXPECT(MILIEU_INVALID, station_set_station_interval(cx, 0));
    SAYS("/station/%/interval");
    is_as_it_was();
}

int main(int argc, char **argv) {
    milieu_registration *registration;
    milieu_frame frame;
    CHECK(argc == 3);
    bool is_shared = strcmp(argv[2], "shared") == 0;
    OK(milieu_coordinator_new(&coordinator));
    OK(milieu_coordinator_on_activation(
        coordinator, milieu_text_of("tamper"), act, NULL, NULL, &registration));
    OK(station_new(coordinator, NULL, &cx, &env));
    OK(station_set_value(cx, -7));
    OK(milieu_context_enter(cx, station_layer_session(milieu_text_of("host")), &frame));
    OK(station_set_station_language(cx, milieu_text_of("fr")));
    for (int round = 1; round <= 2; round++) {
        is_as_it_was();
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!library) fprintf(stderr, "%s\n", dlerror());
        CHECK(library);
        int (*run)(int, plugin_meanwhile);
        const char *(*milieu)(void);
        *(void **)&run = dlsym(library, "plugin_run");
        *(void **)&milieu = dlsym(library, "plugin_milieu");
        CHECK(run && milieu && strcmp(milieu(), milieu_version()) == 0);
        CHECK((milieu() == milieu_version()) == is_shared);
        asked = 0;
        is_as_it_was();
        CHECK(run(round, meanwhile) == round);
        CHECK(asked == 3);
        is_as_it_was();
        CHECK(dlclose(library) == 0);
        meanwhile();
    }
    /* What was entered before is left, and what was registered runs. */
    OK(milieu_context_activate(cx, milieu_layer_of("tamper", "1")));
    CHECK(acted == 1 && milieu_text_is(env->station.language, "fr"));
    OK(milieu_context_leave(cx, frame));
    CHECK(env->value == -7 && milieu_text_is(env->station.language, "en"));
    milieu_registration_free(registration);
    OK(milieu_context_free(cx));
    milieu_coordinator_free(coordinator);
    return 0;
}
