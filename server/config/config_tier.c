#include "server/config/config_tier.h"

static bool
refuse(struct buf *why, const struct options *options, const char *sentence)
{
    buf_end_line(why);
    buf_printf(why, "%sshared: %s", options_place(options, "shared"), sentence);
    return false;
}

bool
config_tier_read(struct config_tier *tier, const struct options *options, struct buf *why)
{
    if (!options->shared)
        return true;
    if (!options->shared_key_file)
        return refuse(why, options, "it needs shared-key-file, the key that the daemons share");
    if (options->freshness != FRESHNESS_ON)
        return refuse(why, options, "it needs freshness on");
    if (options->peers)
        return refuse(why, options, "peers are given, too: pages are shared by one of them");
    buf_end_line(why);
    buf_printf(why, "%sshared: ", options_place(options, "shared"));
    if (!tier_servers_read(span_str(options->shared), &tier->servers, why))
        return false;
    buf_truncate(why, why->len - strlen("shared: ") - strlen(options_place(options, "shared")));
    return true;
}
