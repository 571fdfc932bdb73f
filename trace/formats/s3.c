/*
 * Server access logs of Amazon S3
 * (https://docs.aws.amazon.com/AmazonS3/latest/userguide/LogFormat.html): fields separated by
 * blanks, of which the date has brackets and three have quotes:
 *     owner bucket [date] client requester id operation key "request" status error bytes-sent
 *     object-size total-time turn-around-time "referer" "agent" version host-id signature cipher
 *     authentication host tls ...
 * Old lines end earlier. A URL's host is the host header, or else bucket.s3.amazonaws.com. Bytes
 * are those of the body; where none were sent, the size of the object counts.
 */
#include "trace/formats/fields.h"
#include "trace/formats/formats.h"
#include "trace/formats/lines.h"
#include "trace/formats/request_line.h"

enum field {
    OWNER,
    BUCKET,
    DATE,
    CLIENT,
    REQUESTER,
    ID,
    OPERATION,
    KEY,
    REQUEST,
    STATUS,
    ERROR,
    SENT,
    OBJECT,
    TOTAL,
    TURN_AROUND,
    REFERER,
    AGENT,
    VERSION,
    HOST_ID,
    SIGNATURE,
    CIPHER,
    AUTHENTICATION,
    HOST,
    TLS,
    FIELDS
};

#define AWS ".s3.amazonaws.com"
#define BUCKET_MOST 255u

/* Splits a line; fields that are missing at its end, or "-", are empty. Returns their number. */
static size_t
split(struct span line, struct span fields[FIELDS])
{
    size_t count = 0;

    for (size_t i = 0; i < FIELDS; i++)
        fields[i] = span_of("", 0);
    while (count < FIELDS && fields_quoted(&line, &fields[count]))
        count++;
    for (size_t i = 0; i < count; i++) {
        if (span_equal(fields[i], span_str("-")))
            fields[i].len = 0;
    }
    return count;
}

static enum line_kind
parse(struct line_reader *reader, struct span line, struct trace_request *request)
{
    struct line_site site = LINE_SITE_UNKNOWN;
    char host[BUCKET_MOST + sizeof(AWS)];
    struct span fields[FIELDS];
    size_t count;

    if (fields_trim(line).len == 0)
        return LINE_OTHER;
    count = split(line, fields);
    if (count <= OBJECT || fields[BUCKET].len == 0 || fields[BUCKET].len > BUCKET_MOST ||
        !fields_log_date(fields[DATE], &request->time_us) ||
        !memchr(fields[OPERATION].ptr, '.', fields[OPERATION].len) ||
        !fields_status(fields[STATUS], &request->status) ||
        !fields_size(fields[SENT].len ? fields[SENT] : fields[OBJECT], &request->size))
        return LINE_BAD;
    if (fields[REQUEST].len == 0) /* S3 itself did something, such as expiring an object */
        return LINE_ORPHAN;
    site.host = fields[HOST];
    site.https = fields[TLS].len != 0;
    if (site.host.len == 0) {
        memcpy(host, fields[BUCKET].ptr, fields[BUCKET].len);
        memcpy(host + fields[BUCKET].len, AWS, sizeof(AWS) - 1);
        site.host = span_of(host, fields[BUCKET].len + sizeof(AWS) - 1);
    }
    return request_line_parse(reader, fields[REQUEST], site, request);
}

static const struct line_format lines = {.parse = parse};

const struct trace_format trace_format_s3 = {
    .name = "s3",
    .summary = "Amazon S3's server access log",
    .is_text = true,
    .lines = &lines,
    .sample = "79a59df900b949e5 bucket [06/Feb/2019:00:00:38 +0000] 192.0.2.3 - 3E57427F3EXAMPLE "
              "REST.GET.OBJECT a.png \"GET /a.png HTTP/1.1\" 200 - 113 113 7 6 \"-\" \"agent\" -",
};
