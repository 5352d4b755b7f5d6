/* expect: read-only */
/* expect: const-qualified */
#include "station.h"

void change(const struct station *env);
void change(const struct station *env) { env->value = 1; }
