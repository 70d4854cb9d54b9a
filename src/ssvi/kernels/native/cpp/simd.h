// Vectors of floats as the compiler's vector extension: the same source serves every instruction set.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define SSVI_API extern "C" __attribute__((visibility("default")))

namespace ssvi {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
constexpr int kTile = 8;  // vectors of accumulators that a tile holds: 2 x kTile of them fit the registers
#elif defined(__AVX__)
constexpr int kLanes = 8;
constexpr int kTile = 4;
#elif defined(__aarch64__)
constexpr int kLanes = 4;
constexpr int kTile = 8;
#else
constexpr int kLanes = 4;
constexpr int kTile = 4;
#endif

typedef float vec __attribute__((vector_size(4 * kLanes)));
typedef int32_t ivec __attribute__((vector_size(4 * kLanes)));
typedef uint32_t uvec __attribute__((vector_size(4 * kLanes)));
typedef uint16_t hvec __attribute__((vector_size(2 * kLanes)));
typedef float halfvec __attribute__((vector_size(2 * kLanes)));

template <class To, class From>
inline To bits(From v) {
    static_assert(sizeof(To) == sizeof(From), "a cast of bits keeps the size");
    To to;
    std::memcpy(&to, &v, sizeof to);
    return to;
}

// ---- bfloat16, rounded to nearest even -----------------------------------------------------------------------------

inline hvec to_bf16(vec v) {
    uvec u = bits<uvec>(v);
    uvec rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
    uvec nan = (u >> 16) | 0x40;  // rounding could carry a NaN's mantissa into infinity
    return __builtin_convertvector(v == v ? rounded : nan, hvec);
}

inline uvec widen(hvec h) {
#if defined(__AVX512F__)  // gcc 12 makes five instructions of the conversion below
    return bits<uvec>(_mm512_maskz_cvtepu16_epi32(0xffff, bits<__m256i>(h)));
#elif defined(__AVX2__)
    return bits<uvec>(_mm256_cvtepu16_epi32(bits<__m128i>(h)));
#else
    return __builtin_convertvector(h, uvec);
#endif
}

inline vec from_bf16(hvec h) { return bits<vec>(widen(h) << 16); }

// ---- memory: floats, or bfloat16 read and written as floats ----------------------------------------------------------

inline vec load(const float* p) {
    vec v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

inline vec load(const uint16_t* p) {
    hvec v;
    std::memcpy(&v, p, sizeof v);
    return from_bf16(v);
}

inline void store(float* p, vec v) { std::memcpy(p, &v, sizeof v); }

// Past the caches, where nobody reads it soon: its line need not be read before it is written. `p` is a multiple of a vector.
inline void stream(float* p, vec v) {
#if defined(__AVX512F__)
    _mm512_stream_ps(p, bits<__m512>(v));
#elif defined(__AVX__)
    _mm256_stream_ps(p, bits<__m256>(v));
#elif defined(__x86_64__)
    _mm_stream_ps(p, bits<__m128>(v));
#else
    store(p, v);
#endif
}

inline void stream(uint16_t* p, vec v) {
    const hvec half = to_bf16(v);
#if defined(__AVX512F__)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(p), bits<__m256i>(half));
#elif defined(__AVX__)
    _mm_stream_si128(reinterpret_cast<__m128i*>(p), bits<__m128i>(half));
#else
    std::memcpy(p, &half, sizeof half);
#endif
}

// What this thread has streamed is written before other threads go on.
inline void streamed() {
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

template <class T>
inline bool starts_vector(const T* p) {
    return reinterpret_cast<uintptr_t>(p) % (kLanes * sizeof(T)) == 0;
}

// Whether a tensor of so many floats is too large for the caches to keep it until it is read.
inline bool past_caches(int64_t floats) { return floats >= int64_t(1) << 21; }

inline void store(uint16_t* p, vec v) {
    const hvec half = to_bf16(v);
    std::memcpy(p, &half, sizeof half);
}

// A vector that is used twice is loaded once: compilers like to fold the load into both uses, and a load that crosses a
// cache line costs two.
inline vec once(vec v) {
#if defined(__x86_64__)
    __asm__("" : "+v"(v));
#elif defined(__aarch64__)
    __asm__("" : "+w"(v));
#endif
    return v;
}

template <class T>
inline vec load_first(const T* p, int64_t count) {
    T lanes[kLanes] = {};
    std::memcpy(lanes, p, count * sizeof(T));
    return load(lanes);
}

template <class T>
inline void store_first(T* p, vec v, int64_t count) {
    T lanes[kLanes];
    store(lanes, v);
    std::memcpy(p, lanes, count * sizeof(T));
}

template <class T>
inline vec get(const T* p, int64_t lanes) {
    return lanes == kLanes ? load(p) : load_first(p, lanes);
}

inline float widen(float v) { return v; }
inline float widen(uint16_t v) { return bits<float>(uint32_t(v) << 16); }

// ---- shuffles: lane i of the result is lane I of (a, b) side by side ---------------------------------------------

template <class V, int... I>
inline auto shuffle(V a, V b, std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(a, b, I...);
}

template <int Lanes, class Rule, int... I>
constexpr auto lanes_of(Rule, std::integer_sequence<int, I...>) {
    return std::integer_sequence<int, Rule::at(I, Lanes)...>{};
}

#define SSVI_SHUFFLE(name, count, rule)                                                                       \
    struct name##_rule {                                                                                      \
        static constexpr int at(int i, int lanes) { return (void)lanes, (rule); }                             \
    };                                                                                                        \
    template <class V>                                                                                        \
    inline auto name(V a, V b) {                                                                              \
        constexpr int lanes = sizeof(V) / sizeof(float);                                                      \
        return shuffle(a, b, lanes_of<lanes>(name##_rule{}, std::make_integer_sequence<int, (count)>{}));     \
    }

SSVI_SHUFFLE(zip_low, lanes, i / 2 + i % 2 * lanes)
SSVI_SHUFFLE(zip_high, lanes, i / 2 + i % 2 * lanes + lanes / 2)
SSVI_SHUFFLE(unpack_low, lanes, i / 4 * 4 + i % 4 / 2 + i % 2 * lanes)  // zips within every four lanes: one cheap step
SSVI_SHUFFLE(unpack_high, lanes, i / 4 * 4 + i % 4 / 2 + i % 2 * lanes + 2)
SSVI_SHUFFLE(even_lanes, lanes, 2 * i)
SSVI_SHUFFLE(odd_lanes, lanes, 2 * i + 1)
SSVI_SHUFFLE(skip_one, lanes, i < lanes / 2 ? 2 * i : 2 * i + 1)
SSVI_SHUFFLE(pair_lows, lanes, i % 2 ? i - 1 + lanes : i)
SSVI_SHUFFLE(pair_highs, lanes, i % 2 ? i + lanes : i + 1)
SSVI_SHUFFLE(low_half, lanes / 2, i)
SSVI_SHUFFLE(high_half, lanes / 2, i + lanes / 2)
#undef SSVI_SHUFFLE

// Count vectors of kLanes pixels, one per image, become [pixel][image] in the same order of memory, and back.
template <int Count>
inline void interleave(vec* v) {
    for (int step = 1; step < Count; step *= 2) {
        vec w[Count];
        for (int i = 0; i < Count / 2; i++) {
            w[2 * i] = zip_low(v[i], v[i + Count / 2]);
            w[2 * i + 1] = zip_high(v[i], v[i + Count / 2]);
        }
        for (int i = 0; i < Count; i++) v[i] = w[i];
    }
}

template <int Count>
inline void deinterleave(vec* v) {
    for (int step = 1; step < Count; step *= 2) {
        vec w[Count];
        for (int i = 0; i < Count / 2; i++) {
            w[i] = even_lanes(v[2 * i], v[2 * i + 1]);
            w[i + Count / 2] = odd_lanes(v[2 * i], v[2 * i + 1]);
        }
        for (int i = 0; i < Count; i++) v[i] = w[i];
    }
}

}  // namespace ssvi
