/* What sensor.c offers to sensor.cpp. */
#ifndef SENSOR_H
#define SENSOR_H

#include <milieu/streams.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One measurement. */
struct reading {
    double level;
    milieu_text battery;
};

/* A source that measures 9, 8, 7 … once a second; the caller frees it. */
milieu_result sensor_open(const milieu_streams *streams, const char *name,
    milieu_source **source);

#ifdef __cplusplus
}
#endif

#endif
