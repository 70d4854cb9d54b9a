// The input of a layer, and how the forward passes pack it into a slab.
#pragma once

#include "links.h"
#include "packing.h"
#include "sparse.h"

namespace ssvi {

struct Input {
    std::vector<Phase> phases;
    int64_t stride_h, stride_w;
    Pattern pattern;
    Tensor x;
    const Links* links;  // null where x is x itself and not the first of the tensors that it is made of

    Input(const Shape& shape, const Pattern& pattern, const Tensor& x, const Links* links = nullptr)
        : phases(phases_of(shape)), stride_h(shape.stride_h), stride_w(shape.stride_w), pattern(pattern), x(x), links(links) {}

    void pack(const View& view, float* slab, int64_t group, int64_t band, Range slots) const {
        const int64_t n = int64_t(phases.size()), valid = view.valid(group);
        const float* images = x.data + group * view.images * x.image;
        if (view.fully_connected() && n == 1) {  // channels are rows
            gather(Strided<const float>{images + slots.begin * x.channel, x.image, x.channel, 1}, slots.end - slots.begin, 1,
                   view.images, valid,
                   Rows<float>{slab + (view.origin + slots.begin * view.plane) * view.images, view.plane, view.images});
            return;
        }
        for (int64_t slot = slots.begin; slot < slots.end; slot++) {
            if (pattern.col_start[slot] == pattern.col_start[slot + 1]) continue;  // nothing reads it
            const Phase& p = phases[slot % n];
            const float* from = images + slot / n * x.channel + p.row * x.row + p.col * x.column;
            const int64_t cols = std::min(view.x.data, p.cols);
            pack_band(view, band, p.rows, cols, slab + slot * view.plane * view.images,
                      [&](int64_t row, int64_t rows, float* to) {
                          const Strided<const float> plane{from + row * stride_h * x.row, x.image, stride_h * x.row,
                                                           stride_w * x.column};
                          with_links(links, plane, slot / n, [&](const auto& src) {
                              gather(src, rows, cols, view.images, valid, Rows<float>{to, view.pitch, view.images});
                          });
                      });
        }
    }
};

}  // namespace ssvi
