// Between a user's tensor (any strides) and rows of [column][image] vectors.
#pragma once

#include "layout.h"
#include "stride.h"

namespace ssvi {

constexpr int64_t kAhead = 4096;  // bytes: a page, where the prefetchers of the hardware stop

template <class T>
struct Strided {  // one plane of every image of a group
    using Value = T;
    T* data;
    int64_t image, row, column;  // strides

    T* at(int64_t i, int64_t r, int64_t c) const { return data + i * image + r * row + c * column; }
    void put(T* to, vec v, int64_t count) const { count >= kLanes ? store(to, v) : store_first(to, v, count); }
    void put_one(T* to, T v) const { *to = v; }
    bool rows_touch(int64_t cols) const { return row == cols && (column == 1 || cols == 1); }
    float value(int64_t i, int64_t r, int64_t c) const { return widen(*at(i, r, c)); }
    void copy_row(int64_t i, int64_t r, int64_t cols, float* to) const {
        const T* from = at(i, r, 0);
        if (column <= 2)
            for (int64_t c = 0; c < cols * column; c += kLanes) __builtin_prefetch(from + c + kAhead / sizeof(T));
        take(from, column, cols, to);
    }
    vec run(int64_t i, int64_t pixel, int64_t left) const {  // pixels side by side, where rows touch
        const T* from = data + i * image + pixel;
        __builtin_prefetch(from + kAhead / sizeof(T));
        return left >= kLanes ? load(from) : load_first(from, left);
    }
};

// The prefetchers of the hardware do not follow from one plane to the next: what the next call writes is asked for here.
// What goes past the caches needs no such question.
template <class T>
struct Ahead : Strided<T> {
    int64_t ahead;  // values from here to where the next call writes
    bool past;

    Ahead(Strided<T> to, int64_t ahead, bool large)
        : Strided<T>(to), ahead(ahead), past(large && to.image % kLanes == 0 && starts_vector(to.data)) {}

    void put(T* to, vec v, int64_t count) const {
        if (past && count >= kLanes) return stream(to, v);
        __builtin_prefetch(to + ahead, 1);
        Strided<T>::put(to, v, count);
    }
};

template <class A, class B>
struct Product {  // of two tensors, element by element
    Strided<A> a;
    Strided<B> b;

    bool rows_touch(int64_t cols) const { return a.rows_touch(cols) && b.rows_touch(cols); }
    float value(int64_t i, int64_t r, int64_t c) const { return a.value(i, r, c) * b.value(i, r, c); }
    void copy_row(int64_t i, int64_t r, int64_t cols, float* to) const {
        for (int64_t c = 0; c < cols; c++) to[c] = value(i, r, c);
    }
    vec run(int64_t i, int64_t pixel, int64_t left) const { return a.run(i, pixel, left) * b.run(i, pixel, left); }
};

struct Block {  // images that share a vector: their number, the first of them in the group, how many there are
    int64_t number, first, images;
};

inline Block block_at(int64_t number, int64_t count, int64_t valid) {
    const int64_t first = number * kLanes;
    return {number, first, std::min(count, std::max<int64_t>(0, valid - first))};
}

// Lane l of the vector at (row, column) of block k is pixel column + l / Count of image k * kLanes + l % Count.
// `Count` images are interleaved: all of a group, or kLanes of them where the group is wider than a vector.

template <int Count, class Source, class Sink>
void gather_run(const Source& src, int64_t rows, int64_t cols, const Block& block, const Sink& sink) {
    constexpr int64_t width = kLanes / Count;  // pixels in a vector
    int64_t row = 0, col = 0;
    for (int64_t p = 0; p < rows * cols; p += kLanes) {
        vec v[Count];
        const int64_t left = rows * cols - p;
        for (int i = 0; i < Count; i++) v[i] = i < block.images ? src.run(block.first + i, p, left) : vec{};
        interleave<Count>(v);
        for (int i = 0; i < Count && i * width < left; i++) {
            sink(row, col, block.number, v[i], kLanes);
            if ((col += width) >= cols) col = 0, row++;
        }
    }
}

template <int Count, class Source, class Sink>
__attribute__((noinline)) void gather_any(const Source& src, int64_t rows, int64_t cols, const Block& block, const Sink& sink) {
    constexpr int64_t width = kLanes / Count;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t col = 0; col < cols; col += width) {
            float lanes[kLanes] = {};
            const int64_t pixels = std::min(width, cols - col);
            for (int64_t p = 0; p < pixels; p++)
                for (int64_t i = 0; i < block.images; i++) lanes[p * Count + i] = src.value(block.first + i, row, col + p);
            sink(row, col, block.number, load(lanes), pixels * Count);
        }
}

template <int Count, class Target, class Source>
void scatter_run(const Target& dst, int64_t rows, int64_t cols, const Block& block, const Source& source) {
    constexpr int64_t width = kLanes / Count;
    int64_t row = 0, col = 0;
    for (int64_t p = 0; p < rows * cols; p += kLanes) {
        vec v[Count] = {};
        const int64_t left = rows * cols - p;
        for (int i = 0; i < Count && i * width < left; i++) {
            v[i] = source(row, col, block.number);
            if ((col += width) >= cols) col = 0, row++;
        }
        deinterleave<Count>(v);
        for (int i = 0; i < Count; i++) {
            if (i >= block.images) break;
            dst.put(dst.data + (block.first + i) * dst.image + p, v[i], left);
        }
    }
}

template <int Count, class Target, class Source>
__attribute__((noinline)) void scatter_any(const Target& dst, int64_t rows, int64_t cols, const Block& block, const Source& source) {
    constexpr int64_t width = kLanes / Count;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t col = 0; col < cols; col += width) {
            typename Target::Value lanes[kLanes];
            store(lanes, source(row, col, block.number));
            for (int64_t p = 0; p < std::min(width, cols - col); p++)
                for (int64_t i = 0; i < block.images; i++)
                    dst.put_one(dst.at(block.first + i, row, col + p), lanes[p * Count + i]);
        }
}

// Calls f with the number of interleaved images as a compile-time constant.
template <class F>
void with_count(int64_t images, F f) {
    if (images == 1) f(std::integral_constant<int, 1>{});
    else if (images == 2) f(std::integral_constant<int, 2>{});
    else if (images == 4) f(std::integral_constant<int, 4>{});
    else if (images == 8 && kLanes > 8) f(std::integral_constant<int, 8 < kLanes ? 8 : kLanes>{});
    else f(std::integral_constant<int, kLanes>{});
}

// Where rows do not touch (a stride, channels_last, a slice), a few of them at a time are copied to a place where they do.
constexpr int64_t kCopy = 4096;  // floats

template <int Count, class Source, class Sink>
__attribute__((noinline)) void gather_copied(const Source& src, int64_t rows, int64_t cols, const Block& block, const Sink& sink) {
    const int64_t at_once = kCopy / (Count * cols);
    float copy[kCopy];
    for (int64_t top = 0; top < rows; top += at_once) {
        const int64_t n = std::min(at_once, rows - top);
        for (int64_t i = 0; i < block.images; i++)
            for (int64_t r = 0; r < n; r++) src.copy_row(block.first + i, top + r, cols, copy + (i * n + r) * cols);
        const Strided<const float> whole{copy, n * cols, cols, 1};
        gather_run<Count>(whole, n, cols, Block{block.number, 0, block.images},
                          [&](int64_t row, int64_t col, int64_t k, vec v, int64_t lanes) {
                              sink(top + row, col, k, v, lanes);
                          });
    }
}

// sink(row, column, block, vector, lanes in use) for every vector of `rows` x `cols` pixels of a group's images.
template <class Source, class Sink>
void gather(const Source& src, int64_t rows, int64_t cols, int64_t images, int64_t valid, const Sink& sink) {
    if (rows <= 0 || cols <= 0) return;  // a phase of an image that is narrower than the stride
    with_count(images, [&](auto count) {
        constexpr int n = decltype(count)::value;
        for (int64_t i = 0; i < ceil_div(images, kLanes); i++) {
            const Block block = block_at(i, n, valid);
            if (cols % (kLanes / n) != 0 || n * cols > kCopy) gather_any<n>(src, rows, cols, block, sink);
            else if (src.rows_touch(cols)) gather_run<n>(src, rows, cols, block, sink);
            else gather_copied<n>(src, rows, cols, block, sink);
        }
    });
}

// The rows of so many images side by side: [image][row][column]. A vector behind them may be written.
template <class Source>
void copy_rows(const Source& src, int64_t images, int64_t rows, int64_t cols, float* to) {
    for (int64_t i = 0; i < images; i++, to += rows * cols) {
        if (src.rows_touch(cols))
            for (int64_t p = 0; p < rows * cols; p += kLanes) store(to + p, src.run(i, p, rows * cols - p));
        else
            for (int64_t r = 0; r < rows; r++) src.copy_row(i, r, cols, to + r * cols);
    }
}

// The inverse: source(row, column, block) yields the vector that belongs at `dst`, a Strided or what behaves like one.
template <class Target, class Source>
void scatter(const Target& dst, int64_t rows, int64_t cols, int64_t images, int64_t valid, const Source& source) {
    with_count(images, [&](auto count) {
        constexpr int n = decltype(count)::value;
        for (int64_t i = 0; i < ceil_div(images, kLanes); i++) {
            const Block block = block_at(i, n, valid);
            const bool whole = cols % (kLanes / n) == 0 && n * cols <= kCopy && dst.rows_touch(cols);
            if (whole) scatter_run<n>(dst, rows, cols, block, source);
            else scatter_any<n>(dst, rows, cols, block, source);
        }
    });
}

}  // namespace ssvi
