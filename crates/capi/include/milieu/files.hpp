/*
 * What stands in files of settings, and who has written it: what the coordinator says of them, over
 * milieu/files.h. Included by milieu.hpp.
 */
/* Whoever begins here gets the whole, which includes this where it is needed. */
#include <milieu.hpp>

#ifndef MILIEU_FILES_HPP
#define MILIEU_FILES_HPP

#include <milieu/files.h>

namespace milieu {

namespace detail {

/** A value, or none. */
inline std::optional<std::string_view> value(milieu_text text) noexcept {
    if (!text.bytes) return std::nullopt;
    return view(text);
}

/** A value that outlives its text, or none. */
inline std::optional<std::string> kept(milieu_text text) {
    return std::optional<std::string>(value(text));
}

} // namespace detail

/* ---------------------------------------------------------------- conflicts */

/** Who has written something, as the history of the file has it. */
struct Author {
    std::string user;
    std::string program;
    /** The machine. */
    std::string host;
    /** The number of the program's process. */
    std::uint32_t process = 0;

    explicit Author(const milieu_author &author)
        : user(detail::view(author.user)),
          program(detail::view(author.program)),
          host(detail::view(author.host)),
          process(author.process) {}
};

/** A key that this program and another one have changed differently; valid while it is decided. */
class Conflict {
public:
    explicit Conflict(const milieu_conflict *conflict) noexcept : conflict_(conflict) {}
    [[nodiscard]] std::string_view name() const noexcept { return detail::view(conflict_->name); }
    /** What this program has known; none where the key was not there. */
    [[nodiscard]] std::optional<std::string_view> base() const noexcept { return detail::value(conflict_->base); }
    /** What this program makes of it; none where the key is to go. */
    [[nodiscard]] std::optional<std::string_view> ours() const noexcept { return detail::value(conflict_->ours); }
    /** What the other one has made of it; none where the key is gone. */
    [[nodiscard]] std::optional<std::string_view> theirs() const noexcept { return detail::value(conflict_->theirs); }
    /** The other one, where the history of the file knows it. */
    [[nodiscard]] std::optional<Author> by() const {
        if (conflict_->by.process == 0) return std::nullopt;
        return Author(conflict_->by);
    }
    /** The specification calls the key a secret: show the values to nobody. */
    [[nodiscard]] bool is_secret() const noexcept { return conflict_->secret; }

private:
    const milieu_conflict *conflict_;
};

/** What becomes of such a key. */
class Decision {
public:
    /** Nothing is written, and an Error says why. */
    [[nodiscard]] static Decision refuse() { return Decision(MILIEU_REFUSE_CONFLICT); }
    /** It gets the value of this program. */
    [[nodiscard]] static Decision ours() { return Decision(MILIEU_OURS); }
    /** It keeps the value of the other one, which is this program's then, too. */
    [[nodiscard]] static Decision theirs() { return Decision(MILIEU_THEIRS); }
    /** It gets another value. */
    [[nodiscard]] static Decision value(std::string text) { return Decision(std::move(text)); }
    /** It goes. */
    [[nodiscard]] static Decision remove() { return Decision(std::nullopt); }

    /** Says so to the C interface. */
    void say(milieu_decision *decision) const {
        if (const auto *strategy = std::get_if<milieu_strategy>(&what_)) {
            return detail::check(milieu_decision_choose(decision, *strategy));
        }
        const auto &text = std::get<std::optional<std::string>>(what_);
        detail::check(text ? milieu_decision_value(decision, detail::text(*text))
                           : milieu_decision_remove(decision));
    }

private:
    explicit Decision(milieu_strategy strategy) : what_(strategy) {}
    explicit Decision(std::optional<std::string> text) : what_(std::move(text)) {}

    std::variant<milieu_strategy, std::optional<std::string>> what_;
};

namespace detail {

/** Has a function decide, for as long as a call runs. */
template <class Decide>
milieu_result decide(void *user, const milieu_conflict *conflict, milieu_decision *decision) {
    static_assert(std::is_invocable_r_v<Decision, Decide &, const Conflict &>,
        "what decides conflicts takes a `const milieu::Conflict &` and returns a `milieu::Decision`");
    return guarded([&] {
        const Decision decided = (*static_cast<Decide *>(user))(Conflict(conflict));
        decided.say(decision);
    });
}

} // namespace detail

/* ---------------------------------------------------------------- keys of before */

/** A key as a file has it, and what became of it. */
struct Notice {
    /** A key of today. */
    struct Target {
        std::string name;
        /** Whether it has its value from the old one. */
        milieu_outcome outcome;
    };

    /** As it is called in the file. */
    std::string name;
    /** Its value there; none where it is a secret. */
    std::optional<std::string> value;
    /** The file and line. */
    std::string origin;
    /** What became of it. */
    milieu_fate fate;
    /** Its names of today, for MILIEU_RENAMED. */
    std::vector<Target> targets;
    /** As the specification says it; empty for MILIEU_RENAMED. */
    std::string reason;
    /** For people: all of it, and what to do. */
    std::string message;
    /** The program goes without a value that somebody meant to give it. */
    bool is_error;
    bool is_secret;

    explicit Notice(const milieu_notice &notice)
        : name(detail::view(notice.name)),
          value(detail::kept(notice.value)),
          origin(detail::view(notice.origin)),
          fate(static_cast<milieu_fate>(notice.fate)),
          reason(detail::view(notice.reason)),
          message(detail::view(notice.message)),
          is_error(notice.is_error),
          is_secret(notice.secret) {
        for (const milieu_target *it = notice.targets; it != notice.targets + notice.count; ++it) {
            targets.push_back({std::string(detail::view(it->name)), static_cast<milieu_outcome>(it->outcome)});
        }
    }
};

/* ---------------------------------------------------------------- the history of files */

/** What was written into a file at once. */
struct Commit {
    /** A key with another value than before. */
    struct Change {
        std::string name;
        /** None where there was none, and of a secret. */
        std::optional<std::string> before;
        /** None where the key has gone, and of a secret. */
        std::optional<std::string> after;
        bool is_secret;
    };

    std::string file;
    /** Whose file it is: `user` or `system`. */
    std::string whose;
    /** Its number among those of the file, from 1. */
    std::uint64_t id;
    std::chrono::system_clock::time_point time;
    Author author;
    /** The commit that it takes back. */
    std::optional<std::uint64_t> undoes;
    /** The commit that has taken it back. */
    std::optional<std::uint64_t> undone_by;
    std::vector<Change> changes;

    explicit Commit(const milieu_commit &commit)
        : file(detail::view(commit.file)),
          whose(detail::view(commit.whose)),
          id(commit.id),
          time(std::chrono::duration_cast<std::chrono::system_clock::duration>(
              std::chrono::nanoseconds(commit.time_ns))),
          author(commit.author),
          undoes(number(commit.undoes)),
          undone_by(number(commit.undone_by)) {
        for (const milieu_change *it = commit.changes; it != commit.changes + commit.count; ++it) {
            changes.push_back({std::string(detail::view(it->name)), detail::kept(it->before),
                detail::kept(it->after), it->secret});
        }
    }

private:
    static std::optional<std::uint64_t> number(std::uint64_t id) noexcept {
        if (id == 0) return std::nullopt;
        return id;
    }
};

} // namespace milieu

#endif
