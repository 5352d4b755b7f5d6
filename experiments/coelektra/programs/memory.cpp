// How much more memory a key set takes than an empty one, as the paper measures it: the
// largest resident set of a process of its own, for so many keys and for none.
//
// `source` says where the keys come from: `assigned` by the program, or from its `file`.

#include "milieu_bench.h"

#include <milieu.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

/** Opens settings in a folder; the program may assign keys, and write them. */
int fill(const char *folder, long assigned, bool writes) {
    milieu_options folders = MILIEU_OPTIONS;
    folders.user_folder = folders.system_folder = milieu_text_of(folder);
    milieu::Coordinator coordinator("memory", folders);
    for (long i = 0; i < assigned; ++i) {
        coordinator.assign("/memory/key/" + std::to_string(i), "value " + std::to_string(i));
    }
    if (writes) coordinator.persist();
    // Of this program, and not of the one that has started it.
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.compare(0, 6, "VmHWM:") == 0) std::printf("%ld\n", std::atol(line.c_str() + 6));
    }
    return 0;
}

/** Runs this program once more; kilobytes. */
long kilobytes(const std::string &folder, long assigned, bool writes) {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe");
    const std::string command = "exec '" + self + "' '" + folder + "' " + std::to_string(assigned)
        + (writes ? " writes" : "");
    FILE *child = popen(command.c_str(), "r");
    long size = -1;
    if (!child || std::fscanf(child, "%ld", &size) != 1) size = -1;
    return child && pclose(child) == 0 ? size : -1;
}

} // namespace

int main(int count, char **words) {
    if (count > 2) return fill(words[1], std::atol(words[2]), count > 3);
    milieu_bench bench;
    char source[16];
    double keys = 0;
    if (!milieu_bench_start(&bench) || !milieu_bench_number(&bench, "keys", &keys)
        || !milieu_bench_text(&bench, "source", source, sizeof source)) {
        return milieu_bench_error("keys and source have to be said");
    }
    std::string folder = std::filesystem::temp_directory_path() / "memory-XXXXXX";
    if (!mkdtemp(folder.data())) return milieu_bench_error("there is no folder for settings");
    const bool is_file = std::strcmp(source, "file") == 0;
    const long empty = kilobytes(folder, 0, false);
    long filled = is_file ? kilobytes(folder, static_cast<long>(keys), true) : 0;
    if (filled >= 0) filled = kilobytes(folder, is_file ? 0 : static_cast<long>(keys), false);
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    if (empty < 0 || filled < 0) return milieu_bench_error("the process has failed");
    milieu_bench_result("empty_kilobytes", static_cast<double>(empty));
    milieu_bench_result("kilobytes", static_cast<double>(filled - empty));
    return 0;
}
