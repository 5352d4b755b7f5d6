// expect: Name the lock: the texts of its keys go with it
#include "station.hpp"

std::size_t wrong(const milieu::Coordinator &coordinator) {
    std::size_t count = 0;
    for (const milieu::Key &key : coordinator.requireLock().keys()) count += key.name.size();
    return count;
}
