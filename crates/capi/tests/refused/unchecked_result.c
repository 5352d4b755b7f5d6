/* expect: warn_unused_result */
/* expect: unused-result */
#include "station.h"

void change(milieu_context *cx);
void change(milieu_context *cx) { station_set_value(cx, 1); }
