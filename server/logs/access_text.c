#include "server/logs/access_text.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <time.h>

#define MOST_LISTED ((size_t)16 << 10)
#define LONGEST_ESCAPE 6u /* bytes: that of JSON */

struct access_client
access_client_of(const struct net_peer *peer)
{
    const struct sockaddr_storage *address = &peer->address;
    struct access_client client = {.family = AF_UNSPEC};

    if (address->ss_family == AF_INET) {
        client.family = AF_INET;
        memcpy(client.address, &((const struct sockaddr_in *)address)->sin_addr, 4);
    } else if (address->ss_family == AF_INET6) {
        const struct in6_addr *inet6 = &((const struct sockaddr_in6 *)address)->sin6_addr;

        /* A passed socket may serve both families; its IPv4 clients have mapped addresses. */
        if (IN6_IS_ADDR_V4MAPPED(inet6)) {
            client.family = AF_INET;
            memcpy(client.address, &inet6->s6_addr[12], 4);
        } else {
            client.family = AF_INET6;
            memcpy(client.address, inet6, 16);
        }
    } else if (peer->has_uid) {
        client.family = AF_UNIX;
        client.uid = peer->uid;
    }
    return client;
}

void
access_client_append(struct buf *text, const struct access_client *client)
{
    char address[INET6_ADDRSTRLEN] = "-";

    if (client->family == AF_UNIX) {
        buf_printf(text, "unix:%u", (unsigned)client->uid);
        return;
    }
    if (client->family != AF_UNSPEC)
        inet_ntop(client->family, client->address, address, sizeof(address));
    buf_append_str(text, address);
}

void
access_text_escape(struct buf *text, struct span bytes)
{
    for (size_t i = 0; i < bytes.len;) {
        size_t plain = i;

        while (plain < bytes.len && bytes.ptr[plain] > 0x20 && bytes.ptr[plain] < 0x7F &&
               bytes.ptr[plain] != '\\')
            plain++;
        buf_append(text, bytes.ptr + i, plain - i);
        i = plain;
        if (i < bytes.len)
            buf_printf(text, "\\x%02x", (unsigned)(unsigned char)bytes.ptr[i++]);
    }
}

void
access_text_quote(struct buf *text, struct span bytes, char stop)
{
    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char c = (unsigned char)bytes.ptr[i];

        if (c >= 0x20 && c < 0x7F && c != '\\' && c != '"' && c != (unsigned char)stop)
            buf_append_char(text, (char)c);
        else
            buf_printf(text, "\\x%02x", (unsigned)c);
    }
    if (bytes.len == 0)
        buf_append_char(text, '-');
}

/* At most this number of bytes of a line. */
static size_t
length_of(struct span url)
{
    size_t len = 1;

    for (size_t i = 0; i < url.len; i++) {
        const unsigned char c = (unsigned char)url.ptr[i];

        len += c > 0x20 && c < 0x7F && c != '\\' && c != '"' ? 1 : LONGEST_ESCAPE;
    }
    return len;
}

size_t
access_text_listed(const struct cache_victims *victims)
{
    size_t count = 0, len = 0;

    for (; victims && count < victims->count; count++) {
        len += length_of(object_url(victims->pages[count]));
        if (len > MOST_LISTED)
            break;
    }
    return count;
}

void
access_text_date(struct buf *text, int64_t wall_us)
{
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t seconds = (time_t)(wall_us / 1000000);
    struct tm tm;

    gmtime_r(&seconds, &tm);
    buf_printf(text, "%02d/%s/%d:%02d:%02d:%02d +0000", tm.tm_mday, months[tm.tm_mon],
               tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

static char
lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

void
access_text_origin(struct buf *text, struct span url)
{
    const char *const behind = url.ptr + url.len;
    const char *authority = url.ptr, *end = url.ptr;

    while (end < behind && !strchr(":/?#", *end))
        end++;
    if (span_starts_with(span_of(end, (size_t)(behind - end)), span_str("://")))
        authority = end + 3;
    for (end = authority; end < behind && *end != '/' && *end != '?' && *end != '#';)
        end++;
    if (end == authority)
        return;
    for (const char *c = url.ptr; c < authority; c++)
        buf_append_char(text, lower(*c));
    for (const char *c = end; c > authority; c--)
        if (c[-1] == '@') {
            authority = c;
            break;
        }
    for (const char *c = authority; c < end; c++)
        buf_append_char(text, lower(*c));
}
