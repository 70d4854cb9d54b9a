// Tensors whose memory comes from the arena, in the form that torch takes over: DLPack. torch calls `deleter` when the last
// tensor on the memory dies, from any thread.
#include "arena.h"

#include <cstdint>
#include <memory>
#include <new>

#include "simd.h"

using namespace ssvi;

namespace {

struct DLTensor {  // dlpack.h, version 0
    void* data;
    struct {
        int32_t type, id;
    } device;
    int32_t dimensions;
    struct Number {
        uint8_t code, bits;
        uint16_t lanes;
    } type;
    int64_t *shape, *strides;
    uint64_t offset;
};

struct DLManagedTensor {
    DLTensor tensor;
    void* context;
    void (*deleter)(DLManagedTensor*);
};

struct Block : DLManagedTensor {
    int64_t shape[4];
    size_t place, bytes;
};

Arena& arena() {
    static Arena* const one = new Arena;  // never destroyed: tensors may outlive everything else
    return *one;
}

// A lock that another thread held at a fork stays closed in the child, which therefore does without the arena.
bool of_this_process() {
    static const pid_t loaded_in = getpid();
    return getpid() == loaded_in;
}

void free_block(DLManagedTensor* tensor) {
    Block* block = static_cast<Block*>(tensor);
    if (of_this_process()) arena().give(block->place, block->bytes);
    delete block;
}

}  // namespace

// A DLManagedTensor of float32 or, with `half`, of bfloat16 numbers; null where the arena has no place. It has its shape from the
// start: a view would keep the tensor that it was made from, and torch adds up gradients in place only where nothing else has
// their memory.
SSVI_API void* ssvi_arena_take(const int64_t* shape, bool half) {
#if defined(__SANITIZE_ADDRESS__)
    return nullptr;  // memory of its own for each tensor: a byte too far is seen
#endif
    if (!of_this_process()) return nullptr;
    try {
        std::unique_ptr<Block> block(new Block{});
        block->bytes = half ? sizeof(uint16_t) : sizeof(float);
        for (int i = 0; i < 4; i++) block->shape[i] = shape[i], block->bytes *= size_t(shape[i]);
        const DLTensor::Number number = half ? DLTensor::Number{4, 16, 1} : DLTensor::Number{2, 32, 1};
        const ptrdiff_t place = arena().take(block->bytes);
        if (place < 0) return nullptr;
        block->place = size_t(place);
        block->tensor = {arena().at(block->place), {1, 0}, 4, number, block->shape, nullptr, 0};
        block->deleter = free_block;
        return static_cast<DLManagedTensor*>(block.release());
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

SSVI_API void ssvi_arena_trim() {
    if (of_this_process()) arena().trim();
}

SSVI_API int64_t ssvi_arena_reach() { return int64_t(arena().reach()); }
