// How long packing takes: asked for by the profile of a step, otherwise a branch a task.
#pragma once

#include <atomic>
#include <chrono>

#include <omp.h>

namespace ssvi {

struct PackingTime {
    static inline std::atomic<bool> wanted{false};
    static inline std::atomic<int64_t> nanoseconds{0};
};

// Packs a part of x or dl/dy. Threads of a team pack side by side, so each adds its share of the clock on the wall.
template <class Pack>
void packing(Pack pack) {
    if (!PackingTime::wanted.load(std::memory_order_relaxed)) return pack();
    const auto start = std::chrono::steady_clock::now();
    pack();
    const std::chrono::nanoseconds taken = std::chrono::steady_clock::now() - start;
    PackingTime::nanoseconds += taken.count() / omp_get_num_threads();
}

}  // namespace ssvi
