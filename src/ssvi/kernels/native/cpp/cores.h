// How many threads work at a time. A thread whose core another process has comes late, by a time slice of the system, and all
// others wait for it: two threads would take twice the time of one.
#pragma once

#include <cstdint>

namespace ssvi {

// At most so many, and one for each core that is idle or that this process has already. All of them before the system has been
// watched for a moment, and where it does not tell. One in a forked process: the thread pool of libgomp does not survive a
// fork. What is computed must not depend on it.
int64_t workers(int64_t wanted);

}  // namespace ssvi
