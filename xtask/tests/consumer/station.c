#include "station.h"
#include <stdio.h>

int main(void) {
    milieu_coordinator *coordinator;
    milieu_context *cx;
    const struct station *env;
    milieu_frame frame;
    if (milieu_coordinator_new(&coordinator) || station_new(coordinator, NULL, &cx, &env)) return 1;
    if (milieu_context_enter(cx, station_layer_session(milieu_text_of("anna")), &frame)) return 1;
    if (station_set_station_language(cx, milieu_text_of("de"))) return 1;
    printf(MILIEU_TEXT_FORMAT " %d\n", MILIEU_TEXT_ARGUMENTS(env->station.language),
        (int)env->station.interval);
    milieu_context_free(cx);
    milieu_coordinator_free(coordinator);
    return 0;
}
