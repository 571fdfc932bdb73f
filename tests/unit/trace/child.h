/*
 * Loads a trace in a process of its own, and measures how much memory that took at most. The
 * measure is what the kernel counts as resident beyond what the process began with.
 */
#ifndef SUNPROXY_TESTS_UNIT_TRACE_CHILD_H
#define SUNPROXY_TESTS_UNIT_TRACE_CHILD_H

#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/unit/trace/scratch.h"
#include "trace/trace.h"

struct child_result {
    enum trace_error error;
    size_t requests;
    size_t peak_bytes;
    char why[512];
};

static inline size_t
child_peak(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_SELF, &usage) == 0 ? (size_t)usage.ru_maxrss * 1024 : 0;
}

static inline struct child_result
child_load(const char *path, const struct trace_options *options)
{
    struct child_result result = {.error = TRACE_OK};
    int pipes[2], status;
    pid_t child;

    ck_assert_int_eq(pipe(pipes), 0);
    fflush(NULL);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        struct trace *trace = NULL;
        size_t before = child_peak();

        result.error = trace_load(path, options, &trace, result.why, sizeof(result.why));
        result.peak_bytes = child_peak() - before;
        result.requests = trace ? trace->request_count : 0;
        _exit(write(pipes[1], &result, sizeof(result)) == (ssize_t)sizeof(result) ? 0 : 1);
    }
    close(pipes[1]);
    ck_assert_int_eq(read(pipes[0], &result, sizeof(result)), (int)sizeof(result));
    close(pipes[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    return result;
}

#endif
