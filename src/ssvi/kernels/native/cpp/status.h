// How a failure reaches Python: as a number. An exception must not pass the C ABI, nor leave a parallel region.
#pragma once

#include <cstdint>
#include <new>
#include <stdexcept>

namespace ssvi {

enum Status : int32_t { kOk = 0, kOutOfMemory = 1, kTooLarge = 2, kFailed = 3 };  // mirrored in library.py

struct TooLarge {};  // thrown where the offsets into a slab would not fit their 32 bits

// Runs the body of a function of the library. Everything that can throw does so before a parallel region starts: all
// memory is taken there (see ThreadMemory).
template <class Body>
Status guarded(Body body) noexcept {
    try {
        body();
        return kOk;
    } catch (const std::bad_alloc&) {
        return kOutOfMemory;
    } catch (const std::length_error&) {  // a vector of more elements than addresses
        return kOutOfMemory;
    } catch (const TooLarge&) {
        return kTooLarge;
    } catch (...) {
        return kFailed;
    }
}

}  // namespace ssvi
