/* Reads the only value of `one.ini`: what a specification adds to a program in C. */

#include "one.h"

#include <stdio.h>

int main(void) {
    milieu_coordinator *coordinator;
    milieu_context *cx;
    const struct one *env;
    if (milieu_coordinator_open(milieu_text_of("one"), NULL, &coordinator) != MILIEU_OK
        || one_new(coordinator, NULL, &cx, &env) != MILIEU_OK) {
        fprintf(stderr, "%s\n", milieu_message());
        return 1;
    }
    printf(MILIEU_TEXT_FORMAT "\n", MILIEU_TEXT_ARGUMENTS(env->language));
    milieu_context_free(cx);
    milieu_coordinator_free(coordinator);
    return 0;
}
