/* GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Stand-in for nccl-tests in the lab: real bytes over TCP, no GPU. Types shared by all parts. */
#ifndef STANDIN_H
#define STANDIN_H

#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define MAX_RAILS 32 /* NCCL's own limit of HCAs (mlx5-roce.md 3.4) */
#define MAX_GPUS 16  /* per process */
#define MAX_NODES 64
#define MAX_HOST 65

/* Exit status of nccl-tests (nccl-gate.md 1.5). */
enum { EXIT_NCCL = 3, EXIT_TIMEOUT = 4, EXIT_NOT_IMPLEMENTED = 5, EXIT_USAGE = 6, EXIT_RESULTS = 7 };

struct options {
    int threads, gpus, iters, aggregated, warmup, cycles, check, average, timeout, parallel, unalign;
    int ignored;     /* options without a meaning when there is no GPU */
    int unsimulated; /* options whose effect this program does not have: only 0 is accepted */
    size_t min_bytes, max_bytes, step_bytes, step_factor;
};

enum kind { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, SEND_RECV };

struct program {
    const char *name, *source;
    int line; /* where that source calls TimeTest, for the chain of " .. Test failure" lines */
    enum kind kind;
    const char *redop;
};

/* One HCA port, or one interface for NET/Socket: one channel of the ring. */
struct rail {
    char hca[64], netdev[IFNAMSIZ], pci[PATH_MAX];
    const char *link; /* "RoCE" or "IB" */
    int port, gid_index;
    struct in6_addr gid, peer_gid;
    struct sockaddr_storage address, peer;
    int listener, to, from; /* sockets */
};

struct world {
    const struct program *program;
    struct options options;
    int node, nodes, gpus, ranks, rails;
    bool ib; /* NET/IB or NET/Socket */
    char host[MAX_HOST];
    struct rail rail[MAX_RAILS];
    char oob_name[IFNAMSIZ];
    struct sockaddr_in oob, peer_oob;
    int corrupt; /* rank whose passed-on data get a flipped bit, or -1 */
    double deadline; /* -T: end of the running collective, or 0 */
};

static inline int first_rank(const struct world *w)
{
    return w->node * w->gpus;
}

double now(void);

/* options.c */
int parse_options(struct options *o, int argc, char **argv); /* -1: go on, else the exit status */
void print_usage(void);
const struct program *find_program(const char *argv0);

/* devices.c */
int find_hcas(struct rail *rails);

/* gid.c */
void choose_gid(struct rail *rail);

/* interfaces.c */
struct name_list {
    char name[MAX_RAILS][64];
    int port[MAX_RAILS], count;
    bool exclude, exact;
};
void parse_names(struct name_list *list, const char *text);
bool names_match(const struct name_list *list, const char *name, int port);
int find_interfaces(struct rail *rails, int most);
bool address_of(const char *netdev, struct sockaddr_in *address);

/* network.c */
void find_network(struct world *w);
void connect_ring(struct world *w);

/* wire.c */
void wire_listen(struct world *w, struct rail *rail);
void wire_connect(struct world *w, struct rail *rail, int channel);
void wire_accept(struct world *w, struct rail *rail, int channel);
struct watch {
    uint64_t acknowledged;
    double since, checked;
};
enum { WIRE_OUT = 1, WIRE_IN = 2 };
int wire_wait(struct world *w, int channel, bool out, bool in, struct watch *watch);
size_t wire_send(struct world *w, int channel, const void *data, size_t bytes);
size_t wire_receive(struct world *w, int channel, void *data, size_t bytes);

/* ring.c */
struct buffers {
    float *in[MAX_GPUS], *out[MAX_GPUS];
    size_t count; /* of a rank's whole buffer (all_reduce, sendrecv) or of one block (all_gather, reduce_scatter) */
};
void ring_run(struct world *w, const struct buffers *b);

/* data.c */
struct sizes {
    size_t param, send, expected; /* elements */
};
struct sizes sizes_of(const struct world *w, size_t bytes);
void fill(const struct world *w, struct buffers *b, int repetition, bool in_place);
long count_wrong(const struct world *w, const struct buffers *b, int repetition);

/* bench.c */
struct totals {
    int errors, rows;
    double busbw;
};
void bench(struct world *w, struct totals *totals);

/* report.c */
void report_start(const struct world *w);
void report_heading(const struct world *w);
void report_row(const struct world *w, struct sizes s);
void report_half(const struct world *w, double seconds, double algbw, double busbw, long wrong, bool checked);
void report_row_end(const struct world *w);
void report_footer(const struct world *w, const struct totals *totals, double limit);

#endif
