// The k largest of d scores, without sorting them: three sweeps find the k-th largest by its bits, 16 and 16.
#include <vector>

#include "simd.h"
#include "status.h"

using namespace ssvi;

namespace {

// Unsigned integers in the order of the floats; both zeros are one.
inline uint32_t key_of(float score) {
    const uint32_t u = bits<uint32_t>(score + 0.0f);
    return u & 0x80000000u ? ~u : u | 0x80000000u;
}

// The largest bucket with at least `wanted` counts in it and above; `wanted` becomes how many to take of that bucket.
uint32_t bucket_of(const std::vector<int64_t>& counts, int64_t* wanted) {
    uint32_t bucket = uint32_t(counts.size()) - 1;
    while (counts[bucket] < *wanted) *wanted -= counts[bucket--];
    return bucket;
}

// Positions in increasing order; of equal scores the lower position wins. 0 < k <= d, no NaN.
void top_k(const float* scores, int64_t d, int64_t k, int64_t* positions) {
    std::vector<int64_t> counts(1 << 16);
    for (int64_t i = 0; i < d; i++) counts[key_of(scores[i]) >> 16]++;
    int64_t wanted = k;
    const uint32_t high = bucket_of(counts, &wanted);
    counts.assign(1 << 16, 0);
    for (int64_t i = 0; i < d; i++) {
        const uint32_t key = key_of(scores[i]);
        if (key >> 16 == high) counts[key & 0xffff]++;
    }
    const uint32_t last = high << 16 | bucket_of(counts, &wanted);
    for (int64_t i = 0, n = 0; n < k; i++) {
        const uint32_t key = key_of(scores[i]);
        if (key > last || (key == last && wanted-- > 0)) positions[n++] = i;
    }
}

}  // namespace

SSVI_API Status ssvi_top_k(const float* scores, int64_t d, int64_t k, int64_t* positions) {
    return guarded([=] { top_k(scores, d, k, positions); });
}
