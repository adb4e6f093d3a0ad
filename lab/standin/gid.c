/* GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The GID that NCCL >= 2.21 would choose (mlx5-roce.md 3.4; NCCL src/transport/net_ib/connect.cc). */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "standin.h"
#include "sysfs.h"

struct wanted {
    int family, prefix_bits, version;
    struct in6_addr prefix;
};

static struct in6_addr read_gid(const struct rail *rail, int index)
{
    struct in6_addr gid = IN6ADDR_ANY_INIT;
    char text[64];

    if (read_line(text, sizeof text, SYSFS "/%s/ports/%d/gids/%d", rail->hca, rail->port, index))
        inet_pton(AF_INET6, text, &gid);
    return gid;
}

static int read_version(const struct rail *rail, int index)
{
    char text[32];

    if (!read_line(text, sizeof text, SYSFS "/%s/ports/%d/gid_attrs/types/%d", rail->hca, rail->port, index))
        return -1;
    return !strcmp(text, "RoCE v2") ? 2 : 1;
}

static int family_of(const struct in6_addr *gid)
{
    return IN6_IS_ADDR_V4MAPPED(gid) ? AF_INET : AF_INET6;
}

static bool valid(const struct in6_addr *gid)
{
    return !IN6_IS_ADDR_UNSPECIFIED(gid) && !IN6_IS_ADDR_LINKLOCAL(gid);
}

static bool in_range(const struct wanted *w, const struct in6_addr *gid)
{
    int offset = w->family == AF_INET ? 12 : 0; /* IPv4 lies in the last four bytes */

    for (int bit = 0; bit < w->prefix_bits; bit++) {
        int byte = bit / 8, shift = 7 - bit % 8;
        if (((w->prefix.s6_addr[byte] ^ gid->s6_addr[offset + byte]) >> shift) & 1)
            return false;
    }
    return true;
}

/* NCCL_IB_ADDR_RANGE=address/bits; what does not parse is ignored, as NCCL does. */
static void parse_range(struct wanted *w)
{
    const char *text = getenv("NCCL_IB_ADDR_RANGE"), *slash = text ? strchr(text, '/') : NULL;
    char address[INET6_ADDRSTRLEN] = "";
    int bits;

    if (!slash || slash - text >= (long)sizeof address)
        return;
    memcpy(address, text, (size_t)(slash - text));
    bits = atoi(slash + 1);
    if (inet_pton(w->family, address, &w->prefix) == 1 && bits >= 0 && bits <= (w->family == AF_INET ? 32 : 128))
        w->prefix_bits = bits;
}

static bool better(const struct rail *rail, const struct wanted *w, int current, int candidate)
{
    struct in6_addr old = read_gid(rail, current), new = read_gid(rail, candidate);
    int version;

    if (family_of(&new) != w->family || !in_range(w, &new))
        return false;
    if (family_of(&old) != w->family)
        return true;
    if (!valid(&new))
        return false;
    version = read_version(rail, candidate);
    return version == w->version && (!valid(&old) || read_version(rail, current) != version);
}

static int entries(const struct rail *rail)
{
    char text[64];
    int count = 0;

    while (count < 256 && read_line(text, sizeof text, SYSFS "/%s/ports/%d/gids/%d", rail->hca, rail->port, count))
        count++;
    return count;
}

void choose_gid(struct rail *rail)
{
    const char *family = getenv("NCCL_IB_ADDR_FAMILY");
    struct wanted w = {.family = family && !strcmp(family, "AF_INET6") ? AF_INET6 : AF_INET,
                       .version = (int)env_number("NCCL_IB_ROCE_VERSION_NUM", 2)};
    int forced = (int)env_number("NCCL_IB_GID_INDEX", -1), count = entries(rail);

    parse_range(&w);
    rail->gid_index = 0; /* stays so when none fits: v1 link-local (mlx5-roce.md 3.4) */
    if (forced >= 0 && !strcmp(rail->link, "RoCE"))
        rail->gid_index = forced;
    else if (!strcmp(rail->link, "RoCE"))
        for (int i = 1; i < count; i++)
            if (better(rail, &w, rail->gid_index, i))
                rail->gid_index = i;
    rail->gid = read_gid(rail, rail->gid_index);
}
