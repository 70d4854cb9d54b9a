// Where things lie: the shape of a layer, and the padded copy ("slab") that a kernel reads.
//
// A slab holds planes of [row][column][image], `images` images side by side, with zeros around the data. One weight is
// then one constant offset into the slab, the same for every output, and an output vector is a run of kLanes floats:
// pixels of one image where rows are long, a few images interleaved where they are short, images alone for a
// fully connected layer (a convolution on planes of one pixel). A stride splits the input into phases: pixels that are
// equal modulo the stride form a plane of their own, and the convolution over these planes has stride 1.
#pragma once

#include <algorithm>

#include "simd.h"
#include "status.h"

namespace ssvi {

struct Shape {  // mirrored in library.py
    int64_t batch, in_channels, height, width, out_channels, kernel_h, kernel_w;
    int64_t stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w, groups;

    int64_t out_h() const { return (height + 2 * padding_h - dilation_h * (kernel_h - 1) - 1) / stride_h + 1; }
    int64_t out_w() const { return (width + 2 * padding_w - dilation_w * (kernel_w - 1) - 1) / stride_w + 1; }
};

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -ceil_div(-a, b); }

// One spatial axis: tap k reads pixel (o * stride + k * dilation - padding) = (o + shift(k)) * stride + phase(k).
struct Axis {
    int64_t in, out, taps, stride, padding, dilation;

    int64_t shift(int64_t k) const { return floor_div(k * dilation - padding, stride); }
    int64_t phase(int64_t k) const { return k * dilation - padding - shift(k) * stride; }
    int64_t phase_size(int64_t phase) const { return ceil_div(in - phase, stride); }
    bool reads(int64_t phase) const {
        for (int64_t k = 0; k < taps; k++)
            if (this->phase(k) == phase) return true;
        return false;
    }
    int64_t slots() const {  // phases that some tap reads
        int64_t n = 0;
        for (int64_t p = 0; p < stride; p++) n += reads(p);
        return n;
    }
    int64_t slot_of(int64_t phase) const {
        int64_t n = 0;
        for (int64_t p = 0; p < phase; p++) n += reads(p);
        return n;
    }
};

inline Axis vertical(const Shape& s) {
    return {s.height, s.out_h(), s.kernel_h, s.stride_h, s.padding_h, s.dilation_h};
}
inline Axis horizontal(const Shape& s) {
    return {s.width, s.out_w(), s.kernel_w, s.stride_w, s.padding_w, s.dilation_w};
}

constexpr int64_t kSlabBudget = 768 << 10;  // bytes: most of the second-level cache of current cores

// How many images lie interleaved: the fewest that fill whole vectors with whole rows and waste least of the batch.
// `bytes` is the size of the slab for one image.
inline int64_t images_per_group(const Shape& s, int64_t rows, int64_t columns, int64_t bytes) {
    if (rows == 1 && columns == 1) {  // fully connected: as many as a tile holds, half of it where the cache is small
        const int64_t vectors = kLanes * kTile * bytes > kSlabBudget ? kTile / 2 : kTile;
        const int64_t groups = ceil_div(s.batch, kLanes * vectors);
        return kLanes * ceil_div(ceil_div(s.batch, groups), kLanes);
    }
    const auto vectors = [&](int64_t images) { return ceil_div(columns * images, kLanes); };
    int64_t best = 1;
    for (int64_t images = 2; images <= kLanes; images *= 2)
        if (ceil_div(s.batch, images) * vectors(images) < ceil_div(s.batch, best) * vectors(best)) best = images;
    while (best < kLanes && best * 2 <= s.batch && rows * vectors(best) < kTile) best *= 2;  // planes below a tile
    return best;
}

// Offsets along one axis of a plane that shares its zeros with the next: data, then max(before, after) zeros.
struct Extent {
    int64_t tile, data, low, high;  // positions written by tiles; positions with data; smallest and largest shift

    int64_t before() const { return -low; }
    int64_t after() const { return std::max<int64_t>(0, tile + high - data); }
    int64_t pitch() const { return data + std::max(before(), after()); }
};

// One direction of the layer. Forward: accumulators are outputs, the slab holds x. Backward: accumulators are input
// phases, the slab holds dl/dy.
struct View {
    int64_t batch, images, groups;  // of the batch, in a group, groups
    int64_t planes;                 // of the slab
    int64_t channels;               // of the accumulators
    Extent y, x;                    // rows and columns
    int64_t band, bands;            // rows of accumulators that one slab serves
    int64_t pitch, plane, origin;   // of the slab, in pixels: row to row, plane to plane, the first pixel with data
    int64_t slab;                   // floats
    int64_t row;                    // floats in a row of accumulators: whole vectors
    int64_t columns;                // vectors of a tile side by side: 1 or 2
    int64_t step;                   // floats of the slab from one row of a tile to the next
    int64_t out;                    // floats of the accumulators from one row of a tile to the next

    bool single_row() const { return y.tile == 1; }
    bool fully_connected() const { return y.tile == 1 && x.tile == 1 && y.data == 1 && x.data == 1; }
    int64_t tile_rows(int64_t most) const { return most / columns; }  // of a tile of so many vectors
    int64_t band_rows(int64_t i) const { return std::min(band, y.tile - i * band); }
    int64_t valid(int64_t group) const { return std::min(images, batch - group * images); }
};

constexpr double kMostPixels = double(int64_t(1) << 50);  // of a slab: below it no size in bytes leaves 64 bits

// `bytes` of slab are kept for a pixel of a plane. Where a whole plane does not fit, bands of rows do.
inline View view_of(const Shape& s, Extent y, Extent x, int64_t planes, int64_t channels, int64_t bytes) {
    if (double(planes) * double(y.pitch()) * double(x.pitch()) > kMostPixels) throw TooLarge{};
    View v{};
    v.batch = s.batch;
    v.images = images_per_group(s, y.tile, x.tile, planes * y.pitch() * x.pitch() * bytes);
    v.groups = ceil_div(s.batch, v.images);
    v.planes = planes, v.channels = channels, v.y = y, v.x = x;
    v.pitch = x.pitch();
    v.origin = y.before() * v.pitch + x.before();
    v.band = y.tile;
    int64_t rows = y.pitch();
    const int64_t halo = y.high - y.low, row_bytes = planes * v.pitch * v.images * bytes;
    if (rows * row_bytes > kSlabBudget) {
        const int64_t band = std::max<int64_t>(1, (kSlabBudget / row_bytes - halo) / kTile) * kTile;
        if (band < y.tile) v.band = band, rows = band + halo;
    }
    v.bands = ceil_div(y.tile, v.band);
    v.plane = rows * v.pitch;
    if (planes * v.plane > INT32_MAX) throw TooLarge{};  // a pattern keeps offsets in 32 bits
    v.slab = (planes * v.plane + v.origin + v.pitch) * v.images + kLanes;  // a row's last vector may reach beyond it
    v.row = ceil_div(x.tile * v.images, kLanes) * kLanes;
    v.columns = !v.single_row() && v.row / kLanes % 2 == 0 ? 2 : 1;
    v.step = v.single_row() ? kLanes : v.pitch * v.images;  // a tile goes down a plane, or along its only row
    v.out = v.single_row() ? kLanes : v.row;
    return v;
}

struct Shifts {
    int64_t low = 0, high = 0;
    explicit Shifts(const Axis& axis) {
        low = std::min<int64_t>(0, axis.shift(0));
        high = std::max<int64_t>(0, axis.shift(axis.taps - 1));
    }
};

inline View forward_view(const Shape& s) {
    const Axis v = vertical(s), h = horizontal(s);
    const Shifts dy(v), dx(h);
    return view_of(s, {v.out, std::min(v.phase_size(0), v.out + dy.high), dy.low, dy.high},
                   {h.out, std::min(h.phase_size(0), h.out + dx.high), dx.low, dx.high},
                   s.in_channels * v.slots() * h.slots(), s.out_channels, sizeof(float));
}

inline View backward_view(const Shape& s) {
    const Axis v = vertical(s), h = horizontal(s);
    const Shifts dy(v), dx(h);
    return view_of(s, {v.phase_size(0), v.out, -dy.high, -dy.low}, {h.phase_size(0), h.out, -dx.high, -dx.low},
                   s.out_channels, s.in_channels * v.slots() * h.slots(), sizeof(float) + sizeof(uint16_t));
}

}  // namespace ssvi
