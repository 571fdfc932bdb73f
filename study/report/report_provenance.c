/*
 * How a page came about: command, options that decide numbers, version, machine, date.
 */
#include "study/report/report.h"

#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define DATE_BYTES sizeof("2026-01-01T00:00:00Z")

static void
add_date(struct json *j, time_t now)
{
    struct tm utc;
    char text[DATE_BYTES];

    if (gmtime_r(&now, &utc) && strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc) != 0)
        json_cstring(j, "date", text);
    else
        json_null(j, "date");
}

/* The kernel and the processors; not the machine's name, which a page need not contain. */
static void
add_machine(struct json *j)
{
    struct utsname system;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    json_open_object(j, "machine");
    if (uname(&system) == 0) {
        json_cstring(j, "system", system.sysname);
        json_cstring(j, "release", system.release);
        json_cstring(j, "architecture", system.machine);
    }
    json_uint(j, "processors", processors > 0 ? (uint64_t)processors : 1);
    json_close_object(j);
}

void
report_provenance(struct json *j, const struct simulate_options *options, char *const *arguments,
                  size_t count)
{
    json_open_object(j, "provenance");
    json_cstring(j, "version", SUNPROXY_VERSION);
    add_date(j, time(NULL));
    add_machine(j);
    json_open_array(j, "arguments");
    for (size_t i = 0; i < count; i++)
        json_cstring(j, NULL, arguments[i]);
    json_close_array(j);
    json_uint(j, "seed", options->seed);
    json_uint(j, "seeds", options->seeds);
    json_close_object(j);
}
