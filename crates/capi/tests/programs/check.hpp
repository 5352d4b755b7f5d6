// What a test program says when something is not as it should be.
#ifndef CHECK_HPP
#define CHECK_HPP

#include <milieu.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#define ASSERT(...)                                                                           \
    do {                                                                                      \
        if (!(__VA_ARGS__)) {                                                                 \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #__VA_ARGS__);    \
            std::exit(1);                                                                     \
        }                                                                                     \
    } while (0)

/** What is thrown by a call, which has to fail so, says. */
template <class Call>
std::string thrown(milieu_result expected, Call &&call) {
    try {
        call();
    } catch (const milieu::Error &error) {
        ASSERT(error.result() == expected);
        return error.what();
    }
    ASSERT(!"it throws");
    return {};
}

inline bool has(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

#endif
