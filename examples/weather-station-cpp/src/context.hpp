/*
 * What the parts of the station share: the environment and the layers of ../station.ini.
 */
#pragma once

#include <station.hpp> // generated

using Context = milieu::ThreadContext<station::Environment>;
using namespace station::layer;
