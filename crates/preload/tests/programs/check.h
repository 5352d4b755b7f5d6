/* What test programs say when something is not as it should be. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define CHECK(it) \
    do { \
        if (!(it)) { \
            fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #it, errno); \
            _exit(99); \
        } \
    } while (0)

#endif
