/* GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * One TCP connection per rail from each node to the next, bound to the rail's netdev, and the errors that an
 * RDMA connection would report in its place (nccl-gate.md 2.2). SO_BINDTODEVICE needs no capability on a socket
 * that is not bound yet (simulation.md 0b.9). */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "standin.h"

#define MAGIC 0x6e63636cu
/* Twice this (the kernel doubles it) fits into the queue of a shaped port, 250 kB at 20 Mbit/s and 100 ms: no drops,
 * no retransmission time-outs, as on a lossless RoCE fabric. Less makes the link idle when the machine is busy. */
#define SEND_BUFFER (96 << 10)

struct hello {
    uint32_t magic, node, channel;
};

double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* NCCL_IB_TIMEOUT 20 and NCCL_IB_RETRY_CNT 7: 4.096 us x 2^20 x 8 = 34 s ("about 30 s", nccl-gate.md 2.2). */
static double retries_used_up(void)
{
    return 4.096e-6 * (double)(1L << (env_number("NCCL_IB_TIMEOUT", 20) & 31)) *
           (double)(1 + env_number("NCCL_IB_RETRY_CNT", 7));
}

static socklen_t length_of(const struct sockaddr_storage *a)
{
    return a->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

/* "address<port>" as NCCL writes it; the peer's out-of-band address where NCCL names that. */
static void peer_name(const struct world *w, const struct rail *rail, char *text, size_t size)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&rail->peer;
    char address[INET_ADDRSTRLEN];

    inet_ntop(AF_INET, &w->peer_oob.sin_addr, address, sizeof address);
    snprintf(text, size, "%s<%d>", address, ntohs(v4->sin_port)); /* the port is at the same place in IPv6 */
}

static _Noreturn void fail_completion(struct world *w, const struct rail *rail)
{
    char local[INET6_ADDRSTRLEN], remote[INET6_ADDRSTRLEN], peer[64];

    inet_ntop(AF_INET6, &rail->gid, local, sizeof local);
    inet_ntop(AF_INET6, &rail->peer_gid, remote, sizeof remote);
    peer_name(w, rail, peer, sizeof peer);
    log_warn(w->gpus - 1, "transport/net_ib/p2p.cc:550",
             "NET/IB: Got completion from peer %s with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) "
             "vendor_err=129  localGid %s remoteGids%s hca %s", peer, local, remote, rail->hca);
    fail_nccl(REMOTE_ERROR);
}

static _Noreturn void fail_modify_qp(struct world *w, const struct rail *rail, int error)
{
    char local[INET6_ADDRSTRLEN], remote[INET6_ADDRSTRLEN];

    inet_ntop(AF_INET6, &rail->gid, local, sizeof local);
    inet_ntop(AF_INET6, &rail->peer_gid, remote, sizeof remote);
    log_warn(w->gpus - 1, "misc/ibvwrap.cc:307",
             "Call to ibv_modify_qp failed with %d %s, on dev %s:%d, curr state INIT, next state RTR, local GID index "
             "%d, local GID %s, remote GID %s", error, strerror(error), rail->hca, rail->port, rail->gid_index, local,
             remote);
    fail_nccl(SYSTEM_ERROR);
}

static _Noreturn void fail_closed(struct world *w, const struct rail *rail, bool sending)
{
    char text[64] = "";
    struct sockaddr_storage a;
    socklen_t length = sizeof a;

    if (sending)
        peer_name(w, rail, text, sizeof text);
    else if (!getpeername(rail->from, (struct sockaddr *)&a, &length) && a.ss_family == AF_INET) {
        inet_ntop(AF_INET, &((struct sockaddr_in *)&a)->sin_addr, text, INET_ADDRSTRLEN);
        sprintf(text + strlen(text), "<%d>", ntohs(((struct sockaddr_in *)&a)->sin_port));
    }
    log_warn(sending ? w->gpus - 1 : 0, "misc/socket.cc:34", "socketProgress: Connection closed by remote peer %s",
             text);
    fail_nccl(REMOTE_ERROR);
}

static _Noreturn void fail_wire(struct world *w, const struct rail *rail, int error, bool sending)
{
    if (w->ib && (error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH || error == ENETDOWN))
        fail_completion(w, rail);
    fail_closed(w, rail, sending);
}

static _Noreturn void fail_connect(struct world *w, const struct rail *rail, int error)
{
    char peer[64];

    /* EHOSTUNREACH: nobody answered for the address: with RDMA the GID's address resolution times out. */
    if (w->ib && (error == EHOSTUNREACH || error == ENETUNREACH))
        fail_modify_qp(w, rail, ETIMEDOUT);
    if (w->ib && (error == ETIMEDOUT || error == ECONNREFUSED))
        fail_completion(w, rail);
    if (w->ib)
        fail_modify_qp(w, rail, EINVAL);
    peer_name(w, rail, peer, sizeof peer);
    log_warn(0, "os/linux.cc:199", "ncclOsSocketPollConnect: connect to %s returned %s, exceeded error retry count "
             "after 34 attempts", peer, strerror(error));
    fail_nccl(REMOTE_ERROR);
}

static int bound_socket(struct world *w, struct rail *rail)
{
    int fd = socket(rail->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_storage a = rail->address;

    bool empty = w->ib && !strcmp(rail->link, "RoCE") && IN6_IS_ADDR_UNSPECIFIED(&rail->gid);

    ((struct sockaddr_in *)&a)->sin_port = 0;
    if (fd >= 0 && !empty &&
        !setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, rail->netdev, (socklen_t)strlen(rail->netdev) + 1) &&
        !bind(fd, (struct sockaddr *)&a, length_of(&a)))
        return fd;
    /* "GID index wrong or empty" (nccl-gate.md 2.2), or one whose address the netdev has not. */
    if (w->ib)
        fail_modify_qp(w, rail, EINVAL);
    log_warn(0, "misc/socket.cc:107", "Call to bind failed: %s", strerror(errno));
    fail_nccl(SYSTEM_ERROR);
}

void wire_listen(struct world *w, struct rail *rail)
{
    socklen_t length = sizeof rail->address;

    rail->listener = bound_socket(w, rail);
    if (listen(rail->listener, 4) || getsockname(rail->listener, (struct sockaddr *)&rail->address, &length))
        fail_connect(w, rail, errno);
}

static int finish_connect(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    socklen_t length = sizeof(int);
    int error = 0;

    if (errno != EINPROGRESS)
        return errno;
    if (poll(&p, 1, (int)(retries_used_up() * 1000)) <= 0)
        return ETIMEDOUT;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
    return error;
}

void wire_connect(struct world *w, struct rail *rail, int channel)
{
    struct hello hello = {MAGIC, (uint32_t)w->node, (uint32_t)channel};
    int one = 1, buffer = SEND_BUFFER, error = 0;

    if (rail->peer.ss_family == AF_INET6) /* the peer's scope is a number of the peer's */
        ((struct sockaddr_in6 *)&rail->peer)->sin6_scope_id = ((struct sockaddr_in6 *)&rail->address)->sin6_scope_id;
    rail->to = bound_socket(w, rail);
    setsockopt(rail->to, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
    setsockopt(rail->to, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fcntl(rail->to, F_SETFL, O_NONBLOCK);
    if (connect(rail->to, (struct sockaddr *)&rail->peer, length_of(&rail->peer)))
        error = finish_connect(rail->to);
    if (error)
        fail_connect(w, rail, error);
    if (send(rail->to, &hello, sizeof hello, MSG_NOSIGNAL) != (ssize_t)sizeof hello)
        fail_wire(w, rail, errno, true);
}

void wire_accept(struct world *w, struct rail *rail, int channel)
{
    const struct hello wanted = {MAGIC, (uint32_t)((w->node + w->nodes - 1) % w->nodes), (uint32_t)channel};
    struct hello hello;

    /* No limit, as in NCCL: who cannot connect says so and ends the run. Strangers are sent away. */
    for (;;) {
        rail->from = accept4(rail->listener, NULL, NULL, SOCK_CLOEXEC);
        if (rail->from >= 0 && recv(rail->from, &hello, sizeof hello, MSG_WAITALL) == (ssize_t)sizeof hello &&
            !memcmp(&hello, &wanted, sizeof hello))
            break;
        if (rail->from >= 0)
            close(rail->from);
    }
    close(rail->listener);
}

/* Whether bytes in flight have gone without any acknowledgement for as long as RDMA retries. A peer that is only
 * stopped still acknowledges (its window is closed, nothing is in flight): then it is a hang, and NCCL hangs. */
static bool lost(int fd, struct watch *watch)
{
    struct tcp_info info;
    socklen_t length = sizeof info;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length))
        return false;
    if (info.tcpi_unacked == 0 || info.tcpi_bytes_acked != watch->acknowledged) {
        watch->acknowledged = info.tcpi_bytes_acked;
        watch->since = now();
    }
    return now() - watch->since > retries_used_up();
}

static void check_progress(struct world *w, const struct rail *rail, struct watch *watch)
{
    double t = now();

    if (t - watch->checked < 0.2)
        return;
    watch->checked = t;
    if (w->ib && lost(rail->to, watch))
        fail_completion(w, rail);
    if (w->deadline > 0 && t > w->deadline)
        fail_timeout(w->options.timeout);
}

static bool again(ssize_t moved)
{
    return moved < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Waits until one of the wanted directions can move; 0 now and then. */
int wire_wait(struct world *w, int channel, bool out, bool in, struct watch *watch)
{
    struct rail *rail = &w->rail[channel];
    struct pollfd p[2] = {{out ? rail->to : -1, POLLOUT, 0}, {in ? rail->from : -1, POLLIN, 0}};

    poll(p, 2, 250);
    check_progress(w, rail, watch);
    return (p[0].revents ? WIRE_OUT : 0) | (p[1].revents ? WIRE_IN : 0);
}

size_t wire_send(struct world *w, int channel, const void *data, size_t bytes)
{
    struct rail *rail = &w->rail[channel];
    ssize_t moved = send(rail->to, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (moved < 0 && !again(moved))
        fail_wire(w, rail, errno, true);
    return moved > 0 ? (size_t)moved : 0;
}

size_t wire_receive(struct world *w, int channel, void *data, size_t bytes)
{
    struct rail *rail = &w->rail[channel];
    ssize_t moved = recv(rail->from, data, bytes, MSG_DONTWAIT);

    if (moved == 0 || (moved < 0 && !again(moved)))
        fail_wire(w, rail, moved ? errno : 0, false);
    return moved > 0 ? (size_t)moved : 0;
}
