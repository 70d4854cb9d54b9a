// Mean and variance of every channel of y, taken while its values are still in the nearest cache: BatchNorm in training
// then reads y once.
#pragma once

#include <vector>

#include "layout.h"
#include "sums.h"

namespace ssvi {

struct Moment {  // of `count` values: their mean, and the sum of the squared distances from it
    double count = 0, mean = 0, squares = 0;

    // The moments of both sets together (Chan, Golub and LeVeque); no large numbers are subtracted.
    void merge(const Moment& b) {
        const double total = count + b.count, delta = b.mean - mean, share = b.count / total;
        mean += delta * share;
        squares += b.squares + delta * delta * count * share;
        count = total;
    }
};

// Each task has moments of its own for each channel, and they are merged in the order of the tasks: the result does not
// depend on the number of threads.
class Moments {
  public:
    Moments(const View& view, float* mean, float* var) : view_(view), mean_(mean), var_(var) {
        if (mean) of_.resize(view.groups * view.bands * view.channels);
        if (mean) mark(view.images, full_), mark(view.valid(view.groups - 1), last_);
    }
    bool wanted() const { return mean_ != nullptr; }

    // So many floats of whole rows of accumulators.
    void add(int64_t group, int64_t band, int64_t channel, const float* rows, int64_t floats) {
        const std::vector<float>& live = group == view_.groups - 1 ? last_ : full_;
        const int64_t values = floats / view_.row * view_.x.tile * view_.valid(group);
        const Moment part = live.empty() ? of(rows, floats, values, [](vec v, int64_t) { return v; })
                                         : of(rows, floats, values, [&](vec v, int64_t at) {
                                               return load(live.data() + at % view_.row) != 0.0f ? v : vec{};
                                           });
        of_[(group * view_.bands + band) * view_.channels + channel].merge(part);
    }

    void finish(const float* bias) const {
        for (int64_t c = 0; c < view_.channels; c++) {
            Moment all;
            for (size_t i = c; i < of_.size(); i += view_.channels) all.merge(of_[i]);
            mean_[c] = float(all.mean + (bias ? bias[c] : 0.0f));
            var_[c] = float(all.squares / all.count);
        }
    }

  private:
    // Which lanes of a row hold values, if the group has so many images; empty where all do.
    void mark(int64_t valid, std::vector<float>& live) const {
        if (valid == view_.images && view_.x.tile * view_.images == view_.row) return;
        live.resize(view_.row);
        for (int64_t i = 0; i < view_.x.tile * view_.images; i++) live[i] = i % view_.images < valid ? 1.0f : 0.0f;
    }

    // The sum of term(i) over vectors, in four chains: a single one would wait for itself.
    template <class Term>
    static vec of_vectors(int64_t floats, Term term) {
        vec sum[4] = {};
        int64_t i = 0;
        for (; i + 4 * kLanes <= floats; i += 4 * kLanes)
            for (int k = 0; k < 4; k++) sum[k] += term(i + k * kLanes);
        for (; i < floats; i += kLanes) sum[0] += term(i);
        return (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }

    template <class Live>
    static Moment of(const float* rows, int64_t floats, int64_t values, Live live) {
        const vec sum = of_vectors(floats, [&](int64_t i) { return live(load(rows + i), i); });
        const float mean = sum_lanes(sum, sum).first / float(values);
        const vec squares = of_vectors(floats, [&](int64_t i) {
            const vec d = live(load(rows + i) - mean, i);
            return d * d;
        });
        return {double(values), mean, sum_lanes(squares, squares).first};
    }

    const View view_;
    float *mean_, *var_;
    std::vector<float> full_, last_;
    std::vector<Moment> of_;
};

}  // namespace ssvi
