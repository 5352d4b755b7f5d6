/*
 * A file of subscriptions that may be read again while the program runs, in C++.
 *
 *   milieu::FlowFile flows(streams, "/etc/station.flow");
 *   …
 *   flows.reload();
 */
#ifndef MILIEU_FLOW_FILE_HPP
#define MILIEU_FLOW_FILE_HPP

#include <milieu/streams.hpp>

#include <fstream>
#include <iterator>

namespace milieu {

/** What a file of subscriptions says, until this goes or another reading of it says otherwise. */
class FlowFile {
public:
    /** Brings about what the file says; how its name ends says the language. `streams` outlive this. */
    FlowFile(const Streams &streams, std::string path) : streams_(streams), path_(std::move(path)) {
        reload();
    }

    /**
     * Reads the file again. What it says is brought about in the place of what it said before:
     * operators begin anew, and events that come in between are not seen. Where the file cannot be
     * read or is not right, this throws, and what it said before goes on in the same way.
     */
    void reload() {
        std::ifstream file(path_, std::ios::binary);
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        if (!file) throw Error(MILIEU_FILES, (path_ + ": the file cannot be read").c_str());
        // A name has one publisher at a time.
        effect_.reset();
        try {
            effect_.emplace(streams_.apply(path_, text));
            text_ = text;
        } catch (const Error &) {
            if (text_) effect_.emplace(streams_.apply(path_, *text_));
            throw;
        }
    }
    /** What is in force: for its failures, and its subscriptions. A reload ends it. */
    [[nodiscard]] const Effect &effect() const noexcept { return *effect_; }

private:
    const Streams &streams_;
    const std::string path_;
    /** What is in force. */
    std::optional<std::string> text_;
    std::optional<Effect> effect_;
};

} // namespace milieu

#endif
