/*
 * How a program in C++ begins and ends: its command line, and what it says of an error. Included by
 * milieu.hpp.
 */
/* Whoever begins here gets the whole, which includes this where it is needed. */
#include <milieu.hpp>

#ifndef MILIEU_PROGRAM_HPP
#define MILIEU_PROGRAM_HPP

#include <cstdio>

namespace milieu {

/**
 * How an application is opened.
 *
 *   auto options = milieu::Options::command_line<station::Environment>(argc, argv);
 *   options.description = "Serves the weather.";
 *   milieu::Coordinator coordinator("station", options);
 */
struct Options {
    /** What `--help` says of the program. */
    std::string description = {};
    /** The folder of the user's settings; empty is as the XDG specification says. */
    std::string user_folder = {};
    /** The folder of the system's settings; empty is as the XDG specification says. */
    std::string system_folder = {};
    /** The command line, as main() has it; null where files alone count. It is not copied. */
    const char *const *arguments = nullptr;
    int argument_count = 0;
    /** Whose options and variables these are; with `arguments`. */
    const milieu_layout *layout = nullptr;

    /** With the command line and the variables that the specification of `Environment` has. */
    template <class Environment>
    [[nodiscard]] static Options command_line(int argc, const char *const *argv) {
        Options options;
        options.arguments = argv;
        options.argument_count = argc;
        options.layout = Environment::layout_();
        return options;
    }
    /** The options of the C interface; they refer to these. */
    [[nodiscard]] milieu_options c() const noexcept {
        return {MILIEU_ABI, argument_count, arguments, layout, detail::text(user_folder),
            detail::text(system_folder), detail::text(description)};
    }
};

/**
 * For the end of main(): says why a program ends, and gives its exit code. The text that `--help`
 * and `--version` ask for goes to standard output, and the code is 0. Everything else goes to
 * standard error, after the program's name: 2 where the command line, a setting or its file is
 * wrong, otherwise 1.
 *
 *   int main(int argc, char **argv) try {
 *       …
 *   } catch (const std::exception &error) {
 *       return milieu::report("station", error);
 *   }
 */
[[nodiscard]] inline int report(std::string_view program, const std::exception &error) {
    const char *what = error.what();
    if (dynamic_cast<const HelpAsked *>(&error)) {
        std::printf("%s\n", what);
        return 0;
    }
    std::fflush(stdout);
    std::fprintf(stderr, MILIEU_TEXT_FORMAT ": %s\n", static_cast<int>(program.size()),
        program.data(), what);
    const auto *ours = dynamic_cast<const Error *>(&error);
    if (!ours) return 1;
    switch (ours->result()) {
    case MILIEU_USAGE:
    case MILIEU_FILES:
    case MILIEU_INVALID:
    case MILIEU_UNFIT:
    case MILIEU_WRONG_NAME:
    case MILIEU_WRONG_FLOW: return 2;
    default: return 1;
    }
}

} // namespace milieu

#endif
