// Values that lie `stride` apart: a run of them is read to values side by side, or runs are woven into one.
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

// The inverse, where both of two runs are there: the part that fills whole vectors V, as above.
template <class V>
inline int64_t zip_pairs(const float* even, const float* odd, int64_t i, int64_t count, float* to) {
    constexpr int64_t lanes = sizeof(V) / sizeof(float);
    for (; i + lanes <= count; i += lanes) {
        const V a = load_as<V>(even + i), b = load_as<V>(odd + i), low = zip_low(a, b), high = zip_high(a, b);
        std::memcpy(to + 2 * i, &low, sizeof low);
        std::memcpy(to + 2 * i + lanes, &high, sizeof high);
    }
    return i;
}

// to[2 i] = even[i], to[2 i + 1] = odd[i], for so many values of both.
inline void zip(const float* even, const float* odd, int64_t count, float* to) {
    int64_t i = zip_pairs<vec>(even, odd, 0, count / 2, to);
    i = zip_pairs<halfvec>(even, odd, i, count / 2, to);
    if constexpr (kLanes > 8) i = zip_pairs<quarter>(even, odd, i, count / 2, to);
    for (; 2 * i < count; i++) {
        to[2 * i] = even[i];
        if (2 * i + 1 < count) to[2 * i + 1] = odd[i];
    }
}

// to[i * stride] = from[i]
inline void spread(const float* from, int64_t count, int64_t stride, float* to) {
    for (int64_t i = 0; i < count; i++) to[i * stride] = from[i];
}

}  // namespace ssvi
