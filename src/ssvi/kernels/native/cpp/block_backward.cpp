// dl/dx and dl/dtheta for a support of blocks of outputs. Slabs, patterns and threads are those of backward.cpp.
#include "blocks.h"
#include "packing.h"
#include "sparse.h"

using namespace ssvi;

namespace {

struct BlockBackward {
    Shape shape;
    View view;
    std::vector<Phase> phases;
    Pattern pattern;
    Tensor x, grad_y;
    const int32_t* offset;  // of the first output of each block, by input channel
    const float* weights;   // B values for each block, in the same order
    float* dx;              // may be null

    int64_t at_once() const { return view.single_row() && phases.size() == 1 ? kChannelsAtOnce : 1; }
    void pack(float* slab, int64_t group, int64_t band, Range channels) const;
    template <int B, bool Input>
    void slots(const float* slab, float* x_rows, float* dx_rows, float* grad, int64_t group, int64_t slot,
               int64_t count, Stripe stripe) const;
    template <int B, bool Input>
    void run(float* grad, int64_t buffers, int64_t threads) const;
};

void BlockBackward::pack(float* slab, int64_t group, int64_t band, Range channels) const {
    const int64_t valid = view.valid(group);
    const auto fill = [&](int64_t channel, int64_t row, int64_t rows, int64_t next, float* to, int64_t pitch) {
        const float* from = grad_y.data + group * view.images * grad_y.image + channel * grad_y.channel + row * grad_y.row;
        gather(Strided<const float>{from, grad_y.image, next, grad_y.column}, rows, view.x.data, view.images, valid,
               Rows<float>{to, pitch, view.images});
    };
    if (view.fully_connected()) {  // channels are rows
        fill(channels.begin, 0, channels.end - channels.begin, grad_y.channel,
             slab + (view.origin + channels.begin * view.plane) * view.images, view.plane);
        return;
    }
    for (int64_t channel = channels.begin; channel < channels.end; channel++)
        pack_band(view, band, view.y.data, view.x.data, slab + channel * view.plane * view.images,
                  [&](int64_t row, int64_t rows, float* at) { fill(channel, row, rows, grad_y.row, at, view.pitch); });
}

template <int B, bool Input>
void BlockBackward::slots(const float* slab, float* x_rows, float* dx_rows, float* grad, int64_t group, int64_t slot,
                          int64_t count, Stripe stripe) const {
    const int64_t first = group * view.images, valid = view.valid(group), n = int64_t(phases.size());
    const int64_t channel = slot / n, stage_rows = count * stripe.rows;
    const Phase& phase = phases[slot % n];
    const int64_t rows = std::min(stage_rows, view.single_row() ? count * phase.rows : phase.rows - stripe.row);
    if (rows <= 0 || phase.cols <= 0) return;  // a phase may be a row or column shorter than the first
    if (rows < stage_rows || phase.cols * view.images < view.row)
        std::memset(x_rows, 0, stage_rows * view.row * sizeof(float));
    const int64_t top = stripe.row * shape.stride_h + phase.row;
    gather(Strided<const float>{x.data + first * x.image + channel * x.channel + top * x.row + phase.col * x.column,
                                x.image, view.single_row() ? x.channel : x.row * shape.stride_h,
                                x.column * shape.stride_w},
           rows, phase.cols, view.images, valid, Rows<float>{x_rows, view.row / view.images, view.images});
    for (int64_t c = 0; c < count; c++) {
        const int32_t begin = pattern.col_start[slot + c], end = pattern.col_start[slot + c + 1];
        const BlockWeights w{offset + begin / B, weights + begin, (end - begin) / B};
        for_tiles<kTile>(view, stripe.rows, [&](auto r, auto columns, int64_t at) {
            const int64_t to = c * view.row + at;
            tile_backward_block<B, decltype(r)::value, decltype(columns)::value, Input>(
                slab + at, view.step, view.images, view.plane * view.images, w, x_rows + to, dx_rows + to, view.out,
                grad + begin);
        });
    }
    if (!Input) return;
    const int64_t plane = shape.height * shape.width;
    scatter(Strided<float>{dx + (first * shape.in_channels + channel) * plane + top * shape.width + phase.col,
                           shape.in_channels * plane, view.single_row() ? plane : shape.width * shape.stride_h,
                           shape.stride_w},
            rows, phase.cols, view.images, valid, [&](int64_t row, int64_t col, int64_t block) {
                return load(dx_rows + row * view.row + col * view.images + block * kLanes);
            });
}

thread_local ThreadMemory scratch;
thread_local Scratch gradients;

template <int B, bool Input>
void BlockBackward::run(float* grad, int64_t buffers, int64_t threads) const {
    const Schedule schedule(view, threads);
    const int64_t slab_size = aligned(view.slab);
    const int64_t stage = aligned(std::max<int64_t>(kTile, kChannelsAtOnce) * view.row);
    const ThreadMemory& memories = scratch;  // of this thread: inside, `scratch` would be another one
    scratch.reserve(schedule.threads, slab_size + 2 * stage);
    float* common = memories.of(0);
    std::memset(common, 0, slab_size * sizeof(float));
    schedule.run([&](Team team, Range tasks, auto wait) {
        float* memory = memories.of(omp_get_thread_num());
        float *g = team.size > 1 ? common : memory, *x_rows = memory + slab_size, *dx_rows = x_rows + stage;
        if (g != common) std::memset(g, 0, slab_size * sizeof(float));
        float* mine = grad + (buffers > 1 ? omp_get_thread_num() * pattern.count : 0);
        for (int64_t task = tasks.begin; task < tasks.end; task++) {
            const int64_t group = task / view.bands, band = task % view.bands;
            packing([&] { pack(g, group, band, team.share(view.planes)); });
            wait();
            const Range units = team.share(ceil_div(view.channels, at_once()));
            const int64_t top = band * view.band, rows = view.band_rows(band);
            for (int64_t i = 0; i < stripes(rows, view.tile_rows(kTile)); i++) {
                const Stripe stripe = stripe_at(top, rows, view.tile_rows(kTile), i);
                const int64_t origin = (view.origin + (stripe.row - top) * view.pitch) * view.images;
                for (int64_t unit = units.begin; unit < units.end; unit++) {
                    const int64_t slot = unit * at_once(), count = std::min(at_once(), view.channels - slot);
                    slots<B, Input>(g + origin, x_rows, dx_rows, mine, group, slot, count, stripe);
                }
            }
            wait();
        }
    });
}

// The weights of an input channel come by output and tap: n taps of one output, the same n of the next. Here they become
// blocks: B outputs of one tap, side by side. order[j] is the parameter at place j.
template <int B>
void by_block(const Pattern& pattern, int64_t slots, int32_t* order, int32_t* offset) {
    for (int64_t slot = 0; slot < slots; slot++) {
        int64_t output = 0;
        for (int64_t j = pattern.col_start[slot]; j < pattern.col_start[slot + 1];) {
            while (pattern.row_start[output + 1] <= pattern.col_order[j]) output++;
            const int64_t last = pattern.row_start[output + 1];
            int64_t taps = 1;
            while (j + taps < pattern.col_start[slot + 1] && pattern.col_order[j + taps] < last) taps++;
            for (int64_t i = 0; i < taps; i++) {
                offset[j / B + i] = pattern.col_offset[j + i];
                for (int64_t c = 0; c < B; c++) order[j + i * B + c] = pattern.col_order[j + c * taps + i];
            }
            j += taps * B;
        }
    }
}

template <int B>
void backward(const Shape& shape, const Pattern& pattern, const Tensor& x, const Tensor& grad_y, const float* theta,
              float* dx, float* grad_theta, int64_t threads) {
    BlockBackward b{shape, backward_view(shape), phases_of(shape), pattern, x, grad_y, nullptr, nullptr, dx};
    const Schedule schedule(b.view, threads);
    // Threads that share a slab own different columns and write to one buffer; others need one each.
    const int64_t count = pattern.count, buffers = schedule.alone ? schedule.threads : 1;
    float* weights = gradients.reserve(count * (1 + buffers) + count + count / B);
    float* grad = weights + count;
    int32_t* order = reinterpret_cast<int32_t*>(grad + buffers * count);
    int32_t* offset = order + count;
    by_block<B>(pattern, b.view.channels, order, offset);
    for (int64_t j = 0; j < count; j++) weights[j] = theta[order[j]];
    b.weights = weights, b.offset = offset;
    std::memset(grad, 0, buffers * count * sizeof(float));
    if (dx && int64_t(b.phases.size()) < shape.stride_h * shape.stride_w)  // pixels that no tap reads
        std::memset(dx, 0, shape.batch * shape.in_channels * shape.height * shape.width * sizeof(float));
    if (dx) b.run<B, true>(grad, buffers, threads);
    else b.run<B, false>(grad, buffers, threads);
    for (int64_t j = 0; j < count; j++) {
        float sum = 0;
        for (int64_t i = 0; i < buffers; i++) sum += grad[i * count + j];
        grad_theta[order[j]] = sum;
    }
}

}  // namespace

// `block` as for ssvi_block_forward.
SSVI_API Status ssvi_block_backward(const Shape* shape, const Pattern* pattern, const Tensor* x, const Tensor* grad_y,
                                    const float* theta, int64_t block, float* dx, float* grad_theta, int64_t threads) {
    return guarded([=] {
        if (block % kBlock == 0) backward<kBlock>(*shape, *pattern, *x, *grad_y, theta, dx, grad_theta, threads);
        else backward<4>(*shape, *pattern, *x, *grad_y, theta, dx, grad_theta, threads);
    });
}
