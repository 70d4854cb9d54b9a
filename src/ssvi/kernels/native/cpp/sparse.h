// What the two passes share: their arguments, and one plane of a user's tensor.
#pragma once

#include <vector>

#include "pack.h"
#include "parallel.h"
#include "tiles.h"

namespace ssvi {

struct Tensor {  // mirrored in library.py; strides in floats
    const float* data;
    int64_t image, channel, row, column;
};

struct Pattern {  // mirrored in library.py; see pattern.cpp
    int64_t count;
    const int32_t *row_start, *row_offset, *col_start, *col_offset, *col_order;
    int64_t block;  // so many neighbouring outputs read the same places; see blocks.h
};

struct Phase {  // pixels (row, column) modulo the stride, and how many there are
    int64_t row, col, rows, cols;
};

// The phases that some tap reads: slot i of the pattern is phase i % n of input channel i / n.
inline std::vector<Phase> phases_of(const Shape& s) {
    const Axis v = vertical(s), h = horizontal(s);
    std::vector<Phase> phases;
    for (int64_t row = 0; row < v.stride; row++)
        for (int64_t col = 0; col < h.stride; col++)
            if (v.reads(row) && h.reads(col)) phases.push_back({row, col, v.phase_size(row), h.phase_size(col)});
    return phases;
}

// Planes of one row: neighbouring channels are neighbouring rows, and many of them are moved at once.
constexpr int64_t kChannelsAtOnce = 16;

struct Stripe {  // neighbouring rows of accumulators, as many as a tile covers
    int64_t row, rows;
};

inline int64_t stripes(int64_t rows, int64_t most) { return ceil_div(rows, most); }

inline Stripe stripe_at(int64_t first, int64_t rows, int64_t most, int64_t i) {
    const int64_t n = stripes(rows, most), begin = rows * i / n, end = rows * (i + 1) / n;
    return {first + begin, end - begin};
}

// f(constant rows, constant columns, where the tile starts in a row of accumulators) for the tiles of one channel over
// one stripe, of at most Most vectors each; a plane of one row is cut along it
template <int Most, class F>
inline void for_tiles(const View& view, int64_t rows, F f) {
    const std::integral_constant<int, 1> one;
    const std::integral_constant<int, 2> two;
    if (view.single_row()) {
        for (int64_t i = 0, vectors = view.row / kLanes; i < stripes(vectors, Most); i++) {
            const Stripe part = stripe_at(0, vectors, Most, i);
            with_rows<Most>(part.rows, [&](auto r) { f(r, one, part.row * kLanes); });
        }
    } else if (view.columns == 1) {
        with_rows<Most>(rows, [&](auto r) {
            for (int64_t at = 0; at < view.row; at += kLanes) f(r, one, at);
        });
    } else {
        with_rows<Most / 2>(rows, [&](auto r) {
            for (int64_t at = 0; at < view.row; at += 2 * kLanes) f(r, two, at);
        });
    }
}

// Writes the vectors of `gather` to rows of `pitch` pixels.
template <class T>
struct Rows {
    T* to;
    int64_t pitch, images;

    void operator()(int64_t row, int64_t col, int64_t block, vec v, int64_t lanes) const {
        T* at = to + (row * pitch + col) * images + block * kLanes;
        lanes == kLanes ? store(at, v) : store_first(at, v, lanes);
    }
};

// Fills one plane of a slab for a band: fill(first row, rows, where they go). Rows beyond the data are zeros.
template <class T, class Fill>
inline void pack_band(const View& view, int64_t band, int64_t data_rows, int64_t data_cols, T* plane, Fill fill) {
    const int64_t begin = band * view.band + view.y.low, end = band * view.band + view.band_rows(band) + view.y.high;
    const int64_t low = std::max<int64_t>(0, begin), high = std::max(low, std::min(data_rows, end));
    const auto row_at = [&](int64_t row) { return plane + ((row - begin) * view.pitch + view.x.before()) * view.images; };
    if (view.bands > 1) {  // a single band has its zeros from the start, where nothing overwrites them
        const int64_t bytes = data_cols * view.images * sizeof(T);
        for (int64_t r = begin; r < low; r++) std::memset(row_at(r), 0, bytes);
        for (int64_t r = high; r < end; r++) std::memset(row_at(r), 0, bytes);
    }
    if (high > low) fill(low, high - low, row_at(low));
}

}  // namespace ssvi
