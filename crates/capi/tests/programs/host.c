/* Loads a library, twice, beside a coordinator of its own: argv[1] is the library. */

#include "check.h"
#include "station.h"

#include <dlfcn.h>

int main(int argc, char **argv) {
    milieu_coordinator *coordinator;
    milieu_context *cx;
    const struct station *env;
    CHECK(argc == 2);
    for (int round = 1; round <= 2; round++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!library) fprintf(stderr, "%s\n", dlerror());
        CHECK(library);
        int (*run)(int);
        *(void **)&run = dlsym(library, "plugin_run");
        CHECK(run && run(round) == round);
        CHECK(dlclose(library) == 0);
    }
    OK(milieu_coordinator_new(&coordinator));
    OK(station_new(coordinator, NULL, &cx, &env));
    CHECK(env->value == 0 && milieu_text_is(env->station.language, "en"));
    OK(milieu_context_free(cx));
    milieu_coordinator_free(coordinator);
    return 0;
}
