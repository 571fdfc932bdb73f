/*
 * Policies with their parameters as people write them.
 */
#include "policies/policy.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

static char why[256];

static struct policy_spec
parsed(const char *text)
{
    struct policy_spec spec;

    ck_assert_msg(policy_parse(text, &spec, why, sizeof(why)), "%s: %s", text, why);
    return spec;
}

static void
refused(const char *text, const char *sentence)
{
    struct policy_spec spec;

    ck_assert(!policy_parse(text, &spec, why, sizeof(why)));
    ck_assert_msg(strstr(why, sentence), "%s", why);
}

START_TEST(names_alone)
{
    char text[POLICY_MAX_TEXT];

    for (size_t i = 0; policies[i]; i++) {
        struct policy_spec spec = parsed(policies[i]->name);
        struct policy_spec defaults = policy_spec_of(policies[i]);

        ck_assert_ptr_eq(spec.ops, policies[i]);
        ck_assert(policy_spec_equal(&spec, &defaults));
        ck_assert_str_eq(policy_format(&spec, text, sizeof(text)), policies[i]->name);
    }
    ck_assert_ptr_eq(parsed("LRU").ops, policy_find("lru"));
    ck_assert_str_eq(
        policy_format(&(struct policy_spec){.ops = parsed("belady").ops}, text, sizeof(text)),
        "opt");
    ck_assert_uint_eq((unsigned)parsed("random:draw=each").params[0], 1);
    ck_assert_ptr_null(parsed("none").ops);
    ck_assert_str_eq(policy_format(&(struct policy_spec){0}, text, sizeof(text)), "none");
}
END_TEST

/* As people write numbers: no 1e+01 for 10. */
START_TEST(values_as_they_were_typed)
{
    static const char *const specs[] = {
        "slru:segments=10",      "lirs:hir=0.0001,history=100", "2q:kout=10",
        "w-tinylfu:sample=1000", "s3-fifo:small=0.25,ghost=0",  "lirs:hir=0.3,history=12.5",
        "gds:cost=packets",
    };
    char text[POLICY_MAX_TEXT];

    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        struct policy_spec spec = parsed(specs[i]);

        ck_assert_str_eq(policy_format(&spec, text, sizeof(text)), specs[i]);
    }
}
END_TEST

START_TEST(a_wrong_name_is_answered_with_the_nearest)
{
    refused("lur", "there is no policy \"lur\"; did you mean lru?");
    refused("fif", "did you mean fifo?");
    refused("belday", "did you mean opt?");
    refused("randm", "did you mean rand?");
    refused("randomly", "did you mean rand?");
    refused("", "the name of a policy is missing");
    refused(":k=3", "the name of a policy is missing");
    refused("xyz", "there is no policy \"xyz\"");
    ck_assert_ptr_null(strstr(why, "did you mean"));
    refused("lru:k=3", "policy lru has no parameters");
    refused("none:k=3", "policy none has no parameters");
    refused("lru:", "policy lru has no parameters");
    refused(
        "lruuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu"
        "uuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu",
        "at most 127 characters");
}
END_TEST

/* One sentence, and a line of `sunproxy policies` and of `sunproxyd --policy help` at 80 columns.
 */
START_TEST(summaries_fit_a_line)
{
    for (size_t i = 0; policies[i]; i++) {
        const char *summary = policies[i]->summary;
        size_t len = strlen(summary);

        ck_assert_msg(len <= (policies[i]->needs_future ? 48 : 67), "%s: %zu characters",
                      policies[i]->name, len);
        ck_assert_msg(strncmp(summary, "Evicts ", 7) == 0 && summary[len - 1] == '.', "%s",
                      policies[i]->name);
        ck_assert_ptr_nonnull(policies[i]->source);
        ck_assert_ptr_nonnull(policies[i]->sizes);
        ck_assert_ptr_nonnull(policies[i]->cost);
    }
}
END_TEST

/* For each parameter of each policy: both ends of its range read back, and one beyond does not. */
START_TEST(registered_parameters_read_back)
{
    for (size_t i = 0; policies[i]; i++) {
        const struct policy_ops *ops = policies[i];

        ck_assert_uint_le(policy_param_count(ops), POLICY_MAX_PARAMS);
        for (size_t p = 0; p < policy_param_count(ops); p++) {
            const struct policy_param *param = &ops->params[p];
            char text[POLICY_MAX_TEXT], again[POLICY_MAX_TEXT];
            double ends[2] = {param->low, param->high};

            ck_assert(param->meaning && param->low <= param->start && param->start <= param->high);
            for (int e = 0; e < 2; e++) {
                struct policy_spec spec = policy_spec_of(ops), back;

                spec.params[p] = ends[e];
                back = parsed(policy_format(&spec, text, sizeof(text)));
                ck_assert(policy_spec_equal(&spec, &back));
                ck_assert_str_eq(policy_format(&back, again, sizeof(again)), text);
            }
            snprintf(text, sizeof(text), "%s:%s", ops->name, param->name);
            refused(text, "wants a value");
            snprintf(text, sizeof(text), "%s:%s=", ops->name, param->name);
            refused(text, param->words ? "did you mean" : "must be a");
            snprintf(text, sizeof(text), "%s:%s=1e300", ops->name, param->name);
            refused(text, param->words ? "did you mean" : "must be a");
            snprintf(text, sizeof(text), "%s:%s=nan", ops->name, param->name);
            refused(text, param->words ? "did you mean" : "must be a");
            snprintf(text, sizeof(text), "%s:x%s=1", ops->name, param->name);
            refused(text, "did you mean");
        }
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("policies/spec");
    TCase *tc = tcase_create("spec");

    tcase_add_test(tc, names_alone);
    tcase_add_test(tc, values_as_they_were_typed);
    tcase_add_test(tc, a_wrong_name_is_answered_with_the_nearest);
    tcase_add_test(tc, registered_parameters_read_back);
    tcase_add_test(tc, summaries_fit_a_line);
    suite_add_tcase(suite, tc);
    return suite;
}
