// An input that is computed where it is read. What a residual network hands from layer to layer is
//   x = max(... max(max(a_1 y_1 + b_1, f_1) + a_2 y_2 + b_2, f_2) ...)
// of outputs y of layers that the backward pass needs anyway: the norms behind them, sums, and ReLUs (f = 0; without one
// f = -infinity). So x itself need not be kept.
#pragma once

#include "kept.h"

namespace ssvi {

struct Coefficients {  // of one link and one channel; their number is mirrored in links.py
    float scale, shift, floor;
};

constexpr int64_t kMostLinks = 3;

struct Links {  // mirrored in links.py
    Kept y[kMostLinks];      // all of one shape
    const Coefficients* of;  // by link, then by channel
    int64_t count, channels;
};

struct Linked {  // one plane of every image of a group, for `gather`
    KeptPlane y[kMostLinks];
    Coefficients of[kMostLinks];
    int64_t count;

    // `plane` is where that of a float32 tensor would be, if it began where the first y begins.
    Linked(const Links& links, Strided<const float> plane, int64_t channel) : count(links.count) {
        const int64_t offset = plane.data - links.y[0].floats();
        for (int64_t k = 0; k < count; k++) {
            y[k] = {links.y[k], offset, plane.image, plane.row, plane.column};
            of[k] = links.of[k * links.channels + channel];
        }
    }

    template <class V>  // a vector or a float
    static V add(V sum, V y, const Coefficients& k) {
        const V v = sum + (y * k.scale + k.shift);
        return v < k.floor ? V{} + k.floor : v;  // NaN stays
    }
    bool rows_touch(int64_t cols) const { return y[0].rows_touch(cols); }
    float value(int64_t i, int64_t r, int64_t c) const {
        float v = 0;
        for (int64_t k = 0; k < count; k++) v = add(v, y[k].value(i, r, c), of[k]);
        return v;
    }
    void copy_row(int64_t i, int64_t r, int64_t cols, float* to) const {
        float row[kCopy];
        std::memset(to, 0, cols * sizeof(float));
        for (int64_t k = 0; k < count; k++) {
            y[k].copy_row(i, r, cols, row);
            for (int64_t c = 0; c < cols; c++) to[c] = add(to[c], row[c], of[k]);
        }
    }
    vec run(int64_t i, int64_t pixel, int64_t left) const {
        vec v = {};
        for (int64_t k = 0; k < count; k++) v = add(v, y[k].run(i, pixel, left), of[k]);
        return v;
    }
};

// f(a plane as a source of `gather`): with links, the plane is that of the first y, and x is computed from all of them.
template <class F>
inline void with_links(const Links* links, Strided<const float> plane, int64_t channel, F f) {
    if (links) f(Linked(*links, plane, channel));
    else f(plane);
}

}  // namespace ssvi
