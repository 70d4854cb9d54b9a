// y = mu * x + bias + sqrt(sigma^2 * x^2) eps, in one pass; and y = theta * x + bias, with what follows in evaluation.
#include "blocks.h"
#include "epilogue.h"
#include "few.h"
#include "input.h"
#include "moments.h"
#include "noise.h"

using namespace ssvi;

namespace {

constexpr float kVarianceFloor = 1e-30f;  // that of ssvi.kernels.dense

template <bool Variance>
constexpr int kMost = Variance ? kTile : 2 * kTile;  // vectors of a tile: without variances twice as many fit

struct Forward {
    View view;
    Input input;
    const float *mu, *sigma2;    // sigma2 may be null
    std::vector<Affine> affine;  // of the output channels; empty where there is none
    const Norm* norm;            // may be null
    uint64_t seed;
    float* y;
    uint16_t* halves;  // y as bfloat16; null where it is float32
    uint16_t* t;       // eps / (2 std) as bfloat16
    bool large;        // y goes past the caches
    Moments* moments;  // of y

    template <bool Variance>
    int64_t at_once() const;
    template <bool Variance>
    void products(const float* slab, float* mean, float* var, int64_t channel, int64_t count, int64_t rows) const;
    template <bool Variance>
    void channels(const float* slab, float* mean, float* var, int64_t group, int64_t channel, int64_t count,
                  Stripe stripe) const;
    void noise(float* mean, float* var, int64_t group, int64_t channel, Stripe stripe, int64_t rows) const;
    void emit(const float* mean, const float* t_rows, int64_t group, int64_t channel, Stripe stripe, int64_t rows) const;
    template <bool Variance>
    void run(int64_t threads) const;
};

// y = mean + sqrt(var) eps and t = eps / (2 sqrt(var)). Without a live weight there is no noise and no gradient.
inline void disturb(float* mean, float* var, vec eps) {
    const vec v = load(var);
    const ivec silent = v < kVarianceFloor;  // false for NaN, which goes on
    store(mean, load(mean) + (silent ? vec{} : sqrt(v) * eps));
    store(var, silent ? vec{} : 0.5f * eps * rough_inverse_root(v));
}

// mean becomes y, var becomes t.
void Forward::noise(float* mean, float* var, int64_t group, int64_t channel, Stripe stripe, int64_t rows) const {
    // Rows are numbered through all channels; planes of several rows start at a multiple of four, to share no block.
    const int64_t first = view.single_row() ? channel : channel * ceil_div(view.y.tile, 4) * 4 + stripe.row;
    const int64_t quad = first / 4, quads = (first + rows + 3) / 4 - quad, blocks = quads * (view.row / kLanes);
    const Places places{uint32_t(view.images), uint32_t(group * view.images)};
    constexpr int kBlocks = 2;
    for (int64_t start = 0; start < blocks; start += kBlocks) {
        uvec counter[kBlocks][4];
        for (int b = 0; b < kBlocks; b++) {
            const int64_t at = (start + b) / quads * kLanes;
            counter[b][0] = uvec{} + uint32_t(quad + (start + b) % quads);
            counter[b][1] = places.column(at), counter[b][2] = places.image(at), counter[b][3] = uvec{};
        }
        philox<kBlocks>(counter, seed);
        for (int b = 0; b < kBlocks && start + b < blocks; b++) {
            const uvec* word = counter[b];
            vec eps[4];
            box_muller(word[0], word[1], &eps[0], &eps[1]);
            box_muller(word[2], word[3], &eps[2], &eps[3]);
            const int64_t top = (quad + (start + b) % quads) * 4 - first, at = (start + b) / quads * kLanes;
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++)
                if (const int64_t to = (top + i) * view.row + at; top + i >= 0 && top + i < rows)
                    disturb(mean + to, var + to, eps[i]);
        }
    }
}

void Forward::emit(const float* mean, const float* t_rows, int64_t group, int64_t channel, Stripe stripe,
                   int64_t rows) const {
    const int64_t cols = view.x.tile, plane = view.y.tile * cols, first = group * view.images;
    const int64_t start = (first * view.channels + channel) * plane + stripe.row * cols;
    const Affine* a = affine.empty() ? nullptr : affine.data() + channel;
    const int64_t pitch = view.row, images = view.images;
    const int64_t next = view.single_row() ? 1 : 0;  // channels from one row to the next
    const auto write = [&](const auto& to) {
        scatter(to, rows, cols, images, view.valid(group), [=](int64_t row, int64_t col, int64_t block) {
            const vec v = load(mean + row * pitch + col * images + block * kLanes);
            return a ? v * a[row * next].scale + a[row * next].shift : v;
        });
    };
    const int64_t ahead = next ? rows * cols : plane;
    if (halves) return write(Ahead<uint16_t>{{halves + start, view.channels * plane, cols, 1}, ahead, large});
    const float* residual = norm && norm->residual ? norm->residual + start : nullptr;
    const Ahead<float> to{{y + start, view.channels * plane, cols, 1}, ahead, large};
    write(Finish{to, residual, norm && norm->relu});
    if (t_rows)
        scatter(Strided<uint16_t>{t + start, view.channels * plane, cols, 1}, rows, cols, view.images,
                view.valid(group), [&](int64_t row, int64_t col, int64_t block) {
                    return load(t_rows + row * view.row + col * view.images + block * kLanes);
                });
}

// Channels whose accumulators are computed before they are written.
template <bool Variance>
int64_t Forward::at_once() const {
    if (view.single_row()) return kChannelsAtOnce;
    return Variance ? 1 : input.pattern.block;
}

// In `mean` and `var` a channel takes `rows` rows.
template <bool Variance>
void Forward::products(const float* slab, float* mean, float* var, int64_t channel, int64_t count, int64_t rows) const {
    const int64_t size = rows * view.row, block = Variance ? 1 : input.pattern.block;
    for (int64_t c = 0; c < count; c += block) {
        const int32_t begin = input.pattern.row_start[channel + c], end = input.pattern.row_start[channel + c + 1];
        const Weights w{input.pattern.row_offset + begin, mu + begin, Variance ? sigma2 + begin : nullptr, end - begin};
        if (block == kLeastBlock) forward_block<kLeastBlock>(view, slab, w, mean + c * size, rows);
        else if (block == kBlock) forward_block<kBlock>(view, slab, w, mean + c * size, rows);
        else
            for_tiles<kMost<Variance>>(view, rows, [&](auto r, auto columns, int64_t at) {
                const int64_t to = c * size + at;
                tile_forward<decltype(r)::value, decltype(columns)::value, Variance>(
                    slab + at, view.step, view.images, w, mean + to, var + to, view.out);
            });
    }
}

template <bool Variance>
void Forward::channels(const float* slab, float* mean, float* var, int64_t group, int64_t channel, int64_t count,
                       Stripe stripe) const {
    products<Variance>(slab, mean, var, channel, count, stripe.rows);
    if (Variance) noise(mean, var, group, channel, stripe, count * stripe.rows);
    const int64_t size = stripe.rows * view.row, together = view.single_row() ? count : 1;  // planes of one row are neighbours
    for (int64_t c = 0; c < count && moments->wanted(); c++)
        moments->add(group, stripe.row / view.band, channel + c, mean + c * size, size);
    for (int64_t c = 0; c < count; c += together)
        emit(mean + c * size, Variance ? var + c * size : nullptr, group, channel + c, stripe, together * stripe.rows);
}

thread_local ThreadMemory scratch;

template <bool Variance>
void Forward::run(int64_t threads) const {
    const Schedule schedule(view, threads);
    const int64_t together = at_once<Variance>(), most = view.tile_rows(kMost<Variance>);
    const int64_t stage = aligned(together * (view.single_row() ? 1 : most) * view.row);
    const int64_t slab_size = aligned(view.slab);
    const ThreadMemory& memories = scratch;  // of this thread: inside, `scratch` would be another one
    scratch.reserve(schedule.threads, slab_size + 2 * stage);
    float* common = memories.of(0);
    std::memset(common, 0, view.slab * sizeof(float));
    schedule.run([&](Team team, int64_t, Range tasks, auto wait) {
        float* memory = memories.of(omp_get_thread_num());
        float *slab = team.size > 1 ? common : memory, *mean = memory + slab_size, *var = mean + stage;
        if (slab != common) std::memset(slab, 0, view.slab * sizeof(float));
        for (int64_t task = tasks.begin; task < tasks.end; task++) {
            const int64_t group = task / view.bands, band = task % view.bands;
            packing([&] { input.pack(view, slab, group, band, team.share(view.planes)); });
            wait();
            const Range units = team.share(ceil_div(view.channels, together));
            const int64_t top = band * view.band, rows = view.band_rows(band);
            for (int64_t i = 0; i < stripes(rows, most); i++) {
                const Stripe stripe = stripe_at(top, rows, most, i);
                const float* origin = slab + (view.origin + (stripe.row - top) * view.pitch) * view.images;
                for (int64_t unit = units.begin; unit < units.end; unit++) {
                    const int64_t channel = unit * together, count = std::min(together, view.channels - channel);
                    channels<Variance>(origin, mean, var, group, channel, count, stripe);
                }
            }
            wait();
        }
    });
}

}  // namespace

// `mean` and `var` become the statistics of y, before it is rounded; they may be null, as `bias`, `norm`, `sigma2` and `t`. With
// `links`, x is the first y of them, and its planes have more than one pixel. At one theta without a `norm`, y may go to `halves`
// as bfloat16; else they are null.
SSVI_API Status ssvi_forward(const Shape* shape, const Pattern* pattern, const Tensor* x, const Links* links,
                             const float* mu, const float* sigma2, const float* bias, const Norm* norm, uint64_t seed,
                             float* y, uint16_t* halves, uint16_t* t, float* mean, float* var, int64_t threads) {
    return guarded([=] {
        const View view = forward_view(*shape);
        if (few(view) && !sigma2 && !norm && !mean && !halves)
            return few_forward(view, *pattern, *x, mu, affines(shape->out_channels, bias, nullptr), y);
        Moments moments(view, mean, var);
        const Forward forward{view, Input(*shape, *pattern, *x, links), mu, sigma2,
                              affines(shape->out_channels, bias, norm), norm, seed, y, halves, t,
                              past_caches(shape->batch * shape->out_channels * shape->out_h() * shape->out_w()), &moments};
        if (sigma2) forward.run<true>(threads);
        else forward.run<false>(threads);
        if (moments.wanted()) moments.finish(bias);
    });
}
