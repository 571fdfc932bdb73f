/*
 * Tables: which column is read as what, by the header or by --columns, and what is reported of a
 * guess; names of formats, and what is said of a file of none.
 */
#include "tests/unit/trace/loading.h"
#include "trace/formats/columns.h"
#include "trace/formats/formats.h"
#include "trace/formats/similar.h"

/* Is there a remark with this text? */
static bool
has_remark(const struct trace *t, const char *text)
{
    for (size_t i = 0; i < t->counts.remark_count; i++) {
        if (strstr(t->counts.remarks[i], text))
            return true;
    }
    return false;
}

/* A log as a table: many clients, few URLs. */
static const char client_log[] =
    "host\tlogname\ttime\tmethod\turl\tresponse\tbytes\treferer\tuseragent\n"
    "***.novo.dk\t-\t805465029\tGET\t/ksc.html\t200\t7067\t-\t-\n"
    "a.example.net\t-\t805465031\tGET\t/ksc.html\t200\t7067\t-\t-\n"
    "b.example.net\t-\t805465031\tGET\t/ksc.html\t304\t0\t-\t-\n"
    "b.example.net\t-\t805465032\tGET\t/missing.html\t404\t-\t-\t-\n"
    "192.0.2.7\t-\t805465032\tHEAD\t/ksc.html\t200\t0\t-\t-\n";

START_TEST(a_client_is_no_site)
{
    struct trace *t = loading_text(client_log, TRACE_OPTIONS_DEFAULT);

    ck_assert_str_eq(t->format, "table");
    ck_assert_str_eq(loading_picture(t), "http://localhost/ksc.html@8.05465e+08=7067/200 "
                                         "http://localhost/ksc.html@8.05465e+08=7067/200 "
                                         "http://localhost/ksc.html@8.05465e+08=7067/304");
    ck_assert_uint_eq(t->counts.skipped_status, 1);
    ck_assert_uint_eq(t->counts.skipped_method, 1);
    ck_assert(has_remark(t, "column 1 ('host') is taken for the client"));
    ck_assert(has_remark(t, "column 6 ('response') is taken for the status"));
    ck_assert(has_remark(t, "--columns -,-,time,method,url,status,size,-,-"));
    trace_free(t);
}
END_TEST

START_TEST(the_list_overrides_the_header)
{
    struct trace_options options = loading_all();
    struct trace *t;

    options.columns = "site,-,time,method,url,-,size";
    t = loading_text(client_log, options);
    ck_assert_uint_eq(t->request_count, 5);
    ck_assert_uint_eq(t->url_count, 5);
    ck_assert_ptr_null(t->statuses);
    ck_assert_uint_eq(t->counts.skipped_bad, 0);
    ck_assert_uint_eq(t->counts.remark_count, 0);
    trace_free(t);
}
END_TEST

/* Headers, the URL of a request for "/x" of the site or client s.test, and a remark. */
static const struct {
    const char *text;
    const char *url;
    const char *remark; /* NULL: there is none at all */
} hosts[] = {
    {"time,host,url\n1,s.test,/x\n", "http://s.test/x@1",
     "column 2 ('host') is taken for the site"},
    {"url,host\n/x,s.test\n", "http://s.test/x", "column 2 ('host') is taken for the site"},
    {"host,time,url\ns.test,1,/x\n", "http://localhost/x@1",
     "column 1 ('host') is taken for the client"},
    {"host,client_ip,url\ns.test,192.0.2.1,/x\n", "http://s.test/x", "taken for the site"},
    {"ident,host,url\n-,s.test,/x\n", "http://localhost/x", "taken for the client"},
    {"host,vhost,url\nc.test,s.test,/x\n", "http://s.test/x", "taken for the client"},
    {"time,site,url\n1,s.test,/x\n", "http://s.test/x@1", NULL},
    {"url,length,bytes\n/x,5,7\n", "http://localhost/x=5",
     "column 3 ('bytes') is ignored: column 2"},
    {"url,http_code\n/x,200\n", "http://localhost/x",
     "column 2 ('http_code') is ignored; is it the status?"},
    {"url,elapsed_time\n/x,200\n", "http://localhost/x",
     "('elapsed_time') is ignored; is it the time?"},
    {"time,url,elapsed_time\n1,/x,200\n", "http://localhost/x@1", NULL},
    {"url,colour\n/x,red\n", "http://localhost/x", NULL},
    {"url,size,\n/x,5,\n", "http://localhost/x=5", NULL},
    {"url,size\n/x,5.0\n", "http://localhost/x=5", NULL},
    {"url,size,status\n/x,50.00,200.0\n", "http://localhost/x=50/200", NULL},
    {"time,url\n1700000000,/x\n", "http://localhost/x@1.7e+09", NULL},
    {"time,url\n1700000000000,/x\n", "http://localhost/x@1.7e+09", "taken to be in milliseconds"},
    {"time,url\n1700000000000000,/x\n", "http://localhost/x@1.7e+09", "in microseconds"},
    {"time,url\n1700000000000000000,/x\n", "http://localhost/x@1.7e+09", "in nanoseconds"},
};

START_TEST(hosts_and_doubts)
{
    struct trace *t = loading_text(hosts[_i].text, TRACE_OPTIONS_DEFAULT);

    ck_assert_str_eq(loading_picture(t), hosts[_i].url);
    if (hosts[_i].remark)
        ck_assert_msg(has_remark(t, hosts[_i].remark), "%s", t->counts.remarks[0]);
    else
        ck_assert_msg(t->counts.remark_count == 0, "%s", t->counts.remarks[0]);
    trace_free(t);
}
END_TEST

/* Tables without a header, with each separator; and with a header that is not one of ours. */
static const struct {
    const char *columns, *text, *requests;
    unsigned bad;
} lists[] = {
    {"time,url,size", "1,http://a.test/,10\n2,http://b.test/,20\n",
     "http://a.test/@1=10 http://b.test/@2=20", 0},
    {"time,id,size", "1\t5\t10\n2\t6\t20\n3\tx\t1\n", "5@1=10 6@2=20", 1},
    {"id,size", "5,10.0\n6,10.5\n7,.0\n8,0.\n", "5=10", 3},
    {"id", "a#1\na#2\n", "http://localhost/a%231 http://localhost/a%232", 0},
    {"time,id,size", "1;5;10\n2;6;20\n", "5@1=10 6@2=20", 0},
    {"time,id,size", "1|5|10\n2|6|20\n", "5@1=10 6@2=20", 0},
    {"time,id,size", "1   5 10\n2 6 20\n", "5@1=10 6@2=20", 0},
    {"TIME_MS, URI ,Bytes", "1500,\"http://a.test/,x\",10\n", "http://a.test/,x@1.5=10", 0},
    {"id", "7\n8\n7\n", "7 8 7", 0},
    {"url", "http://a.test/?a,b;c\nhttp://a.test/\n", "http://a.test/?a,b;c http://a.test/", 0},
    {"-,id,,size", "x,5,9,10,more,fields\ny,6,9,20,more,fields\n", "5=10 6=20", 0},
    {"time,url,size", "when,where,what\n1,http://a.test/,10\n", "http://a.test/@1=10", 0},
    {"time,url,size", "time,url,size\n1,http://a.test/,10\n", "http://a.test/@1=10", 0},
    {"id,size", "# made by hand\t\n5\t10\n", "5=10", 0},
    {"id,size", "key,size\nuser:1,10\n", "http://localhost/user:1=10", 0},
    {"time,url,size",
     "1,http://a.test/,10\n2,http://b.test/,20,30\n3,http://c.test/\n4,http://d.test/,1,\n",
     "http://a.test/@1=10 http://d.test/@4=1", 2},
};

START_TEST(lists_of_columns)
{
    struct trace_options options = loading_all();
    struct trace *t;

    options.columns = lists[_i].columns;
    t = loading_text(lists[_i].text, options);
    ck_assert_str_eq(t->format, "table");
    ck_assert_str_eq(loading_picture(t), lists[_i].requests);
    ck_assert_uint_eq(t->counts.skipped_bad, lists[_i].bad);
    trace_free(t);
}
END_TEST

START_TEST(wrong_lists)
{
    static const char *const wrong[][2] = {
        {"time,size", "one of the columns must be url or id"},
        {"time,ulr", "no column is called 'ulr'; did you mean url?"},
        {"url,id,size,bytes", "two columns are called 'size'"},
        {"url,host", "no column is called 'host'"},
        {"", "one of the columns must be url or id"},
    };
    struct trace_options options = TRACE_OPTIONS_DEFAULT;

    scratch_write("table", "1,2,3\n", 6);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        options.columns = wrong[i][0];
        ck_assert_int_eq(loading_refused(scratch_path("table"), options), TRACE_BAD_OPTION);
        ck_assert_msg(strstr(loading_why, wrong[i][1]) != NULL, "%s", loading_why);
    }
    options.columns = "time,id,size,status";
    ck_assert_int_eq(loading_refused(scratch_path("table"), options), TRACE_NOT_A_TRACE);
    ck_assert_msg(strstr(loading_why, "has fewer than the 4 columns") != NULL, "%s", loading_why);
    options.columns = "time,id,size";
    options.format = "squid";
    ck_assert_int_eq(loading_refused(scratch_path("table"), options), TRACE_BAD_OPTION);
    options.format = "csv";
    trace_free(loading_file(scratch_path("table"), options));
}
END_TEST

/* Never read as if the columns were others. */
START_TEST(other_numbers_of_fields)
{
    struct trace *t =
        loading_text("time,url,size\n1,http://a.test/,10\n2,http://b.test/x,y,20\n"
                     "3,http://c.test/\n4,http://d.test/x,y,z,40\n5,http://e.test/,5,,\n",
                     TRACE_OPTIONS_DEFAULT);

    ck_assert_str_eq(loading_picture(t), "http://a.test/@1=10 http://e.test/@5=5");
    ck_assert_uint_eq(t->counts.skipped_bad, 3);
    ck_assert(has_remark(t, "of 3 columns: 2 lines with more fields, 1 with fewer"));
    trace_free(t);
    /* Not one line fits: the sentence says why. */
    scratch_write("shifted", "id,size\nrow1,5,10\nrow2,6,20\n", 29);
    ck_assert_int_eq(loading_refused(scratch_path("shifted"), TRACE_OPTIONS_DEFAULT), TRACE_EMPTY);
    ck_assert_msg(strstr(loading_why, "2 lines with more") != NULL, "%s", loading_why);
}
END_TEST

START_TEST(remarks_have_a_limit)
{
    char text[2048] = "url";
    struct trace *t;

    for (int i = 0; i < 60; i++)
        sprintf(text + strlen(text), ",size%d", i);
    strcat(text, "\n/x");
    for (int i = 0; i < 60; i++)
        strcat(text, ",1");
    t = loading_text(text, TRACE_OPTIONS_DEFAULT);
    ck_assert_uint_eq(t->counts.remark_count, TRACE_REMARKS);
    trace_free(t);
}
END_TEST

/* ---- names of formats ------------------------------------------------------------------------ */

#define COMMON "h - - [01/Jan/1970:00:00:01 +0000] \"GET /a HTTP/1.0\" 200 7\n"
#define NGINX_JSON \
    "{\"msec\":\"1\",\"remote_addr\":\"::1\",\"request\":\"GET /a HTTP/1.0\",\"status\":\"200\"}\n"

START_TEST(aliases)
{
    static const struct {
        const char *name, *text, *format;
    } cases[] = {
        {"apache", COMMON, "access"},
        {"combined", COMMON, "access"},
        {"Common", COMMON, "access"},
        {"nginx", COMMON, "access"},
        {"nginx", NGINX_JSON, "nginx-json"},
        {"NGINX-JSON", NGINX_JSON, "nginx-json"},
        {"traefik", COMMON, "access"},
        {"libcachesim", "5\n6\n", "ids"},
        {"libcachesim", "id,size\n5,1\n", "table"},
        {"txt", "5\n6\n", "ids"},
        {"csv", "id,size\n5,1\n", "table"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct trace_options options = TRACE_OPTIONS_DEFAULT;
        struct trace *t;

        options.format = cases[i].name;
        t = loading_text(cases[i].text, options);
        ck_assert_str_eq(t->format, cases[i].format);
        trace_free(t);
    }
    for (size_t i = 0; trace_aliases[i].name; i++)
        ck_assert(trace_format_exists(trace_aliases[i].name));
    ck_assert(!trace_format_exists("parchment"));
}
END_TEST

/* Each format with a sample resembles itself most, also with other values. */
START_TEST(similar_formats)
{
    static const struct {
        const char *line, *format; /* NULL: none */
    } cases[] = {
        {"2024-05-31T12:30:00Z x 10.0.0.1:99 [31/May/2024:12:30:00.000] fe be/s 1/2/3/4 200 5 - - ---- "
         "0/0/0/0/0 0/0 \"GET /x HTTP/1.1\"",
         "haproxy"},
        {"10.0.0.1 - - [31/May/2024:12:30:00 +0000] GET /x HTTP/1.1 200 5", "access"},
        {"1717158600.1 5 10.0.0.1 TCP_MISS:200 5 GET http://x.test/y - - -", "squid"},
        {"17,http://x.test/y,1024,200", "table"},
        {"1,5,100", "table"},
        {"{\"RequestHost\":\"x\",\"RequestMethod\":\"GET\",\"DownstreamStatus\":\"ok\"}",
         "traefik"},
        {"To whom it may concern", NULL},
        {"", NULL},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct trace_format *f = trace_format_most_similar(span_str(cases[i].line));

        ck_assert_msg((f ? f->name : NULL) == cases[i].format ||
                          (f && cases[i].format && strcmp(f->name, cases[i].format) == 0),
                      "%s: %s", cases[i].line, f ? f->name : "none");
    }
    for (size_t i = 0; trace_formats[i]; i++) {
        if (trace_formats[i]->sample)
            ck_assert_ptr_eq(trace_format_most_similar(span_str(trace_formats[i]->sample)),
                             trace_formats[i]);
    }
}
END_TEST

/* What a sample shows is a line of the format. */
START_TEST(samples_are_read)
{
    for (size_t i = 0; trace_formats[i]; i++) {
        struct trace_options options = loading_all();
        char text[1024];
        struct trace *t;

        if (!trace_formats[i]->sample)
            continue;
        options.format = trace_formats[i]->name;
        snprintf(
            text, sizeof(text), "%s%s\n%s",
            strcmp(options.format, "w3c") == 0
                ? "#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username "
                  "c-ip cs(User-Agent) cs(Referer) sc-status sc-substatus sc-win32-status "
                  "time-taken\n"
                : "",
            trace_formats[i]->sample,
            strcmp(options.format, "table") == 0 ? "1,http://a.test/,5\n" : "");
        t = loading_text(text, options);
        ck_assert_uint_eq(t->request_count, 1);
        ck_assert_uint_eq(t->counts.skipped_bad, 0);
        trace_free(t);
    }
}
END_TEST

START_TEST(unknown_files)
{
    static const char line[] = "{\"time_local\":\"x\",\"request\":\"-\x1b[2J\",\"status\":\"x\"}\n";

    scratch_write("log", line, strlen(line));
    ck_assert_int_eq(loading_refused(scratch_path("log"), TRACE_OPTIONS_DEFAULT),
                     TRACE_NOT_A_TRACE);
    ck_assert_msg(strstr(loading_why, "its first bytes are 7b 22") != NULL, "%s", loading_why);
    scratch_write("log", "\n\nGET /x 200\n", 13);
    ck_assert_int_eq(loading_refused(scratch_path("log"), TRACE_OPTIONS_DEFAULT),
                     TRACE_NOT_A_TRACE);
    ck_assert_msg(strstr(loading_why, "its first line is 'GET /x 200'") != NULL, "%s", loading_why);
    scratch_write("log", "1,5,100\n2,6,200\n", 16);
    ck_assert_int_eq(loading_refused(scratch_path("log"), TRACE_OPTIONS_DEFAULT),
                     TRACE_NOT_A_TRACE);
    ck_assert_msg(strstr(loading_why, "most similar is table (") != NULL, "%s", loading_why);
    ck_assert_msg(strstr(loading_why, "--columns") != NULL, "%s", loading_why);
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("table");
    TCase *tcase = tcase_create("table");

    tcase_add_checked_fixture(tcase, scratch_make, scratch_remove);
    tcase_add_test(tcase, a_client_is_no_site);
    tcase_add_test(tcase, the_list_overrides_the_header);
    tcase_add_loop_test(tcase, hosts_and_doubts, 0, COUNT(hosts));
    tcase_add_loop_test(tcase, lists_of_columns, 0, COUNT(lists));
    tcase_add_test(tcase, wrong_lists);
    tcase_add_test(tcase, other_numbers_of_fields);
    tcase_add_test(tcase, remarks_have_a_limit);
    tcase_add_test(tcase, aliases);
    tcase_add_test(tcase, similar_formats);
    tcase_add_test(tcase, samples_are_read);
    tcase_add_test(tcase, unknown_files);
    suite_add_tcase(suite, tcase);
    return suite;
}
