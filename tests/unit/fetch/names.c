#include "tests/unit/fetch/names.h"

#include <string.h>
#include <unistd.h>

const struct name_row *_Atomic names_table;
_Atomic unsigned names_asked;

static _Atomic unsigned names_hanging;
static _Atomic bool names_released;

int
names_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                  struct addrinfo **result)
{
    struct addrinfo numeric = *hints;
    struct addrinfo *all = NULL;

    names_asked++;
    if (strncmp(host, "hang", 4) == 0) {
        names_hanging++;
        while (!names_released)
            usleep(1000);
        names_hanging--;
    }
    numeric.ai_flags = AI_NUMERICHOST;
    for (const struct name_row *row = names_table; row && row->host; row++) {
        struct addrinfo *one, *last;

        if (strcmp(row->host, host) != 0 || getaddrinfo(row->address, service, &numeric, &one) != 0)
            continue;
        for (last = one; last->ai_next; last = last->ai_next)
            continue;
        last->ai_next = all;
        all = one;
    }
    *result = all;
    return all ? 0 : EAI_NONAME;
}

void
names_use(struct fetch_config *config, const struct name_row *table)
{
    names_table = table;
    names_asked = 0;
    names_released = false;
    config->getaddrinfo = names_getaddrinfo;
    config->freeaddrinfo = freeaddrinfo;
}

void
names_release(void)
{
    names_released = true;
    while (names_hanging)
        usleep(1000);
}
