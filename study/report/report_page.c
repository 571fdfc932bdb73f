#include "study/report/report.h"

#include <assert.h>
#include <openssl/evp.h>
#include <string.h>

#include "base/base64.h"

#define SHA256_BYTES 32
#define MOST_HASHES 4096

/*
 * The page's parts of ours are files of study/report/page/. The assembler puts them into the
 * program unchanged, each followed by a zero byte.
 */
#define EMBED(symbol, path)                                                       \
    __asm__(".pushsection .rodata\n" #symbol ":\n.incbin \"" path "\"\n.byte 0\n" \
            ".popsection\n");                                                     \
    extern const char symbol[] __attribute__((visibility("hidden")))

EMBED(report_page_html, "study/report/page/page.html");
EMBED(report_colours_css, "study/report/page/colours.css");
EMBED(report_page_css, "study/report/page/page.css");
EMBED(report_page_js, "study/report/page/page.js");
EMBED(report_looks_js, "study/report/page/looks.js");
EMBED(report_times_js, "study/report/page/times.js");
EMBED(report_figures_trace_js, "study/report/page/figures_trace.js");
EMBED(report_figures_js, "study/report/page/figures.js");

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
enum part_kind {
    PART_OF_OURS,
    PART_D3,
    PART_PLOT,
    PART_SCRIPT_HASHES,
    PART_STYLE_HASHES,
    PART_TITLE,
    PART_DATA,
};

static const struct part {
    const char *mark;
    enum part_kind kind;
    const char *text; /* of ours */
} parts[] = {
    {"{{script-hashes}}", PART_SCRIPT_HASHES, NULL},
    {"{{style-hashes}}", PART_STYLE_HASHES, NULL},
    {"{{title}}", PART_TITLE, NULL},
    {"{{colours.css}}", PART_OF_OURS, report_colours_css},
    {"{{page.css}}", PART_OF_OURS, report_page_css},
    {"{{data}}", PART_DATA, NULL},
    {"{{d3}}", PART_D3, NULL},
    {"{{plot}}", PART_PLOT, NULL},
    {"{{looks.js}}", PART_OF_OURS, report_looks_js},
    {"{{times.js}}", PART_OF_OURS, report_times_js},
    {"{{figures_trace.js}}", PART_OF_OURS, report_figures_trace_js},
    {"{{figures.js}}", PART_OF_OURS, report_figures_js},
    {"{{page.js}}", PART_OF_OURS, report_page_js},
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

/* The text of a part that is the same on every page; NULL if it is made for each. */
static const char *
fixed_text(const struct part *part, const struct report_library *library)
{
    switch (part->kind) {
    case PART_OF_OURS:
        return part->text;
    case PART_D3:
        return buf_str(&library->d3);
    case PART_PLOT:
        return buf_str(&library->plot);
    default:
        return NULL;
    }
}

/* ---- hashes of what the page may run and be styled by (CSP level 2, section 4.2.5) ----------- */

/* SHA-256 of an element's content, with the parts in place of their marks. */
static bool
hash_content(struct span content, const struct report_library *library,
             unsigned char hash[SHA256_BYTES])
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    const char *at = content.ptr, *end = at + content.len;
    bool good = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1;

    while (good && at < end) {
        const char *mark = memmem(at, (size_t)(end - at), "{{", 2);
        const struct part *part = mark ? part_at(mark) : NULL;

        good = EVP_DigestUpdate(context, at, (size_t)((mark ? mark : end) - at)) == 1;
        if (good && part) {
            const char *text = fixed_text(part, library);

            assert(text); /* what is made for each page is no script and no style */
            good = EVP_DigestUpdate(context, text, strlen(text)) == 1;
        }
        at = part ? mark + strlen(part->mark) : end;
    }
    good = good && EVP_DigestFinal_ex(context, hash, NULL) == 1;
    EVP_MD_CTX_free(context);
    return good;
}

/* 'sha256-...' of each such element of the page, blanks between. */
static bool
append_hashes(struct buf *out, const struct report_library *library, const char *begin,
              const char *end)
{
    const char *at = report_page_html;

    buf_reset(out);
    while ((at = strstr(at, begin))) {
        unsigned char hash[SHA256_BYTES];
        const char *from = at + strlen(begin), *to = strstr(from, end);

        if (!to || !hash_content(span_of(from, (size_t)(to - from)), library, hash))
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
write_parts(FILE *to, const struct report_page *page, const char *scripts, const char *styles)
{
    const char *at = report_page_html, *mark;

    for (; (mark = strstr(at, "{{")); at = mark + strlen(part_at(mark)->mark)) {
        const struct part *part = part_at(mark);

        fwrite(at, 1, (size_t)(mark - at), to);
        switch (part->kind) {
        case PART_OF_OURS:
        case PART_D3:
        case PART_PLOT:
            fputs(fixed_text(part, page->library), to);
            break;
        case PART_SCRIPT_HASHES:
            fputs(scripts, to);
            break;
        case PART_STYLE_HASHES:
            fputs(styles, to);
            break;
        case PART_TITLE:
            write_text(to, page->title);
            break;
        case PART_DATA:
            write_data(to, page->data);
            break;
        }
    }
    fputs(at, to);
}

bool
report_page_write(FILE *to, const struct report_page *page)
{
    struct buf scripts, styles;
    bool good;

    buf_init(&scripts, MOST_HASHES);
    buf_init(&styles, MOST_HASHES);
    good = append_hashes(&scripts, page->library, "<script>", "</script>") &&
           append_hashes(&styles, page->library, "<style>", "</style>");
    if (good)
        write_parts(to, page, buf_str(&scripts), buf_str(&styles));
    buf_free(&scripts);
    buf_free(&styles);
    return good;
}
