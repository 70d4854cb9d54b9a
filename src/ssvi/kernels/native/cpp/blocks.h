// The inner loops for a support of blocks, one theta: B neighbouring outputs have the same inputs and taps.
#pragma once

#include "tiles.h"

namespace ssvi {

// Outputs of a tile, and vectors of each: B x R accumulators stay in registers beside R vectors of x.
constexpr bool kManyRegisters = kTile == 8;
constexpr int kBlock = kManyRegisters ? 8 : 4;
template <int B>
constexpr int kBlockTile = kManyRegisters ? 24 / B : 8 / B;

// mean[c] += theta[c] x for B outputs: a load of x serves all of them. The values of output c begin at w.mu + c * w.count.
template <int B, int R>
void tile_forward_block(const float* slab, int64_t step, int64_t images, const Weights& w, float* mean, int64_t channel,
                        int64_t out) {
    vec m[B][R];
#pragma GCC unroll 8
    for (int c = 0; c < B; c++)
#pragma GCC unroll 8
        for (int i = 0; i < R; i++) m[c][i] = vec{};
    for (int64_t k = 0; k < w.count; k++) {
        const float* row = slab + w.offset[k] * images;
        vec x[R];
#pragma GCC unroll 8
        for (int i = 0; i < R; i++) x[i] = once(load(row + i * step));
#pragma GCC unroll 8
        for (int c = 0; c < B; c++) {
            const vec theta = vec{} + w.mu[c * w.count + k];
#pragma GCC unroll 8
            for (int i = 0; i < R; i++) m[c][i] += theta * x[i];
        }
    }
#pragma GCC unroll 8
    for (int c = 0; c < B; c++)
#pragma GCC unroll 8
        for (int i = 0; i < R; i++) store(mean + c * channel + i * out, m[c][i]);
}

// The vectors p and q hold sums in pieces of S lanes; the result has the pieces of both, folded to S / 2 lanes.
template <int S, int... I>
inline vec fold(vec p, vec q, std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(p, q, (I / (S / 2) * S + I % (S / 2))...) +
           __builtin_shufflevector(p, q, (I / (S / 2) * S + I % (S / 2) + S / 2)...);
}

// sums[c] += the sum over the lanes of v[c], for Count vectors: one tree for all of them.
template <int Count, int Vectors = Count, int S = kLanes>
inline void add_sums(vec* v, float* sums) {
    if constexpr (S > 1) {
#pragma GCC unroll 4
        for (int i = 0; i < (Vectors + 1) / 2; i++)  // a single vector is folded with itself
            v[i] = fold<S>(v[2 * i], v[Vectors > 1 ? 2 * i + 1 : 0], std::make_integer_sequence<int, kLanes>{});
        add_sums<Count, (Vectors + 1) / 2, S / 2>(v, sums);
    } else {  // a lane for each sum
        constexpr int lanes = Count < kLanes ? Count : kLanes;
        typedef float part __attribute__((vector_size(4 * lanes)));
        for (int i = 0; i < Count / lanes; i++) {
            part sum, more;
            std::memcpy(&sum, sums + i * lanes, sizeof sum);
            std::memcpy(&more, &v[i], sizeof more);
            sum += more;
            std::memcpy(sums + i * lanes, &sum, sizeof sum);
        }
    }
}

struct BlockWeights {  // of an input channel: the offset of the first output of each block, B values each
    const int32_t* offset;
    const float* value;
    int64_t count;  // blocks
};

// dx = sum_k theta_k g_k in registers, and dtheta_k = sum g_k x, added to `grad`; the outputs of a block are `plane` apart.
template <int B, int Rows, int Columns, bool Input>
void tile_backward_block(const float* g_slab, int64_t step, int64_t images, int64_t plane, const BlockWeights& w,
                         const float* x_rows, float* dx_rows, int64_t row, float* grad) {
    constexpr int R = Rows * Columns;
    vec x[R], a[R];
#pragma GCC unroll 8
    for (int i = 0; i < R; i++) {
        x[i] = load(x_rows + place<Columns>(i, row));
        a[i] = vec{};
    }
    for (int64_t k = 0; k < w.count; k++) {
        const float* block = g_slab + w.offset[k] * images;
        vec sums[B];
#pragma GCC unroll 8
        for (int c = 0; c < B; c++) {
            const vec theta = vec{} + w.value[k * B + c];
            vec d[2] = {};  // two chains: a single one would wait for itself
#pragma GCC unroll 8
            for (int i = 0; i < R; i++) {
                const vec g = once(load(block + c * plane + place<Columns>(i, step)));
                if (Input) a[i] += theta * g;
                d[i % 2] += g * x[i];
            }
            sums[c] = d[0] + d[1];
        }
        add_sums<B>(sums, grad + k * B);
    }
    if (Input)
#pragma GCC unroll 8
        for (int i = 0; i < R; i++) store(dx_rows + place<Columns>(i, row), a[i]);
}

}  // namespace ssvi
