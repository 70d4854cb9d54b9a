// How dl/dx reaches memory. Behind a stride, each tile has the pixels of one phase: those of all phases are kept in memory of
// the thread until they are woven into whole rows, which are written once.
#pragma once

#include "norm_sums.h"
#include "sparse.h"

namespace ssvi {

struct Stage {  // rows of one channel: x and dl/dx as tiles see them, then behind a stride dl/dx phase by phase and x
    float *x, *dx, *phases, *input;
    int64_t part;  // of the work
};

struct Run {  // rows of one phase
    const float* row;
    int64_t next;  // floats from one row to the next
};

constexpr int64_t kStage = 2 * kTile;  // vectors of a channel between two reads of x, and two writes of dl/dx

struct Added : Ahead<float> {  // to what is there
    void put(float* to, vec v, int64_t count) const {
        Ahead::put(to, v + (count >= kLanes ? load(to) : load_first(to, count)), count);
    }
    void put_one(float* to, float v) const { *to += v; }
};

struct InputGradient {
    const Shape& shape;
    const View& view;
    const std::vector<Phase>& phases;
    float* dx;        // may be null: nothing is written then
    bool added;       // to what is there; only without a stride
    InputSums* sums;  // of the norm that x comes from; only without a stride, and for planes of more than one row

    bool strided() const { return shape.stride_h * shape.stride_w > 1; }
    int64_t region() const {  // floats of one phase of the rows of a stage
        return strided() ? aligned(view.images * kStage * ceil_div(shape.width, shape.stride_w) + kLanes) : 0;
    }
    int64_t stage_size() const {  // of the phases that some tap reads, and of zeros for the others
        return (int64_t(phases.size()) + 1) * region();
    }
    int64_t input_size() const { return shape.stride_h * shape.stride_w * region(); }
    int64_t rows_in(const Phase& phase, Stripe stripe) const { return std::min(stripe.rows, phase.rows - stripe.row); }

    void emit(const Stage& stage, int64_t group, int64_t channel, int64_t rows, Stripe stripe) const;
    void keep(const Stage& stage, int64_t phase, int64_t group, Stripe stripe) const;
    Run kept(const Stage& stage, int64_t image, int64_t row_phase, int64_t col_phase, Stripe stripe) const;
    void weave(const Stage& stage, int64_t group, int64_t channel, Stripe stripe) const;
};

inline void InputGradient::emit(const Stage& stage, int64_t group, int64_t channel, int64_t rows, Stripe stripe) const {
    const int64_t plane = shape.height * shape.width, pitch = view.row, images = view.images;
    const int64_t start = (group * images * shape.in_channels + channel) * plane + stripe.row * shape.width;
    const bool soon = added || sums->wanted();  // what is read again at once stays near
    const Ahead<float> to{{dx + start, shape.in_channels * plane, shape.width, 1}, view.single_row() ? rows * plane : plane,
                   !soon && past_caches(shape.batch * shape.in_channels * plane)};
    const auto write = [&](const auto& target) {
        scatter(target, rows, shape.width, images, view.valid(group), [=, from = stage.dx](int64_t row, int64_t col, int64_t block) {
            return load(from + row * pitch + col * images + block * kLanes);
        });
    };
    if (added) write(Added{to});
    else write(to);
    if (sums->wanted()) sums->add(stage.part, dx, start, channel, to.image, view.valid(group), rows * shape.width);
}

// The pixels of one phase: [image][row][column].
inline void InputGradient::keep(const Stage& stage, int64_t phase, int64_t group, Stripe stripe) const {
    const int64_t rows = rows_in(phases[phase], stripe), cols = phases[phase].cols;
    const int64_t pitch = view.row, images = view.images;
    scatter(Strided<float>{stage.phases + phase * region(), rows * cols, cols, 1}, rows, cols, images, view.valid(group),
            [=, from = stage.dx](int64_t row, int64_t col, int64_t block) {
                return load(from + row * pitch + col * images + block * kLanes);
            });
}

// What was kept of one image; zeros for a phase that no tap reads.
inline Run InputGradient::kept(const Stage& stage, int64_t image, int64_t row_phase, int64_t col_phase, Stripe stripe) const {
    size_t i = 0;
    while (i < phases.size() && (phases[i].row != row_phase || phases[i].col != col_phase)) i++;
    const float* of_phase = stage.phases + int64_t(i) * region();
    if (i == phases.size()) return {of_phase, 0};
    return {of_phase + image * rows_in(phases[i], stripe) * phases[i].cols, phases[i].cols};
}

inline void InputGradient::weave(const Stage& stage, int64_t group, int64_t channel, Stripe stripe) const {
    const int64_t width = shape.width, plane = shape.height * width, down = shape.stride_h, across = shape.stride_w;
    const int64_t top = stripe.row * down, end = std::min(shape.height, top + stripe.rows * down);
    float* to = dx + (group * view.images * shape.in_channels + channel) * plane;
    for (int64_t i = 0; i < view.valid(group); i++, to += shape.in_channels * plane)
        for (int64_t first = top; first < std::min(end, top + down); first++) {
            const auto of = [&](int64_t col) { return kept(stage, i, first - top, col, stripe); };
            if (across == 2) {
                Run even = of(0), odd = of(1);
                for (int64_t row = first; row < end; row += down, even.row += even.next, odd.row += odd.next) {
                    for (int64_t at = 0; at < width; at += kLanes) __builtin_prefetch(to + plane + row * width + at, 1);
                    zip(even.row, odd.row, width, to + row * width);
                }
                continue;
            }
            for (int64_t col = 0; col < across; col++) {
                Run run = of(col);
                for (int64_t row = first; row < end; row += down, run.row += run.next)
                    spread(run.row, ceil_div(width - col, across), across, to + row * width + col);
            }
        }
}

}  // namespace ssvi
