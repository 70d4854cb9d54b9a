// Threads: how work is cut, and the memory that each of them works in.
#pragma once

#include <cstdlib>
#include <memory>
#include <sys/mman.h>
#include <vector>

#include <omp.h>

#include "cores.h"
#include "layout.h"

namespace ssvi {

struct Range {
    int64_t begin, end;
};

struct Team {  // threads that share one slab
    int64_t rank, size;

    Range share(int64_t n) const { return {n * rank / size, n * (rank + 1) / size}; }
};

// Work is cut into a part for each of the wanted threads, and fewer of them do it where other processes have cores: sums
// belong to parts, so results do not depend on who else computes. Where there are enough slabs, a part has slabs of its own,
// without a barrier. Otherwise all threads work on one slab, and cut it as many times as they are: nothing is summed there
// by more than one of them.
struct Schedule {
    int64_t parts, threads, tasks;
    bool alone;

    Schedule(const View& view, int64_t wanted) {
        parts = wanted, threads = workers(wanted);
        tasks = view.groups * view.bands;
        alone = parts == 1 || (tasks >= 4 * parts && !view.fully_connected());
    }

    // body(team, part, tasks of this part, wait): `wait` is the barrier of the team. The body must not throw.
    template <class Body>
    void run(Body body) const {
#pragma omp parallel num_threads(int(threads)) if (threads > 1)
        {
            const int64_t id = omp_get_thread_num(), size = omp_get_num_threads();
            if (alone) {
                for (int64_t part = id; part < parts; part += size) body(Team{0, 1}, part, Team{part, parts}.share(tasks), [] {});
            } else {
                body(Team{id, size}, id, Range{0, tasks}, [] {
#pragma omp barrier
                });
            }
            streamed();
        }
    }
};

// Memory that is kept from call to call, on huge pages where the system has them: a slab of a megabyte would otherwise
// miss the first-level translation buffer at nearly every load.
class Scratch {
  public:
    float* data() const { return data_.get(); }

    // At least so many floats, or std::bad_alloc; what was there before is lost.
    float* reserve(int64_t floats) {
#if defined(__SANITIZE_ADDRESS__)
        constexpr size_t page = 64;  // a byte too far is seen
#else
        constexpr size_t page = size_t(2) << 20;
#endif
        const size_t bytes = (size_t(floats) * sizeof(float) + page - 1) / page * page;
        if (bytes > bytes_) {
            bytes_ = 0;
            data_.reset();  // first: the two need not exist at once
            data_.reset(static_cast<float*>(std::aligned_alloc(page, bytes)));
            if (!data_) throw std::bad_alloc();
            bytes_ = bytes;
#ifdef MADV_HUGEPAGE
            madvise(data_.get(), bytes, MADV_HUGEPAGE);
#endif
        }
        return data_.get();
    }

  private:
    struct Free {
        void operator()(float* data) const { std::free(data); }
    };
    std::unique_ptr<float, Free> data_;
    size_t bytes_ = 0;
};

// The memory of all threads of a call. It belongs to the thread that calls, which takes it before the others start: a
// failure is then an exception in one thread, outside of any parallel region. A thread meets the same addresses at each
// call, so its cache keeps them.
class ThreadMemory {
  public:
    void reserve(int64_t threads, int64_t floats) {
        if (int64_t(of_.size()) < threads) of_.resize(threads);
        for (int64_t i = 0; i < threads; i++) of_[i].reserve(floats);
    }
    float* of(int64_t thread) const { return of_[thread].data(); }

  private:
    std::vector<Scratch> of_;
};

inline int64_t aligned(int64_t floats) { return (floats + 15) / 16 * 16; }

}  // namespace ssvi
