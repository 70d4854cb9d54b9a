// A fully connected layer at one theta on one or two examples. A vector of examples would be all but empty, so the live weights
// are walked one by one, in the order of the index, and nothing is packed.
#pragma once

#include "epilogue.h"
#include "sparse.h"

namespace ssvi {

constexpr int64_t kFew = 2;

// Without padding, so that an offset into the slab is the number of an input.
inline bool few(const View& view) { return view.fully_connected() && view.plane == 1 && view.batch <= kFew; }

// The inputs of an example side by side: where they lie, or a copy of them.
struct Inputs {
    const Tensor& x;
    std::vector<float> copy;

    Inputs(const Tensor& x, int64_t count) : x(x), copy(x.channel == 1 ? 0 : count) {}

    const float* of(int64_t image) {
        const float* in = x.data + image * x.image;
        if (copy.empty()) return in;
        for (size_t c = 0; c < copy.size(); c++) copy[c] = in[int64_t(c) * x.channel];
        return copy.data();
    }
};

// The sum of theta[k] in[at[k]] for k in [begin, end). Four chains, since one would wait for itself; no vectors, since gathering
// one takes as long as its lanes one by one.
inline float product_at(const float* in, const int32_t* at, const float* theta, int32_t begin, int32_t end) {
    float sum[4] = {};
    for (; begin + 4 <= end; begin += 4)
#pragma GCC unroll 4
        for (int32_t j = 0; j < 4; j++) sum[j] += theta[begin + j] * in[at[begin + j]];
    for (; begin < end; begin++) sum[0] += theta[begin] * in[at[begin]];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// y = theta x + bias; `affine` may be empty.
inline void few_forward(const View& view, const Pattern& pattern, const Tensor& x, const float* theta,
                        const std::vector<Affine>& affine, float* y) {
    Inputs inputs(x, view.planes);
    for (int64_t i = 0; i < view.batch; i++, y += view.channels) {
        const float* in = inputs.of(i);
        for (int64_t c = 0; c < view.channels; c++) {
            const float sum = product_at(in, pattern.row_offset, theta, pattern.row_start[c], pattern.row_start[c + 1]);
            y[c] = affine.empty() ? sum : sum * affine[c].scale + affine[c].shift;
        }
    }
}

// dl/dx, which may be null, and dl/dtheta. Of the transposed view, the accumulators are the inputs and the planes the outputs.
// The first example writes dl/dtheta, so nothing has to be cleared and read again.
inline void few_backward(const View& view, const Pattern& pattern, const Tensor& x, const Tensor& grad_y, const float* theta,
                         float* dx, float* grad) {
    if (dx) std::memset(dx, 0, view.batch * view.channels * sizeof(float));
    Inputs inputs(x, view.channels);
    for (int64_t i = 0; i < view.batch; i++) {
        const float* in = inputs.of(i);
        float* to = dx ? dx + i * view.channels : nullptr;
        const bool first = i == 0;
        for (int64_t c = 0; c < view.planes; c++) {
            const float g = grad_y.data[i * grad_y.image + c * grad_y.channel];
            const int32_t begin = pattern.row_start[c], end = pattern.row_start[c + 1];
            if (to)
#pragma GCC unroll 4
                for (int32_t k = begin; k < end; k++) {
                    const int32_t at = pattern.row_offset[k];
                    grad[k] = first ? g * in[at] : grad[k] + g * in[at];
                    to[at] += g * theta[k];
                }
            else
                for (int32_t k = begin; k < end; k++)
                    grad[k] = first ? g * in[pattern.row_offset[k]] : grad[k] + g * in[pattern.row_offset[k]];
        }
    }
}

}  // namespace ssvi
