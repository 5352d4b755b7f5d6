/*
 * Milieu: who may read and publish what. The C++ interface; header only, C++17, over rights.h.
 */
#ifndef MILIEU_RIGHTS_HPP
#define MILIEU_RIGHTS_HPP

#include <milieu/rights.h>
#include <milieu/streams.hpp>

#include <vector>

namespace milieu {

/** What somebody may do: names, by queries without placeholders and conditions. */
struct Rights {
    /** Names whose events may be read. */
    std::vector<std::string> read = {};
    /** Names at which may be published. */
    std::vector<std::string> publish = {};
    /** Names whose private fields may be read. */
    std::vector<std::string> read_private = {};
    /** Names whose private fields may be set by events from outside. */
    std::vector<std::string> set_private = {};

    /** Everything. */
    static Rights all() { return {{"/**"}, {"/**"}, {"/**"}, {"/**"}}; }
};

namespace detail {

/** Rights as C has them, while the others are there. */
class RightsOfC {
public:
    explicit RightsOfC(const Rights &rights)
        : read_(texts_of(rights.read)), publish_(texts_of(rights.publish)),
          read_private_(texts_of(rights.read_private)),
          set_private_(texts_of(rights.set_private)) {
        rights_.read = names(read_);
        rights_.publish = names(publish_);
        rights_.read_private = names(read_private_);
        rights_.set_private = names(set_private_);
    }
    const milieu_rights *c() const noexcept { return &rights_; }

private:
    static std::vector<milieu_text> texts_of(const std::vector<std::string> &all) {
        return texts(std::vector<std::string_view>(all.begin(), all.end()));
    }
    static milieu_names names(const std::vector<milieu_text> &all) {
        return {all.data(), all.size()};
    }

    std::vector<milieu_text> read_, publish_, read_private_, set_private_;
    milieu_rights rights_ = MILIEU_RIGHTS;
};

} // namespace detail

/** A reader that may read what the rights allow, under the layers that are active in a context. */
template <class Policy>
StreamReader reader_with(
    const Streams &streams, const BasicContext<Policy> &context, const Rights &rights) {
    const detail::RightsOfC allowed(rights);
    milieu_reader *reader;
    detail::check(milieu_reader_new_with(streams.c(), context.c(), allowed.c(), &reader));
    return StreamReader(reader);
}

} // namespace milieu

#endif
