// The web server of the paper's section IV, and its controls.
//
//   context-server [--contexts milieu|none|mutex] [--server web|sockets] [--host 127.0.0.1]
//                  [--threads 4] [--close|--keep] [--loop no|switch|hold|serialize]
//                  [--time '1 ms'] [--when-asked] [--render PAGES]
//
// Each request is one of a session, whose page is in the session's language and says
// whether somebody tampers: the paper's listing. What varies is who keeps contexts:
//
//   milieu  contexts, as programs have them
//   none    the policy that does without: the same source, the control
//   mutex   contexts behind one lock, which requests, switches and holders take turns at,
//           as the paper's implementation has it: shows what these loads can do
//
// What carries the requests:
//
//   web      a library for web servers, as in the paper
//   sockets  nothing but sockets, so that contexts are as large a part as they can be
//
// Beside the requests runs a loop of the paper:
//
//   switch     activates and deactivates a layer, and sleeps for `--time` after each; `0 ms` is
//              without any sleep, and `never` without the loop
//   hold       holds the key set for 10 ms, with `--time` in between
//   serialize  writes the key set to its file, over and over
//
// `/begin` starts it where it waits (`--when-asked`) and counts anew, `/end` stops it and says
// what the process has used.
//
// `--render 1000` serves nobody: it makes so many pages, with `--loop switch` each after a
// switch by another context, and says how long a page takes, with the switch.

// pkg-config: cpp-httplib

#include "sockets.hpp"
#include "web.hpp"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace {

/** Serves until the process is told to end; nothing of it is left then. */
template <class Kind>
int serve(const Options &options) {
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ends, nullptr);
    std::string folder = std::filesystem::temp_directory_path() / "context-server-XXXXXX";
    if (!mkdtemp(folder.data())) return 1;
    milieu_options folders = MILIEU_OPTIONS;
    folders.user_folder = folders.system_folder = milieu_text_of(folder.c_str());
    auto &study = *new CaseStudy<Kind>(options, folders);
    if (options.pages > 0) {
        study.render();
    } else {
        study.start();
        const int port = options.server == "web" ? (new Web<Kind>(study))->serve()
                                                 : (new Sockets<Kind>(study))->serve();
        std::printf("listening on %d\n", port);
        std::fflush(stdout);
        int signal;
        sigwait(&ends, &signal);
    }
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    std::_Exit(0);
}

/** A time such as `13 ms` or `1 ns`. */
std::chrono::nanoseconds time_of(const std::string &text) {
    char *unit;
    const double number = std::strtod(text.c_str(), &unit);
    const std::pair<std::string_view, double> units[] = {
        {" ns", 1}, {" us", 1e3}, {" ms", 1e6}, {" s", 1e9}};
    for (auto [name, scale] : units) {
        if (unit == name) return std::chrono::nanoseconds(static_cast<long>(number * scale));
    }
    std::fprintf(stderr, "no time: %s\n", text.c_str());
    std::exit(2);
}

Options parse(int count, char **words) {
    Options options;
    std::string time = "0 ms";
    for (int i = 1; i < count; ++i) {
        std::string_view word = words[i];
        auto next = [&]() -> std::string { return i + 1 < count ? words[++i] : ""; };
        if (word == "--contexts") options.contexts = next();
        else if (word == "--server") options.server = next();
        else if (word == "--host") options.host = next();
        else if (word == "--threads") options.threads = std::atoi(next().c_str());
        else if (word == "--loop") options.loop = next();
        else if (word == "--render") options.pages = std::atol(next().c_str());
        else if (word == "--time") time = next();
        else if (word == "--close") options.closes = true;
        else if (word == "--keep") options.closes = false;
        else if (word == "--when-asked") options.when_asked = true;
        else {
            std::fprintf(stderr, "no option is called %s\n", words[i]);
            std::exit(2);
        }
    }
    if (options.server != "web" && options.server != "sockets") {
        std::fprintf(stderr, "servers are web or sockets, and not %s\n", options.server.c_str());
        std::exit(2);
    }
    if (time == "never") options.loop = "no";
    else options.time = time_of(time);
    return options;
}

} // namespace

int main(int count, char **words) {
    const Options options = parse(count, words);
    try {
        if (options.contexts == "milieu") return serve<Milieu>(options);
        if (options.contexts == "none") return serve<None>(options);
        if (options.contexts == "mutex") return serve<Mutex>(options);
    } catch (const milieu::Error &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    std::fprintf(stderr, "contexts are milieu, none or mutex, and not %s\n", options.contexts.c_str());
    return 2;
}
