// The cores that are left for this process, from the counters of the system (Linux).
#include "cores.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>

#include <unistd.h>

#if defined(__linux__)
#include <sched.h>
#endif

#include "simd.h"

namespace ssvi {

namespace {

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
constexpr double kWindow = 0.2;   // seconds between two looks
constexpr double kLost = 0.3;     // of a core that may be another's while it counts as ours
constexpr double kShare = 0.1;    // of all cores: work is cut in equal parts, so that one core less would cost a whole part
constexpr double kDoubt = 0.25;   // of the time: counters that miss more of it are not those of this machine

struct Look {
    double wall = 0, own = 0, idle = 0, counted = 0;  // seconds; idle and counted are summed over the cores
    int cores = 0;                                    // those that this thread may use
};

double seconds(clockid_t clock) {
    timespec t{};
    clock_gettime(clock, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

// No cores where the system does not tell.
Look look() {
    Look now;
    now.wall = seconds(CLOCK_MONOTONIC), now.own = seconds(CLOCK_PROCESS_CPUTIME_ID);
#if defined(__linux__)
    cpu_set_t mine;
    std::FILE* file = sched_getaffinity(0, sizeof mine, &mine) ? nullptr : std::fopen("/proc/stat", "re");
    if (!file) return now;
    const double tick = 1.0 / double(sysconf(_SC_CLK_TCK));
    char line[512];
    while (std::fgets(line, sizeof line, file) && !std::strncmp(line, "cpu", 3)) {  // cpu7 user nice system idle iowait ...
        char* at = line + 3;
        if (*at < '0' || *at > '9') continue;  // the line of all cores
        const unsigned long core = std::strtoul(at, &at, 10);
        if (core >= CPU_SETSIZE || !CPU_ISSET(core, &mine)) continue;
        now.cores++;
        for (int field = 0; field < 8; field++) {  // those behind are parts of others
            const double value = tick * double(std::strtoull(at, &at, 10));
            now.counted += value;
            if (field == 3 || field == 4) now.idle += value;
        }
    }
    std::fclose(file);
#endif
    return now;
}

// The cores that were free between two looks: those that were idle, and those that we had.
double free_cores(const Look& before, const Look& now) {
    const double wall = now.wall - before.wall, all = wall * now.cores, counted = now.counted - before.counted;
    if (!now.cores || now.cores != before.cores || std::fabs(counted - all) > kDoubt * all) return double(kAll);
    return (now.idle - before.idle + now.own - before.own) / wall;
}

struct Watch {
    std::atomic_flag busy = ATOMIC_FLAG_INIT;
    std::atomic<double> due{0}, free{double(kAll)};
    Look last;

    void observe(double time) {
        if (busy.test_and_set(std::memory_order_acquire)) return;  // another thread looks
        const Look now = look();
        if (last.wall > 0) free.store(free_cores(last, now), std::memory_order_relaxed);
        last = now;
        due.store(time + kWindow, std::memory_order_relaxed);
        busy.clear(std::memory_order_release);
    }
};

Watch watch;
std::atomic<int64_t> most{0};

}  // namespace

int64_t workers(int64_t wanted) {
    static const pid_t loaded_in = getpid();
    if (wanted < 2 || getpid() != loaded_in) return 1;
    if (const int64_t limit = most.load(std::memory_order_relaxed)) return std::min(wanted, limit);
    const double time = seconds(CLOCK_MONOTONIC);
    if (time >= watch.due.load(std::memory_order_relaxed)) watch.observe(time);
    const double free = watch.free.load(std::memory_order_relaxed);
    if (free + std::max(kLost, kShare * double(wanted)) >= double(wanted)) return wanted;
    return std::max<int64_t>(1, int64_t(free + kLost));
}

}  // namespace ssvi

SSVI_API int64_t ssvi_workers(int64_t wanted) { return ssvi::workers(wanted); }

// For tests and measurements: no more threads at a time than this, whatever the cores are doing; 0: as they allow.
SSVI_API void ssvi_limit_workers(int64_t limit) { ssvi::most.store(limit); }
