// expect: an enumeration of a specification
#include "station.hpp"

auto wrong() { return milieu::parse<int>("5"); }
