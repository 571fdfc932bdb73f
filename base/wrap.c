#include "base/wrap.h"

#include <string.h>

void
wrap_print(FILE *to, const char *text, int at, int indent)
{
    if (at >= indent) {
        fputc('\n', to);
        at = 0;
    }
    fprintf(to, "%*s", indent - at, "");
    at = indent;
    while (*text) {
        int len = (int)strcspn(text, " ");

        if (at > indent && at + 1 + len > WRAP_COLUMNS) {
            fprintf(to, "\n%*s", indent, "");
            at = indent;
        } else if (at > indent) {
            fputc(' ', to);
            at++;
        }
        fprintf(to, "%.*s", len, text);
        at += len;
        text += len;
        text += strspn(text, " ");
    }
    fputc('\n', to);
}
