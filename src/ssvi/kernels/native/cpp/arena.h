// Memory for the large tensors of a training step: blocks of one reserved range of addresses.
//
// The C library's allocator cannot use the place of freed tensors again for those of another size if anything small was put
// between them, and asks the system for new pages at each use of the largest. Here a block goes to the lowest place where it
// fits, and free neighbours become one: a process has little more than what is alive at once.
#pragma once

#include <cstddef>
#include <iterator>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace ssvi {

class Arena {
  public:
    // The offset of a block of so many bytes; negative where there is no place for it.
    ptrdiff_t take(size_t bytes) {
        const std::lock_guard<std::mutex> lock(mutex_);
        bytes = (bytes + kPage - 1) / kPage * kPage;
        for (auto hole = free_.begin(); hole != free_.end(); ++hole)
            if (hole->second >= bytes) return from_hole(hole, bytes);
        return from_end(bytes);
    }

    void give(size_t offset, size_t bytes) {
        const std::lock_guard<std::mutex> lock(mutex_);
        bytes = (bytes + kPage - 1) / kPage * kPage;
        auto next = free_.lower_bound(offset);
        if (next != free_.end() && offset + bytes == next->first) bytes += next->second, next = free_.erase(next);
        if (next != free_.begin()) {
            auto before = std::prev(next);
            if (before->first + before->second == offset) {
                before->second += bytes;
                return;
            }
        }
        free_.emplace_hint(next, offset, bytes);
    }

    // Gives the pages of all free blocks back to the system.
    void trim() {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (const auto& [offset, bytes] : free_) madvise(base_ + offset, bytes, MADV_DONTNEED);
    }

    size_t reach() const { return end_; }  // bytes from the start to the highest block that there was
    char* at(size_t offset) const { return base_ + offset; }

  private:
    static constexpr size_t kPage = 4096, kHuge = size_t(2) << 20, kRange = size_t(1) << 36;

    ptrdiff_t from_hole(std::map<size_t, size_t>::iterator hole, size_t bytes) {
        const auto [offset, size] = *hole;
        const auto next = free_.erase(hole);
        if (size > bytes) free_.emplace_hint(next, offset + bytes, size - bytes);
        return offset;
    }

    ptrdiff_t from_end(size_t bytes) {
        if (!base_ && !reserve()) return -1;
        auto last = free_.empty() ? free_.end() : std::prev(free_.end());
        const bool touches = last != free_.end() && last->first + last->second == end_;
        const size_t start = touches ? last->first : end_;
        if (bytes > kRange - start) return -1;
        if (touches) free_.erase(last);
        end_ = start + bytes;
        return start;
    }

    bool reserve() {  // addresses alone: a page takes memory from its first use on
        rlimit limit{};  // `ulimit -v` counts addresses: all of them would be gone
        if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) return false;
        void* range = mmap(nullptr, kRange + kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (range == MAP_FAILED) return false;
        base_ = reinterpret_cast<char*>((reinterpret_cast<size_t>(range) + kHuge - 1) / kHuge * kHuge);
#ifdef MADV_HUGEPAGE
        madvise(base_, kRange, MADV_HUGEPAGE);
#endif
        return true;
    }

    std::mutex mutex_;
    char* base_ = nullptr;
    size_t end_ = 0;
    std::map<size_t, size_t> free_;  // offset -> bytes
};

}  // namespace ssvi
