// The update of IVON (see ssvi/kernels/ivon.py) for all layers in one call: each value is read once and written once.
//
// Every number belongs to one live weight, so results do not depend on the threads. Each thread takes the same share of
// a layer in every job of it, so jobs that add to the same layer do not meet.
#include <cfloat>

#include "noise.h"
#include "parallel.h"

using namespace ssvi;

struct IvonLayer {  // mirrored in native/ivon.py; what a function does not use may be anything
    int64_t size;
    float *mu, *g, *h, *rho, *noise, *h_hat;  // rho null: not written; h_hat null: h stays
    const float *gradient, *excess, *sigma_init;
    float lambda, delta, gain, scale;  // scale: 1 / number of thetas in the sums
    float lr, b1, b1_rest, b2_rest, clip, unbias, start;  // rest: 1 - b; unbias: 1 / (1 - b1^t); start: b2^t
};

namespace {

constexpr int64_t kBlock = 64;  // weights whose noise comes from 16 counters
constexpr float kStep = 2.0f;   // H_STEP of ssvi/kernels/ivon.py
constexpr float kLeast = 0.01f;  // LEAST of the same

// Calls body(layer, its number, range of whole blocks) for the share of every thread in every layer.
template <class Body>
void for_layers(const IvonLayer* layers, int64_t count, int64_t wanted, Body body) {
    const int64_t threads = workers(wanted);
#pragma omp parallel num_threads(int(threads)) if (threads > 1)
    {
        const Team team{omp_get_thread_num(), omp_get_num_threads()};
        for (int64_t i = 0; i < count; i++) body(layers[i], i, team.share((layers[i].size + kBlock - 1) / kBlock));
    }
}

// Calls f(offset, lanes) for the vectors of a range of blocks; the last one may be partial.
template <class F>
inline void for_vectors(const IvonLayer& layer, Range blocks, F f) {
    const int64_t end = std::min(layer.size, blocks.end * kBlock);
    for (int64_t i = blocks.begin * kBlock; i < end; i += kLanes) f(i, std::min<int64_t>(kLanes, end - i));
}

inline vec read(const float* p, int64_t lanes) { return lanes == kLanes ? load(p) : load_first(p, lanes); }

inline void write(float* p, vec v, int64_t lanes) { lanes == kLanes ? store(p, v) : store_first(p, v, lanes); }

inline vec sigma_of(const IvonLayer& layer, vec h) { return 1.0f / sqrt((h + layer.delta) * layer.lambda); }

// Standard normal noise of one block: word w of counter j is the noise of weight 16 w + j, on every instruction set.
inline void normals(uint64_t seed, int64_t layer, int64_t block, float eps[kBlock]) {
    for (int j = 0; j < 16; j += kLanes) {
        uvec c[1][4] = {{Places::lane() + uint32_t(j), uvec{} + uint32_t(block), uvec{} + uint32_t(layer), uvec{} + 1u}};
        philox<1>(c, seed);
        vec z[4];
        box_muller(c[0][0], c[0][1], &z[0], &z[1]);
        box_muller(c[0][2], c[0][3], &z[2], &z[3]);
        for (int w = 0; w < 4; w++) store(eps + 16 * w + j, z[w]);
    }
}

inline vec log(vec v) {
    vec result = log_of_uniform(v);  // right for every normal number
    const ivec normal = (v >= FLT_MIN) & (v <= FLT_MAX);
    int32_t all = -1;
    for (int i = 0; i < kLanes; i++) all &= normal[i];
    if (__builtin_expect(!all, 0))
        for (int i = 0; i < kLanes; i++) result[i] = normal[i] ? result[i] : __builtin_logf(v[i]);
    return result;
}

// A NaN stays one: each comparison keeps its last operand when there is one.
inline vec at_most(float bound, vec v) { return v > bound ? vec{} + bound : v; }
inline vec at_least(vec bound, vec v) { return bound > v ? bound : v; }

inline vec new_h(const IvonLayer& l, vec h, vec h_hat) {
    const vec change = h_hat * l.scale - h;
    const vec next = h + (change * l.b2_rest + change * change * (0.5f * l.b2_rest * l.b2_rest) / (h + l.delta));
    return at_least(vec{} + (kLeast - 1.0f) * l.delta, next);
}

inline vec direction(const IvonLayer& l, vec mu, vec g, vec h) {
    const vec divisor = at_least(h - l.start * *l.excess, at_most(kStep, h)) + l.delta;
    return at_least(vec{} - l.clip, at_most(l.clip, (g * l.unbias + mu * l.delta) / divisor));
}

inline void step(const IvonLayer& l, int64_t i, int64_t lanes) {
    const vec g = read(l.g + i, lanes) * l.b1 + read(l.gradient + i, lanes) * (l.scale * l.b1_rest);
    const vec mu = read(l.mu + i, lanes);
    vec h = read(l.h + i, lanes);
    write(l.g + i, g, lanes);
    if (l.h_hat) write(l.h + i, h = new_h(l, h, read(l.h_hat + i, lanes)), lanes);
    write(l.mu + i, mu - direction(l, mu, g, h) * l.lr, lanes);
    if (l.rho) write(l.rho + i, log(sigma_of(l, h) / *l.sigma_init) / l.gain, lanes);
}

}  // namespace

// noise = sigma eps
SSVI_API void ssvi_ivon_draw(const IvonLayer* layers, int64_t count, uint64_t seed, int64_t threads) {
    for_layers(layers, count, threads, [=](const IvonLayer& layer, int64_t number, Range blocks) {
        for (int64_t block = blocks.begin; block < blocks.end; block++) {
            float eps[kBlock];
            normals(seed, number, block, eps);
            for_vectors(layer, {block, block + 1}, [&](int64_t i, int64_t lanes) {
                write(layer.noise + i, sigma_of(layer, read(layer.h + i, lanes)) * load(eps + i % kBlock), lanes);
            });
        }
    });
}

// h_hat += gradient noise lambda (h + delta)
SSVI_API void ssvi_ivon_curvature(const IvonLayer* layers, int64_t count, int64_t threads) {
    for_layers(layers, count, threads, [](const IvonLayer& l, int64_t, Range blocks) {
        for_vectors(l, blocks, [&](int64_t i, int64_t lanes) {
            const vec precision = (read(l.h + i, lanes) + l.delta) * l.lambda;
            const vec h_hat = read(l.gradient + i, lanes) * read(l.noise + i, lanes) * precision;
            write(l.h_hat + i, read(l.h_hat + i, lanes) + h_hat, lanes);
        });
    });
}

// g, h, mu and rho
SSVI_API void ssvi_ivon_step(const IvonLayer* layers, int64_t count, int64_t threads) {
    for_layers(layers, count, threads, [](const IvonLayer& layer, int64_t, Range blocks) {
        for_vectors(layer, blocks, [&](int64_t i, int64_t lanes) { step(layer, i, lanes); });
    });
}
