#include "client/report.h"

#include <string.h>

/*
 * The page's parts are files of their own, report/; the assembler puts them into the program as
 * they are. Each ends with a zero byte of ours.
 */
#define EMBED(symbol, path)                                                       \
    __asm__(".pushsection .rodata\n" #symbol ":\n.incbin \"" path "\"\n.byte 0\n" \
            ".popsection\n");                                                     \
    extern const char symbol[] __attribute__((visibility("hidden")))

EMBED(report_page_html, "report/page.html");
EMBED(report_colours_css, "report/colours.css");
EMBED(report_page_css, "report/page.css");
EMBED(report_page_js, "report/page.js");
EMBED(report_looks_js, "report/looks.js");
EMBED(report_figures_trace_js, "report/figures_trace.js");
EMBED(report_figures_js, "report/figures.js");
EMBED(report_d3_js, "report/third_party/d3.min.js");
EMBED(report_plot_js, "report/third_party/plot.umd.min.js");

/* Text between tags. */
static void
write_text(FILE *to, struct span text)
{
    for (size_t i = 0; i < text.len; i++)
        switch (text.ptr[i]) {
        case '<':
            fputs("&lt;", to);
            break;
        case '>':
            fputs("&gt;", to);
            break;
        case '&':
            fputs("&amp;", to);
            break;
        default:
            fputc(text.ptr[i], to);
        }
}

/* JSON within a script: only in a string can a '<' stand, and there it may be written so. */
static void
write_data(FILE *to, struct span data)
{
    const char *at = data.ptr, *end = data.ptr + data.len;

    while (at < end) {
        const char *next = memchr(at, '<', (size_t)(end - at));
        size_t len = (size_t)((next ? next : end) - at);

        fwrite(at, 1, len, to);
        if (next)
            fputs("\\u003c", to);
        at += len + (next ? 1 : 0);
    }
}

void
report_page_write(FILE *to, struct span title, struct span data)
{
    static const struct {
        const char *mark;
        const char *text; /* NULL: one of the arguments */
    } parts[] = {
        {"{{title}}", NULL},
        {"{{colours.css}}", report_colours_css},
        {"{{page.css}}", report_page_css},
        {"{{data}}", NULL},
        {"{{d3}}", report_d3_js},
        {"{{plot}}", report_plot_js},
        {"{{looks.js}}", report_looks_js},
        {"{{figures_trace.js}}", report_figures_trace_js},
        {"{{figures.js}}", report_figures_js},
        {"{{page.js}}", report_page_js},
    };
    const char *at = report_page_html;

    /* The marks stand in the page in this order, each once. */
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        const char *mark = strstr(at, parts[i].mark);

        if (!mark)
            continue;
        fwrite(at, 1, (size_t)(mark - at), to);
        if (parts[i].text)
            fputs(parts[i].text, to);
        else if (i == 0)
            write_text(to, title);
        else
            write_data(to, data);
        at = mark + strlen(parts[i].mark);
    }
    fputs(at, to);
}
