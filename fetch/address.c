#include "fetch/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/networks.h"

struct address_policy {
    struct networks allowed;
    struct own_addresses *own; /* owned; NULL: the host's own addresses are like others */
};

/* What is not globally routable: the IANA IPv4 Special-Purpose Address Registry (RFC 6890). */
static const struct {
    unsigned char bytes[4];
    unsigned prefix;
} special4[] = {
    {{0, 0, 0, 0}, 8},       /* this network, RFC 791 section 3.2 */
    {{10, 0, 0, 0}, 8},      /* private use, RFC 1918 */
    {{100, 64, 0, 0}, 10},   /* shared address space, RFC 6598 */
    {{127, 0, 0, 0}, 8},     /* loopback, RFC 1122 section 3.2.1.3 */
    {{169, 254, 0, 0}, 16},  /* link local, RFC 3927 */
    {{172, 16, 0, 0}, 12},   /* private use, RFC 1918 */
    {{192, 0, 0, 0}, 24},    /* IETF protocol assignments, RFC 6890 section 2.1 */
    {{192, 0, 2, 0}, 24},    /* documentation, RFC 5737 */
    {{192, 88, 99, 0}, 24},  /* 6to4 relay anycast, deprecated by RFC 7526 */
    {{192, 168, 0, 0}, 16},  /* private use, RFC 1918 */
    {{198, 18, 0, 0}, 15},   /* benchmarking, RFC 2544 */
    {{198, 51, 100, 0}, 24}, /* documentation, RFC 5737 */
    {{203, 0, 113, 0}, 24},  /* documentation, RFC 5737 */
    {{224, 0, 0, 0}, 4},     /* multicast, RFC 5771 */
    {{240, 0, 0, 0}, 4},     /* reserved, RFC 1112 section 4; and limited broadcast, RFC 8190 */
};

/* The IANA IPv6 Special-Purpose Address Registry (RFC 6890). */
static const struct {
    unsigned char bytes[16];
    unsigned prefix;
} special6[] = {
    {{0}, 128},                                 /* ::, unspecified, RFC 4291 */
    {{[15] = 1}, 128},                          /* ::1, loopback, RFC 4291 */
    {{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48}, /* 64:ff9b:1::, local-use NAT64, RFC 8215 */
    {{0x01, 0x00}, 64},                         /* 100::, discard only, RFC 6666 */
    {{0x20, 0x01}, 23},                         /* 2001::, IETF protocol assignments, RFC 2928 */
    {{0x20, 0x01, 0x0d, 0xb8}, 32},             /* 2001:db8::, documentation, RFC 3849 */
    {{0x3f, 0xff}, 20},                         /* 3fff::, documentation, RFC 9637 */
    {{0x5f, 0x00}, 16},                         /* 5f00::, segment routing SIDs, RFC 9602 */
    {{0xfc, 0x00}, 7},                          /* fc00::, unique local, RFC 4193 */
    {{0xfe, 0x80}, 10},                         /* fe80::, link local, RFC 4291 */
    {{0xfe, 0xc0}, 10},                         /* fec0::, site local, deprecated by RFC 3879 */
    {{0xff, 0x00}, 8},                          /* ff00::, multicast, RFC 4291 */
};

/* IPv6 addresses with an IPv4 address inside, which is where the packets may end up. */
static const struct {
    unsigned char bytes[16];
    unsigned prefix;
    unsigned at;        /* the byte where the IPv4 address begins */
    unsigned char flip; /* Teredo stores its client's address inverted */
} carriers[] = {
    {{[10] = 0xff, [11] = 0xff}, 96, 12, 0}, /* ::ffff:0:0, mapped, RFC 4291 section 2.5.5.2 */
    {{0}, 96, 12, 0},                        /* ::, compatible, RFC 4291 section 2.5.5.1 */
    {{[8] = 0xff, [9] = 0xff}, 96, 12, 0},   /* ::ffff:0:0:0, translated, RFC 2765 section 2.1 */
    {{0x00, 0x64, 0xff, 0x9b}, 96, 12, 0},   /* 64:ff9b::, NAT64, RFC 6052 */
    {{0x20, 0x02}, 16, 2, 0},                /* 2002::, 6to4, RFC 3056 */
    {{0x20, 0x01}, 32, 4, 0},                /* 2001::, Teredo's server, RFC 4380 section 4 */
    {{0x20, 0x01}, 32, 12, 0xff},            /* 2001::, Teredo's client */
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

struct address_policy *
address_policy_create(void)
{
    return calloc(1, sizeof(struct address_policy));
}

void
address_policy_destroy(struct address_policy *policy)
{
    if (!policy)
        return;
    own_addresses_close(policy->own);
    networks_free(&policy->allowed);
    free(policy);
}

bool
address_policy_allow(struct address_policy *policy, const char *cidr, char *why, size_t why_size)
{
    return networks_add(&policy->allowed, cidr, why, why_size);
}

enum verdict { PERMITTED, NOT_PUBLIC, OWN };

/* What is checked, and the address that the verdict is about: itself or the one that it carries. */
struct checked {
    int family;
    unsigned char bytes[16];
};

static enum verdict
check_own(const struct address_policy *policy, int family, const unsigned char *bytes)
{
    return policy->own && own_addresses_have(policy->own, family, bytes) ? OWN : PERMITTED;
}

static enum verdict
check4(const struct address_policy *policy, const unsigned char *bytes)
{
    if (networks_have(&policy->allowed, AF_INET, bytes))
        return PERMITTED;
    for (size_t i = 0; i < LENGTH(special4); i++)
        if (networks_same_prefix(bytes, special4[i].bytes, special4[i].prefix))
            return NOT_PUBLIC;
    return check_own(policy, AF_INET, bytes);
}

/*
 * An allowed block speaks for the IPv6 address alone: what it carries needs a permission of its
 * own, so that fd00::/8 or even ::/0 does not open 127.0.0.1 by the back door. :: and ::1 are the
 * two of ::/96 that carry nothing.
 */
static enum verdict
check6(const struct address_policy *policy, struct checked *checked)
{
    const unsigned char *bytes = checked->bytes;
    bool allowed = networks_have(&policy->allowed, AF_INET6, bytes);

    for (size_t i = 0; i < LENGTH(special6); i++) {
        if (!networks_same_prefix(bytes, special6[i].bytes, special6[i].prefix))
            continue;
        if (!allowed)
            return NOT_PUBLIC;
        if (special6[i].prefix == 128)
            return PERMITTED;
    }
    for (size_t i = 0; i < LENGTH(carriers); i++) {
        unsigned char inner[4];
        enum verdict verdict;

        if (!networks_same_prefix(bytes, carriers[i].bytes, carriers[i].prefix))
            continue;
        for (unsigned j = 0; j < 4; j++)
            inner[j] = bytes[carriers[i].at + j] ^ carriers[i].flip;
        verdict = check4(policy, inner);
        if (verdict) {
            checked->family = AF_INET;
            memcpy(checked->bytes, inner, sizeof(inner));
            return verdict;
        }
    }
    return allowed ? PERMITTED : check_own(policy, AF_INET6, bytes);
}

bool
address_policy_check(const struct address_policy *policy, const struct sockaddr *address, char *why,
                     size_t why_size)
{
    struct checked checked = {.family = address->sa_family};
    char text[INET6_ADDRSTRLEN] = "";
    enum verdict verdict;

    if (address->sa_family == AF_INET) {
        struct sockaddr_in in;

        memcpy(&in, address, sizeof(in));
        memcpy(checked.bytes, &in.sin_addr, sizeof(in.sin_addr));
        verdict = check4(policy, checked.bytes);
    } else if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;

        memcpy(&in6, address, sizeof(in6));
        memcpy(checked.bytes, &in6.sin6_addr, sizeof(in6.sin6_addr));
        verdict = check6(policy, &checked);
    } else {
        snprintf(why, why_size, "of no family that is connected to");
        return false;
    }
    if (verdict == PERMITTED)
        return true;
    inet_ntop(checked.family, checked.bytes, text, sizeof(text));
    /* All of 127.0.0.0/8 is this host, so that block is as narrow as one of its addresses. */
    snprintf(why, why_size, "%s (allow it with --allow-net %s)",
             verdict == OWN ? "an address of this host" : "not a public address",
             checked.family == AF_INET && checked.bytes[0] == 127 ? "127.0.0.0/8" : text);
    return false;
}

bool
address_policy_permits(const struct address_policy *policy, const struct sockaddr *address)
{
    return address_policy_check(policy, address, NULL, 0);
}

bool
address_policy_refuse_own(struct address_policy *policy, char *why, size_t why_size)
{
    if (!policy->own)
        policy->own = own_addresses_open();
    if (!policy->own)
        snprintf(why, why_size, "cannot read the addresses of this host: %s", strerror(errno));
    return policy->own != NULL;
}

/* ---- the host's own addresses ---------------------------------------------------------------- */

struct own_addresses {
    int fd;
    pthread_mutex_t lock;
    /* protected by lock */
    uint32_t sequence;
};

/* What it is asked: the route to an address. */
struct query {
    struct nlmsghdr head;
    struct rtmsg route;
    struct rtattr to;
    unsigned char address[16];
};

struct own_addresses *
own_addresses_open(void)
{
    struct own_addresses *own = calloc(1, sizeof(*own));
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

    if (!own)
        return NULL;
    own->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (own->fd >= 0 && connect(own->fd, (const struct sockaddr *)&kernel, sizeof(kernel)) == 0 &&
        pthread_mutex_init(&own->lock, NULL) == 0)
        return own;
    if (own->fd >= 0)
        close(own->fd);
    free(own);
    return NULL;
}

void
own_addresses_close(struct own_addresses *own)
{
    if (!own)
        return;
    close(own->fd);
    pthread_mutex_destroy(&own->lock);
    free(own);
}

static bool
ask(struct own_addresses *own, int family, const unsigned char *bytes)
{
    unsigned short len = family == AF_INET ? 4 : 16;
    struct query query = {
        .head = {.nlmsg_len = (uint32_t)offsetof(struct query, address) + len,
                 .nlmsg_type = RTM_GETROUTE,
                 .nlmsg_flags = NLM_F_REQUEST,
                 .nlmsg_seq = ++own->sequence},
        .route = {.rtm_family = (unsigned char)family, .rtm_dst_len = (unsigned char)(len * 8)},
        .to = {.rta_len = (unsigned short)RTA_LENGTH(len), .rta_type = RTA_DST},
    };

    memcpy(query.address, bytes, len);
    return send(own->fd, &query, query.head.nlmsg_len, 0) == (ssize_t)query.head.nlmsg_len;
}

/* The kernel answers before send() returns. Answers to earlier questions are passed over. */
static bool
read_answer(struct own_addresses *own, bool *here)
{
    union {
        struct nlmsghdr head;
        char bytes[4096];
    } answer;
    const struct rtmsg *route;
    ssize_t got;

    for (;;) {
        got = recv(own->fd, &answer, sizeof(answer), MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < (ssize_t)sizeof(answer.head))
            return false;
        if (answer.head.nlmsg_seq == own->sequence)
            break;
    }
    *here = false;
    if (answer.head.nlmsg_type == NLMSG_ERROR)
        return true; /* there is no way to it at all */
    if (answer.head.nlmsg_type != RTM_NEWROUTE || got < (ssize_t)NLMSG_LENGTH(sizeof(*route)))
        return false;
    route = NLMSG_DATA(&answer.head);
    *here = route->rtm_type == RTN_LOCAL || route->rtm_type == RTN_ANYCAST ||
            route->rtm_type == RTN_BROADCAST;
    return true;
}

bool
own_addresses_have(struct own_addresses *own, int family, const unsigned char *bytes)
{
    bool here = true;

    pthread_mutex_lock(&own->lock);
    if (!ask(own, family, bytes) || !read_answer(own, &here))
        here = true;
    pthread_mutex_unlock(&own->lock);
    return here;
}

/* ---- ports ----------------------------------------------------------------------------------- */

/* In ascending order. */
static const uint16_t blocked_ports[] = {
    0,     /* none */
    1,     /* tcpmux */
    7,     /* echo */
    9,     /* discard */
    11,    /* systat */
    13,    /* daytime */
    15,    /* netstat */
    17,    /* qotd */
    19,    /* chargen */
    20,    /* ftp-data */
    21,    /* ftp */
    22,    /* ssh */
    23,    /* telnet */
    25,    /* smtp */
    37,    /* time */
    42,    /* name */
    43,    /* nicname */
    53,    /* domain */
    69,    /* tftp */
    77,    /* private remote job entry */
    79,    /* finger */
    87,    /* link */
    95,    /* supdup */
    101,   /* hostname */
    102,   /* iso-tsap */
    103,   /* gppitnp */
    104,   /* acr-nema */
    109,   /* pop2 */
    110,   /* pop3 */
    111,   /* sunrpc */
    113,   /* auth */
    115,   /* sftp */
    117,   /* uucp-path */
    119,   /* nntp */
    123,   /* ntp */
    135,   /* epmap */
    137,   /* netbios-ns */
    139,   /* netbios-ssn */
    143,   /* imap */
    161,   /* snmp */
    179,   /* bgp */
    389,   /* ldap */
    427,   /* svrloc */
    465,   /* submissions */
    512,   /* exec */
    513,   /* login */
    514,   /* shell */
    515,   /* printer */
    526,   /* tempo */
    530,   /* courier */
    531,   /* chat */
    532,   /* netnews */
    540,   /* uucp */
    548,   /* afp */
    554,   /* rtsp */
    556,   /* remotefs */
    563,   /* nntps */
    587,   /* submission */
    601,   /* syslog-conn */
    636,   /* ldaps */
    989,   /* ftps-data */
    990,   /* ftps */
    993,   /* imaps */
    995,   /* pop3s */
    1719,  /* h323gatestat */
    1720,  /* h323hostcall */
    1723,  /* pptp */
    2049,  /* nfs */
    3659,  /* apple-sasl */
    4045,  /* npp */
    4190,  /* sieve */
    5060,  /* sip */
    5061,  /* sips */
    6000,  /* x11 */
    6566,  /* sane-port */
    6665,  /* ircu */
    6666,  /* ircu */
    6667,  /* ircu */
    6668,  /* ircu */
    6669,  /* ircu */
    6679,  /* osaut */
    6697,  /* ircs-u */
    10080, /* amanda */
};

static int
compare_ports(const void *a, const void *b)
{
    return *(const uint16_t *)a - *(const uint16_t *)b;
}

bool
port_is_blocked(uint16_t port)
{
    return bsearch(&port, blocked_ports, LENGTH(blocked_ports), sizeof(blocked_ports[0]),
                   compare_ports) != NULL;
}
