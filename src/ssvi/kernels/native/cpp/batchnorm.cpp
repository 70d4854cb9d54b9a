// y = relu(batchnorm(x) + residual) with the statistics of the batch: two sweeps over memory instead of one for every
// operator.
#include <limits>

#include "epilogue.h"
#include "links.h"
#include "mask.h"

using namespace ssvi;

namespace {

struct Channel : Affine {  // what one channel needs: sums, then the coefficients made of them
    Sum first, second;
    float mean;
};

inline vec first_lanes(vec v, int64_t lanes) {
    for (int64_t i = lanes; i < kLanes; i++) v[i] = 0;
    return v;
}

// y = relu(scale x + shift + residual) for a block of channels; `mask` may be null
inline void apply(const Planes& s, int64_t first, int64_t channels, const Channel* of, const Kept& x,
                  const float* residual, bool relu, float* y, uint8_t* mask) {
    const bool past = streams(s, y);
    for_planes(s, first, channels, [&](int64_t c, int64_t at) {
        uint8_t* passed = mask ? mask + at / s.pixels * mask_bytes(s.pixels) : nullptr;
        const float scale = of[c - first].scale, shift = of[c - first].shift;
        for_vectors(s.pixels, [&](int64_t i, int64_t lanes) {
            vec v = x.get(at + i, lanes) * scale + shift;
            if (residual) v += get(residual + at + i, lanes);
            if (passed) store_mask(passed + i / kLanes * kMaskBytes, v > 0.0f);
            v = relu ? rectify(v) : v;
            past ? stream(y + at + i, v) : put(y + at + i, v, lanes);
        });
    });
    streamed();
}

}  // namespace

// relu(batchnorm(x)) with given statistics as a link of the next layer's input, channel by channel.
SSVI_API void ssvi_batchnorm_link(const Norm* norm, int64_t channels, Coefficients* link) {
    const float floor = norm->relu ? 0.0f : -std::numeric_limits<float>::infinity();
    for (int64_t c = 0; c < channels; c++) {
        const Affine a = affine_of(*norm, c);
        link[c] = {a.scale, a.shift, floor};
    }
}

// With given statistics. For a backward pass, what the ReLU let pass; in evaluation the mask is null.
SSVI_API void ssvi_batchnorm_apply(const Planes* planes, const Kept* x, const Norm* norm, float* y, uint8_t* mask,
                                   int64_t threads) {
    for_blocks(*planes, kLongRun, threads, [&](int64_t first, int64_t channels) {
        Channel of[kMost];
        for (int64_t i = 0; i < channels; i++) static_cast<Affine&>(of[i]) = affine_of(*norm, first + i);
        apply(*planes, first, channels, of, *x, norm->residual, norm->relu, y, mask);
    });
}

SSVI_API void ssvi_batchnorm_forward(const Planes* planes, const float* x, const float* residual, const float* weight,
                                     const float* bias, float eps, bool relu, float* y, float* mean, float* var,
                                     int64_t threads) {
    const Planes s = *planes;
    const double count = double(s.batch) * double(s.pixels);
    for_blocks(s, kShortRun, threads, [&](int64_t first, int64_t channels) {
        Channel of[kMost];
        for_planes(s, first, channels, [&](int64_t c, int64_t at) {
            vec total = {};
            for_vectors(s.pixels, [&](int64_t i, int64_t lanes) { total += get(x + at + i, lanes); });
            of[c - first].first.add(total);
        });
        for (int64_t c = 0; c < channels; c++) of[c].mean = float(of[c].first.flush() / count);
        for_planes(s, first, channels, [&](int64_t c, int64_t at) {
            const float m = of[c - first].mean;
            vec total = {};
            for_vectors(s.pixels, [&](int64_t i, int64_t lanes) {
                const vec d = first_lanes(get(x + at + i, lanes) - m, lanes);
                total += d * d;
            });
            of[c - first].second.add(total);
        });
        for (int64_t i = 0; i < channels; i++) {
            const int64_t c = first + i;
            mean[c] = of[i].mean, var[c] = float(of[i].second.flush() / count);
            static_cast<Affine&>(of[i]) = affine_of(weight, bias, c, mean[c], var[c], eps);
        }
        apply(s, first, channels, of, {x, false}, residual, relu, y, nullptr);
    });
}

// The floats of a vector, from which the layout of a mask follows.
SSVI_API int32_t ssvi_lanes() { return kLanes; }
