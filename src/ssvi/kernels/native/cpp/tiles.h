// The inner loops: R vectors of accumulators stay in registers over all live weights of a channel.
#pragma once

#include "simd.h"

namespace ssvi {

// The live weights of one channel; offsets into the slab are in pixels.
struct Weights {
    const int32_t* offset;
    const float *mu, *sigma2;
    int64_t count;
};

struct Pairs {  // the same for an input channel, mu and sigma^2 side by side
    const int32_t* offset;
    const Pair* value;
    int64_t count;
};

// Where the vectors of a tile lie: Rows x Columns of them, rows `step` floats apart. Neighbours in a row share cache
// lines when the offset is not a multiple of a vector, so two columns read less of the second-level cache than one.
template <int Columns>
inline int64_t place(int i, int64_t step) {
    return i / Columns * step + i % Columns * kLanes;
}

// mean += mu x, var += sigma^2 x^2 over the live weights.
template <int Rows, int Columns, bool Variance>
void tile_forward(const float* slab, int64_t step, int64_t images, const Weights& w, float* mean, float* var, int64_t out) {
    constexpr int R = Rows * Columns;
    vec m[R], v[R];
#pragma GCC unroll 16  // every loop over a tile: what is not unrolled early stays in memory
    for (int i = 0; i < R; i++) m[i] = v[i] = vec{};
    for (int64_t k = 0; k < w.count; k++) {
        const float* row = slab + w.offset[k] * images;
        const vec mu = vec{} + w.mu[k];
        const vec sigma2 = Variance ? vec{} + w.sigma2[k] : vec{};
#pragma GCC unroll 16
        for (int i = 0; i < R; i++) {
            const vec x = once(load(row + i % Columns * kLanes));
            m[i] += mu * x;
            if (Variance) v[i] += sigma2 * (x * x);
            if (i % Columns == Columns - 1) row += step;  // the multiples of `step` would not fit the registers
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < R; i++) {
        store(mean + place<Columns>(i, out), m[i]);
        if (Variance) store(var + place<Columns>(i, out), v[i]);
    }
}

// One pass over the live weights of an input channel, with g = dl/dy and h = g eps / (2 std) = dl/dvar:
//   dx      = sum_k mu_k g_k + 2 x sum_k sigma2_k h_k          (accumulated in registers)
//   dmu_k   = sum g_k x,  dsigma2_k = sum h_k x^2              (added to `grad`, in the order of the weights)
template <int Rows, int Columns, bool Variance, bool Input>
void tile_backward(const float* g_slab, const uint16_t* h_slab, int64_t step, int64_t images, const Pairs& w,
                   const float* x_rows, float* dx_rows, int64_t row, Pair* grad) {
    constexpr int R = Rows * Columns;
    vec x[R], xx[R], a[R], b[R];
#pragma GCC unroll 8
    for (int i = 0; i < R; i++) {
        x[i] = load(x_rows + place<Columns>(i, row));
        xx[i] = x[i] * x[i];
        a[i] = b[i] = vec{};
    }
    for (int64_t k = 0; k < w.count; k++) {
        const int64_t at = w.offset[k] * images;
        const vec mu = vec{} + w.value[k].first, sigma2 = vec{} + w.value[k].second;
        vec dmu[2] = {}, dsigma2[2] = {};  // two chains each: a single one would wait for itself
#pragma GCC unroll 8
        for (int i = 0; i < R; i++) {
            const vec g = once(load(g_slab + at + place<Columns>(i, step)));
            if (Input) a[i] += mu * g;
            dmu[i % 2] += g * x[i];
            if (Variance) {
                const vec h = load(h_slab + at + place<Columns>(i, step));
                if (Input) b[i] += sigma2 * h;
                dsigma2[i % 2] += h * xx[i];
            }
        }
        const Pair sums = sum_lanes(dmu[0] + dmu[1], dsigma2[0] + dsigma2[1]);
        grad[k].first += sums.first;
        grad[k].second += sums.second;
    }
    if (Input)
#pragma GCC unroll 8
        for (int i = 0; i < R; i++)
            store(dx_rows + place<Columns>(i, row), Variance ? a[i] + 2.0f * x[i] * b[i] : a[i]);
}

// Calls f with the number of rows of a tile as a compile-time constant.
template <int Most, int R = 1, class F>
inline void with_rows(int64_t rows, F f) {
    if constexpr (R <= Most) {
        if (rows == R) f(std::integral_constant<int, R>{});
        else with_rows<Most, R + 1>(rows, f);
    }
}

}  // namespace ssvi
