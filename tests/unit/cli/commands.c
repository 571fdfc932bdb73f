#include "tests/unit/cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/commands.h"
#include "study/commands.h"
#include "study/trace/trace.h"
#include "tests/unit/cli/in_process.h"
#include "tests/unit/client/served.h"
#include "tests/unit/client/served_http.h"
#include "tests/unit/unit.h"

static const struct {
    const struct command *command;
    const char *words[IN_PROCESS_WORDS]; /* $ stands for the folder */
} rows[] = {
    {&command_simulate, {"--policy", "lru,arc", "--capacity", "2,50%", "-j", "1", "$/table.tsv"}},
    {&command_simulate, {"--policy", "lru", "--capacity", "1", "--json", "-j", "1", "$/table.tsv"}},
    {&command_simulate,
     {"--policy", "lru", "--capacity", "1", "--window", "2", "--json", "-j", "1", "$/table.tsv"}},
    {&command_simulate,
     {"--policy", "lru", "--capacity", "1", "--window", "2", "--markdown", "$/table.tsv"}},
    {&command_simulate,
     {"--policy", "opt,lfu", "--curve", "--points", "3", "--csv", "$/table.tsv"}},
    {&command_simulate,
     {"--policy", "lru", "--capacity", "2", "--log", "$/log", "-j", "1", "$/urls.txt"}},
    {&command_simulate,
     {"--policy", "lru", "--capacity", "2", "--sizes", "$/sizes", "--sample", "0.9", "$/urls.txt"}},
    {&command_advise, {"--policy", "lru,gdsf", "-j", "1", "$/table.tsv"}},
    {&command_advise, {"--policy", "lru", "--json", "-j", "1", "$/urls.txt"}},
    {&command_report,
     {"--policy", "lru,fifo", "--points", "3", "-j", "1", "-o", "$/page.html", "$/table.tsv"}},
    {&command_report,
     {"--policy", "lru", "--points", "2", "-j", "1", "--sample", ".9", "-o", "$/page.html",
      "$/table.tsv", "$/urls.txt"}},
    {&command_simulate,
     {"--policy", "lru,arc", "--curve", "--points", "2", "--sample", ".9", "--json", "$/urls.txt"}},
    {&command_advise, {"--policy", "lru", "--sample", ".9", "--by-bytes", "$/table.tsv"}},
    {&command_trace, {"describe", "$/table.tsv", "$/urls.txt"}},
    {&command_policies, {"lru-k"}},
    {&command_policies, {"--json"}},
    {&command_trace, {"describe", "$/table.tsv"}},
    {&command_trace, {"describe", "--json", "$/urls.txt"}},
    {&command_trace, {"convert", "--to", "tsv", "-o", "$/out.tsv", "$/urls.txt"}},
    {&command_trace, {"convert", "-o", "$/History", "$/urls.txt"}},
    {&command_trace,
     {"generate", "-n", "50", "--urls", "9", "--sizes", "pareto:10:1.5", "-o", "$/out.bin",
      "zipf"}},
    {&command_ping, {"--socket", "$/s", "-c", "2"}},
    {&command_reload, {"--socket", "$/s"}},
    {&command_origin, {"--socket", "$/s", "--json"}},
    {&command_explain, {"--socket", "$/s", "--json", "-H", "A: b", "http://h/a"}},
    {&command_get, {"--socket", "$/s", "-v", "http://h/a", "http://h/moved", "http://h/b"}},
    {&command_get, {"--socket", "$/s", "--json", "-H", "A: b", "http://h/a", "http://h/b"}},
    {&command_get, {"--socket", "$/s", "--api", "1", "http://h/a"}},
    {&command_get, {"--socket", "$/s", "-o", "$/page", "-i", "http://h/a"}},
    {&command_get, {"--socket", "$/s", "-o", "$/pages/", "http://h/a", "http://h/b"}},
    {&command_get, {"--http", "unix:$/h", "-v", "-i", "http://h/a", "http://h/chunked"}},
    {&command_get, {"--http", "unix:$/h", "--json", "-H", "A: b", "http://h/a", "http://u:p@h/b"}},
    {&command_get,
     {"--http", "unix:$/h", "-L", "-d", "a=b", "-d", "@$/sizes", "-o", "$/page", "http://h/moved"}},
    {&command_get, {"--http", "unix:$/h", "-I", "-r", "0-1", "-w", "%{source}", "http://h/a"}},
    {&command_stat, {"--socket", "$/s"}},
    {&command_stat, {"--socket", "$/s", "--json"}},
    {&command_set, {"--socket", "$/s", "--policy", "lru", "--capacity-urls", "9"}},
    {&command_set, {"--socket", "$/s", "--cold", "--json"}},
    {&command_purge, {"--socket", "$/s", "http://h/a", "http://h/b"}},
    {&command_purge, {"--socket", "$/s", "--prefix", "http://h/", "--json"}},
    {&command_replay, {"--socket", "$/s", "$/urls.txt"}},
    {&command_replay,
     {"--socket", "$/s", "--policy", "lru", "--capacity", "2", "--json", "--log", "$/log",
      "$/urls.txt"}},
    {&command_replay,
     {"--socket", "$/s", "--repeat", "2", "-j", "2", "--log", "$/log.jsonl", "$/table.tsv"}},
};

static const struct {
    const char *name, *content;
} files[] = {
    {"table.tsv", "time\turl\tsize\n1\thttp://h/a\t5\n2\thttp://h/b\t7\n3\thttp://h/a\t5\n"
                  "4\thttp://h/c\t9\n5\thttp://h/b\t7\n"},
    {"urls.txt", "http://h/a\nhttp://h/b\nhttp://h/a\nhttp://h/c\n"},
    {"sizes", "http://h/a\t5\nhttp://h/b\t7\n"},
    {"d3.min.js", "/* of the report's page */"},
    {"plot.umd.min.js", "/* of the report's page */"},
};

static const char *const outputs[] = {"log",     "page.html",      "out.tsv",
                                      "History", "out.bin",        "log.jsonl",
                                      "page",    "pages/0001-h_a", "pages/0002-h_b"};
static char folder[64];
static struct served served = {.folder = folder};
static struct served_http served_http = {.folder = folder};

static void
path_of(char *path, size_t size, const char *name)
{
    snprintf(path, size, "%s/%s", folder, name);
}

void
commands_set_up(void)
{
    strcpy(folder, "/tmp/sunproxy-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    setenv("SUNPROXY_PLOT_DIR", folder, 1);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char path[128];
        FILE *file;

        path_of(path, sizeof(path), files[i].name);
        file = fopen(path, "w");
        ck_assert_ptr_nonnull(file);
        ck_assert_int_ge(fputs(files[i].content, file), 0);
        ck_assert_int_eq(fclose(file), 0);
    }
    served_start(&served);
    served_http_start(&served_http);
}

void
commands_tear_down(void)
{
    char path[128];

    served_stop(&served);
    served_http_stop(&served_http);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        path_of(path, sizeof(path), files[i].name);
        unlink(path);
    }
    for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
        path_of(path, sizeof(path), outputs[i]);
        unlink(path);
    }
    path_of(path, sizeof(path), "pages");
    rmdir(path);
    ck_assert_msg(rmdir(folder) == 0, "a temporary file was left behind");
}

unsigned
commands_count(void)
{
    return sizeof(rows) / sizeof(rows[0]);
}

const char *
commands_text(unsigned row)
{
    static char text[256];

    snprintf(text, sizeof(text), "%s", rows[row].command->name);
    for (unsigned i = 0; rows[row].words[i]; i++) {
        size_t len = strlen(text);

        snprintf(text + len, sizeof(text) - len, " %s", rows[row].words[i]);
    }
    return text;
}

int
commands_run(unsigned row)
{
    return in_process_run(rows[row].command, rows[row].words, folder, NULL);
}
