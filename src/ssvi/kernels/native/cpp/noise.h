// Standard normal noise from a counter: Philox4x32-7 (Salmon et al. 2011, seven rounds pass BigCrush) and Box-Muller.
//
// The noise of an output depends on the seed and on where the output is, not on how the work is cut:
// counter = (quad, column, image, 0), and the four words of a block are four consecutive rows, those of `quad`.
#pragma once

#include "simd.h"

namespace ssvi {

// The products of the even lanes, 64 bits each. Compilers do not find the one instruction for it by themselves.
inline uvec even_products(uvec a, uvec b) {
#if defined(__AVX512F__)
    return bits<uvec>(_mm512_maskz_mul_epu32(0xff, bits<__m512i>(a), bits<__m512i>(b)));
#elif defined(__AVX2__)
    return bits<uvec>(_mm256_mul_epu32(bits<__m256i>(a), bits<__m256i>(b)));
#else
    typedef uint64_t wide __attribute__((vector_size(4 * kLanes)));
    return bits<uvec>((bits<wide>(a) & 0xffffffffu) * (bits<wide>(b) & 0xffffffffu));
#endif
}

inline uvec high_product(uvec a, uint32_t m, uvec* low) {
    typedef uint64_t wide __attribute__((vector_size(4 * kLanes)));
    const uvec factor = uvec{} + m;
    const uvec even = even_products(a, factor), odd = even_products(bits<uvec>(bits<wide>(a) >> 32), factor);
    *low = pair_lows(even, odd);
    return pair_highs(even, odd);
}

// Several blocks at once: the rounds of one wait for each other, those of two do not.
template <int Blocks>
inline void philox(uvec c[Blocks][4], uint64_t seed) {
    uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
#pragma GCC unroll 7
    for (int round = 0; round < 7; round++) {
#pragma GCC unroll 4
        for (int b = 0; b < Blocks; b++) {
            uvec low0, low1;
            const uvec high0 = high_product(c[b][0], 0xD2511F53u, &low0);
            const uvec high1 = high_product(c[b][2], 0xCD9E8D57u, &low1);
            c[b][0] = high1 ^ c[b][1] ^ k0;
            c[b][1] = low1;
            c[b][2] = high0 ^ c[b][3] ^ k1;
            c[b][3] = low0;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

inline vec sqrt(vec v) {
    for (int i = 0; i < kLanes; i++) v[i] = __builtin_sqrtf(v[i]);
    return v;
}

// 1 / sqrt(v), for results that are rounded to bfloat16: at least 11 bits.
inline vec rough_inverse_root(vec v) {
#if defined(__AVX512F__)
    return _mm512_maskz_rsqrt14_ps(0xffff, v);
#elif defined(__AVX__)
    return _mm256_rsqrt_ps(v);
#else
    return 1.0f / sqrt(v);
#endif
}

// log u for u in (0, 1]; absolute error below 1e-7. u = m 2^e with m in [sqrt(1/2), sqrt(2)).
inline vec log_of_uniform(vec u) {
    const ivec e = (bits<ivec>(u) - 0x3f3504f3) >> 23;
    const vec f = bits<vec>(bits<ivec>(u) - (e << 23)) - 1.0f;
    vec p = f * 0.0853331308f - 0.142692582f;
    p = p * f + 0.149774013f;
    p = p * f - 0.165779929f;
    p = p * f + 0.199559334f;
    p = p * f - 0.250013522f;
    p = p * f + 0.333341933f;
    p = p * f - 0.499999964f;
    p = p * f + 0.999999974f;
    return p * f + __builtin_convertvector(e, vec) * 0.693147181f;
}

// Two normals from two words: radius sqrt(-2 log u), angle 2 pi a with a in [-1/2, 1/2), by half angles.
inline void box_muller(uvec word_u, uvec word_a, vec* z0, vec* z1) {
    const vec u = __builtin_convertvector(bits<ivec>(word_u >> 1), vec) * 0x1p-31f + 0x1p-32f;
    const vec radius = sqrt(log_of_uniform(u) * -2.0f);
    const vec a = __builtin_convertvector(bits<ivec>(word_a), vec) * 0x1p-32f, aa = a * a;
    vec s = aa * 0.0776559123f - 0.598290411f;
    s = s * aa + 2.55007739f;
    s = s * aa - 5.16771008f;
    s = (s * aa + 3.14159264f) * a;
    vec c = aa * -0.0243959321f + 0.234937069f;
    c = c * aa - 1.33521195f;
    c = c * aa + 4.05870915f;
    c = c * aa - 4.93480214f;
    c = c * aa + 1.0f;
    *z0 = radius * (1.0f - 2.0f * s * s);
    *z1 = radius * (2.0f * s * c);
}

// Which column and image the lanes of a vector are, `images` images interleaved from image `first` on.
struct Places {
    uint32_t images, first;

    uvec column(int64_t at) const {
        const uvec start = uvec{} + uint32_t(at) / images;
        return images >= kLanes ? start : start + (lane() >> __builtin_ctz(images));  // below a vector: a power of two
    }
    uvec image(int64_t at) const {
        return first + (images >= kLanes ? uint32_t(at) % images + lane() : lane() & (images - 1));
    }
    static uvec lane() {
        uvec v;
        for (int i = 0; i < kLanes; i++) v[i] = i;
        return v;
    }
};

}  // namespace ssvi
