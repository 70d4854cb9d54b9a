// dl/dx, dl/dmu and dl/dsigma^2 from dl/dy, in one pass over the support.
#include "backward.h"

#include "few.h"

namespace ssvi {

template <bool Variance, bool Input>
void Backward::slots(Slabs slabs, Stage stage, Gradients grad, int64_t group, int64_t slot, int64_t count,
                     Stripe stripe) const {
    const int64_t n = int64_t(phases.size()), channel = slot / n;
    const int64_t stage_rows = count * stripe.rows;
    const Phase& phase = phases[slot % n];
    const int64_t rows = std::min(stage_rows, view.single_row() ? count * phase.rows : phase.rows - stripe.row);
    if (rows <= 0 || phase.cols <= 0) return;  // a phase may be a row or column shorter than the first
    if (rows < stage_rows || phase.cols * view.images < view.row)
        std::memset(stage.x, 0, stage_rows * view.row * sizeof(float));
    const Rows<float> sink{stage.x, view.row / view.images, view.images};
    const auto fill = [&](const auto& src) { gather(src, rows, phase.cols, view.images, view.valid(group), sink); };
    if (dx.strided()) {
        const int64_t held = std::min(stripe.rows * shape.stride_h, shape.height - stripe.row * shape.stride_h);
        fill(Strided<const float>{stage.input + phase.row * shape.width + phase.col, held * shape.width,
                                  shape.width * shape.stride_h, shape.stride_w});
    } else with_input(group, channel, stripe.row, fill);
    for (int64_t c = 0; c < count; c++) {
        const int32_t begin = pattern.col_start[slot + c], end = pattern.col_start[slot + c + 1];
        const Weights w{pattern.col_offset + begin, mu + begin, Variance ? sigma2 + begin : nullptr, end - begin};
        for (int64_t i = 0; i < stripes(stripe.rows, view.tile_rows(kTile)); i++) {
            const Stripe part = stripe_at(0, stripe.rows, view.tile_rows(kTile), i);
            const int64_t from = part.row * view.step, down = (c + part.row) * view.row;
            for_tiles<kTile>(view, part.rows, [&](auto r, auto columns, int64_t at) {
                const float *g = slabs.g + from + at, *x_rows = stage.x + down + at;
                constexpr int rows = decltype(r)::value, cols = decltype(columns)::value;
                if constexpr (Variance)
                    tile_backward_draw<rows, cols, Input>(g, slabs.h + from + at, view.step, view.images, w, x_rows,
                                                          stage.dx + down + at, view.out,
                                                          {grad.mu + begin, grad.sigma2 + begin});
                else
                    tile_backward_fixed<rows, cols, Input>(g, view.step, view.images, w, x_rows, stage.dx + down + at,
                                                           view.out, grad.mu + begin);
            });
        }
    }
    if (Input && dx.strided()) dx.keep(stage, slot % n, group, stripe);
    else if (Input) dx.emit(stage, group, channel, rows, stripe);
}

static thread_local ThreadMemory scratch;
static thread_local Scratch gradients;

template <bool Variance, bool Input>
void Backward::run(Gradients grad, int64_t buffers, int64_t threads) const {
    const Schedule schedule(view, threads);
    const int64_t slab = aligned(view.slab), slabs = slab + (Variance ? aligned(view.slab / 2 + 1) : 0);
    const int64_t rows_size = aligned(std::max(kStage, kChannelsAtOnce) * view.row), n = int64_t(phases.size());
    const ThreadMemory& memories = scratch;  // of this thread: inside, `scratch` would be another one
    scratch.reserve(schedule.threads, slabs + 2 * rows_size + dx.stage_size() + dx.input_size());
    float* common = memories.of(0);
    std::memset(common, 0, slabs * sizeof(float));
    schedule.run([&](Team team, int64_t part, Range tasks, auto wait) {
        float* memory = memories.of(omp_get_thread_num());
        float *g = team.size > 1 ? common : memory, *rows_of = memory + slabs;
        float* strided = rows_of + 2 * rows_size;
        const Stage stage{rows_of, rows_of + rows_size, strided, strided + dx.stage_size(), part};
        uint16_t* h = reinterpret_cast<uint16_t*>(g + slab);
        if (g != common) std::memset(g, 0, slabs * sizeof(float));
        std::memset(stage.phases, 0, dx.stage_size() * sizeof(float));  // phases that no tap reads stay zero
        const int64_t own = buffers > 1 ? part * pattern.count : 0;
        const Gradients mine{grad.mu + own, grad.sigma2 + own};
        for (int64_t task = tasks.begin; task < tasks.end; task++) {
            const int64_t group = task / view.bands, band = task % view.bands;
            packing([&] { pack<Variance>({g, h}, group, band, team.share(view.planes)); });
            wait();
            const Range units = team.share(ceil_div(shape.in_channels, at_once()));
            const int64_t top = band * view.band, rows = view.band_rows(band);
            for (int64_t i = 0; i < stripes(rows, view.tile_rows(kStage)); i++) {
                const Stripe stripe = stripe_at(top, rows, view.tile_rows(kStage), i);
                const int64_t origin = (view.origin + (stripe.row - top) * view.pitch) * view.images;
                for (int64_t unit = units.begin; unit < units.end; unit++) {
                    const int64_t channel = unit * at_once(), count = std::min(at_once(), shape.in_channels - channel);
                    if (dx.strided()) fetch(stage.input, group, channel, stripe);
                    for (int64_t p = 0; p < n; p++)
                        slots<Variance, Input>({g + origin, h + origin}, stage, mine, group, channel * n + p, count, stripe);
                    if (Input && dx.strided()) dx.weave(stage, group, channel, stripe);
                }
            }
            wait();
        }
    });
}

// Parameters and their gradients come in the order of the index; inside, everything is by column.
static void backward(const Shape& shape, const Pattern& pattern, const Tensor& x, const Links* links,
                     const NormSums* input_norm, const Tensor& grad_y, const NormGradient* norm, const uint16_t* t,
                     const float* mu, const float* sigma2, float* dx, bool added, float* grad_mu, float* grad_sigma2,
                     int64_t threads) {
    const View view = backward_view(shape);
    if (few(view) && !sigma2 && !norm && !added) return few_backward(view, pattern, x, grad_y, mu, dx, grad_mu);
    const Schedule schedule(view, threads);
    // Threads that share a slab own different columns and write to one buffer; parts with slabs of their own need one each.
    const int64_t count = pattern.count, buffers = schedule.alone ? schedule.parts : 1, kinds = sigma2 ? 2 : 1;
    const int32_t* order = pattern.col_order;
    float* by_column = gradients.reserve(kinds * count * (1 + buffers));
    const Gradients grad{by_column + kinds * count, by_column + (kinds + buffers) * count};
    const std::vector<Phase> phases = phases_of(shape);
    InputSums sums(input_norm, shape.in_channels, schedule.parts);
    const Backward b{shape, view, phases, pattern, x, grad_y, links, norm, t, by_column,
                     by_column + count,
                     {shape, view, phases, dx, added, &sums}};
#pragma omp parallel for num_threads(int(schedule.threads)) if (schedule.threads > 1)
    for (int64_t j = 0; j < count; j++) {
        by_column[j] = mu[order[j]];
        if (sigma2) by_column[count + j] = sigma2[order[j]];
    }
    std::memset(grad.mu, 0, kinds * buffers * count * sizeof(float));
    if (sigma2 && dx) b.run<true, true>(grad, buffers, threads);
    else if (sigma2) b.run<true, false>(grad, buffers, threads);
    else if (dx) b.run<false, true>(grad, buffers, threads);
    else b.run<false, false>(grad, buffers, threads);
    const auto total = [=](const float* of, int64_t j) {
        float sum = 0;
        for (int64_t i = 0; i < buffers; i++) sum += of[i * count + j];
        return sum;
    };
#pragma omp parallel for num_threads(int(schedule.threads)) if (schedule.threads > 1)
    for (int64_t j = 0; j < count; j++) {
        grad_mu[order[j]] = total(grad.mu, j);
        if (sigma2) grad_sigma2[order[j]] = total(grad.sigma2, j);
    }
    sums.finish(float(shape.batch) * float(shape.height * shape.width));
}

}  // namespace ssvi

using namespace ssvi;

// With a `norm`, `grad_y` is the gradient behind it, and planes have more than one pixel. With `links`, for one given theta, x
// is the first y of them, and its planes have more than one row. With an `input_norm`, x is what it and a ReLU returned, and the
// sums of its backward pass are taken; that, and a dl/dx that is `added` to what is there, need a stride of 1.
SSVI_API Status ssvi_backward(const Shape* shape, const Pattern* pattern, const Tensor* x, const Links* links,
                              const NormSums* input_norm, const Tensor* grad_y, const NormGradient* norm, const uint16_t* t,
                              const float* mu, const float* sigma2, float* dx, bool added, float* grad_mu,
                              float* grad_sigma2, int64_t threads) {
    return guarded([=] {
        backward(*shape, *pattern, *x, links, input_norm, *grad_y, norm, t, mu, sigma2, dx, added, grad_mu, grad_sigma2,
                 threads);
    });
}
