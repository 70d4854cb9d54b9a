// Which values a ReLU let pass, a bit for each: all that its backward pass needs to know of its output.
#pragma once

#include "planes.h"

namespace ssvi {

constexpr int64_t kMaskBytes = kLanes > 8 ? 2 : 1;  // of one vector; the layout is mirrored in relu_mask.py

inline int64_t mask_bytes(int64_t pixels) { return ceil_div(pixels, kLanes) * kMaskBytes; }  // of one plane

inline ivec lane_bits() {
    ivec bits;
    for (int i = 0; i < kLanes; i++) bits[i] = 1 << i;
    return bits;
}

inline uint32_t bits_of(ivec condition) {
#if defined(__AVX512DQ__)
    return _mm512_movepi32_mask(bits<__m512i>(condition));
#elif defined(__AVX__)
    return _mm256_movemask_ps(bits<__m256>(condition));
#else
    uint32_t sum = 0;
    const ivec set = condition & lane_bits();
    for (int i = 0; i < kLanes; i++) sum |= uint32_t(set[i]);
    return sum;
#endif
}

inline void store_mask(uint8_t* at, ivec condition) {
    const uint16_t set = uint16_t(bits_of(condition));
    at[0] = uint8_t(set);
    if (kMaskBytes == 2) at[1] = uint8_t(set >> 8);
}

inline ivec load_mask(const uint8_t* at) {
    const int32_t set = kMaskBytes == 2 ? at[0] | at[1] << 8 : at[0];
    return ((ivec{} + set) & lane_bits()) != 0;
}

}  // namespace ssvi
