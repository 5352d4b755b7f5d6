// Layers as a program writes them by hand.
#ifndef BY_HAND_HPP
#define BY_HAND_HPP

#include <string>
#include <string_view>

struct Security {
    static constexpr std::string_view id() { return "security"; }
    std::string operator()() const { return level; }
    std::string level;
};

struct Language {
    static std::string id() { return "language"; }
    std::string operator()() const { return name; }
    std::string name;
};

#endif
