#include "study/report.h"

#include <assert.h>
#include <openssl/evp.h>
#include <string.h>

#include "base/base64.h"

#define SHA256_BYTES 32
#define MOST_HASHES 4096

/*
 * The page's parts are files of study/report/, and the plotting library's of a folder that the
 * Makefile names (PLOT_DIR). The assembler puts them into the program unchanged, each followed by a
 * zero byte.
 */
#define EMBED(symbol, path)                                                       \
    __asm__(".pushsection .rodata\n" #symbol ":\n.incbin \"" path "\"\n.byte 0\n" \
            ".popsection\n");                                                     \
    extern const char symbol[] __attribute__((visibility("hidden")))

EMBED(report_page_html, "study/report/page.html");
EMBED(report_colours_css, "study/report/colours.css");
EMBED(report_page_css, "study/report/page.css");
EMBED(report_page_js, "study/report/page.js");
EMBED(report_looks_js, "study/report/looks.js");
EMBED(report_times_js, "study/report/times.js");
EMBED(report_figures_trace_js, "study/report/figures_trace.js");
EMBED(report_figures_js, "study/report/figures.js");
EMBED(report_d3_js, SUNPROXY_PLOT_DIR "/d3.min.js");
EMBED(report_plot_js, SUNPROXY_PLOT_DIR "/plot.umd.min.js");

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

/* What stands in place of a mark in the page, {{name}}. */
static const struct part {
    const char *mark;
    const char *text; /* NULL: it is made for each page */
} parts[] = {
    {"{{script-hashes}}", NULL},
    {"{{style-hashes}}", NULL},
    {"{{title}}", NULL},
    {"{{colours.css}}", report_colours_css},
    {"{{page.css}}", report_page_css},
    {"{{data}}", NULL},
    {"{{d3}}", report_d3_js},
    {"{{plot}}", report_plot_js},
    {"{{looks.js}}", report_looks_js},
    {"{{times.js}}", report_times_js},
    {"{{figures_trace.js}}", report_figures_trace_js},
    {"{{figures.js}}", report_figures_js},
    {"{{page.js}}", report_page_js},
};

#define PARTS (sizeof(parts) / sizeof(parts[0]))

/* The part that the mark here stands for. */
static const struct part *
part_at(const char *at)
{
    size_t i = 0;

    while (i < PARTS && strncmp(at, parts[i].mark, strlen(parts[i].mark)) != 0)
        i++;
    assert(i < PARTS);
    return &parts[i];
}

/* ---- hashes of what the page may run and be styled by (CSP level 2, section 4.2.5) ----------- */

/* SHA-256 of an element's content, with the parts in place of their marks. */
static bool
hash_content(struct span content, unsigned char hash[SHA256_BYTES])
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    const char *at = content.ptr, *end = at + content.len;
    bool good = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1;

    while (good && at < end) {
        const char *mark = memmem(at, (size_t)(end - at), "{{", 2);
        const struct part *part = mark ? part_at(mark) : NULL;

        good = EVP_DigestUpdate(context, at, (size_t)((mark ? mark : end) - at)) == 1;
        if (good && part) {
            assert(part->text); /* what is made for each page is no script and no style */
            good = EVP_DigestUpdate(context, part->text, strlen(part->text)) == 1;
        }
        at = part ? mark + strlen(part->mark) : end;
    }
    good = good && EVP_DigestFinal_ex(context, hash, NULL) == 1;
    EVP_MD_CTX_free(context);
    return good;
}

/* 'sha256-...' of each such element of the page, blanks between. */
static bool
append_hashes(struct buf *out, const char *begin, const char *end)
{
    const char *at = report_page_html;

    buf_reset(out);
    while ((at = strstr(at, begin))) {
        unsigned char hash[SHA256_BYTES];
        const char *from = at + strlen(begin), *to = strstr(from, end);

        if (!to || !hash_content(span_of(from, (size_t)(to - from)), hash))
            return false;
        buf_append_str(out, out->len ? " 'sha256-" : "'sha256-");
        base64_encode(out, span_of(hash, sizeof(hash)));
        buf_append_char(out, '\'');
        at = to;
    }
    return !buf_failed(out);
}

/* ---- the page -------------------------------------------------------------------------------- */

static void
write_parts(FILE *to, const char *scripts, const char *styles, struct span title, struct span data)
{
    const char *at = report_page_html, *mark;

    for (; (mark = strstr(at, "{{")); at = mark + strlen(part_at(mark)->mark)) {
        const struct part *part = part_at(mark);

        fwrite(at, 1, (size_t)(mark - at), to);
        if (part->text)
            fputs(part->text, to);
        else if (part == &parts[0])
            fputs(scripts, to);
        else if (part == &parts[1])
            fputs(styles, to);
        else if (part == &parts[2])
            write_text(to, title);
        else
            write_data(to, data);
    }
    fputs(at, to);
}

bool
report_page_write(FILE *to, struct span title, struct span data)
{
    struct buf scripts, styles;
    bool good;

    buf_init(&scripts, MOST_HASHES);
    buf_init(&styles, MOST_HASHES);
    good = append_hashes(&scripts, "<script>", "</script>") &&
           append_hashes(&styles, "<style>", "</style>");
    if (good)
        write_parts(to, buf_str(&scripts), buf_str(&styles), title, data);
    buf_free(&scripts);
    buf_free(&styles);
    return good;
}
