// The program that others are compared with: it calls a Rust library that does next to nothing.
// Without an argument it asks for what cannot be, so that a panic is caught.
#include <cstdint>
#include <cstdio>

extern "C" std::uint32_t trivial(std::uint32_t number);

int main(int argc, char **) { std::printf("%u\n", trivial(std::uint32_t(argc - 1))); }
