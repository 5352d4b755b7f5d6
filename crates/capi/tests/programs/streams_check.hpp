// What test programs in C++ that read streams have in common.
#ifndef STREAMS_CHECK_HPP
#define STREAMS_CHECK_HPP

#include "check.hpp"

#include <milieu/streams.hpp>

#include <fstream>
#include <string>
#include <thread>

/** Where a program may write, if it is told. */
inline std::string folder;

inline void write(const std::string &name, std::string_view content) {
    std::ofstream file(folder + "/" + name);
    ASSERT(file << content);
}

/** An event that has to be there. */
inline milieu::Event next(std::optional<milieu::Event> event) {
    ASSERT(event);
    return *event;
}

/** Waits until it is so, for twenty seconds. */
template <class IsSo>
bool eventually(IsSo &&is_so) {
    for (int i = 0; i < 2000 && !is_so(); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return is_so();
}

#endif
