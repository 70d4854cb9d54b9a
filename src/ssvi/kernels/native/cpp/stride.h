// Values that lie `stride` apart: a run of them is read to, or written from, values side by side.
#pragma once

#include "simd.h"

namespace ssvi {

typedef float quarter __attribute__((vector_size(kLanes)));  // kLanes / 4 floats

template <class V>
inline V load_as(const float* p) {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

// The part of a run of stride 2 that fills whole vectors V, from value `i` on; returns the first value that is left. Nothing
// beyond the last value is read.
template <class V>
inline int64_t take_pairs(const float* from, int64_t i, int64_t count, float* to) {
    constexpr int64_t lanes = sizeof(V) / sizeof(float);
    for (; i + lanes <= count; i += lanes) {
        const V v = skip_one(load_as<V>(from + 2 * i), load_as<V>(from + 2 * i + lanes - 1));
        std::memcpy(to + i, &v, sizeof v);
    }
    return i;
}

// to[i] = from[i * stride]
inline void take(const float* from, int64_t stride, int64_t count, float* to) {
    int64_t i = 0;
    if (stride == 2) {
        i = take_pairs<vec>(from, i, count, to);
        i = take_pairs<halfvec>(from, i, count, to);
        if constexpr (kLanes > 8) i = take_pairs<quarter>(from, i, count, to);
    }
    for (; i < count; i++) to[i] = from[i * stride];
}

inline void take(const uint16_t* from, int64_t stride, int64_t count, float* to) {
    for (int64_t i = 0; i < count; i++) to[i] = widen(from[i * stride]);
}

// The inverse. The value behind the last one is read and written back.
template <class V>
inline int64_t spread_pairs(const float* from, int64_t i, int64_t count, float* to) {
    constexpr int64_t lanes = sizeof(V) / sizeof(float);
    for (; i + lanes <= count; i += lanes) {
        float* at = to + 2 * i;
        const V v = load_as<V>(from + i), between = odd_lanes(load_as<V>(at), load_as<V>(at + lanes));
        const V low = zip_low(v, between), high = zip_high(v, between);
        std::memcpy(at, &low, sizeof low);
        std::memcpy(at + lanes, &high, sizeof high);
    }
    return i;
}

// to[i * stride] = from[i], in memory of one's own.
inline void spread(const float* from, int64_t count, int64_t stride, float* to) {
    int64_t i = 0;
    if (stride == 2) {
        i = spread_pairs<vec>(from, i, count, to);
        i = spread_pairs<halfvec>(from, i, count, to);
        if constexpr (kLanes > 8) i = spread_pairs<quarter>(from, i, count, to);
    }
    for (; i < count; i++) to[i * stride] = from[i];
}

}  // namespace ssvi
