// A contiguous tensor as planes, channel by channel: how BatchNorm walks it.
#pragma once

#include "parallel.h"
#include "sums.h"

struct Planes {  // mirrored in library.py: x is (batch, channels, pixels), contiguous
    int64_t batch, channels, pixels;
};

namespace ssvi {

// Neighbouring channels are taken together until they fill a run of so many floats, and at most kMost of them. What is swept
// twice takes short runs, of which the nearer caches keep all images; what is swept once takes long ones, which the
// prefetchers of the hardware follow.
constexpr int64_t kShortRun = 256, kLongRun = 16384, kMost = 64;

// A sum over planes: float32 over a few, float64 over all.
struct Sum {
    vec part = {};
    int planes = 0;
    double total = 0;

    void add(vec v) {
        part += v;
        if (++planes == 32) flush();
    }
    double flush() {
        total += sum_lanes(part, part).first;
        part = vec{};
        planes = 0;
        return total;
    }
};

// Calls body(first channel, channels) for blocks of neighbouring channels, in parallel: a block for each wanted thread at
// least. A channel is summed by one thread.
template <class Body>
void for_blocks(const Planes& s, int64_t run, int64_t threads, Body body) {
    const int64_t share = ceil_div(s.channels, threads), at_a_time = workers(threads);
    const int64_t block = std::max<int64_t>(1, std::min({kMost, share, run / s.pixels}));
    const int64_t blocks = ceil_div(s.channels, block);
#pragma omp parallel for num_threads(int(at_a_time)) schedule(static) if (at_a_time > 1)
    for (int64_t i = 0; i < blocks; i++) body(i * block, std::min(block, s.channels - i * block));
}

// Calls f(channel, offset of its plane) for every plane of a block.
template <class F>
inline void for_planes(const Planes& s, int64_t first, int64_t count, F f) {
    for (int64_t n = 0; n < s.batch; n++)
        for (int64_t c = first; c < first + count; c++) f(c, (n * s.channels + c) * s.pixels);
}

// Calls f(offset, lanes) for the vectors of a plane; the last may be partial.
template <class F>
inline void for_vectors(int64_t pixels, F f) {
    int64_t i = 0;
    for (; i + kLanes <= pixels; i += kLanes) f(i, kLanes);
    if (i < pixels) f(i, pixels - i);
}

inline void put(float* p, vec v, int64_t lanes) { lanes == kLanes ? store(p, v) : store_first(p, v, lanes); }

// Whether what is written to all planes goes past the caches, by `stream`.
inline bool streams(const Planes& s, const float* to) {
    return past_caches(s.batch * s.channels * s.pixels) && s.pixels % kLanes == 0 && starts_vector(to);
}

}  // namespace ssvi
