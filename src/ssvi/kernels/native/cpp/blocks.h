// The forward pass at one theta where neighbouring outputs have the same inputs and taps: a load of x serves all of a block.
//
// The backward pass has no such form: its accumulators are inputs, so a block of outputs would save no load of dl/dy.
#pragma once

#include <algorithm>

#include "sparse.h"

namespace ssvi {

// Outputs of a block, and vectors of each in a tile: B x R accumulators stay in registers beside R vectors of x.
constexpr bool kManyRegisters = kTile == 8;
constexpr int64_t kBlock = kManyRegisters ? 8 : 4, kLeastBlock = 4;
template <int B>
constexpr int kBlockTile = kManyRegisters ? 24 / B : 8 / B;

// Whether all outputs of each block read the same places of the slab.
inline bool in_blocks(const Shape& s, int64_t block, const int32_t* row_start, const int32_t* row_offset) {
    if (s.out_channels / s.groups % block) return false;
    for (int64_t i = 0; i < s.out_channels; i++) {
        const int32_t *row = row_start + i, *first = row_start + i / block * block, count = first[1] - first[0];
        if (row[1] - row[0] != count || !std::equal(row_offset + *row, row_offset + *row + count, row_offset + *first))
            return false;
    }
    return true;
}

// The outputs that one load of x can serve in every block; 1 without blocks.
inline int64_t block_of(const Shape& s, const int32_t* row_start, const int32_t* row_offset) {
    for (const int64_t block : {kBlock, kLeastBlock})
        if (in_blocks(s, block, row_start, row_offset)) return block;
    return 1;
}

// mean[c] = theta[c] x for B outputs. The values of output c begin at w.mu + c * w.count, its accumulators at mean + c * channel.
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

// f(constant number of vectors, where they start in the slab, where in the accumulators) for `rows` rows of a channel
template <int Most, class F>
inline void for_block_tiles(const View& view, int64_t rows, F f) {
    const int64_t vectors = view.row / kLanes, length = view.single_row() ? vectors : rows;
    for (int64_t i = 0; i < stripes(length, Most); i++) {
        const Stripe part = stripe_at(0, length, Most, i);
        with_rows<Most>(part.rows, [&](auto r) {
            if (view.single_row()) return f(r, part.row * kLanes, part.row * kLanes);
            for (int64_t at = 0; at < view.row; at += kLanes) f(r, part.row * view.step + at, part.row * view.row + at);
        });
    }
}

// B outputs over `rows` rows of a stripe, `w` being the weights of the first.
template <int B>
void forward_block(const View& view, const float* slab, const Weights& w, float* mean, int64_t rows) {
    for_block_tiles<kBlockTile<B>>(view, rows, [&](auto r, int64_t from, int64_t to) {
        tile_forward_block<B, decltype(r)::value>(slab + from, view.step, view.images, w, mean + to, rows * view.row,
                                                  view.out);
    });
}

}  // namespace ssvi
