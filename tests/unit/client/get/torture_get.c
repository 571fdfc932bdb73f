/*
 * The client's own pieces with every allocation failing once: a list is what it was or longer, a
 * line of JSON is whole or reported as missing, a file is whole or not there.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/save.h"
#include "client/get/get.h"
#include "cli/replay_log.h"
#include "tests/unit/torture.h"
#include "tests/unit/unit.h"

static bool broken; /* Check itself allocates: nothing is asserted while an allocation may fail */

static void
grow_list(void *unused)
{
    struct url_list list = {.urls = NULL};
    size_t added = 0;

    (void)unused;
    for (int i = 0; i < 40; i++)
        added += url_list_add(&list, "example.com/");
    broken |= list.count != added || added < 39 || (!torture_failed() && added != 40);
    for (size_t i = 0; i < list.count; i++)
        broken |= strcmp(list.urls[i], "http://example.com/") != 0;
    url_list_free(&list);
}

static void
write_json(void *context)
{
    static char body[20000];
    struct get_answer answer;
    struct get_options options = {.api = 2};
    FILE *file = context;
    bool filled;

    get_answer_init(&answer, "http://h/", 1);
    memset(body, 0xff, sizeof(body));
    answer.has_page = true;
    answer.page.status = 200;
    filled = buf_append_str(&answer.page.head, "HTTP/1.1 200 \r\nA: b\r\n");
    broken |= !filled && !torture_failed();
    rewind(file);
    if (filled && get_write_json(&answer, span_of(body, sizeof(body)), &options, file)) {
        broken |= torture_failed();
        broken |= ftell(file) < (long)sizeof(body) / 3 * 4;
    } else if (filled) {
        broken |= !torture_failed() || errno != ENOMEM || ftell(file) != 0;
    }
    get_answer_free(&answer);
}

static void
save_file(void *context)
{
    const char *path = context;
    struct save save;
    int error = save_open(&save, path, false);

    if (error) {
        broken |= error != ENOMEM || !torture_failed() || access(path, F_OK) == 0;
        return;
    }
    fputs("x", save.file);
    broken |= save_close(&save, true) != 0 || unlink(path) != 0;
}

static void
write_log(void *unused)
{
    struct replay_entry entry = {.number = 1, .url = span_of("u", 1), .outcome = REPLAY_HIT};
    struct replay_log *log = replay_log_open("/dev/null", REPLAY_LOG_JSONL, 1);
    int error;

    (void)unused;
    if (!log) {
        broken |= !torture_failed();
        return;
    }
    error = replay_log_write(log, &entry);
    broken |= error != (torture_failed() ? ENOMEM : 0);
    broken |= replay_log_close(log) != error;
}

START_TEST(no_failing_allocation_leaves_half_a_thing)
{
    char folder[] = "/tmp/sunproxy-test-XXXXXX", path[64];
    FILE *file = tmpfile();

    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_ptr_nonnull(file);
    snprintf(path, sizeof(path), "%s/file", folder);
    ck_assert_uint_ge(torture_walk(grow_list, NULL), 40);
    ck_assert(!broken);
    ck_assert_uint_ge(torture_walk(write_json, file), 2);
    ck_assert(!broken);
    ck_assert_uint_ge(torture_walk(save_file, path), 2);
    ck_assert(!broken);
    ck_assert_uint_ge(torture_walk(write_log, NULL), 2);
    ck_assert(!broken);
    fclose(file);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("get torture");
    TCase *tcase = tcase_create("get torture");

    tcase_add_test(tcase, no_failing_allocation_leaves_half_a_thing);
    suite_add_tcase(suite, tcase);
    return suite;
}
