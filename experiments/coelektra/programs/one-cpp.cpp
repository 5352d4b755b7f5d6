// Reads the only value of `one.ini`: what a specification adds to a program in C++.

#include "one.hpp"

#include <cstdio>
#include <string>

int main() {
    milieu::Coordinator coordinator("one");
    milieu::ThreadContext<one::Environment> tc(coordinator);
    std::puts(std::string(tc->language.get()).c_str());
}
