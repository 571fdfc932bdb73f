/*
 * Policies with their parameters, from text and back.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/nearest.h"
#include "policies/policy.h"

#define NONE "none"

size_t
policy_param_count(const struct policy_ops *ops)
{
    size_t count = 0;

    while (ops->params && ops->params[count].name)
        count++;
    return count;
}

double
policy_param_value(const struct policy_ops *ops, const struct policy_config *config, size_t i)
{
    return config->params ? config->params[i] : ops->params[i].start;
}

struct policy_spec
policy_spec_of(const struct policy_ops *ops)
{
    struct policy_spec spec = {.ops = ops};

    for (size_t i = 0; ops && i < policy_param_count(ops); i++)
        spec.params[i] = ops->params[i].start;
    return spec;
}

bool
policy_spec_equal(const struct policy_spec *a, const struct policy_spec *b)
{
    if (a->ops != b->ops)
        return false;
    for (size_t i = 0; a->ops && i < policy_param_count(a->ops); i++) {
        if (a->params[i] < b->params[i] || a->params[i] > b->params[i])
            return false;
    }
    return true;
}

bool
policy_looks_at_cost(const struct policy_spec *spec)
{
    return spec->ops && spec->ops->looks_at_cost && spec->ops->looks_at_cost(spec->params);
}

/* ---- to text --------------------------------------------------------------------------------- */

/* As a whole number, or with the fewest digits that read back as the same one. */
static const char *
format_number(double value, char *text, size_t size)
{
    if (fabs(value) < 1e15 && floor(value) >= value) {
        snprintf(text, size, "%.0f", value);
        return text;
    }
    for (int digits = 1; digits <= 17; digits++) {
        double read;

        snprintf(text, size, "%.*g", digits, value);
        read = strtod(text, NULL);
        if (!(read < value || read > value))
            break;
    }
    return text;
}

static const char *
format_value(const struct policy_param *param, double value, char *text, size_t size)
{
    return param->words ? param->words[(size_t)value] : format_number(value, text, size);
}

const char *
policy_format(const struct policy_spec *spec, char *text, size_t size)
{
    int len = snprintf(text, size, "%s", spec->ops ? spec->ops->name : NONE);
    char separator = ':';

    for (size_t i = 0; spec->ops && i < policy_param_count(spec->ops); i++) {
        const struct policy_param *param = &spec->ops->params[i];
        char number[32];

        if (!(spec->params[i] < param->start || spec->params[i] > param->start))
            continue;
        if (len < 0 || (size_t)len >= size)
            break;
        len += snprintf(text + len, size - (size_t)len, "%c%s=%s", separator, param->name,
                        format_value(param, spec->params[i], number, sizeof(number)));
        separator = ',';
    }
    return text;
}

/* ---- from text ------------------------------------------------------------------------------- */

static bool
refuse_policy(const char *name, char *why, size_t why_size)
{
    const struct policy_ops *nearest = policy_nearest(name);

    if (*name == '\0')
        snprintf(why, why_size, "the name of a policy is missing");
    else if (nearest)
        snprintf(why, why_size, "there is no policy \"%.40s\"; did you mean %s?", name,
                 nearest->name);
    else
        snprintf(why, why_size, "there is no policy \"%.40s\"", name);
    return false;
}

static bool
refuse_param(const struct policy_ops *ops, const char *name, char *why, size_t why_size)
{
    struct nearest nearest = NEAREST_TO(name);
    size_t count = policy_param_count(ops);

    if (count == 0) {
        snprintf(why, why_size, "policy %s has no parameters", ops->name);
        return false;
    }
    for (size_t i = 0; i < count; i++)
        nearest_offer(&nearest, ops->params[i].name);
    snprintf(why, why_size, "policy %s has no parameter \"%.40s\"; did you mean %s=?", ops->name,
             name, nearest.best);
    return false;
}

static bool
parse_word(const struct policy_ops *ops, const struct policy_param *param, const char *text,
           double *value, char *why, size_t why_size)
{
    struct nearest nearest = NEAREST_TO(text);

    for (size_t i = 0; param->words[i]; i++) {
        if (strcasecmp(param->words[i], text) == 0) {
            *value = (double)i;
            return true;
        }
        nearest_offer(&nearest, param->words[i]);
    }
    snprintf(why, why_size, "policy %s: %s cannot be \"%.40s\"; did you mean %s=%s?", ops->name,
             param->name, text, param->name, nearest.best);
    return false;
}

/* Digits, a point and an exponent; nothing else that strtod() would take. */
static bool
parse_number(const struct policy_ops *ops, const struct policy_param *param, const char *text,
             double *value, char *why, size_t why_size)
{
    char low[32], high[32], *end;

    *value = strtod(text, &end);
    if (*text && strspn(text, "0123456789.eE+-") == strlen(text) && *end == '\0' &&
        *value >= param->low && *value <= param->high &&
        !(param->whole && floor(*value) < *value)) {
        *value += 0.0; /* no negative zero */
        return true;
    }
    snprintf(why, why_size, "policy %s: %s must be a %snumber from %s to %s, not \"%.40s\"",
             ops->name, param->name, param->whole ? "whole " : "",
             format_number(param->low, low, sizeof(low)),
             format_number(param->high, high, sizeof(high)), text);
    return false;
}

/* One "name=value"; `text` is changed. */
static bool
parse_param(struct policy_spec *spec, char *text, char *why, size_t why_size)
{
    const struct policy_ops *ops = spec->ops;
    char *equals = strchr(text, '=');

    if (equals)
        *equals = '\0';
    for (size_t i = 0; i < policy_param_count(ops); i++) {
        const struct policy_param *param = &ops->params[i];

        if (strcasecmp(param->name, text) != 0)
            continue;
        if (!equals) {
            snprintf(why, why_size, "policy %s: %s wants a value, as in %s:%s=...", ops->name,
                     param->name, ops->name, param->name);
            return false;
        }
        return (param->words ? parse_word : parse_number)(ops, param, equals + 1, &spec->params[i],
                                                          why, why_size);
    }
    return refuse_param(ops, text, why, why_size);
}

bool
policy_parse(const char *text, struct policy_spec *spec, char *why, size_t why_size)
{
    char copy[POLICY_MAX_TEXT], *params, *next;

    if (strlen(text) >= sizeof(copy)) {
        snprintf(why, why_size, "a policy with its parameters has at most %zu characters",
                 sizeof(copy) - 1);
        return false;
    }
    strcpy(copy, text);
    params = strchr(copy, ':');
    if (params)
        *params++ = '\0';
    if (strcasecmp(copy, NONE) == 0) {
        *spec = policy_spec_of(NULL);
        if (params)
            snprintf(why, why_size, "policy " NONE " has no parameters");
        return !params;
    }
    *spec = policy_spec_of(policy_find(copy));
    if (!spec->ops)
        return refuse_policy(copy, why, why_size);
    for (; params; params = next) {
        next = strchr(params, ',');
        if (next)
            *next++ = '\0';
        if (!parse_param(spec, params, why, why_size))
            return false;
    }
    return true;
}
