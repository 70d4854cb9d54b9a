#include "packing.h"

#include "simd.h"

using namespace ssvi;

// The nanoseconds of packing since the last call; from here on they are counted, or not.
SSVI_API int64_t ssvi_packing_time(bool wanted) {
    PackingTime::wanted = wanted;
    return PackingTime::nanoseconds.exchange(0);
}
