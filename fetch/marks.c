#include "fetch/marks.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/hash.h"

#define WAYS 4u
#define SETS (MARKS_MAX / WAYS)

struct mark {
    uint64_t key;
    int64_t until_us; /* 0: free */
};

struct marks {
    pthread_mutex_t lock;
    struct mark table[SETS][WAYS]; /* protected by lock */
};

struct marks *
marks_create(void)
{
    struct marks *marks = calloc(1, sizeof(*marks));

    if (marks && pthread_mutex_init(&marks->lock, NULL) != 0) {
        free(marks);
        return NULL;
    }
    return marks;
}

void
marks_destroy(struct marks *marks)
{
    if (!marks)
        return;
    pthread_mutex_destroy(&marks->lock);
    free(marks);
}

/* The mark of a key in its set; if there is none, the one that ends first. Under the lock. */
static struct mark *
find(struct marks *marks, uint64_t key)
{
    struct mark *set = marks->table[key % SETS];
    struct mark *first = &set[0];

    for (unsigned i = 0; i < WAYS; i++) {
        if (set[i].until_us && set[i].key == key)
            return &set[i];
        if (set[i].until_us < first->until_us)
            first = &set[i];
    }
    return first;
}

void
marks_set(struct marks *marks, struct span url, int64_t now_us)
{
    uint64_t key = hash64_bytes(url);

    pthread_mutex_lock(&marks->lock);
    *find(marks, key) = (struct mark){.key = key, .until_us = now_us + MARKS_LIFE_US};
    pthread_mutex_unlock(&marks->lock);
}

void
marks_clear(struct marks *marks, struct span url)
{
    uint64_t key = hash64_bytes(url);
    struct mark *mark;

    pthread_mutex_lock(&marks->lock);
    mark = find(marks, key);
    if (mark->key == key)
        *mark = (struct mark){0};
    pthread_mutex_unlock(&marks->lock);
}

bool
marks_has(struct marks *marks, struct span url, int64_t now_us)
{
    uint64_t key = hash64_bytes(url);
    const struct mark *mark;
    bool marked;

    pthread_mutex_lock(&marks->lock);
    mark = find(marks, key);
    marked = mark->key == key && now_us < mark->until_us;
    pthread_mutex_unlock(&marks->lock);
    return marked;
}
