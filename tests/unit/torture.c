#include "tests/unit/torture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local unsigned countdown;
static _Thread_local bool happened;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t len);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t len);
void *__wrap_emalloc(size_t size);
void *__wrap_erealloc(void *old, size_t size);

void
torture_fail_at(unsigned n)
{
    countdown = n;
    if (n)
        happened = false;
}

bool
torture_failed(void)
{
    return happened;
}

static bool
now(void)
{
    if (countdown == 0 || --countdown != 0)
        return false;
    happened = true;
    errno = ENOMEM;
    return true;
}

void *
__wrap_malloc(size_t size)
{
    return now() ? NULL : __real_malloc(size);
}

void *
__wrap_calloc(size_t count, size_t size)
{
    return now() ? NULL : __real_calloc(count, size);
}

void *
__wrap_realloc(void *old, size_t size)
{
    return now() ? NULL : __real_realloc(old, size);
}

void *
__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return now() ? NULL : __real_aligned_alloc(alignment, size);
}

char *
__wrap_strdup(const char *text)
{
    return now() ? NULL : __real_strdup(text);
}

char *
__wrap_strndup(const char *text, size_t len)
{
    return now() ? NULL : __real_strndup(text, len);
}

/* What Check allocates with otherwise, and gives up without. */
void *
__wrap_emalloc(size_t size)
{
    return __real_malloc(size);
}

void *
__wrap_erealloc(void *old, size_t size)
{
    return __real_realloc(old, size);
}

unsigned
torture_walk(void (*body)(void *context), void *context)
{
    for (unsigned n = 1;; n++) {
        torture_fail_at(n);
        body(context);
        if (!happened) {
            torture_fail_at(0);
            return n - 1;
        }
    }
}
