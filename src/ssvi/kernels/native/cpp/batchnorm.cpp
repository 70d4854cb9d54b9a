// y = relu(batchnorm(x) + residual) with the statistics of the batch, and its gradients: two sweeps over memory each way
// instead of one for every operator.
#include "epilogue.h"
#include "parallel.h"

using namespace ssvi;

struct Planes {  // mirrored in library.py: x is (batch, channels, pixels), contiguous
    int64_t batch, channels, pixels;
};

namespace {

constexpr int64_t kRun = 256, kMost = 64;  // neighbouring channels are taken together until they fill kRun floats

// A sum over planes: float32 over a few, float64 over all.
struct Sum {
    vec part = {};
    int planes = 0;
    double total = 0;

    void add(vec v) {
        part += v;
        if (++planes == 32) flush();
    }
    double flush() {
        total += sum_lanes(part, part).first;
        part = vec{};
        planes = 0;
        return total;
    }
};

struct Channel : Affine {  // what one channel needs: sums, then the coefficients made of them
    Sum first, second;
    float mean, slope;
};

// Calls body(first channel, channels) for blocks of neighbouring channels, in parallel.
template <class Body>
void for_blocks(const Planes& s, int64_t threads, Body body) {
    const int64_t block = std::max<int64_t>(1, std::min(kMost, kRun / s.pixels)), blocks = ceil_div(s.channels, block);
    const int64_t usable = usable_threads(threads);
#pragma omp parallel for num_threads(int(usable)) schedule(static) if (usable > 1)
    for (int64_t i = 0; i < blocks; i++) body(i * block, std::min(block, s.channels - i * block));
}

// Calls f(channel, offset of its plane) for every plane of a block.
template <class F>
inline void for_planes(const Planes& s, int64_t first, int64_t count, F f) {
    for (int64_t n = 0; n < s.batch; n++)
        for (int64_t c = first; c < first + count; c++) f(c, (n * s.channels + c) * s.pixels);
}

// Calls f(offset, lanes) for the vectors of a plane; the last may be partial.
template <class F>
inline void for_vectors(int64_t pixels, F f) {
    int64_t i = 0;
    for (; i + kLanes <= pixels; i += kLanes) f(i, kLanes);
    if (i < pixels) f(i, pixels - i);
}

inline vec get(const float* p, int64_t lanes) { return lanes == kLanes ? load(p) : load_first(p, lanes); }
inline void put(float* p, vec v, int64_t lanes) { lanes == kLanes ? store(p, v) : store_first(p, v, lanes); }
inline vec first_lanes(vec v, int64_t lanes) {
    for (int64_t i = lanes; i < kLanes; i++) v[i] = 0;
    return v;
}

// y = relu(scale x + shift + residual) for a block of channels
inline void apply(const Planes& s, int64_t first, int64_t channels, const Channel* of, const float* x,
                  const float* residual, bool relu, float* y) {
    for_planes(s, first, channels, [&](int64_t c, int64_t at) {
        const float scale = of[c - first].scale, shift = of[c - first].shift;
        for_vectors(s.pixels, [&](int64_t i, int64_t lanes) {
            vec v = get(x + at + i, lanes) * scale + shift;
            if (residual) v += get(residual + at + i, lanes);
            put(y + at + i, relu ? rectify(v) : v, lanes);
        });
    });
}

}  // namespace

// With given statistics: evaluation.
SSVI_API void ssvi_batchnorm_apply(const Planes* planes, const float* x, const Norm* norm, float* y, int64_t threads) {
    for_blocks(*planes, threads, [&](int64_t first, int64_t channels) {
        Channel of[kMost];
        for (int64_t i = 0; i < channels; i++) static_cast<Affine&>(of[i]) = affine_of(*norm, first + i);
        apply(*planes, first, channels, of, x, norm->residual, norm->relu, y);
    });
}

SSVI_API void ssvi_batchnorm_forward(const Planes* planes, const float* x, const float* residual, const float* weight,
                                     const float* bias, float eps, bool relu, float* y, float* mean, float* var,
                                     int64_t threads) {
    const Planes s = *planes;
    const double count = double(s.batch) * double(s.pixels);
    for_blocks(s, threads, [&](int64_t first, int64_t channels) {
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
        apply(s, first, channels, of, x, residual, relu, y);
    });
}

// `y` is the output where there was a ReLU, else null; `grad_residual` is null where there was no residual.
SSVI_API void ssvi_batchnorm_backward(const Planes* planes, const float* grad_y, const float* x, const float* y,
                                      const float* weight, const float* mean, const float* var, float eps,
                                      float* grad_x, float* grad_residual, float* grad_weight, float* grad_bias,
                                      int64_t threads) {
    const Planes s = *planes;
    const float count = float(s.batch) * float(s.pixels);
    const auto gradient = [=](int64_t at, int64_t lanes) {
        const vec g = get(grad_y + at, lanes);
        return y ? (get(y + at, lanes) > 0.0f ? g : vec{}) : g;
    };
    for_blocks(s, threads, [&](int64_t first, int64_t channels) {
        Channel of[kMost];
        for (int64_t c = 0; c < channels; c++) of[c].mean = mean[first + c];
        for_planes(s, first, channels, [&](int64_t c, int64_t at) {
            const float m = of[c - first].mean;
            vec total = {}, with_x = {};
            for_vectors(s.pixels, [&](int64_t i, int64_t lanes) {
                const vec g = gradient(at + i, lanes);
                total += g;
                with_x += g * (get(x + at + i, lanes) - m);
                if (grad_residual) put(grad_residual + at + i, g, lanes);
            });
            of[c - first].first.add(total);
            of[c - first].second.add(with_x);
        });
        for (int64_t i = 0; i < channels; i++) {
            const int64_t c = first + i;
            const float inverse = 1.0f / std::sqrt(var[c] + eps);
            const float sum = float(of[i].first.flush()), product = float(of[i].second.flush());
            grad_bias[c] = sum, grad_weight[c] = product * inverse;
            of[i].scale = (weight ? weight[c] : 1.0f) * inverse;
            of[i].shift = sum / count, of[i].slope = product * inverse * inverse / count;
        }
        for_planes(s, first, channels, [&](int64_t c, int64_t at) {
            const Channel& k = of[c - first];
            const float m = k.mean, scale = k.scale, shift = k.shift, slope = k.slope;
            for_vectors(s.pixels, [&](int64_t i, int64_t lanes) {
                const vec d = get(x + at + i, lanes) - m;
                put(grad_x + at + i, (gradient(at + i, lanes) - shift - d * slope) * scale, lanes);
            });
        });
    });
}
