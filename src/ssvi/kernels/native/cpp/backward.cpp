// dl/dx, dl/dmu and dl/dsigma^2 from dl/dy, in one pass over the support.
#include "sparse.h"

using namespace ssvi;

namespace {

struct Slabs {
    float* g;
    uint16_t* h;
};

struct Backward {
    Shape shape;
    View view;
    std::vector<Phase> phases;
    Pattern pattern;
    Tensor x, grad_y;
    const uint16_t* t;    // what the forward pass saved; null for one given theta
    const Pair* weights;  // mu and sigma^2, by column
    float* dx;            // may be null

    int64_t at_once() const { return view.single_row() && phases.size() == 1 ? kChannelsAtOnce : 1; }

    template <bool Variance>
    void pack(Slabs slabs, int64_t group, int64_t band, Range channels) const;
    template <bool Variance, bool Input>
    void slots(Slabs slabs, float* x_rows, float* dx_rows, Pair* grad, int64_t group, int64_t slot,
               int64_t count, Stripe stripe) const;
    template <bool Variance, bool Input>
    void run(Pair* grad, int64_t buffers, int64_t threads) const;
};

// g = dl/dy, and h = g t = dl/dvar, which has the precision of t and is kept as bfloat16.
template <bool Variance>
void Backward::pack(Slabs slabs, int64_t group, int64_t band, Range channels) const {
    const int64_t first = group * view.images, valid = view.valid(group), plane = view.y.data * view.x.data;
    const auto fill = [&](int64_t channel, int64_t row, int64_t rows, int64_t next, int64_t to, int64_t pitch) {
        const Strided<const float> g{grad_y.data + first * grad_y.image + channel * grad_y.channel + row * grad_y.row,
                                     grad_y.image, next, grad_y.column};
        gather(g, rows, view.x.data, view.images, valid, Rows<float>{slabs.g + to, pitch, view.images});
        if (!Variance) return;
        const Strided<const uint16_t> saved{t + (first * view.planes + channel) * plane + row * view.x.data,
                                            view.planes * plane, view.x.data, 1};
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

template <bool Variance, bool Input>
void Backward::slots(Slabs slabs, float* x_rows, float* dx_rows, Pair* grad, int64_t group, int64_t slot,
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
        const Pairs w{pattern.col_offset + begin, weights + begin, end - begin};
        for_tiles<kTile>(view, stripe.rows, [&](auto r, auto columns, int64_t at) {
            const int64_t to = c * view.row + at;
            tile_backward<decltype(r)::value, decltype(columns)::value, Variance, Input>(
                slabs.g + at, slabs.h + at, view.step, view.images, w, x_rows + to, dx_rows + to, view.out,
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

template <bool Variance, bool Input>
void Backward::run(Pair* grad, int64_t buffers, int64_t threads) const {
    const Schedule schedule(view, threads);
    const int64_t slab = aligned(view.slab), slabs = slab + (Variance ? aligned(view.slab / 2 + 1) : 0);
    const int64_t stage = aligned(std::max<int64_t>(kTile, kChannelsAtOnce) * view.row);
    const ThreadMemory& memories = scratch;  // of this thread: inside, `scratch` would be another one
    scratch.reserve(schedule.threads, slabs + 2 * stage);
    float* common = memories.of(0);
    std::memset(common, 0, slabs * sizeof(float));
    schedule.run([&](Team team, Range tasks, auto wait) {
        float* memory = memories.of(omp_get_thread_num());
        float *g = team.size > 1 ? common : memory, *x_rows = memory + slabs, *dx_rows = x_rows + stage;
        uint16_t* h = reinterpret_cast<uint16_t*>(g + slab);
        if (g != common) std::memset(g, 0, slabs * sizeof(float));
        Pair* mine = grad + (buffers > 1 ? omp_get_thread_num() * pattern.count : 0);
        for (int64_t task = tasks.begin; task < tasks.end; task++) {
            const int64_t group = task / view.bands, band = task % view.bands;
            pack<Variance>({g, h}, group, band, team.share(view.planes));
            wait();
            const Range units = team.share(ceil_div(view.channels, at_once()));
            const int64_t top = band * view.band, rows = view.band_rows(band);
            for (int64_t i = 0; i < stripes(rows, view.tile_rows(kTile)); i++) {
                const Stripe stripe = stripe_at(top, rows, view.tile_rows(kTile), i);
                const int64_t origin = (view.origin + (stripe.row - top) * view.pitch) * view.images;
                for (int64_t unit = units.begin; unit < units.end; unit++) {
                    const int64_t slot = unit * at_once(), count = std::min(at_once(), view.channels - slot);
                    slots<Variance, Input>({g + origin, h + origin}, x_rows, dx_rows, mine, group, slot, count, stripe);
                }
            }
            wait();
        }
    });
}

// Parameters and their gradients come in the order of the index; inside, everything is by column, as pairs.
void backward(const Shape& shape, const Pattern& pattern, const Tensor& x, const Tensor& grad_y, const uint16_t* t,
              const float* mu, const float* sigma2, float* dx, float* grad_mu, float* grad_sigma2, int64_t threads) {
    Backward b{shape, backward_view(shape), phases_of(shape), pattern, x, grad_y, t, nullptr, dx};
    const Schedule schedule(b.view, threads);
    // Threads that share a slab own different columns and write to one buffer; others need one each.
    const int64_t count = pattern.count, buffers = schedule.alone ? schedule.threads : 1;
    const int32_t* order = pattern.col_order;
    Pair* weights = reinterpret_cast<Pair*>(gradients.reserve(2 * count * (1 + buffers)));
    Pair* grad = weights + count;
    b.weights = weights;
#pragma omp parallel for num_threads(int(schedule.threads)) if (schedule.threads > 1)
    for (int64_t j = 0; j < count; j++) weights[j] = {mu[order[j]], sigma2 ? sigma2[order[j]] : 0.0f};
    std::memset(static_cast<void*>(grad), 0, buffers * count * sizeof(Pair));
    if (dx && int64_t(b.phases.size()) < shape.stride_h * shape.stride_w)  // pixels that no tap reads
        std::memset(dx, 0, shape.batch * shape.in_channels * shape.height * shape.width * sizeof(float));
    if (sigma2 && dx) b.run<true, true>(grad, buffers, threads);
    else if (sigma2) b.run<true, false>(grad, buffers, threads);
    else if (dx) b.run<false, true>(grad, buffers, threads);
    else b.run<false, false>(grad, buffers, threads);
#pragma omp parallel for num_threads(int(schedule.threads)) if (schedule.threads > 1)
    for (int64_t j = 0; j < count; j++) {
        Pair sum = {0, 0};
        for (int64_t i = 0; i < buffers; i++) {
            sum.first += grad[i * count + j].first;
            sum.second += grad[i * count + j].second;
        }
        grad_mu[order[j]] = sum.first;
        if (sigma2) grad_sigma2[order[j]] = sum.second;
    }
}

}  // namespace

SSVI_API Status ssvi_backward(const Shape* shape, const Pattern* pattern, const Tensor* x, const Tensor* grad_y,
                              const uint16_t* t, const float* mu, const float* sigma2, float* dx, float* grad_mu,
                              float* grad_sigma2, int64_t threads) {
    return guarded([=] {
        backward(*shape, *pattern, *x, *grad_y, t, mu, sigma2, dx, grad_mu, grad_sigma2, threads);
    });
}
