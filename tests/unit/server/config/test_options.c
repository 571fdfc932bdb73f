#define UNIT_STARTS_NO_THREAD

#include "fetch/fetch.h"
#include "server/config/options.h"

#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

#include "tests/unit/unit.h"

/* Parses a command line of up to 7 words behind the program's name. */
static int
parse(struct options *options, struct buf *why, char **words)
{
    char program[] = "sunproxyd";
    char *argv[9] = {program};
    int argc = 1;

    while (words[argc - 1]) {
        argv[argc] = words[argc - 1];
        argc++;
    }
    buf_init(why, 4096);
    ck_assert(options_init(options));
    return options_parse(options, argc, argv, why);
}

#define PARSE(options, why, ...) parse(options, why, (char *[]){__VA_ARGS__})

static void
done(struct options *options, struct buf *why)
{
    options_free(options);
    buf_free(why);
}

/* A file with this text; its name is static memory. */
static char *
config_file(const char *text)
{
    static char path[64];
    FILE *file;

    snprintf(path, sizeof(path), "/tmp/sunproxy-test-%ld.conf", (long)getpid());
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
    return path;
}

START_TEST(defaults_are_those_that_help_names)
{
    struct options options;
    struct buf why;

    ck_assert_int_eq(PARSE(&options, &why, NULL), EX_OK);
    ck_assert_str_eq(options.policy, "lru");
    ck_assert_uint_eq(options.capacity_bytes, 256u << 20);
    ck_assert_uint_eq(options.capacity_urls, 0);
    ck_assert_int_eq(options.idle_timeout, 300000000);
    ck_assert_uint_eq(options.socket_mode, 0666);
    ck_assert_uint_eq(options.show_victims, VICTIMS_ADMIN);
    ck_assert_uint_eq(options.max_redirects, 10);
    ck_assert_int_eq(strncmp(options.user_agent, "sunproxy/", 9), 0);
    ck_assert_ptr_null(options.socket);
    done(&options, &why);
}
END_TEST

/* fetch_config_default() and the rows say the same. */
START_TEST(fetch_defaults_agree)
{
    struct fetch_config fetch;
    struct options options;
    struct buf why;

    fetch_config_default(&fetch);
    ck_assert_int_eq(PARSE(&options, &why, NULL), EX_OK);
    ck_assert_uint_eq(options.max_fetches, fetch.max_active);
    ck_assert_uint_eq(options.max_fetches_waiting, fetch.max_waiting);
    ck_assert_uint_eq(options.max_fetches_per_client, fetch.max_active_per_client);
    ck_assert_uint_eq(options.max_fetches_per_origin, fetch.max_active_per_origin);
    ck_assert_uint_eq(options.max_idle_per_origin, fetch.max_idle_per_origin);
    ck_assert_uint_eq(options.max_fetches_queued, fetch.max_queued);
    ck_assert_uint_eq(options.resolver_threads, fetch.resolver_threads);
    ck_assert_uint_eq(options.max_page, 0); /* it follows the capacity */
    ck_assert_int_eq(options.resolve_timeout, fetch.resolve_timeout_us);
    ck_assert_int_eq(options.connect_timeout, fetch.connect_timeout_us);
    ck_assert_int_eq(options.first_byte_timeout, fetch.first_byte_timeout_us);
    ck_assert_int_eq(options.stall_timeout, fetch.stall_timeout_us);
    ck_assert_int_eq(options.fetch_timeout, fetch.total_timeout_us);
    ck_assert_int_eq(options.dns_ttl, fetch.dns_ttl_us);
    done(&options, &why);
}
END_TEST

START_TEST(fetches_per_client_follow_those_in_all)
{
    struct options options;
    struct buf why;

    ck_assert_int_eq(PARSE(&options, &why, "--max-fetches", "400", NULL), EX_OK);
    ck_assert_uint_eq(options.max_fetches_per_client, 25);
    done(&options, &why);
    ck_assert_int_eq(PARSE(&options, &why, "--max-fetches", "10000", NULL), EX_OK);
    ck_assert_uint_eq(options.max_fetches_per_client, 625);
    done(&options, &why);
    ck_assert_int_eq(PARSE(&options, &why, "--max-fetches", "65537", NULL), EX_USAGE);
    done(&options, &why);
    ck_assert_int_eq(PARSE(&options, &why, "--max-fetches", "2", NULL), EX_OK);
    ck_assert_uint_eq(options.max_fetches_per_client, 4);
    done(&options, &why);
    ck_assert_int_eq(PARSE(&options, &why, "--max-fetches-per-client", "0", NULL), EX_OK);
    ck_assert_uint_eq(options.max_fetches_per_client, 0);
    done(&options, &why);
}
END_TEST

START_TEST(a_capacity_in_urls_alone_does_not_bound_bytes)
{
    struct options options;
    struct buf why;

    ck_assert_int_eq(PARSE(&options, &why, "-n", "7", NULL), EX_OK);
    ck_assert_uint_eq(options.capacity_urls, 7);
    ck_assert_uint_eq(options.capacity_bytes, 0);
    done(&options, &why);
}
END_TEST

START_TEST(the_command_line_beats_the_file_and_lists_add_up)
{
    char *path = config_file("# a comment\n\n  port = 4000 \npolicy=FIFO\nallow-net = 10.0.0.0/8\n"
                             "no-rpcbind = yes\nidle-timeout = 2m\ncapacity-bytes = 1.5G\n");
    struct options options;
    struct buf why;

    ck_assert_int_eq(
        PARSE(&options, &why, "--port", "5000", "-c", path, "--allow-net", "::1", NULL), EX_OK);
    ck_assert_uint_eq(options.port, 5000);
    ck_assert_str_eq(options.policy, "FIFO");
    ck_assert(options.no_rpcbind);
    ck_assert_int_eq(options.idle_timeout, 120000000);
    ck_assert_uint_eq(options.capacity_bytes, 3u << 29);
    ck_assert_uint_eq(options.allow_net.count, 2);
    ck_assert_str_eq(options.allow_net.items[0], "10.0.0.0/8");
    ck_assert_str_eq(options.allow_net.items[1], "::1");
    unlink(path);
    done(&options, &why);
}
END_TEST

START_TEST(a_wrong_file_is_reported_with_its_line)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"port = 1\nprot = 2\n", ":2: unknown key 'prot'; did you mean port?"},
        {"port = 65536\n", ":1: port: \"65536\" is not a number from 0 to 65535"},
        {"\n\nport\n", ":3: \"port\" is not of the form key = value"},
        {"log-level = loud\n", ":1: log-level: \"loud\" is not one of error|warning|info|debug"},
        {"log-level = inof\n", "error|warning|info|debug; did you mean info?"},
        {"capacity_urls = 7\n", ":1: unknown key 'capacity_urls'; did you mean capacity-urls?"},
        {"Port = 7\n", ":1: unknown key 'Port'; did you mean port?"},
        {"chekc-config = yes\n", ":1: unknown key 'chekc-config'; see"},
        {"quite-another = 7\n", ":1: unknown key 'quite-another'; see sunproxyd --default-config"},
        {"no-rpcbind = maybe\n", ":1: no-rpcbind: \"maybe\" is not yes or no"},
        {"idle-timeout = soon\n", "is not a time such as"},
        {"stop-timeout = 366d\n", "of at most 365d"},
        {"stop-timeout = 106751991d\n", "of at most 365d"},
        {"max-page = large\n", "max-page: \"large\" is not a size such as 64M"},
        {"store-size = 2M\n",
         "store-size: \"2M\" is not a size such as 64M, of at least 16777216 bytes and of at most "
         "17592186044416 bytes"},
        {"store-size = 17T\n",
         "store-size: \"17T\" is not a size such as 64M, of at least 16777216 bytes and of at most "
         "17592186044416 bytes"},
        {"socket-mode = 0888\n", "is not an octal number"},
        {"socket-mode = u+r\n", "socket-mode: \"u+r\" is not an octal number"},
        {"socket-mode = 77777\n", "is not an octal number"},
        {"socket-mode = 7777777777777777777777777\n", "is not an octal number"},
        {"seed = x\n", "seed: \"x\" is not a whole number"},
        {"resolve-timeout = 0s\n", "is not a time such as"},
        {"config = other\n", "can only be given on the command line"},
        {"seed = 3\npolicy = lur\n", ":2: policy: there is no policy \"lur\"; did you mean lru?"},
        {"policy = opt\n", "which only a simulation does"},
        {"user-agent = \"x\n", ":1: user-agent: a value in double quotes ends with the second one"},
        {"user-agent = \"x\" y\n", ":1: user-agent: a value in double quotes ends"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *path = config_file(cases[i].text);
        struct options options;
        struct buf why;

        ck_assert_int_eq(PARSE(&options, &why, "--config", path, NULL), EX_CONFIG);
        ck_assert_msg(strstr(buf_str(&why), cases[i].message), "%s", buf_str(&why));
        ck_assert_msg(strncmp(buf_str(&why), path, strlen(path)) == 0, "%s", buf_str(&why));
        unlink(path);
        done(&options, &why);
    }
}
END_TEST

/* In a file and on the command line. */
START_TEST(every_error_is_reported)
{
    char *path = config_file("port = x\nseed = 3\nnonsense = 2\n\nshards = y\n"), lines[512];
    struct options options;
    struct buf why;

    ck_assert_int_eq(
        PARSE(&options, &why, "-c", path, "--port", "z", "--policy", "lfu", "stray", NULL),
        EX_CONFIG);
    snprintf(lines, sizeof(lines),
             "%s:1: port: \"x\" is not a number from 0 to 65535\n"
             "%s:3: unknown key 'nonsense'; see sunproxyd --default-config\n"
             "%s:5: shards: \"y\" is not a number from 1 to 64 or auto\n"
             "--port: \"z\" is not a number from 0 to 65535\n"
             "\"stray\" is not an option",
             path, path, path);
    ck_assert_str_eq(buf_str(&why), lines);
    ck_assert_uint_eq(options.seed, 3);
    ck_assert_str_eq(options.policy, "lfu");
    unlink(path);
    done(&options, &why);
}
END_TEST

START_TEST(comments_and_quotes_in_a_file)
{
    static const struct {
        const char *line, *value, *printed;
    } rows[] = {
        {"user-agent = a b", "a b", "a b"},
        {"user-agent = a # b", "a", "a"},
        {"user-agent = a#b", "a#b", "a#b"},
        {"user-agent =# b", "", ""},
        {"user-agent = \"a # b\" # c", "a # b", "\"a # b\""},
        {"user-agent = \" a \"", " a ", "\" a \""},
        {"user-agent = \"a \"\"b\"\"\"", "a \"b\"", "a \"b\""},
        {"user-agent = \"\"\"b\"\" #\"", "\"b\" #", "\"\"\"b\"\" #\""},
        {"user-agent = a \"b\"", "a \"b\"", "a \"b\""},
        {"user-agent = \"\"", "", ""},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *path = config_file(rows[i].line), *text = NULL, line[64];
        struct options options;
        struct buf why;
        size_t len;
        FILE *out;

        ck_assert_msg(PARSE(&options, &why, "-c", path, NULL) == EX_OK, "%s", buf_str(&why));
        ck_assert_str_eq(options.user_agent, rows[i].value);
        out = open_memstream(&text, &len);
        options_print_config(&options, out);
        fclose(out);
        snprintf(line, sizeof(line), "\nuser-agent = %s\n", rows[i].printed);
        ck_assert_msg(strstr(text, line), "%s", rows[i].line);
        unlink(path);
        free(text);
        done(&options, &why);
    }
}
END_TEST

START_TEST(flags_in_a_file)
{
    static const struct {
        const char *text;
        bool value;
    } cases[] = {
        {"no-rpcbind = yes\n", true},    {"no-rpcbind = True\n", true},
        {"no-rpcbind = on\n", true},     {"no-rpcbind = 1\n", true},
        {"no-rpcbind = no\n", false},    {"no-rpcbind = OFF\n", false},
        {"no-rpcbind = false\n", false}, {"no-rpcbind = 0\n", false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *path = config_file(cases[i].text);
        struct options options;
        struct buf why;

        ck_assert_msg(PARSE(&options, &why, "--config", path, NULL) == EX_OK, "%s", buf_str(&why));
        ck_assert_msg(options.no_rpcbind == cases[i].value, "%s", cases[i].text);
        unlink(path);
        done(&options, &why);
    }
}
END_TEST

START_TEST(a_wrong_command_line_is_a_usage_error)
{
    static char *const cases[][3] = {
        {"--prot", "1", NULL},
        {"--port", NULL, NULL},
        {"--port", "x", NULL},
        {"-x", NULL, NULL},
        {"surplus", NULL, NULL},
        {"--workers", "65", NULL},
        {"--policy", "lru-k:k=0", NULL},
        {"--capacity-bytes", "-1", NULL},
        {"--no-rpcbind=yes", NULL, NULL},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *words[3] = {cases[i][0], cases[i][1], NULL};
        struct options options;
        struct buf why;

        ck_assert_msg(parse(&options, &why, words) == EX_USAGE, "%s", cases[i][0]);
        ck_assert_uint_gt(why.len, 0);
        done(&options, &why);
    }
}
END_TEST

START_TEST(a_file_that_is_not_there)
{
    struct options options;
    struct buf why;

    ck_assert_int_eq(PARSE(&options, &why, "-c", "/nonexistent/sunproxyd.conf", NULL), EX_CONFIG);
    ck_assert_ptr_nonnull(strstr(buf_str(&why), "/nonexistent/sunproxyd.conf: No such file"));
    done(&options, &why);
}
END_TEST

START_TEST(what_is_printed_reads_back_the_same)
{
    char *text = NULL, *again = NULL;
    size_t len, again_len;
    struct options options;
    struct buf why;
    FILE *out;
    char *path;

    ck_assert_int_eq(PARSE(&options, &why, "-P", "rand", "--seed", "7", "--listen", "127.0.0.1",
                           "--idle-timeout", "1500ms", NULL),
                     EX_OK);
    out = open_memstream(&text, &len);
    options_print_config(&options, out);
    fclose(out);
    done(&options, &why);

    path = config_file(text);
    ck_assert_int_eq(PARSE(&options, &why, "-c", path, NULL), EX_OK);
    out = open_memstream(&again, &again_len);
    options_print_config(&options, out);
    fclose(out);
    ck_assert_str_eq(text, again);
    ck_assert_ptr_nonnull(strstr(text, "idle-timeout = 1500000us\n"));
    ck_assert_ptr_nonnull(strstr(text, "listen = 127.0.0.1\n"));
    unlink(path);
    free(text);
    free(again);
    done(&options, &why);
}
END_TEST

START_TEST(help_names_every_option_within_80_columns)
{
    char *text = NULL;
    size_t len, column = 0;
    FILE *out = open_memstream(&text, &len);

    options_print_help(out);
    fclose(out);
    for (size_t i = 0; i < len; i++) {
        column = text[i] == '\n' ? 0 : column + 1;
        ck_assert_uint_lt(column, 80);
    }
    ck_assert_ptr_nonnull(strstr(text, "--max-fetches-per-origin N"));
    ck_assert_ptr_nonnull(strstr(text, "(default: 300s)"));
    free(text);
}
END_TEST

START_TEST(options_that_are_none_are_explained)
{
    static const struct {
        const char *word, *sentence;
    } rows[] = {
        {"--polciy", "unknown option '--polciy'; did you mean --policy?"},
        {"--allow",
         "unknown option '--allow'; options that begin with it: --allow-net, --allow-port"},
        {"--polic=lfu", "unknown option '--polic'; did you mean --policy?"},
        {"--no-rpc", "unknown option '--no-rpc'; did you mean --no-rpcbind?"},
        {"--default-conf=x", "unknown option '--default-conf'; did you mean --default-config?"},
        {"--shard", "unknown option '--shard'; did you mean --shards?"},
        {"--no-rpcbind=yes", "option '--no-rpcbind' takes no value"},
        {"--policy", "option '--policy' needs a value"},
        {"-P", "option '-P' needs a value"},
        {"-Z", "unknown option '-Z'"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char word[32];
        struct options options;
        struct buf why;

        snprintf(word, sizeof(word), "%s", rows[i].word);
        ck_assert_int_eq(PARSE(&options, &why, word, NULL), EX_USAGE);
        ck_assert_str_eq(buf_str(&why), rows[i].sentence);
        done(&options, &why);
    }
}
END_TEST

/* The name as the user wrote it: with dashes on the command line, without in a file. */
START_TEST(a_wrong_value_is_reported_under_the_name_that_was_written)
{
    static char *const cases[][2] = {
        {"--shards", "65"},       {"--seed", "x"},       {"--port", "70000"},
        {"--socket-mode", "9"},   {"--max-page", "big"}, {"--max-waiters", "x"},
        {"--stop-timeout", "x"},  {"--rate-calls", "x"}, {"--freshness", "maybe"},
        {"--max-requests", "no"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char line[64], *path;
        struct options options;
        struct buf of_command, of_file;

        snprintf(line, sizeof(line), "%s = %s\n", cases[i][0] + 2, cases[i][1]);
        ck_assert_int_eq(PARSE(&options, &of_command, cases[i][0], cases[i][1], NULL), EX_USAGE);
        options_free(&options);
        path = config_file(line);
        ck_assert_int_eq(PARSE(&options, &of_file, "-c", path, NULL), EX_CONFIG);
        snprintf(line, sizeof(line), "%s: \"%s\" is not ", cases[i][0], cases[i][1]);
        ck_assert_msg(strncmp(buf_str(&of_command), line, strlen(line)) == 0, "%s",
                      buf_str(&of_command));
        snprintf(line, sizeof(line), ":1: %s", buf_str(&of_command) + 2);
        ck_assert_msg(strstr(buf_str(&of_file), line) != NULL, "%s", buf_str(&of_file));
        unlink(path);
        buf_free(&of_command);
        done(&options, &of_file);
    }
}
END_TEST

/* As `sunproxy set --shards` takes it. */
START_TEST(shards_may_be_automatic)
{
    static const struct {
        char *text, *printed;
        uint64_t value;
    } cases[] = {{"auto", "\nshards = auto\n", 0},
                 {"Auto", "\nshards = auto\n", 0},
                 {"0", "\nshards = auto\n", 0},
                 {"64", "\nshards = 64\n", 64}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct options options;
        struct buf why;
        char *text = NULL;
        size_t len;
        FILE *out = open_memstream(&text, &len);

        ck_assert_int_eq(PARSE(&options, &why, "--shards", cases[i].text, NULL), EX_OK);
        ck_assert_uint_eq(options.shards, cases[i].value);
        options_print_config(&options, out);
        fclose(out);
        ck_assert_ptr_nonnull(strstr(text, cases[i].printed));
        free(text);
        done(&options, &why);
    }
}
END_TEST

/* ---- reading again --------------------------------------------------------------------------- */

static char *
print(const struct options *options)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    options_print_config(options, out);
    fclose(out);
    return text;
}

START_TEST(what_is_printed_is_read_as_the_same)
{
    struct options options, again;
    struct buf why, live, fixed;
    char *text;

    ck_assert_int_eq(PARSE(&options, &why, "--origin=/a=http://a  host=origin", "--rate-calls=5:9",
                           "--max-age=1500ms", "--user-agent=", "--tag-rule=/* -> $1 #",
                           "--socket-mode=0600", "--no-rpcbind", NULL),
                     EX_OK);
    text = print(&options);
    ck_assert(options_init(&again));
    ck_assert_msg(options_parse_text(&again, span_str(text), &why), "%s", buf_str(&why));
    buf_init(&live, 1024);
    buf_init(&fixed, 1024);
    ck_assert(options_compare(&options, &again, &live, &fixed));
    ck_assert_str_eq(buf_str(&live), "");
    ck_assert_str_eq(buf_str(&fixed), "");
    free(text);
    options_free(&again);
    done(&options, &why);
}
END_TEST

START_TEST(a_text_with_errors_is_refused)
{
    struct options options;
    struct buf why;

    buf_init(&why, 1024);
    ck_assert(options_init(&options));
    ck_assert(!options_parse_text(&options, span_str("port = 7\nport = x\nprt = 1\n"), &why));
    ck_assert_ptr_nonnull(strstr(buf_str(&why), "configuration:2: port"));
    ck_assert_ptr_nonnull(strstr(buf_str(&why), "configuration:3: "));
    done(&options, &why);
}
END_TEST

START_TEST(a_value_is_one_line)
{
    struct options options;
    struct buf why;

    ck_assert_int_eq(PARSE(&options, &why, "--user-agent", "a\nport = 7", NULL), EX_USAGE);
    ck_assert_str_eq(buf_str(&why), "--user-agent: the value has a line end");
    done(&options, &why);
}
END_TEST

START_TEST(what_differs_is_named)
{
    static const struct {
        char *word;
        const char *live, *fixed;
    } rows[] = {
        {"--origin=/=http://a", "origin", ""},
        {"--max-age=5s", "max-age", ""},
        {"--policy=lfu", "policy", ""},
        {"--store-cookies", "store-cookies", ""},
        {"--user-agent=x", "user-agent", ""},
        {"--show-victims=all", "show-victims", ""},
        {"--rate-calls=7", "rate-calls", ""},
        {"--workers=7", "", "workers"},
        {"--shards=7", "", "shards"},
        {"--socket-mode=0600", "", "socket-mode"},
        {"--access-log=x", "", "access-log"},
        {"--http=127.0.0.1:1", "http", ""},
        {"--capacity-urls=7", "capacity-urls, capacity-bytes", ""},
        {"--check-config", "", ""},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct options options, plain;
        struct buf why, none, live, fixed;

        ck_assert_int_eq(PARSE(&plain, &none, NULL), EX_OK);
        ck_assert_int_eq(PARSE(&options, &why, rows[i].word, NULL), EX_OK);
        buf_init(&live, 1024);
        buf_init(&fixed, 1024);
        ck_assert(options_compare(&plain, &options, &live, &fixed));
        ck_assert_str_eq(buf_str(&live), rows[i].live);
        ck_assert_str_eq(buf_str(&fixed), rows[i].fixed);
        buf_free(&live);
        buf_free(&fixed);
        done(&options, &why);
        done(&plain, &none);
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/options");
    TCase *tc = tcase_create("options");

    tcase_add_test(tc, defaults_are_those_that_help_names);
    tcase_add_test(tc, options_that_are_none_are_explained);
    tcase_add_test(tc, a_wrong_value_is_reported_under_the_name_that_was_written);
    tcase_add_test(tc, shards_may_be_automatic);
    tcase_add_test(tc, fetch_defaults_agree);
    tcase_add_test(tc, fetches_per_client_follow_those_in_all);
    tcase_add_test(tc, a_capacity_in_urls_alone_does_not_bound_bytes);
    tcase_add_test(tc, the_command_line_beats_the_file_and_lists_add_up);
    tcase_add_test(tc, a_wrong_file_is_reported_with_its_line);
    tcase_add_test(tc, every_error_is_reported);
    tcase_add_test(tc, comments_and_quotes_in_a_file);
    tcase_add_test(tc, flags_in_a_file);
    tcase_add_test(tc, a_wrong_command_line_is_a_usage_error);
    tcase_add_test(tc, a_file_that_is_not_there);
    tcase_add_test(tc, what_is_printed_reads_back_the_same);
    tcase_add_test(tc, help_names_every_option_within_80_columns);
    tcase_add_test(tc, what_is_printed_is_read_as_the_same);
    tcase_add_test(tc, a_text_with_errors_is_refused);
    tcase_add_test(tc, a_value_is_one_line);
    tcase_add_test(tc, what_differs_is_named);
    suite_add_tcase(suite, tc);
    return suite;
}
