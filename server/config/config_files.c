#include "server/config/config_files.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/load.h"
#include "fetch/fetch.h"
#include "origins/peer_auth.h"
#include "rules/rules.h"
#include "server/logs/log.h"
#include "server/users/user_file.h"

static bool
append(struct buf *files, const struct buf *content, const char *path, struct buf *why)
{
    uint64_t len = content->len;

    if (buf_append(files, &len, sizeof(len)) && buf_append(files, content->data, len))
        return true;
    buf_printf(why, "%s: with the other files it is larger than %zu bytes, or there is no memory",
               path, CONFIG_FILES_MAX);
    return false;
}

static bool
read_authorities(const struct options *options, struct buf *files, struct buf *why)
{
    char sentence[512];
    struct buf content;
    bool ok;

    if (!options->cacert)
        return true;
    buf_init(&content, FETCH_AUTHORITIES_MAX);
    ok = fetch_read_authorities(options->cacert, &content, sentence, sizeof(sentence));
    if (!ok)
        buf_printf(why, "%scacert: %s", options_place(options, "cacert"), sentence);
    ok = ok && append(files, &content, options->cacert, why);
    buf_free(&content);
    return ok;
}

/* Not what may have no end, or never a begin. 0 or an errno. */
static int
load(const char *path, struct buf *content)
{
    struct stat status;

    return stat(path, &status) != 0 || S_ISREG(status.st_mode) ? load_file(path, content) : EINVAL;
}

/* ---- users ----------------------------------------------------------------------------------- */

static void
warn_of_readers(const char *option, const char *path)
{
    struct stat status;

    if (stat(path, &status) == 0 && status.st_mode & (S_IRGRP | S_IROTH))
        log_warning("%s: %s can be read by its group or by others: its mode should be 0600", option,
                    path);
}

/* Reads it as the daemon will, for what is wrong with it. */
static bool
check_users(struct span text, const char *place, const char *path, struct buf *why)
{
    struct buf errors;
    struct user_file *file;

    buf_init(&errors, 65536);
    file = user_file_read(text, path, &errors);
    if (!file)
        buf_printf(why, "%susers: %s", place, buf_str(&errors));
    user_file_free(file);
    buf_free(&errors);
    return file != NULL;
}

static bool
read_users(const struct options *options, struct buf *files, struct buf *why)
{
    const char *path = options->users, *place = options_place(options, "users");
    struct buf content;
    int error;
    bool ok;

    if (!path)
        return true;
    buf_end_line(why);
    buf_init(&content, USER_FILE_MAX);
    error = load(path, &content);
    if (error == EFBIG)
        buf_printf(why, "%susers: %s is larger than %zu bytes", place, path, USER_FILE_MAX);
    else if (error)
        buf_printf(why, "%susers: cannot read %s: %s", place, path, strerror(error));
    ok = !error && check_users(buf_span(&content), place, path, why) &&
         append(files, &content, path, why);
    if (ok)
        warn_of_readers("users", path);
    buf_free(&content);
    return ok;
}

/* ---- keys ------------------------------------------------------------------------------------ */

#define KEY_FILE_MAX ((size_t)65536)

static bool
check_keys(struct span text, struct buf *why)
{
    const size_t before = why->len;
    struct peer_keys keys;

    if (!peer_keys_read(&keys, text, why))
        return false;
    buf_truncate(why, before);
    return true;
}

/* Of an option that names a file with keys; no path: it is not given. */
static bool
read_keys(const struct options *options, const char *option, const char *path, struct buf *files,
          struct buf *why)
{
    struct buf content;
    size_t before;
    int error;
    bool ok;

    if (!path)
        return true;
    buf_end_line(why);
    before = why->len;
    buf_init(&content, KEY_FILE_MAX);
    error = load(path, &content);
    buf_printf(why, "%s%s: %s%s", options_place(options, option), option,
               error ? "cannot read " : "", path);
    if (error)
        buf_printf(why, ": %s", strerror(error));
    else
        buf_append_str(why, ": ");
    ok = !error && check_keys(buf_span(&content), why);
    if (ok) {
        buf_truncate(why, before);
        ok = append(files, &content, path, why);
        warn_of_readers(option, path);
    }
    buf_free(&content);
    return ok;
}

/* ---- rules ----------------------------------------------------------------------------------- */

struct reading {
    struct buf *files;
    const char *place;
};

/* For rules_load(). */
static bool
read_page(void *context, const char *path, struct buf *page, struct buf *why)
{
    const struct reading *reading = context;
    struct buf content;
    int error;
    bool ok;

    buf_init(&content, page->ceiling);
    error = load(path, &content);
    if (error)
        buf_printf(why, "%srule: cannot read %s: %s", reading->place, path, strerror(error));
    /* For the check of what it is. */
    ok = !error && append(reading->files, &content, path, why) &&
         buf_append(page, content.data, content.len);
    buf_free(&content);
    return ok;
}

/* The pages of one rule; what is wrong with the rule itself is said elsewhere. */
static bool
read_pages(const char *rule, struct reading *reading, struct buf *why)
{
    struct rules *rules = rules_create();
    struct buf ignored;
    bool ok = true;

    buf_init(&ignored, 4096);
    if (rules && rules_add(rules, rule, &ignored))
        ok = rules_load(rules, read_page, reading, why);
    rules_free(rules);
    buf_free(&ignored);
    return ok;
}

bool
config_files_read(const struct options *options, struct buf *files, struct buf *why)
{
    bool ok = read_authorities(options, files, why);

    ok = read_users(options, files, why) && ok;
    ok = read_keys(options, "peer-key-file", options->peer_key_file, files, why) && ok;
    ok = read_keys(options, "shared-key-file", options->shared_key_file, files, why) && ok;
    for (size_t i = 0; i < options->rule.count; i++) {
        struct reading reading = {.files = files, .place = option_place(&options->rule, i)};

        buf_end_line(why);
        if (strstr(options->rule.items[i], "error-page") ||
            strstr(options->rule.items[i], "host-list") ||
            strstr(options->rule.items[i], "user-list"))
            ok = read_pages(options->rule.items[i], &reading, why) && ok;
    }
    buf_end_line(why);
    return ok;
}

bool
config_files_next(struct span *files, struct span *content)
{
    uint64_t len;

    if (files->len < sizeof(len))
        return false;
    memcpy(&len, files->ptr, sizeof(len));
    if (len > files->len - sizeof(len))
        return false;
    *content = span_of(files->ptr + sizeof(len), len);
    *files = span_of(content->ptr + len, files->len - sizeof(len) - len);
    return true;
}
