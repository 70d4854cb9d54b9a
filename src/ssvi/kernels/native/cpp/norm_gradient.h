// dl/dy of z = relu(batchnorm(y)), value by value, once the sums over each channel are known.
#pragma once

#include "kept.h"

namespace ssvi {

// Of one channel: z = scale y + shift; `average` is the mean of dl/dz, and `slope` that of dl/dz (y - mean), over the variance.
struct Terms {  // their number is mirrored in batchnorm.py
    float scale, shift, mean, average, slope;

    template <class V>  // a vector or a float
    V before_relu(V gradient, V y) const {
        return y * scale + shift > 0.0f ? gradient : V{};
    }
    template <class V>
    V before_norm(V gradient, V y) const {
        return (gradient - average - (y - mean) * slope) * scale;
    }
};

struct NormGradient {  // mirrored in passes.py
    Kept y;              // what the norm saw
    const Terms* terms;  // of its channels
    int32_t relu;
};

struct Normed {  // one plane of every image of a group, for `gather`
    Strided<const float> gradient;
    KeptPlane y;
    Terms terms;
    bool relu;

    template <class V>
    V of(V g, V y) const {
        return terms.before_norm(relu ? terms.before_relu(g, y) : g, y);
    }
    bool rows_touch(int64_t cols) const { return gradient.rows_touch(cols) && y.rows_touch(cols); }
    float value(int64_t i, int64_t r, int64_t c) const { return of(gradient.value(i, r, c), y.value(i, r, c)); }
    void copy_row(int64_t i, int64_t r, int64_t cols, float* to) const {
        for (int64_t c = 0; c < cols; c++) to[c] = value(i, r, c);
    }
    vec run(int64_t i, int64_t pixel, int64_t left) const {
        return of(gradient.run(i, pixel, left), y.run(i, pixel, left));
    }
};

}  // namespace ssvi
