// The gradients of y = relu(batchnorm(x) + residual), in two sweeps over memory, or in one and a part of the next pass.
#include "epilogue.h"
#include "mask.h"
#include "norm_sums.h"

using namespace ssvi;

namespace {

// dl/dz of z = scale x + shift: what a ReLU lets pass. `y` is its output, `mask` the bits of it that are not zero; where both
// are null, z is computed again.
struct Passed {
    const float* grad_y;
    Kept x;
    const float* y;
    const uint8_t* mask;
    int64_t pixels;  // of a plane
    bool relu;

    const uint8_t* bits(int64_t plane) const { return mask ? mask + plane / pixels * mask_bytes(pixels) : nullptr; }

    // Vector `i` of the plane that begins at `plane` and has such bits.
    vec operator()(int64_t plane, const uint8_t* bits, int64_t i, int64_t lanes, const Terms& k) const {
        const vec g = get(grad_y + plane + i, lanes);
        if (!relu) return g;
        if (bits) return load_mask(bits + i / kLanes * kMaskBytes) ? g : vec{};
        return y ? (get(y + plane + i, lanes) > 0.0f ? g : vec{}) : k.before_relu(g, x.get(plane + i, lanes));
    }
};

// The sums over a block of channels: dl/dweight, dl/dbias and the terms that dl/dx is made of.
void sum_block(const Planes& s, int64_t first, int64_t channels, const Passed& passed, const NormSums& to,
               float* grad_residual) {
    const float count = float(s.batch) * float(s.pixels);
    Sum sums[kMost], products[kMost];
    const bool past = grad_residual && streams(s, grad_residual);
    for (int64_t c = first; c < first + channels; c++) to.start(c);
    for_planes(s, first, channels, [&](int64_t c, int64_t at) {
        const Terms k = to.terms[c];
        const uint8_t* bits = passed.bits(at);
        vec total = {}, with_x = {};
        for_vectors(s.pixels, [&](int64_t i, int64_t lanes) {
            const vec g = passed(at, bits, i, lanes, k);
            total += g;
            with_x += g * (passed.x.get(at + i, lanes) - k.mean);
            if (past) stream(grad_residual + at + i, g);
            else if (grad_residual) put(grad_residual + at + i, g, lanes);
        });
        sums[c - first].add(total);
        products[c - first].add(with_x);
    });
    streamed();
    for (int64_t c = first; c < first + channels; c++)
        to.finish(c, float(sums[c - first].flush()), float(products[c - first].flush()), count);
}

}  // namespace

// The first half of the backward pass; `ssvi_backward` of the layer in front does the rest where it reads the gradient. The
// mask is needed where there was a ReLU behind a residual, and `grad_residual` where there was a residual; else they are null.
SSVI_API void ssvi_batchnorm_sums(const Planes* planes, const float* grad_y, const Kept* x, const uint8_t* mask,
                                  const Norm* norm, Terms* terms, float* grad_residual, float* grad_weight,
                                  float* grad_bias, int64_t threads) {
    const Passed passed{grad_y, *x, nullptr, mask, planes->pixels, norm->relu != 0};
    const NormSums to{norm, *x, terms, grad_weight, grad_bias};
    for_blocks(*planes, kLongRun, threads, [&](int64_t first, int64_t channels) {
        sum_block(*planes, first, channels, passed, to, grad_residual);
    });
}

// Both halves.
SSVI_API void ssvi_batchnorm_backward(const Planes* planes, const float* grad_y, const float* x, const float* y,
                                      const Norm* norm, Terms* terms, float* grad_x, float* grad_residual,
                                      float* grad_weight, float* grad_bias, int64_t threads) {
    const Passed passed{grad_y, {x, false}, y, nullptr, planes->pixels, norm->relu != 0};
    const NormSums to{norm, {x, false}, terms, grad_weight, grad_bias};
    for_blocks(*planes, kShortRun, threads, [&](int64_t first, int64_t channels) {
        sum_block(*planes, first, channels, passed, to, grad_residual);
        for_planes(*planes, first, channels, [&](int64_t c, int64_t at) {
            const Terms k = terms[c];
            for_vectors(planes->pixels, [&](int64_t i, int64_t lanes) {
                put(grad_x + at + i, k.before_norm(passed(at, nullptr, i, lanes, k), get(x + at + i, lanes)), lanes);
            });
        });
    });
}
