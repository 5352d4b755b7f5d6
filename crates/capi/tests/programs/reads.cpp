// Reading a contextual value, beside reading a variable: the instructions are compared.

#include "station.hpp"

extern "C" {

bool contextual_boolean(const station::Watchdog::Enable &value) { return value; }
bool plain_boolean(const bool &value) { return value; }

std::int32_t contextual_number(const station::Value &value) { return value; }
std::int32_t plain_number(const std::int32_t &value) { return value; }

double contextual_factor(const station::Environment &env) { return env.station.factor; }
struct Plain {
    unsigned char before[offsetof(station::Environment, station.factor)];
    double factor;
};
double plain_factor(const Plain &env) { return env.factor; }

std::size_t contextual_text(const station::Station::Language &value) {
    return std::string_view(value).size();
}
std::size_t plain_text(const milieu_text &value) { return value.length; }

std::int32_t contextual_sum(const station::Value &value) {
    std::int32_t sum = 0;
    for (std::int32_t i = 0; i < value; ++i) sum += i ^ value;
    return sum;
}
std::int32_t plain_sum(const std::int32_t &value) {
    std::int32_t sum = 0;
    for (std::int32_t i = 0; i < value; ++i) sum += i ^ value;
    return sum;
}
}
