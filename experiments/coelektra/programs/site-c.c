/* Reads every value of `site.ini`: what a specification adds to a program in C. */

#include "site.h"

#include <stdio.h>

int main(void) {
    milieu_coordinator *coordinator;
    milieu_context *cx;
    const struct site *env;
    if (milieu_coordinator_open(milieu_text_of("site"), NULL, &coordinator) != MILIEU_OK
        || site_new(coordinator, NULL, &cx, &env) != MILIEU_OK) {
        fprintf(stderr, "%s\n", milieu_message());
        return 1;
    }
    printf(MILIEU_TEXT_FORMAT "\n", MILIEU_TEXT_ARGUMENTS(env->sw.pi.language));
    printf(MILIEU_TEXT_FORMAT "\n", MILIEU_TEXT_ARGUMENTS(env->sw.pi.title));
    printf(MILIEU_TEXT_FORMAT "\n", MILIEU_TEXT_ARGUMENTS(env->sw.pi.hello));
    printf(MILIEU_TEXT_FORMAT "\n", MILIEU_TEXT_ARGUMENTS(env->sw.pi.goodbye));
    printf("%ld\n", (long)env->sw.pi.tamper);
    printf("%ld\n", (long)env->sw.pi.refresh);
    printf("%ld\n", (long)env->sw.pi.visits);
    printf("%ld\n", (long)env->sw.pi.theme);
    printf("%ld\n", (long)env->sw.pi.width);
    printf("%ld\n", (long)env->sw.pi.threads);
    printf("%ld\n", (long)env->sw.pi.port);
    printf(MILIEU_TEXT_FORMAT "\n", MILIEU_TEXT_ARGUMENTS(env->sw.pi.root));
    printf("%f\n", (double)env->sw.pi.timeout);
    printf("%ld\n", (long)env->sw.pi.verbose);
    printf(MILIEU_TEXT_FORMAT "\n", MILIEU_TEXT_ARGUMENTS(env->hw.pi.gpio.folder));
    printf(MILIEU_TEXT_FORMAT "\n", MILIEU_TEXT_ARGUMENTS(env->hw.pi.gpio.tamper));
    printf("%ld\n", (long)env->hw.pi.gpio.edge);
    printf("%ld\n", (long)env->hw.pi.gpio.poll);
    printf("%ld\n", (long)env->hw.pi.led);
    printf("%ld\n", (long)env->hw.pi.clock);
    printf(MILIEU_TEXT_FORMAT "\n", MILIEU_TEXT_ARGUMENTS(env->log.file));
    printf("%ld\n", (long)env->log.level);
    printf("%ld\n", (long)env->version);
    milieu_context_free(cx);
    milieu_coordinator_free(coordinator);
    return 0;
}
