/*
 * sunproxy policies: what there is to choose from.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cli/output.h"
#include "base/json.h"
#include "base/wrap.h"
#include "policies/policy.h"
#include "study/commands.h"

#define NONE_SUMMARY "no cache at all"

static const struct option_row rows[] = {
    {"json", 0, NULL, option_flag, 0, 0, 0, NULL, "print an array of JSON objects"},
    {0},
};

static const struct option_group own = {.rows = rows};

/* ---- for people ------------------------------------------------------------------------------ */

/* A text behind a label. */
static void
print_wrapped(const char *label, const char *text)
{
    wrap_print(stdout, text, printf("  %-8s", label), 12);
}

static const char *
format_value(const struct policy_param *param, double value, char *text, size_t size)
{
    if (param->words)
        snprintf(text, size, "%s", param->words[(size_t)value]);
    else
        snprintf(text, size, "%.10g", value);
    return text;
}

static void
print_param(const struct policy_param *param)
{
    char start[64], low[64], high[64], text[512];
    int len;

    format_value(param, param->start, start, sizeof(start));
    if (param->words) {
        len = snprintf(text, sizeof(text), "%s (", param->meaning);
        for (size_t i = 0; param->words[i] && len > 0 && (size_t)len < sizeof(text); i++)
            len += snprintf(text + len, sizeof(text) - (size_t)len, "%s%s", i ? ", " : "",
                            param->words[i]);
        if (len > 0 && (size_t)len < sizeof(text))
            snprintf(text + len, sizeof(text) - (size_t)len, "; default %s)", start);
    } else {
        snprintf(text, sizeof(text), "%s (%sfrom %s to %s, default %s)", param->meaning,
                 param->whole ? "whole, " : "", format_value(param, param->low, low, sizeof(low)),
                 format_value(param, param->high, high, sizeof(high)), start);
    }
    print_wrapped(param->name, text);
}

static void
print_aliases(const struct policy_ops *ops)
{
    char text[256] = "";
    size_t len = 0;

    for (size_t i = 0; ops->aliases && ops->aliases[i] && len < sizeof(text); i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i ? ", " : "",
                                ops->aliases[i]);
    if (len)
        print_wrapped("known as", text);
}

static void
print_policy(const struct policy_ops *ops)
{
    printf("%s: %s\n\n", ops->name, ops->summary);
    print_aliases(ops);
    if (ops->sizes)
        print_wrapped("sizes", ops->sizes);
    if (ops->cost)
        print_wrapped("cost", ops->cost);
    if (ops->needs_future)
        print_wrapped("runs in", "simulations only: it needs the future");
    if (ops->draws)
        print_wrapped("random", "it draws random numbers; studies run it with several seeds");
    print_wrapped("source", ops->source);
    if (policy_param_count(ops) == 0)
        return;
    printf("\nparameters, as in --policy %s:%s=...\n", ops->name, ops->params[0].name);
    for (size_t i = 0; i < policy_param_count(ops); i++)
        print_param(&ops->params[i]);
}

static void
print_list(void)
{
    for (size_t i = 0; policies[i]; i++)
        printf("%-12s %s%s\n", policies[i]->name, policies[i]->summary,
               policies[i]->needs_future ? " (simulations only)" : "");
    printf("%-12s " NONE_SUMMARY "\n", "none");
}

/* ---- for programs ---------------------------------------------------------------------------- */

static void
json_text(struct json *j, const char *name, const char *text)
{
    if (text)
        json_cstring(j, name, text);
    else
        json_null(j, name);
}

static void
json_param(struct json *j, const struct policy_param *param)
{
    json_open_object(j, NULL);
    json_cstring(j, "name", param->name);
    json_cstring(j, "meaning", param->meaning);
    if (param->words) {
        json_cstring(j, "default", param->words[(size_t)param->start]);
        json_open_array(j, "words");
        for (size_t i = 0; param->words[i]; i++)
            json_cstring(j, NULL, param->words[i]);
        json_close_array(j);
    } else {
        json_double(j, "default", param->start, 9);
        json_double(j, "low", param->low, 9);
        json_double(j, "high", param->high, 9);
        json_bool(j, "whole", param->whole);
    }
    json_close_object(j);
}

/* NULL: none, which is no cache. */
static void
json_policy(struct json *j, const struct policy_ops *ops)
{
    json_open_object(j, NULL);
    json_cstring(j, "name", ops ? ops->name : "none");
    json_open_array(j, "aliases");
    for (size_t i = 0; ops && ops->aliases && ops->aliases[i]; i++)
        json_cstring(j, NULL, ops->aliases[i]);
    json_close_array(j);
    json_cstring(j, "summary", ops ? ops->summary : NONE_SUMMARY);
    json_text(j, "sizes", ops ? ops->sizes : NULL);
    json_text(j, "cost", ops ? ops->cost : NULL);
    json_text(j, "source", ops ? ops->source : NULL);
    json_bool(j, "needs_future", ops && ops->needs_future);
    json_bool(j, "draws", ops && ops->draws);
    json_bool(j, "usual", ops && ops->usual);
    json_open_array(j, "parameters");
    for (size_t i = 0; ops && i < policy_param_count(ops); i++)
        json_param(j, &ops->params[i]);
    json_close_array(j);
    json_close_object(j);
}

/* One, where NULL is none; or with `all` every one there is, none last. */
static int
print_json(const struct policy_ops *one, bool all)
{
    struct buf out;
    struct json j;

    buf_init(&out, 1u << 20);
    json_init(&j, &out);
    json_open_array(&j, NULL);
    for (size_t i = 0; all && policies[i]; i++)
        json_policy(&j, policies[i]);
    json_policy(&j, all ? NULL : one);
    json_close_array(&j);
    return output_json(&out);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int
run_policies(int argc, char **argv)
{
    struct policy_spec spec = {0};
    bool json = false;
    void *const into[] = {&json};
    char why[256];
    int status = command_read(&command_policies, into, argc, argv);

    if (status != COMMAND_GO_ON)
        return status;
    if (optind < argc && !policy_parse(argv[optind], &spec, why, sizeof(why))) {
        output_complain("%s", why);
        return command_usage(&command_policies);
    }
    if (json)
        return print_json(spec.ops, optind == argc);
    if (spec.ops)
        print_policy(spec.ops);
    else if (optind < argc)
        puts("none: " NONE_SUMMARY);
    else
        print_list();
    return EX_OK;
}

const struct command command_policies = {
    .name = "policies",
    .summary = "list the replacement policies",
    .about = "usage: sunproxy policies [--json] [NAME]\n\n"
             "Lists the replacement policies, or describes one: which page it evicts first,\n"
             "other names, how it treats sizes, the cost of a request, its parameters and its\n"
             "source.\n",
    .options = {&own},
    .after = "Exit status: 0 done; 64 wrong usage; 74 output could not be written.\n",
    .argument = "policy",
    .most = 1,
    .run = run_policies,
};
