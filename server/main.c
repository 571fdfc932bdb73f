/*
 * sunproxyd: the daemon's command line. What it does is in daemon.c.
 */
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>

#include "policies/policy.h"
#include "server/daemon.h"
#include "server/logs/log.h"
#include "server/config/options.h"
#include "server/service_metrics.h"

static void
print_param(const struct policy_param *param)
{
    printf("             %s=", param->name);
    if (param->words) {
        for (size_t i = 0; param->words[i]; i++)
            printf("%s%s", i ? "|" : "", param->words[i]);
        printf(": %s (default: %s)\n", param->meaning, param->words[(size_t)param->start]);
    } else {
        printf("%g..%g: %s (default: %g)\n", param->low, param->high, param->meaning, param->start);
    }
}

static void
print_policies(void)
{
    for (size_t i = 0; policies[i]; i++) {
        const struct policy_ops *ops = policies[i];

        if (ops->needs_future) /* no daemon can run it */
            continue;
        printf("%-10s %s\n", ops->name, ops->summary);
        for (size_t p = 0; p < policy_param_count(ops); p++)
            print_param(&ops->params[p]);
    }
    printf("%-10s %s\n", "none", "no cache: every request goes to its origin");
}

/* What was asked for on standard output has to have arrived there. */
static int
finish_stdout(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EX_OK;
    perror("sunproxyd: standard output");
    return EX_IOERR;
}

static int
run(const struct options *options)
{
    int status;

    if (options->help) {
        options_print_help(stdout);
        return finish_stdout();
    }
    if (options->version) {
        puts("sunproxyd " SUNPROXY_VERSION);
        return finish_stdout();
    }
    if (options->default_config) {
        options_print_defaults(stdout);
        return finish_stdout();
    }
    if (options->list_log_format) {
        options_print_log_format(stdout);
        return finish_stdout();
    }
    if (options->list_metrics) {
        if (!service_metrics_list(stdout)) {
            fputs("sunproxyd: out of memory\n", stderr);
            return EX_OSERR;
        }
        return finish_stdout();
    }
    if (strcasecmp(options->policy, "help") == 0) {
        print_policies();
        return finish_stdout();
    }
    log_setup((enum log_level)options->log_level, log_format_of(options->log_format));
    if (!options->check_config)
        return daemon_run(options);
    status = daemon_check(options);
    if (status == EX_OK)
        status = daemon_check_addresses(options);
    if (status != EX_OK)
        return status;
    daemon_check_names(options);
    options_print_config(options, stdout);
    return finish_stdout();
}

/* `lines` has a sentence in each line. */
static void
complain(const char *lines)
{
    while (*lines) {
        size_t len = strcspn(lines, "\n");

        fprintf(stderr, "sunproxyd: %.*s\n", (int)len, lines);
        lines += len + (lines[len] == '\n');
    }
}

/* The command line and the file can be read as far as the sentences in `why` say. */
static int
refuse(const struct options *options, int status, const char *why)
{
    complain(why);
    if (options->check_config) {
        log_setup((enum log_level)options->log_level, log_format_of(options->log_format));
        (void)daemon_check(options);
    }
    fputs("Try \"sunproxyd --help\".\n", stderr);
    return status;
}

int
main(int argc, char **argv)
{
    struct options options;
    struct buf why;
    int status = EX_OSERR;

    /*
     * URLs are UTF-8 whatever the environment says: libidn2, which libcurl asks about
     * internationalised names, goes by the locale's characters.
     */
    setlocale(LC_CTYPE, "C.UTF-8");
    buf_init(&why, 65536);
    if (options_init(&options)) {
        status = options_parse(&options, argc, argv, &why);
        status = status == EX_OK ? run(&options) : refuse(&options, status, buf_str(&why));
    } else {
        fputs("sunproxyd: out of memory\n", stderr);
    }
    options_free(&options);
    buf_free(&why);
    return status;
}
