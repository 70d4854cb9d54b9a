// A contiguous tensor that one pass leaves for another: float32, or bfloat16, which takes half the memory and half the way to
// it. All arithmetic is that of float32.
#pragma once

#include "pack.h"

namespace ssvi {

struct Kept {  // mirrored in library.py
    const void* data;
    int32_t half;

    const float* floats() const { return static_cast<const float*>(data); }
    const uint16_t* halves() const { return static_cast<const uint16_t*>(data); }
    vec get(int64_t at, int64_t lanes) const {
        return half ? ssvi::get(halves() + at, lanes) : ssvi::get(floats() + at, lanes);
    }
};

struct KeptPlane {  // one plane of every image of a group, for `gather`
    Strided<const float> floats;
    Strided<const uint16_t> halves;
    bool half;

    KeptPlane() = default;
    KeptPlane(const Kept& of, int64_t offset, int64_t image, int64_t row, int64_t column)
        : floats{of.floats() + offset, image, row, column}, halves{of.halves() + offset, image, row, column}, half(of.half) {}

    bool rows_touch(int64_t cols) const { return floats.rows_touch(cols); }
    float value(int64_t i, int64_t r, int64_t c) const { return half ? halves.value(i, r, c) : floats.value(i, r, c); }
    void copy_row(int64_t i, int64_t r, int64_t cols, float* to) const {
        half ? halves.copy_row(i, r, cols, to) : floats.copy_row(i, r, cols, to);
    }
    vec run(int64_t i, int64_t pixel, int64_t left) const {
        return half ? halves.run(i, pixel, left) : floats.run(i, pixel, left);
    }
};

}  // namespace ssvi
