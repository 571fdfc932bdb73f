#include "client/get/get_progress.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/output.h"

/* What is done sooner has no line. */
#define FIRST_US 300000
#define BETWEEN_US 200000

void
get_progress_init(struct get_progress *progress, const struct get_options *options)
{
    bool writes_elsewhere = options->output || options->remote_name || !isatty(STDOUT_FILENO);

    *progress = (struct get_progress){
        .wanted = !options->silent && writes_elsewhere && output_is_lively(stderr),
        .options = options,
    };
}

/* "3/10" of several URLs, otherwise the end of the URL's path. */
static void
name_answer(const struct get_answer *answer, size_t count, char *label, size_t size)
{
    struct span name = get_remote_name(answer->url);

    if (count > 1)
        snprintf(label, size, "%zu/%zu", answer->number, count);
    else if (name.len != 0 && name.len < size)
        snprintf(label, size, "%.*s", (int)name.len, name.ptr);
    else
        snprintf(label, size, "page");
}

/* Begins another line when the answer, the direction or the total has changed. */
static void
choose_line(struct get_progress *progress, const struct get_answer *answer, size_t count)
{
    bool upload = !answer->has_page && answer->sent != 0;
    int64_t total = upload ? get_data_length(&progress->options->data) : answer->page.length;
    char label[24];

    if (progress->number == answer->number && progress->upload == upload &&
        progress->total == total)
        return;
    name_answer(answer, count, label, sizeof(label));
    get_progress_clear(progress);
    progress_begin_bytes(&progress->line, upload ? "upload" : label,
                         total > 0 ? (uint64_t)total : 0);
    if (progress->number != answer->number)
        progress->next_us = clock_monotonic_us() + FIRST_US;
    progress->number = answer->number;
    progress->upload = upload;
    progress->total = total;
}

int64_t
get_progress_update(struct get_progress *progress, const struct get_answer *answer, size_t count)
{
    int64_t now_us;

    if (!progress->wanted)
        return INT64_MAX;
    choose_line(progress, answer, count);
    now_us = clock_monotonic_us();
    if (now_us >= progress->next_us) {
        progress_draw(&progress->line, progress->upload ? answer->sent : answer->size);
        progress->next_us = now_us + BETWEEN_US;
    }
    return progress->next_us - now_us;
}

void
get_progress_clear(struct get_progress *progress)
{
    if (progress->number != 0)
        progress_clear(&progress->line);
}
