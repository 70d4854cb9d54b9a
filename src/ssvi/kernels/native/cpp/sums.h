// Sums over the lanes of vectors.
#pragma once

#include "simd.h"

namespace ssvi {

struct Pair {
    float first, second;
};

// Both sums at once: after one halving the two share a vector, so the rest of the tree is paid for once.
template <class V>
inline Pair sum_lanes(V a, V b) {
    constexpr int lanes = sizeof(V) / sizeof(float);
    if constexpr (lanes == 2) {
        return {a[0] + a[1], b[0] + b[1]};
    } else if constexpr (lanes == 4) {
        V both = zip_low(a, b) + zip_high(a, b);
        return {both[0] + both[2], both[1] + both[3]};
    } else {
        return sum_lanes(low_half(a, a) + high_half(a, a), low_half(b, b) + high_half(b, b));
    }
}

// The four lanes that many lanes add up to.
template <class V>
inline auto fold_to_four(V v) {
    if constexpr (sizeof(V) == 4 * sizeof(float)) return v;
    else return fold_to_four(low_half(v, v) + high_half(v, v));
}

// The sums of v[0] to v[3] as four lanes: they share most of the tree.
inline auto four_sums(const vec* v) {
    const vec even = unpack_low(v[0], v[2]) + unpack_high(v[0], v[2]);
    const vec odd = unpack_low(v[1], v[3]) + unpack_high(v[1], v[3]);
    return fold_to_four(unpack_low(even, odd) + unpack_high(even, odd));
}

}  // namespace ssvi
