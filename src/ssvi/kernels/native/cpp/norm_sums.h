// The two sums of a norm's backward pass, and what follows from them. A layer whose input is z = relu(norm(y)) takes them where
// it writes dl/dz, so that no sweep of their own is needed.
#pragma once

#include <vector>

#include "epilogue.h"
#include "norm_gradient.h"
#include "parallel.h"
#include "sums.h"

namespace ssvi {

struct NormSums {  // mirrored in passes.py: where they go; terms, dl/dweight and dl/dbias by channel
    const Norm* norm;
    const float* y;  // what the norm saw, contiguous
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

// A target of `scatter` that adds up what it writes. Both tensors have their values at the same places.
struct Summed : Ahead {
    const float* y;
    Terms terms;
    mutable vec sum, product;

    void put(float* to, vec v, int64_t count) const {  // lanes from `count` on are zero
        const float* from = y + (to - data);
        const vec before = count >= kLanes ? load(from) : load_first(from, count);
        const vec g = terms.before_relu(v, before);
        sum += g;
        product += g * (before - terms.mean);
        Ahead::put(to, v, count);
    }
    void put_one(float* to, float v) const {
        const float before = y[to - data], g = terms.before_relu(v, before);
        sum[0] += g;
        product[0] += g * (before - terms.mean);
        *to = v;
    }
};

// Float32 over the rows of a stage, float64 over all. Each thread has sums of its own, which are added in the order of the
// threads.
class InputSums {
  public:
    InputSums(const NormSums* to, int64_t channels, int64_t threads)
        : to_(to), channels_(channels), of_(to ? threads * channels : 0) {
        for (int64_t c = 0; to && c < channels; c++) to->start(c);
    }
    bool wanted() const { return to_ != nullptr; }

    // `target`, whose values begin at `start`, as one that adds up.
    Summed summed(const Ahead& target, int64_t start, int64_t channel) const {
        return {target, to_->y + start, to_->terms[channel], vec{}, vec{}};
    }
    void add(int64_t channel, const Summed& part) {
        const Pair sums = sum_lanes(part.sum, part.product);
        Sums& mine = of_[omp_get_thread_num() * channels_ + channel];
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
