/* What a test program says when something is not as it should be. */
#ifndef CHECK_H
#define CHECK_H

#include <milieu.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                      \
    do {                                                                                      \
        if (!(condition)) {                                                                   \
            fprintf(stderr, "%s:%d: not so: %s; last message: %s\n", __FILE__, __LINE__,      \
                #condition, milieu_message());                                                \
            exit(1);                                                                          \
        }                                                                                     \
    } while (0)

/* The result has to be this one; what goes wrong has a message that says so. */
#define EXPECT(expected, call)                                                                \
    do {                                                                                      \
        milieu_result result_ = (call);                                                       \
        if (result_ != (expected)) {                                                          \
            fprintf(stderr, "%s:%d: %s is %s and not %s: %s\n", __FILE__, __LINE__, #call,    \
                milieu_result_name(result_), #expected, milieu_message());                    \
            exit(1);                                                                          \
        }                                                                                     \
    } while (0)

#define OK(call) EXPECT(MILIEU_OK, call)

#define SAYS(part)                                                                            \
    do {                                                                                      \
        if (!strstr(milieu_message(), (part))) {                                              \
            fprintf(stderr, "%s:%d: says `%s` and not `%s`\n", __FILE__, __LINE__,            \
                milieu_message(), (part));                                                    \
            exit(1);                                                                          \
        }                                                                                     \
    } while (0)

#endif
