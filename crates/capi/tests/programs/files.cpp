// What stands in files, and who has written it, from C++. argv[1] is an empty folder.

#include "check.hpp"
#include "files.hpp"

#include <stdexcept>
#include <unistd.h>

using milieu::Commit;
using milieu::Conflict;
using milieu::Coordinator;
using milieu::Decision;
using Context = milieu::ThreadContext<files::Environment>;

static milieu::Options options;

// Another program.
static void elsewhere(const char *name, const char *value) {
    const Coordinator other("files", options);
    other.assign(name, value);
    other.persist();
}

static std::string in_file(const char *name) {
    const Coordinator other("files", options);
    const auto lock = other.requireLock();
    for (const milieu::Key &key : lock.keys()) {
        if (key.name == name) return std::string(key.value);
    }
    return {};
}

static bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

// This program has level 5, as it knows; it makes 6 of it, and another one 7.
static void conflict(const Coordinator &c) {
    c.assign("/files/level", "5");
    c.persist("/", MILIEU_OURS);
    elsewhere("/files/level", "7");
    c.assign("/files/level", "6");
}

static void conflicts() {
    const Coordinator c("files", options);
    const Context tc(c);
    conflict(c);
    ASSERT(contains(thrown(MILIEU_FILES, [&] { c.persist(); }), "/files/level"));
    thrown(MILIEU_FILES, [&] {
        c.persist("/", [](const Conflict &) { return Decision::refuse(); });
    });
    thrown(MILIEU_INVALID, [&] {
        c.persist("/", [](const Conflict &) { return Decision::value("many"); });
    });
    // What it throws goes on, whatever it is, and nothing is written.
    try {
        c.persist("/", [](const Conflict &) -> Decision { throw std::out_of_range("nobody"); });
        ASSERT(!"it throws");
    } catch (const std::out_of_range &error) {
        ASSERT(std::string_view(error.what()) == "nobody");
    }
    ASSERT(in_file("/files/level") == "7");
    int asked = 0;
    const auto written = c.persist("/", [&](const Conflict &it) {
        asked++;
        ASSERT(it.name() == "/files/level" && it.base() == "5");
        ASSERT(it.ours() == "6" && it.theirs() == "7" && !it.is_secret());
        ASSERT(it.by() && it.by()->process == static_cast<unsigned>(getpid()));
        // It may do what it likes.
        Context own(c);
        own->files.interval = 70;
        ASSERT(c.persist("/files/interval") == 1);
        return Decision::value("67");
    });
    // The value is neither that of this program nor in its count.
    ASSERT(asked == 1 && written == 0 && in_file("/files/level") == "67");
    tc.sync();
    ASSERT(tc->files.level == 67 && tc->files.interval == 70);
    conflict(c);
    const auto ours = [](const Conflict &) { return Decision::ours(); };
    ASSERT(c.persist("/", ours) == 1 && in_file("/files/level") == "6");
    conflict(c);
    // One that may not be copied.
    auto theirs = [only = std::make_unique<int>(1)](const Conflict &) { return Decision::theirs(); };
    ASSERT(c.persist("/", std::move(theirs)) == 0 && in_file("/files/level") == "7");
    conflict(c);
    c.persist("/", [](const Conflict &) { return Decision::remove(); });
    ASSERT(in_file("/files/level").empty());
    tc.sync();
    ASSERT(tc->files.level == 1);
}

static void notices() {
    elsewhere("/files/anna/lang", "de");
    elsewhere("/files/pause", "9999");
    elsewhere("/files/token", "hunter1");
    elsewhere("/files/password", "hunter2");
    elsewhere("/files/port", "81");
    const Coordinator c("files", options);
    c.remove("/files/interval");
    c.persist();
    const Coordinator other("files", options);
    ASSERT(other.notices().empty());
    const Context tc(other);
    const auto notices = other.notices();
    ASSERT(notices.size() == 4);
    for (const milieu::Notice &notice : notices) {
        ASSERT(!contains(notice.message, "hunter") && contains(notice.origin, "files.ini:"));
        if (notice.name == "/files/anna/lang") {
            ASSERT(notice.fate == MILIEU_RENAMED && notice.value == "de" && !notice.is_error);
            ASSERT(notice.targets.size() == 1 && notice.targets[0].name == "/files/anna/language");
            ASSERT(notice.targets[0].outcome == MILIEU_TAKEN && notice.reason.empty());
        } else if (notice.name == "/files/pause") {
            ASSERT(notice.is_error && notice.targets[0].outcome == MILIEU_NOT_ALLOWED);
        } else if (notice.name == "/files/password") {
            ASSERT(notice.is_secret && !notice.value);
            ASSERT(notice.targets[0].outcome == MILIEU_OUTRANKED);
        } else {
            ASSERT(notice.name == "/files/port" && notice.fate == MILIEU_DEPRECATED);
            ASSERT(notice.reason == "use a socket" && notice.targets.empty());
        }
    }
}

static void history() {
    const Coordinator c("files", options);
    const Context tc(c);
    for (int level : {2, 3}) {
        tc->files.level = level;
        c.persist();
    }
    tc->files.token = "hunter3";
    c.persist();
    const auto log = c.log();
    ASSERT(log.size() > 3);
    const Commit &of_secret = log.back();
    const Commit &last = log[log.size() - 2];
    ASSERT(of_secret.changes[0].is_secret && !of_secret.changes[0].after);
    ASSERT(contains(thrown(MILIEU_FILES, [&] { c.undo(); }), "is secret"));
    ASSERT(last.whose == "user" && contains(last.file, "files.ini") && last.id + 1 == of_secret.id);
    ASSERT(last.author.process == static_cast<unsigned>(getpid()) && !last.author.user.empty());
    const auto age = std::chrono::system_clock::now() - last.time;
    ASSERT(age > -std::chrono::seconds(1) && age < std::chrono::minutes(10));
    ASSERT(!last.undoes && !last.undone_by && last.changes.size() == 1);
    ASSERT(last.changes[0].name == "/files/level" && !last.changes[0].is_secret);
    ASSERT(last.changes[0].before == "2" && last.changes[0].after == "3");

    ASSERT(c.undo(last) == 1);
    tc.sync();
    ASSERT(tc->files.level == 2 && in_file("/files/level") == "2");
    const auto after = c.log();
    ASSERT(after.size() == log.size() + 1 && after.back().undoes == last.id);
    ASSERT(after[log.size() - 2].undone_by == after.back().id);
    ASSERT(contains(thrown(MILIEU_FILES, [&] { c.undo(last); }), "is taken back by"));
    // What takes back is taken back; others have changed it meanwhile.
    elsewhere("/files/level", "9");
    thrown(MILIEU_FILES, [&] { c.undo(after.back()); });
    try {
        c.undo(after.back(), [](const Conflict &) -> Decision { throw 7; });
        ASSERT(!"it throws");
    } catch (int thrown) {
        ASSERT(thrown == 7);
    }
    ASSERT(c.undo(after.back(), MILIEU_THEIRS) == 0 && in_file("/files/level") == "9");
    c.undo(after.back(), [](const Conflict &it) {
        ASSERT(it.base() == "2" && it.ours() == "3" && it.theirs() == "9");
        return Decision::ours();
    });
    tc.sync();
    ASSERT(tc->files.level == 3);
    Commit none = last;
    none.id = 4711;
    ASSERT(contains(thrown(MILIEU_NO_SUCH, [&] { c.undo(none, MILIEU_OURS); }), "no 4711"));
}

static void layers() {
    const Coordinator c;
    const Context tc(c);
    c.check_layer("session");
    const auto said = thrown(MILIEU_NO_SUCH, [&] { c.check_layer("sesion"); });
    ASSERT(said == "there is no layer `sesion`; did you mean `session`?");
}

int main(int argc, char **argv) {
    ASSERT(argc == 2);
    options.user_folder = options.system_folder = argv[1];
    conflicts();
    notices();
    history();
    layers();
}
