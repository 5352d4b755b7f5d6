/* expect: station_set_station_serial */
#include "station.h"

milieu_result change(milieu_context *cx);
milieu_result change(milieu_context *cx) {
    return station_set_station_serial(cx, milieu_text_of("1"));
}
