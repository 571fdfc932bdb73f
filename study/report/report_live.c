#include "study/report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include <cjson/cJSON.h>

#include "base/load.h"
#include "cli/output.h"

/* A thousand runs are a megabyte; a tree of it takes up to forty times that. */
#define MAX_FILE (4u << 20)

/* ---- reading --------------------------------------------------------------------------------- */

static const cJSON *
member(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static double
number(const cJSON *object, const char *name, double otherwise)
{
    const cJSON *item = member(object, name);

    return cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble < 9e15
               ? item->valuedouble
               : otherwise;
}

static char *
text_of(const cJSON *object, const char *name)
{
    const cJSON *item = member(object, name);

    return strdup(cJSON_IsString(item) && item->valuestring ? item->valuestring : "");
}

/* The ratio beside simulated ones counts coalesced requests; earlier releases did not state it. */
static double
comparable(const cJSON *mean, const char *name, double otherwise)
{
    char with[64];

    snprintf(with, sizeof(with), "%s_with_coalesced", name);
    return number(mean, with, number(mean, name, otherwise));
}

/* False without memory. */
static bool
take(const cJSON *root, const cJSON *mean, const char *path, struct report_live *live)
{
    *live = (struct report_live){.path = strdup(path),
                                 .trace = text_of(root, "trace"),
                                 .policy = text_of(root, "policy"),
                                 .requests = (uint64_t)number(root, "requests", 0),
                                 .urls = (uint64_t)number(root, "capacity_urls", 0),
                                 .bytes = (uint64_t)number(root, "capacity_bytes", 0),
                                 .mean_us = number(mean, "mean_us", 0),
                                 .hit_ratio = comparable(mean, "hit_ratio", 0),
                                 .byte_hit_ratio = comparable(mean, "byte_hit_ratio", -1)};
    /* A daemon without a cache has a default capacity too, which is no size of this run. */
    if (live->policy && strcmp(live->policy, "none") == 0)
        live->urls = live->bytes = 0;
    return live->path && live->trace && live->policy;
}

int
report_live_read(const char *path, struct report_live *live)
{
    struct buf text;
    cJSON *root;
    const cJSON *mean;
    int status = EX_OK, error;

    buf_init(&text, MAX_FILE);
    error = load_file(path, &text);
    if (error) {
        buf_free(&text);
        output_complain("%s: %s", path, strerror(error));
        return EX_NOINPUT;
    }
    root = cJSON_ParseWithLength(buf_str(&text), text.len);
    mean = member(root, "mean");
    if (!cJSON_IsNumber(member(mean, "mean_us")) || !cJSON_IsString(member(root, "policy"))) {
        output_complain("%s: not what 'sunproxy replay --json' prints, with the policy and mean "
                        "times of a replay",
                        path);
        status = EX_DATAERR;
    } else if (!take(root, mean, path, live)) {
        report_live_free(live);
        output_complain("%s: out of memory", path);
        status = EX_SOFTWARE;
    }
    cJSON_Delete(root);
    buf_free(&text);
    return status;
}

void
report_live_free(struct report_live *live)
{
    free(live->path);
    free(live->trace);
    free(live->policy);
    *live = (struct report_live){.path = NULL};
}

/* ---- the table ------------------------------------------------------------------------------- */

static bool
is_of(const struct report_live *live, const struct simulate_subject *subject, bool only)
{
    return live->requests == subject->trace->request_count &&
           (only || strcmp(live->trace, subject->path) == 0);
}

static void
add_row(struct json *j, const struct simulate_subject *subject, const struct report_live *live)
{
    json_open_array(j, NULL);
    json_cstring(j, NULL, live->policy);
    json_uint(j, NULL, live->urls);
    json_uint(j, NULL, live->bytes);
    if (live->urls)
        json_double(j, NULL, (double)live->urls / (double)subject->trace->url_count, 6);
    else
        json_null(j, NULL);
    json_double(j, NULL, live->mean_us / 1000, 3);
    json_double(j, NULL, live->hit_ratio, 6);
    if (live->byte_hit_ratio >= 0)
        json_double(j, NULL, live->byte_hit_ratio, 6);
    else
        json_null(j, NULL);
    json_close_array(j);
}

void
report_live_table(struct json *j, const struct simulate_subject *subject, bool only,
                  struct report_live *lives, size_t count)
{
    bool open = false;

    for (size_t i = 0; i < count; i++) {
        if (!is_of(&lives[i], subject, only))
            continue;
        if (!open)
            report_table_open(j, "live", "policy", "capacity_urls", "capacity_bytes",
                              "share_of_urls", "mean_ms", "hit_ratio", "byte_hit_ratio", NULL);
        open = true;
        add_row(j, subject, &lives[i]);
        lives[i].shown = true;
    }
    if (open)
        report_table_close(j);
}

void
report_live_complain(const struct report_live *lives, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!lives[i].shown)
            output_complain(
                "%s: ignored: a replay of '%s' with %ju requests, which is none of these "
                "traces",
                lives[i].path, lives[i].trace, (uintmax_t)lives[i].requests);
}
