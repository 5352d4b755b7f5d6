// expect: the `id()` of this layer is not static
#include "station.hpp"

class Security {
public:
    explicit Security(std::string level) : level_(std::move(level)) {}
    std::string id() const { return "security"; }
    std::string operator()() const { return level_; }

private:
    std::string level_;
};

void leave(milieu::ThreadContext<station::Environment> &tc) { tc.without<Security>()([] {}); }
