// The two sums of a norm's backward pass, and what follows from them. A layer whose input is z = relu(norm(y)) takes them where
// it writes dl/dz, so that no sweep of their own is needed.
#pragma once

#include <vector>

#include "epilogue.h"
#include "norm_gradient.h"
#include "planes.h"

namespace ssvi {

struct NormSums {  // mirrored in passes.py: where they go; terms, dl/dweight and dl/dbias by channel
    const Norm* norm;
    Kept y;  // what the norm saw
    Terms* terms;
    float *grad_weight, *grad_bias;

    void start(int64_t c) const {
        const Affine a = affine_of(*norm, c);
        terms[c] = {a.scale, a.shift, norm->mean[c], 0, 0};
    }
    // From the sums of dl/dz and of dl/dz (y - mean) over `count` values, behind the ReLU.
    void finish(int64_t c, float sum, float product, float count) const {
        const float inverse = 1.0f / std::sqrt(norm->var[c] + norm->eps);
        grad_bias[c] = sum, grad_weight[c] = product * inverse;
        terms[c].average = sum / count, terms[c].slope = product * inverse * inverse / count;
    }
};

// Float32 over the rows of a stage, float64 over all. Each part of the work has sums of its own, which are added in the order
// of the parts.
class InputSums {
  public:
    InputSums(const NormSums* to, int64_t channels, int64_t parts)
        : to_(to), channels_(channels), of_(to ? parts * channels : 0) {
        for (int64_t c = 0; to && c < channels; c++) to->start(c);
    }
    bool wanted() const { return to_ != nullptr; }

    // So many floats of dl/dz from `start` on, for each of some images: they were just written, and are in the nearest cache.
    void add(int64_t part, const float* dz, int64_t start, int64_t channel, int64_t image, int64_t images, int64_t floats) {
        const Terms k = to_->terms[channel];
        vec sum = {}, product = {};
        for (int64_t i = 0; i < images; i++) {
            const float* gradient = dz + start + i * image;
            const int64_t from = start + i * image;
            for_vectors(floats, [&](int64_t at, int64_t lanes) {
                const vec before = to_->y.get(from + at, lanes), g = k.before_relu(get(gradient + at, lanes), before);
                sum += g;
                product += g * (before - k.mean);
            });
        }
        const Pair sums = sum_lanes(sum, product);
        Sums& mine = of_[part * channels_ + channel];
        mine.first += sums.first, mine.second += sums.second;
    }
    void finish(float count) const {
        for (int64_t c = 0; wanted() && c < channels_; c++) {
            Sums all;
            for (size_t i = c; i < of_.size(); i += channels_) all.first += of_[i].first, all.second += of_[i].second;
            to_->finish(c, float(all.first), float(all.second), count);
        }
    }

  private:
    struct Sums {
        double first = 0, second = 0;
    };
    const NormSums* to_;
    int64_t channels_;
    std::vector<Sums> of_;
};

}  // namespace ssvi
