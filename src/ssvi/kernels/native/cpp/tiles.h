// The inner loops: R vectors of accumulators stay in registers over all live weights of a channel.
#pragma once

#include "sums.h"

namespace ssvi {

// The live weights of one channel; offsets into the slab are in pixels.
struct Weights {
    const int32_t* offset;
    const float *mu, *sigma2;
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

struct Gradients {  // of the live weights, in their order
    float *mu, *sigma2;
};

// One pass over the live weights of an input channel, with g = dl/dy and h = g eps / (2 std) = dl/dvar:
//   dx      = sum_k mu_k g_k + 2 x sum_k sigma2_k h_k          (accumulated in registers)
//   dmu_k   = sum g_k x,  dsigma2_k = sum h_k x^2              (added to `grad`, in the order of the weights)
template <int Rows, int Columns, bool Input>
void tile_backward_draw(const float* g_slab, const uint16_t* h_slab, int64_t step, int64_t images, const Weights& w,
                        const float* x_rows, float* dx_rows, int64_t row, Gradients grad) {
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
        const vec mu = vec{} + w.mu[k], sigma2 = vec{} + w.sigma2[k];
        vec dmu[2] = {}, dsigma2[2] = {};  // two chains each: a single one would wait for itself
#pragma GCC unroll 8
        for (int i = 0; i < R; i++) {
            const vec g = once(load(g_slab + at + place<Columns>(i, step)));
            const vec h = load(h_slab + at + place<Columns>(i, step));
            if (Input) a[i] += mu * g, b[i] += sigma2 * h;
            dmu[i % 2] += g * x[i], dsigma2[i % 2] += h * xx[i];
        }
        const Pair sums = sum_lanes(dmu[0] + dmu[1], dsigma2[0] + dsigma2[1]);
        grad.mu[k] += sums.first, grad.sigma2[k] += sums.second;
    }
    if (Input)
#pragma GCC unroll 8
        for (int i = 0; i < R; i++) store(dx_rows + place<Columns>(i, row), a[i] + 2.0f * x[i] * b[i]);
}

// The same for one given theta: dx = sum_k theta_k g_k, dtheta_k = sum g_k x. Four weights share the sums over lanes, which
// would otherwise take a quarter of the time.
template <int Rows, int Columns, bool Input>
void tile_backward_fixed(const float* slab, int64_t step, int64_t images, const Weights& w, const float* x_rows,
                         float* dx_rows, int64_t row, float* grad) {
    constexpr int R = Rows * Columns;
    vec x[R], a[R];
#pragma GCC unroll 8
    for (int i = 0; i < R; i++) x[i] = load(x_rows + place<Columns>(i, row)), a[i] = vec{};
    const auto products = [&](int64_t k) __attribute__((always_inline)) {
        const float* at = slab + w.offset[k] * images;
        const vec theta = vec{} + w.mu[k];
        vec sum = {};
#pragma GCC unroll 8
        for (int i = 0; i < R; i++) {
            const vec g = once(load(at + place<Columns>(i, step)));
            if (Input) a[i] += theta * g;
            sum = i ? sum + g * x[i] : g * x[i];
        }
        return sum;
    };
    int64_t k = 0;
    for (; k + 4 <= w.count; k += 4) {
        const vec sums[4] = {products(k), products(k + 1), products(k + 2), products(k + 3)};
        auto total = four_sums(sums), before = total;
        std::memcpy(&before, grad + k, sizeof before);
        total += before;
        std::memcpy(grad + k, &total, sizeof total);
    }
    for (; k < w.count; k++) {
        const vec sum = products(k);
        grad[k] += sum_lanes(sum, sum).first;
    }
    if (Input)
#pragma GCC unroll 8
        for (int i = 0; i < R; i++) store(dx_rows + place<Columns>(i, row), a[i]);
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
