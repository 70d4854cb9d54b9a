// A fully connected layer at one theta on one or two examples. A vector of examples would be all but empty, so the live weights
// are walked one by one, in the order of the index, and nothing is packed.
#pragma once

#include "epilogue.h"
#include "sparse.h"

namespace ssvi {

constexpr int64_t kFew = 2;

// Without padding, so that an offset into the slab is the number of an input.
inline bool few(const View& view) { return view.fully_connected() && view.plane == 1 && view.batch <= kFew; }

// y = theta x + bias; `affine` may be empty.
inline void few_forward(const View& view, const Pattern& pattern, const Tensor& x, const float* theta,
                        const std::vector<Affine>& affine, float* y) {
    for (int64_t i = 0; i < view.batch; i++, y += view.channels) {
        const float* in = x.data + i * x.image;
        for (int64_t c = 0; c < view.channels; c++) {
            float sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int32_t k = pattern.row_start[c]; k < pattern.row_start[c + 1]; k++)
                sum += theta[k] * in[pattern.row_offset[k] * x.channel];
            y[c] = affine.empty() ? sum : sum * affine[c].scale + affine[c].shift;
        }
    }
}

// dl/dx, which may be null, and dl/dtheta. Of the transposed view, the accumulators are the inputs and the planes the outputs.
inline void few_backward(const View& view, const Pattern& pattern, const Tensor& x, const Tensor& grad_y, const float* theta,
                         float* dx, float* grad) {
    std::memset(grad, 0, pattern.count * sizeof(float));
    if (dx) std::memset(dx, 0, view.batch * view.channels * sizeof(float));
    for (int64_t i = 0; i < view.batch; i++) {
        const float* in = x.data + i * x.image;
        float* to = dx ? dx + i * view.channels : nullptr;
        for (int64_t c = 0; c < view.planes; c++) {
            const float g = grad_y.data[i * grad_y.image + c * grad_y.channel];
            const int32_t begin = pattern.row_start[c], end = pattern.row_start[c + 1];
#pragma omp simd
            for (int32_t k = begin; k < end; k++) grad[k] += g * in[pattern.row_offset[k] * x.channel];
            for (int32_t k = begin; to && k < end; k++) to[pattern.row_offset[k]] += g * theta[k];
        }
    }
}

}  // namespace ssvi
