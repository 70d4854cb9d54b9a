// What may follow a layer in evaluation: BatchNorm with given statistics, an addition and a ReLU.
#pragma once

#include <cmath>
#include <vector>

#include "pack.h"

namespace ssvi {

struct Norm {  // mirrored in library.py; weight, bias and residual may be null
    const float *weight, *bias, *mean, *var, *residual;
    float eps;
    int32_t relu;
};

struct Affine {
    float scale = 1, shift = 0;
};

inline Affine affine_of(const float* weight, const float* bias, int64_t c, float mean, float var, float eps) {
    const float scale = (weight ? weight[c] : 1.0f) / std::sqrt(var + eps);
    return {scale, (bias ? bias[c] : 0.0f) - mean * scale};
}

inline Affine affine_of(const Norm& norm, int64_t c) {
    return affine_of(norm.weight, norm.bias, c, norm.mean[c], norm.var[c], norm.eps);
}

// The bias of the layer and the norm behind it, channel by channel; empty where there is neither.
inline std::vector<Affine> affines(int64_t channels, const float* bias, const Norm* norm) {
    std::vector<Affine> of(bias || norm ? channels : 0);
    for (int64_t c = 0; c < int64_t(of.size()); c++) {
        if (norm) of[c] = affine_of(*norm, c);
        if (bias) of[c].shift += bias[c] * of[c].scale;
    }
    return of;
}

inline vec rectify(vec v) { return v < 0.0f ? vec{} : v; }  // NaN stays

// y = relu(v + residual), for `scatter`; the residual lies in memory as y does.
struct Finish : Ahead<float> {
    const float* residual;
    bool relu;

    Finish(const Ahead<float>& to, const float* residual, bool relu) : Ahead(to), residual(residual), relu(relu) {}

    void put(float* to, vec v, int64_t count) const {
        if (residual) {
            const float* from = residual + (to - data);
            __builtin_prefetch(from + ahead);
            v += count >= kLanes ? load(from) : load_first(from, count);
        }
        Ahead::put(to, relu ? rectify(v) : v, count);
    }
    void put_one(float* to, float v) const {
        if (residual) v += residual[to - data];
        *to = relu && v < 0.0f ? 0.0f : v;
    }
};

}  // namespace ssvi
