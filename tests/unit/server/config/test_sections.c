/* Sections of the configuration file, and files that it includes. */
#define UNIT_STARTS_NO_THREAD

#include "server/config/options.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static char folder[] = "/tmp/sunproxy-sections-XXXXXX";
static char path[64], said[65536];
static struct options options;

static void
write_file(const char *name, const char *text)
{
    char whole[128];
    FILE *file;

    snprintf(whole, sizeof(whole), "%s/%s", folder, name);
    file = fopen(whole, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

/* Reads a file with this text; `said` are the errors, with the folder left out. */
static int
read_text(const char *text)
{
    static char program[] = "sunproxyd", config[] = "--config";
    char *argv[] = {program, config, path};
    struct buf why;
    char *out = said;
    int status;

    write_file("main.conf", text);
    options_free(&options);
    ck_assert(options_init(&options));
    buf_init(&why, 65536);
    status = options_parse(&options, 3, argv, &why);
    for (const char *at = buf_str(&why); *at; at++) {
        if (strncmp(at, folder, strlen(folder)) == 0)
            at += strlen(folder) + 1;
        *out++ = *at;
    }
    *out = '\0';
    buf_free(&why);
    return status;
}

static void
set_up(void)
{
    char whole[64];

    strcpy(strrchr(folder, '-'), "-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/main.conf", folder);
    snprintf(whole, sizeof(whole), "%s/conf.d", folder);
    ck_assert_int_eq(mkdir(whole, 0700), 0);
    options = (struct options){0};
}

static void
tear_down(void)
{
    char command[128];

    options_free(&options);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static const struct {
    const char *text;
    const char *rows[4];
} rows[] = {
    {"[row]\norigin = http://a", {"/=http://a"}},
    {"[row] # a comment\nhost=h\npath=/p/\norigin=http://a\norigin=http://b\nsend-host=client\n",
     {"h/p/=http://a,http://b host=client"}},
    {"[ row ]\n  origin = two\n[origin two]\nmember = http://a\nmember = http://b:81/x\n",
     {"/=http://a,http://b:81/x"}},
    {"origin = /1=http://a\n[row]\npath = /2\norigin = http://b\norigin = http://c\n[origin b]\n"
     "member = http://b\n[row]\norigin = b\npath = /3\n",
     {"/1=http://a", "/2=http://b,http://c", "/3=http://b"}},
    {"[origin unused]\nmember = http://a\n", {NULL}},
    {"[origin o]\nmember = http://a max=9\nprobe = /up?x\nprobe-interval = 2s\nprobe-fall = 1\n"
     "queue = 3s\nslow = 1s\nerrors = 4\n[row]\norigin = o\n",
     {"/=http://a|max=9 probe=/up?x probe-interval=2s probe-fall=1 queue=3s slow=1s errors=4"}},
    {"[origin o]\nmember = http://a weight=3\nmember = http://b  backup weight=2\nbalance = least\n"
     "[row]\norigin = o\nsend-host = x\n[row]\npath = /h\norigin = o\nbalance = hash\n",
     {"/=http://a|weight=3,http://b|backup|weight=2 host=x balance=least",
      "/h=http://a|weight=3,http://b|backup|weight=2 balance=hash"}},
};

START_TEST(rows_are_those_of_the_option)
{
    const struct option_list *list = &options.origin;
    size_t count = 0;

    ck_assert_msg(read_text(rows[_i].text) == EX_OK, "%s", said);
    while (rows[_i].rows[count])
        count++;
    ck_assert_uint_eq(list->count, count);
    for (size_t i = 0; i < count; i++)
        ck_assert_str_eq(list->items[i], rows[_i].rows[i]);
}
END_TEST

START_TEST(listeners_are_those_of_the_options)
{
    ck_assert_msg(read_text("[listener]\naddress = 127.0.0.1:80\n[listener]\naddress=unix:/x\n"
                            "protocol = http-proxied\n[listener]\nprotocol = metrics\n"
                            "address = [::1]:9\n") == EX_OK,
                  "%s", said);
    ck_assert_uint_eq(options.http.count, 1);
    ck_assert_str_eq(options.http.items[0], "127.0.0.1:80");
    ck_assert_str_eq(options.http_proxied.items[0], "unix:/x");
    ck_assert_str_eq(options.metrics.items[0], "[::1]:9");
}
END_TEST

static const struct {
    const char *text, *said;
} errors[] = {
    {"[row]\n", "main.conf:1: [row] has no origin"},
    {"\n[listener]\nprotocol = http\n", "main.conf:2: [listener] has no address"},
    {"[rwo]\norigin = http://a\nx = y\n", "main.conf:1: [rwo] is no section; did you mean row?"},
    {"[row x]\norigin = http://a\n", "main.conf:1: [row] has no name"},
    {"[origin]\nmember = http://a\n", "main.conf:1: [origin] has a name: [origin NAME]"},
    {"[row\norigin = http://a\n", "main.conf:1: \"[row\" is not of the form [SECTION]"},
    {"[row] x\norigin = http://a\n", "main.conf:1: \"[row] x\" is not of the form [SECTION]"},
    {"[row]\norigin = http://a\nhots = x\n",
     "main.conf:3: hots is no key of [row]; did you mean host?"},
    {"[row]\norigin = http://a\nmax-age = 5s\n",
     "main.conf:3: max-age is no key of [row]; options stand before the first section"},
    {"[row]\norigin = http://a\nhost = x\nhost = y\n",
     "main.conf:4: host is there already in this section"},
    {"[row]\norigin = http://a host=x\n",
     "main.conf:2: origin: \"http://a host=x\" is not one word\n"
     "main.conf:1: [row] has no origin"},
    {"[row]\norigin =\n",
     "main.conf:2: origin: \"\" is not one word\nmain.conf:1: [row] has no origin"},
    {"[row]\norigin\n", "main.conf:2: \"origin\" is not of the form key = value\n"
                        "main.conf:1: [row] has no origin"},
    {"[row]\norigin = bakend\n[origin backend]\nmember = http://a\n",
     "main.conf:2: origin: \"bakend\" is neither a URL nor the name of an [origin]; did you mean "
     "backend?"},
    {"[origin a]\nmember = http://a\n[origin a]\nmember = http://b\n",
     "main.conf:3: [origin a]: an earlier section has that name"},
    {"[origin a]\n[row]\norigin = a\n", "main.conf:1: [origin] has no member"},
    {"[row]\nhost = www.exa\npath = ple/x\norigin = http://a\n",
     "main.conf:3: path: \"ple/x\" does not begin with a slash, or has a \"=\""},
    {"[row]\nhost = a/b\norigin = http://a\n",
     "main.conf:2: host: \"a/b\" is not the name of a host"},
    {"[row]\norigin = o\norigin = http://b\n[origin o]\nmember = http://a\n",
     "main.conf:2: origin: a row that names an [origin] has no other"},
    {"[row]\norigin = o\n[origin o]\nmember = junk\n",
     "main.conf:3: origin: \"junk\": invalid URL: its scheme is neither http nor https"},
    {"[origin unused]\nmember = http://a\nbalance = best\n",
     "main.conf:1: origin: \"balance=best\" is not balance=first, balance=round-robin, "
     "balance=least or balance=hash"},
    {"[origin unused]\nmember = http://a weight=0\n",
     "main.conf:1: origin: \"weight=0\" is not backup, weight=N up to 1000, or max=N up to 65536"},
    {"[listener]\naddress = :80\nprotocol = htpp\n",
     "main.conf:3: protocol: \"htpp\" is not one of http, http-proxied and metrics; did you mean "
     "http?"},
    {"[row]\ninclude = x\norigin = http://a\n", "main.conf:2: include is no key of [row]"},
    {"include = none.conf\n", "main.conf:1: none.conf: No such file or directory"},
    {"max-age = 5s\nseed = 3\nmax-age = 6s\n",
     "main.conf:3: max-age is there already, at main.conf:1"},
    {"tag-field = A\ntag-field = B\ntag-field = A\n",
     "main.conf:3: tag-field is there already, at main.conf:1"},
    {"max-age = 5s\ninclude = main.conf\n",
     "main.conf:2: include: main.conf includes itself"},
};

START_TEST(errors_are_explained_with_their_lines)
{
    ck_assert_int_eq(read_text(errors[_i].text), EX_CONFIG);
    ck_assert_str_eq(said, errors[_i].said);
}
END_TEST

START_TEST(files_are_included_in_order)
{
    write_file("conf.d/20-b.conf", "[row]\npath = /b\norigin = http://b\n");
    write_file("conf.d/10-a.conf", "max-age = 7s\n[row]\npath = /a\norigin = shared\n");
    write_file("conf.d/README", "not = read\n");
    write_file("conf.d/.hidden.conf", "not = read\n");
    write_file("one.conf", "[origin shared]\nmember = http://s\n");
    ck_assert_msg(read_text("max-age = 5s\ninclude = conf.d\ninclude = one.conf\n"
                            "error-lifetime = 9s\n") == EX_OK,
                  "%s", said);
    ck_assert_int_eq(options.max_age, 7000000);
    ck_assert_int_eq(options.error_lifetime, 9000000);
    ck_assert_uint_eq(options.origin.count, 2);
    ck_assert_str_eq(options.origin.items[0], "/a=http://s");
    ck_assert_str_eq(options.origin.items[1], "/b=http://b");
    write_file("conf.d/30-c.conf", "max-ag = 7s\n");
    ck_assert_int_eq(read_text("include = conf.d\ninclude = one.conf\n"), EX_CONFIG);
    ck_assert_str_eq(said, "conf.d/30-c.conf:1: unknown key 'max-ag'; did you mean max-age?");
}
END_TEST

/* `_i`: each file includes the next one, or reads the next one ten times. */
START_TEST(files_that_are_too_many_are_refused)
{
    char name[32], text[512], line[32];

    for (int i = 0; i < 9; i++) {
        *text = '\0';
        snprintf(line, sizeof(line), "include = %d.conf\n", i + 1);
        for (int n = 0; n < (_i ? 10 : 1) && i < (_i ? 4 : 8); n++)
            strcat(text, line);
        snprintf(name, sizeof(name), "%d.conf", i);
        write_file(name, text);
    }
    ck_assert_int_eq(read_text("include = 0.conf\n"), EX_CONFIG);
    ck_assert_str_eq(said, _i ? "3.conf:9: include: a configuration has at most 1,000 files"
                              : "7.conf:1: include: files include each other to a depth of 8");
    ck_assert_int_eq(read_text(_i ? "include = 2.conf\n" : "include = 1.conf\n"), EX_OK);
}
END_TEST

/* Six files whose folder each of them includes. */
START_TEST(a_folder_whose_files_include_it)
{
    char name[32];

    for (int i = 0; i < 6; i++) {
        snprintf(name, sizeof(name), "conf.d/%d.conf", i);
        write_file(name, "include = conf.d\n");
    }
    ck_assert_int_eq(read_text("include = conf.d\n"), EX_CONFIG);
    ck_assert_ptr_nonnull(strstr(said, "conf.d/0.conf:1: include: conf.d/0.conf includes itself\n"));
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/sections");
    TCase *tests = tcase_create("sections");

    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, rows_are_those_of_the_option, 0, sizeof(rows) / sizeof(rows[0]));
    tcase_add_test(tests, listeners_are_those_of_the_options);
    tcase_add_loop_test(tests, errors_are_explained_with_their_lines, 0,
                        sizeof(errors) / sizeof(errors[0]));
    tcase_add_test(tests, files_are_included_in_order);
    tcase_add_loop_test(tests, files_that_are_too_many_are_refused, 0, 2);
    tcase_add_test(tests, a_folder_whose_files_include_it);
    suite_add_tcase(suite, tests);
    return suite;
}
