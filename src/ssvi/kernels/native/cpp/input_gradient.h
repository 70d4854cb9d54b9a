// How dl/dx reaches memory. Behind a stride, each tile has the pixels of one phase: those of all phases are woven in memory
// of the thread, and whole rows are written once.
#pragma once

#include "sparse.h"

namespace ssvi {

struct Stage {  // rows of one channel: x and dl/dx as tiles see them, one phase of dl/dx, all phases of it
    float *x, *dx, *phase, *whole;
};

struct InputGradient {
    const Shape& shape;
    const View& view;
    float* dx;  // may be null: nothing is written then

    bool strided() const { return shape.stride_h * shape.stride_w > 1; }
    int64_t whole() const {  // floats of the rows of an input channel that a tile covers, with all phases
        return strided() ? aligned(view.images * kTile * shape.stride_h * shape.width + kLanes) : 0;
    }

    void emit(const float* rows_of, int64_t group, int64_t channel, int64_t rows, Stripe stripe) const;
    void weave(const Stage& stage, const Phase& phase, int64_t group, int64_t rows, Stripe stripe) const;
    void copy_whole(const float* whole, int64_t group, int64_t channel, Stripe stripe) const;
};

inline void InputGradient::emit(const float* rows_of, int64_t group, int64_t channel, int64_t rows, Stripe stripe) const {
    const int64_t plane = shape.height * shape.width, pitch = view.row, images = view.images;
    const int64_t start = (group * images * shape.in_channels + channel) * plane + stripe.row * shape.width;
    const Ahead to{{dx + start, shape.in_channels * plane, shape.width, 1}, view.single_row() ? rows * plane : plane};
    scatter(to, rows, shape.width, images, view.valid(group), [=](int64_t row, int64_t col, int64_t block) {
        return load(rows_of + row * pitch + col * images + block * kLanes);
    });
}

// The pixels of one phase go between those of the others.
inline void InputGradient::weave(const Stage& stage, const Phase& phase, int64_t group, int64_t rows, Stripe stripe) const {
    const int64_t valid = view.valid(group), pitch = view.row, images = view.images;
    scatter(Strided<float>{stage.phase, rows * phase.cols, phase.cols, 1}, rows, phase.cols, images, valid,
            [=, from = stage.dx](int64_t row, int64_t col, int64_t block) {
                return load(from + row * pitch + col * images + block * kLanes);
            });
    for (int64_t i = 0; i < valid; i++)
        for (int64_t r = 0; r < rows; r++) {
            const int64_t row = (i * stripe.rows + r) * shape.stride_h + phase.row;
            spread(stage.phase + (i * rows + r) * phase.cols, phase.cols, shape.stride_w,
                   stage.whole + row * shape.width + phase.col);
        }
}

inline void InputGradient::copy_whole(const float* whole, int64_t group, int64_t channel, Stripe stripe) const {
    const int64_t plane = shape.height * shape.width, top = stripe.row * shape.stride_h;
    const int64_t floats = std::min(stripe.rows * shape.stride_h, shape.height - top) * shape.width;
    float* to = dx + (group * view.images * shape.in_channels + channel) * plane + top * shape.width;
    for (int64_t i = 0; i < view.valid(group); i++, to += shape.in_channels * plane) {
        for (int64_t at = 0; at < floats; at += kLanes) __builtin_prefetch(to + plane + at, 1);
        std::memcpy(to, whole + i * stripe.rows * shape.stride_h * shape.width, floats * sizeof(float));
    }
}

}  // namespace ssvi
