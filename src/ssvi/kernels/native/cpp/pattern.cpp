// The support as the kernels walk it: by output channel for the forward pass, by input channel for the backward pass.
#include "blocks.h"

using namespace ssvi;

namespace {

int64_t slots_of(const Shape& s) { return s.in_channels * vertical(s).slots() * horizontal(s).slots(); }

struct Tap {  // one position of the kernel: its slot among those of a channel, its offsets into the two slabs
    int64_t slot, forward, backward;
};

std::vector<Tap> taps_of(const Shape& s, const View& forward, const View& backward) {
    const Axis v = vertical(s), h = horizontal(s);
    std::vector<Tap> taps;
    taps.reserve(s.kernel_h * s.kernel_w);
    for (int64_t ky = 0; ky < s.kernel_h; ky++)
        for (int64_t kx = 0; kx < s.kernel_w; kx++) {
            const int64_t dy = v.shift(ky), dx = h.shift(kx);
            taps.push_back({v.slot_of(v.phase(ky)) * h.slots() + h.slot_of(h.phase(kx)), dy * forward.pitch + dx,
                            -dy * backward.pitch - dx});
        }
    return taps;
}

// `index` is sorted, so the forward order is the order of the parameters; the backward order is a counting sort of it.
void write_pattern(const Shape& s, const int32_t* index, int64_t count, int32_t* row_start, int32_t* row_offset,
                   int32_t* col_start, int32_t* col_offset, int32_t* col_order) {
    const View forward = forward_view(s), backward = backward_view(s);
    const std::vector<Tap> tap = taps_of(s, forward, backward);
    const int64_t group_in = s.in_channels / s.groups, group_out = s.out_channels / s.groups;
    const int64_t taps = int64_t(tap.size()), fan_in = group_in * taps, slots = slots_of(s);
    const int64_t slots_of_channel = vertical(s).slots() * horizontal(s).slots();
    const auto slot_of = [&](int64_t flat) {
        const int64_t in = flat / fan_in / group_out * group_in + flat % fan_in / taps;
        return in * slots_of_channel + tap[flat % taps].slot;
    };

    std::memset(row_start, 0, (s.out_channels + 1) * sizeof(int32_t));
    std::memset(col_start, 0, (slots + 1) * sizeof(int32_t));
    for (int64_t k = 0; k < count; k++) {
        const int64_t slot = slot_of(index[k]);
        row_start[index[k] / fan_in + 1]++;
        col_start[slot + 1]++;
        row_offset[k] = int32_t(slot * forward.plane + tap[index[k] % taps].forward);
    }
    for (int64_t i = 0; i < s.out_channels; i++) row_start[i + 1] += row_start[i];
    for (int64_t i = 0; i < slots; i++) col_start[i + 1] += col_start[i];

    for (int64_t k = 0; k < count; k++) {
        const int32_t at = col_start[slot_of(index[k])]++;
        col_order[at] = int32_t(k);
        col_offset[at] = int32_t(index[k] / fan_in * backward.plane + tap[index[k] % taps].backward);
    }
    for (int64_t i = slots; i > 0; i--) col_start[i] = col_start[i - 1];
    col_start[0] = 0;
}

}  // namespace

// Counts the changes of the functions and structures that Python sees, so that it refuses an older build.
SSVI_API int32_t ssvi_interface() { return 9; }  // mirrored in library.py

SSVI_API int64_t ssvi_slots(const Shape* s) { return slots_of(*s); }

SSVI_API Status ssvi_pattern(const Shape* s, const int32_t* index, int64_t count, int32_t* row_start,
                             int32_t* row_offset, int32_t* col_start, int32_t* col_offset, int32_t* col_order,
                             int64_t* block) {
    return guarded([=] {
        write_pattern(*s, index, count, row_start, row_offset, col_start, col_offset, col_order);
        *block = block_of(*s, row_start, row_offset);
    });
}
