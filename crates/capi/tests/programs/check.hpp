// What a test program says when something is not as it should be.
#ifndef CHECK_HPP
#define CHECK_HPP

#include <milieu.hpp>

#include <cstdio>
#include <cstdlib>

#define ASSERT(...)                                                                           \
    do {                                                                                      \
        if (!(__VA_ARGS__)) {                                                                 \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #__VA_ARGS__);    \
            std::exit(1);                                                                     \
        }                                                                                     \
    } while (0)

#endif
