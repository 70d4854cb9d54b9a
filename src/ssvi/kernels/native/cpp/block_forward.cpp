// y = theta * x + bias for a support of blocks of outputs. Slabs, patterns and threads are those of forward.cpp.
#include "blocks.h"
#include "epilogue.h"
#include "input.h"

using namespace ssvi;

namespace {

constexpr int64_t kStripe = 2 * kTile;  // vectors of a channel between two writes to y

struct BlockForward {
    View view;
    Input input;
    const float* theta;
    std::vector<Affine> affine;  // the bias; empty where there is none
    float* y;

    template <int B>
    void block(const float* slab, float* mean, int64_t channel, int64_t rows) const;
    void emit(const float* mean, int64_t group, int64_t channel, Stripe stripe, int64_t rows) const;
    template <int B>
    void run(int64_t threads) const;
};

// f(constant number of vectors, where they start in the slab, where in the accumulators) for `rows` rows of a channel
template <int Most, class F>
inline void for_block_tiles(const View& view, int64_t rows, F f) {
    const int64_t vectors = view.row / kLanes, length = view.single_row() ? vectors : rows;
    for (int64_t i = 0; i < stripes(length, Most); i++) {
        const Stripe part = stripe_at(0, length, Most, i);
        with_rows<Most>(part.rows, [&](auto r) {
            if (view.single_row()) return f(r, part.row * kLanes, part.row * kLanes);
            for (int64_t at = 0; at < view.row; at += kLanes) f(r, part.row * view.step + at, part.row * view.row + at);
        });
    }
}

// B channels over one stripe; in `mean` a channel takes `rows` rows.
template <int B>
void BlockForward::block(const float* slab, float* mean, int64_t channel, int64_t rows) const {
    const int32_t begin = input.pattern.row_start[channel], count = input.pattern.row_start[channel + 1] - begin;
    const Weights w{input.pattern.row_offset + begin, theta + begin, nullptr, count};
    for_block_tiles<kBlockTile<B>>(view, rows, [&](auto r, int64_t from, int64_t to) {
        tile_forward_block<B, decltype(r)::value>(slab + from, view.step, view.images, w, mean + to, rows * view.row,
                                                  view.out);
    });
}

void BlockForward::emit(const float* mean, int64_t group, int64_t channel, Stripe stripe, int64_t rows) const {
    const int64_t cols = view.x.tile, plane = view.y.tile * cols, first = group * view.images;
    const int64_t start = (first * view.channels + channel) * plane + stripe.row * cols;
    const Affine* a = affine.empty() ? nullptr : affine.data() + channel;
    const int64_t next = view.single_row() ? 1 : 0;  // channels from one row to the next
    scatter(Strided<float>{y + start, view.channels * plane, cols, 1}, rows, cols, view.images, view.valid(group),
            [&](int64_t row, int64_t col, int64_t part) {
                const vec v = load(mean + row * view.row + col * view.images + part * kLanes);
                return a ? v + a[row * next].shift : v;
            });
}

thread_local ThreadMemory scratch;

template <int B>
void BlockForward::run(int64_t threads) const {
    const Schedule schedule(view, threads);
    const int64_t at_once = view.single_row() ? kChannelsAtOnce : B, most = view.tile_rows(kStripe);
    const int64_t slab_size = aligned(view.slab);
    const ThreadMemory& memories = scratch;  // of this thread: inside, `scratch` would be another one
    scratch.reserve(schedule.threads, slab_size + aligned(at_once * most * view.row));
    float* common = memories.of(0);
    std::memset(common, 0, view.slab * sizeof(float));
    schedule.run([&](Team team, Range tasks, auto wait) {
        float* memory = memories.of(omp_get_thread_num());
        float *slab = team.size > 1 ? common : memory, *mean = memory + slab_size;
        if (slab != common) std::memset(slab, 0, view.slab * sizeof(float));
        for (int64_t task = tasks.begin; task < tasks.end; task++) {
            const int64_t group = task / view.bands, band = task % view.bands;
            packing([&] { input.pack(view, slab, group, band, team.share(view.planes)); });
            wait();
            const Range units = team.share(ceil_div(view.channels, at_once));
            const int64_t top = band * view.band, rows = view.band_rows(band);
            for (int64_t i = 0; i < stripes(rows, most); i++) {
                const Stripe stripe = stripe_at(top, rows, most, i);
                const float* origin = slab + (view.origin + (stripe.row - top) * view.pitch) * view.images;
                for (int64_t unit = units.begin; unit < units.end; unit++) {
                    const int64_t channel = unit * at_once, count = std::min(at_once, view.channels - channel);
                    const int64_t size = stripe.rows * view.row;
                    for (int64_t c = 0; c < count; c += B) block<B>(origin, mean + c * size, channel + c, stripe.rows);
                    if (view.single_row()) emit(mean, group, channel, stripe, count);
                    else
                        for (int64_t c = 0; c < count; c++)
                            emit(mean + c * size, group, channel + c, stripe, stripe.rows);
                }
            }
            wait();
        }
    });
}

}  // namespace

// `block` divides the outputs of a group, and is a multiple of 4; every block of outputs has one set of inputs and taps.
SSVI_API Status ssvi_block_forward(const Shape* shape, const Pattern* pattern, const Tensor* x, const float* theta,
                                   const float* bias, int64_t block, float* y, int64_t threads) {
    return guarded([=] {
        const BlockForward forward{forward_view(*shape), Input(*shape, *pattern, *x), theta,
                                   affines(shape->out_channels, bias, nullptr), y};
        if (block % kBlock == 0) forward.run<kBlock>(threads);
        else forward.run<4>(threads);
    });
}
