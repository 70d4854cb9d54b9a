// What the backward pass reads: dl/dy, or the gradient behind a norm, packed as tiles read it, and the rows of x.
#pragma once

#include "input_gradient.h"
#include "links.h"
#include "norm_gradient.h"
#include "packing.h"
#include "sparse.h"

namespace ssvi {

struct Slabs {
    float* g;
    uint16_t* h;
};

struct Backward {
    Shape shape;
    View view;
    const std::vector<Phase>& phases;  // no copy: it would ask for a newer libstdc++ than the oldest systems have
    Pattern pattern;
    Tensor x, grad_y;
    const Links* links;        // null where x is x itself and not the first of the tensors that it is made of
    const NormGradient* norm;  // null where `grad_y` is dl/dy itself and not behind a norm; only for one given theta
    const uint16_t* t;         // what the forward pass saved; null for one given theta
    const float *mu, *sigma2;  // by column; sigma2 may be null
    InputGradient dx;

    int64_t at_once() const { return view.single_row() && !dx.strided() ? kChannelsAtOnce : 1; }

    template <bool Variance>
    void pack(Slabs slabs, int64_t group, int64_t band, Range channels) const;
    template <class F>
    void with_input(int64_t group, int64_t channel, int64_t top, F f) const;
    void fetch(float* to, int64_t group, int64_t channel, Stripe stripe) const;
    template <bool Variance, bool Input>
    void slots(Slabs slabs, Stage stage, Gradients grad, int64_t group, int64_t slot, int64_t count, Stripe stripe) const;
    template <bool Variance, bool Input>
    void run(Gradients grad, int64_t buffers, int64_t threads) const;
};

// g = dl/dy, and h = g t = dl/dvar, which has the precision of t and is kept as bfloat16.
template <bool Variance>
void Backward::pack(Slabs slabs, int64_t group, int64_t band, Range channels) const {
    const int64_t first = group * view.images, valid = view.valid(group), plane = view.y.data * view.x.data;
    const auto fill = [&](int64_t channel, int64_t row, int64_t rows, int64_t next, int64_t to, int64_t pitch) {
        const Strided<const float> g{grad_y.data + first * grad_y.image + channel * grad_y.channel + row * grad_y.row,
                                     grad_y.image, next, grad_y.column};
        const Rows<float> sink{slabs.g + to, pitch, view.images};
        const int64_t start = (first * view.planes + channel) * plane + row * view.x.data;
        if (!Variance && norm) {
            const KeptPlane y{norm->y, start, view.planes * plane, view.x.data, 1};
            gather(Normed{g, y, norm->terms[channel], norm->relu != 0}, rows, view.x.data, view.images, valid, sink);
            return;
        }
        gather(g, rows, view.x.data, view.images, valid, sink);
        if (!Variance) return;
        const Strided<const uint16_t> saved{t + start, view.planes * plane, view.x.data, 1};
        gather(Product<const float, const uint16_t>{g, saved}, rows, view.x.data, view.images, valid,
               Rows<uint16_t>{slabs.h + to, pitch, view.images});
    };
    if (view.fully_connected()) {  // channels are rows
        fill(channels.begin, 0, channels.end - channels.begin, grad_y.channel,
             (view.origin + channels.begin * view.plane) * view.images, view.plane);
        return;
    }
    for (int64_t channel = channels.begin; channel < channels.end; channel++) {
        const int64_t to = channel * view.plane * view.images;
        if (Variance) pack_band(view, band, view.y.data, view.x.data, slabs.h + to, [](auto...) {});
        pack_band(view, band, view.y.data, view.x.data, slabs.g + to, [&](int64_t row, int64_t rows, float* at) {
            fill(channel, row, rows, grad_y.row, at - slabs.g, view.pitch);
        });
    }
}

// f(the rows of x from `top` on, as a source of `gather`)
template <class F>
void Backward::with_input(int64_t group, int64_t channel, int64_t top, F f) const {
    const Strided<const float> plane{x.data + group * view.images * x.image + channel * x.channel + top * x.row, x.image,
                                     view.single_row() && !dx.strided() ? x.channel : x.row, x.column};
    with_links(links, plane, channel, f);
}

// All phases of x at once, in the order of memory: links are computed once, and a line of memory is read once.
inline void Backward::fetch(float* to, int64_t group, int64_t channel, Stripe stripe) const {
    const int64_t top = stripe.row * shape.stride_h;
    with_input(group, channel, top, [&](const auto& rows_of) {
        copy_rows(rows_of, view.valid(group), std::min(stripe.rows * shape.stride_h, shape.height - top), shape.width, to);
    });
}

}  // namespace ssvi
