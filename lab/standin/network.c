/* GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Which network NCCL would take, said in NCCL's words (nccl-gate.md 2.1), and the ring over it. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "log.h"
#include "quiet.h"
#include "standin.h"

static const char *dotted(const struct sockaddr_in *address)
{
    static char text[INET_ADDRSTRLEN];

    return inet_ntop(AF_INET, &address->sin_addr, text, sizeof text);
}

static void set_address(struct rail *rail)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)&rail->address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&rail->address;

    memset(&rail->address, 0, sizeof rail->address);
    if (!strcmp(rail->link, "IB")) { /* no IP in its GIDs: the IPoIB address carries the bytes */
        address_of(rail->netdev, v4);
    } else if (IN6_IS_ADDR_V4MAPPED(&rail->gid)) {
        v4->sin_family = AF_INET;
        memcpy(&v4->sin_addr, &rail->gid.s6_addr[12], 4);
    } else {
        v6->sin6_family = AF_INET6;
        v6->sin6_addr = rail->gid;
        v6->sin6_scope_id = IN6_IS_ADDR_LINKLOCAL(&rail->gid) ? if_nametoindex(rail->netdev) : 0;
    }
}

static void say_hcas(const struct world *w)
{
    char line[2048] = "", gid[INET6_ADDRSTRLEN];

    for (int i = 0; i < w->rails; i++)
        append(line, sizeof line, " [%d]%s:%d/%s", i, w->rail[i].hca, w->rail[i].port, w->rail[i].link);
    /* Two blanks before the ';': the place of [RO], relaxed ordering, which TCP has not. */
    log_info(SUB_INIT | SUB_NET, 0, "NET/IB : Using%s ; OOB %s:%s<0>", line, w->oob_name, dotted(&w->oob));
    for (int i = 0; i < w->rails; i++)
        log_info(SUB_INIT | SUB_NET, 0, "NET/IB : SIMULATED [%d]%s:%d is TCP on netdev %s, GID index %d %s", i,
                 w->rail[i].hca, w->rail[i].port, w->rail[i].netdev, w->rail[i].gid_index,
                 inet_ntop(AF_INET6, &w->rail[i].gid, gid, sizeof gid));
}

static bool use_ib(struct world *w)
{
    const char *hca = getenv("NCCL_IB_HCA"), *net = getenv("NCCL_NET");

    if (env_number("NCCL_IB_DISABLE", 0) || (net && !strcasecmp(net, "Socket")))
        return false;
    if (hca)
        log_info(SUB_NET | SUB_ENV, 0, "NCCL_IB_HCA set to %s", hca);
    w->rails = find_hcas(w->rail);
    if (w->rails == 0) {
        log_info(SUB_INIT | SUB_NET, 0, "NET/IB : No device found.");
        return false;
    }
    say_hcas(w);
    for (int i = 0; i < w->rails; i++)
        set_address(&w->rail[i]);
    return true;
}

static void use_sockets(struct world *w)
{
    char line[2048] = "";
    int found = find_interfaces(w->rail, MAX_RAILS / 2);

    if (found == 0) {
        log_warn(0, "transport/net_socket.cc:62", "NET/Socket : no interface found");
        fail_nccl("internal error - please report this issue to the NCCL developers");
    }
    for (int i = 0; i < found; i++)
        append(line, sizeof line, " [%d]%s:%s<0>", i, w->rail[i].netdev,
               dotted((struct sockaddr_in *)&w->rail[i].address));
    log_info(SUB_INIT | SUB_NET, 0, "NET/Socket : Using%s", line);
    w->rails = 1; /* NCCL would weigh all of them by speed; this program takes the first */
}

void find_network(struct world *w)
{
    struct rail oob;
    const char *name, *names = getenv("NCCL_SOCKET_IFNAME");

    if (names)
        log_info(SUB_ENV, 0, "NCCL_SOCKET_IFNAME set by environment to %s", names);
    echo_numbers();
    if (!find_interfaces(&oob, 1)) {
        log_warn(0, "bootstrap.cc:129", "Bootstrap : no socket interface found");
        fail_nccl("invalid usage (run with NCCL_DEBUG=WARN for details)");
    }
    memcpy(w->oob_name, oob.netdev, IFNAMSIZ);
    memcpy(&w->oob, &oob.address, sizeof w->oob);
    log_info(SUB_BOOTSTRAP, 0, "Bootstrap: Using %s:%s<0>", w->oob_name, dotted(&w->oob));
    if (w->node == 0)
        log_version();
    w->ib = use_ib(w);
    if (!w->ib) {
        log_info(SUB_INIT | SUB_NET, 0, "Failed to initialize NET plugin IB");
        use_sockets(w);
    }
    name = w->ib ? "IB" : "Socket";
    log_info(SUB_INIT | SUB_NET, 0, "Initialized NET plugin %s", name);
    log_info(SUB_INIT | SUB_NET, 0, "Assigned NET plugin %s to comm", name);
    log_info(SUB_INIT, 0, "Using network %s", name);
}

/* What each node tells the others. */
struct card {
    int ib, rails;
    struct sockaddr_in oob;
    struct {
        struct sockaddr_storage address;
        struct in6_addr gid;
    } rail[MAX_RAILS];
};

static struct card own_card(const struct world *w)
{
    struct card card = {.ib = w->ib, .rails = w->rails, .oob = w->oob};

    for (int c = 0; c < w->rails; c++) {
        card.rail[c].address = w->rail[c].address;
        card.rail[c].gid = w->rail[c].gid;
    }
    return card;
}

static void check_mismatch(struct world *w, const struct card *cards)
{
    int least = cards[0].rails, most = least;
    bool mixed = false;

    for (int i = 1; i < w->nodes; i++) {
        least = cards[i].rails < least ? cards[i].rails : least;
        most = cards[i].rails > most ? cards[i].rails : most;
        mixed |= cards[i].ib != cards[0].ib;
    }
    if (mixed) { /* own words: with NCCL the two transports do not understand each other's handles */
        log_warn(0, "plugin/net.cc:0", "SIMULATED: some nodes use NET/IB and some NET/Socket");
        fail_nccl(SYSTEM_ERROR);
    }
    if (least == most)
        return;
    for (int i = 0; i < w->nodes && w->node == 0; i++)
        for (int g = 0; g < w->gpus && cards[i].rails < most; g++)
            log_info(SUB_INIT, 0, "Rank %d has %d local Net devices (max %d).", i * w->gpus + g, cards[i].rails,
                     most);
    if (!env_number("NCCL_IGNORE_NET_MISMATCH", 0)) {
        /* NCCL since 2.30 (src/init.cc) */
        log_warn(0, "init.cc:1339", "Detected mixed local Net device counts across ranks (min %d, max %d). Set "
                 "NCCL_IGNORE_NET_MISMATCH=1 to continue.", least, most);
        fail_nccl(SYSTEM_ERROR);
    }
    w->rails = least;
}

static void say_ring(const struct world *w)
{
    char line[128];
    int width = snprintf(NULL, 0, "%d", w->ranks - 1);

    for (int c = 0; c < w->rails && w->node == 0; c++) {
        int used = snprintf(line, sizeof line, "Channel %02d/%02d :", c, w->rails);
        for (int r = 0; r < w->ranks && used < (int)sizeof line - 1; r++)
            used += snprintf(line + used, sizeof line - (size_t)used, " %*d", width, r);
        if (used >= (int)sizeof line)
            memcpy(line + sizeof line - 4, "...", 4);
        log_info(SUB_INIT, 0, "%s", line);
    }
}

static void say_hop(const struct world *w, int channel, int from, bool sending)
{
    int to = (from + 1) % w->ranks, dev_from = from % w->gpus, dev_to = to % w->gpus;

    if (from / w->gpus == to / w->gpus && sending)
        log_info(SUB_INIT | SUB_SHM, dev_from, "Channel %02d : %d[%d] -> %d[%d] via SHM/direct/direct", channel, from,
                 dev_from, to, dev_to);
    else if (from / w->gpus != to / w->gpus) /* never /GDRDMA: there is no GPU memory */
        log_info(SUB_INIT | SUB_NET, sending ? dev_from : dev_to, "Channel %02d/0 : %d[%d] -> %d[%d] [%s] via NET/%s/%d",
                 channel, from, dev_from, to, dev_to, sending ? "send" : "receive", w->ib ? "IB" : "Socket", channel);
}

static void say_connected(struct world *w)
{
    for (int g = 0; g < w->gpus; g++) {
        int rank = first_rank(w) + g;
        for (int c = 0; c < w->rails && w->ranks > 1; c++) {
            say_hop(w, c, (rank + w->ranks - 1) % w->ranks, false);
            say_hop(w, c, rank, true);
        }
    }
    for (int g = 0; g < w->gpus; g++) {
        int rank = first_rank(w) + g;
        if (w->ranks > 1)
            log_info(SUB_INIT, g, "Connected all rings, use ring PXN 0 GDR 0");
        log_info(SUB_INIT, g, "ncclCommInitRank comm %p rank %d nranks %d cudaDev %d nvmlDev %d busId %x commId 0x0 - "
                 "Init COMPLETE", (void *)&w->rail[g], rank, w->ranks, g, g, (0x10 + g) << 12);
    }
}

void connect_ring(struct world *w)
{
    struct card own, *cards = calloc((size_t)w->nodes, sizeof *cards);
    int next = (w->node + 1) % w->nodes;

    for (int c = 0; c < w->rails && w->nodes > 1; c++)
        wire_listen(w, &w->rail[c]);
    own = own_card(w);
    quiet_allgather(&own, cards, sizeof own);
    check_mismatch(w, cards);
    for (int g = 0; g < w->gpus; g++)
        log_info(SUB_INIT, g, "comm %p rank %d nRanks %d nNodes %d localRanks %d localRank %d MNNVL 0",
                 (void *)&w->rail[g], first_rank(w) + g, w->ranks, w->nodes, w->gpus, g);
    say_ring(w);
    w->peer_oob = cards[next].oob;
    for (int c = 0; c < w->rails && w->nodes > 1; c++) {
        w->rail[c].peer = cards[next].rail[c].address;
        w->rail[c].peer_gid = cards[next].rail[c].gid;
        wire_connect(w, &w->rail[c], c);
    }
    for (int c = 0; c < w->rails && w->nodes > 1; c++)
        wire_accept(w, &w->rail[c], c);
    say_connected(w);
    free(cards);
}
