/* GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Stand-in for nccl-tests in the lab: acts by the name it is called by. One process per node with -g N "GPUs";
 * MPI for the bootstrap only; the data move as in NCCL, in a ring over own sockets (simulation.md 0.5). */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "quiet.h"
#include "standin.h"

#define BANNER "# SIMULATED: nccl-tests stand-in of the aidc.gpu_cluster lab, bytes over TCP, no GPU\n"
#define CORRUPT_FILE "/run/aidc-lab/corrupt-rank"
#define GPU_DIRECTORY "/proc/driver/nvidia/gpus"
/* What one simulated GPU holds per buffer: at the lab's scale a second and more per collective. */
#define LARGEST_BUFFER (64ul << 20)

static int count_gpus(void)
{
    DIR *directory = opendir(GPU_DIRECTORY);
    struct dirent *entry;
    int count = 0;

    if (!directory)
        return MAX_GPUS;
    while ((entry = readdir(directory)))
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count < MAX_GPUS ? count : MAX_GPUS;
}

static void refuse(const char *why)
{
    fprintf(stderr, "the stand-in does not simulate this: %s\n", why);
    fflush(NULL);
    _exit(EXIT_USAGE);
}

static void check_nodes(const struct world *w)
{
    char (*hosts)[MAX_HOST] = calloc((size_t)w->nodes, MAX_HOST);

    if (w->nodes > MAX_NODES)
        refuse("more than 64 nodes");
    if (getenv("NCCL_TESTS_SPLIT") || getenv("NCCL_TESTS_SPLIT_MASK"))
        refuse("NCCL_TESTS_SPLIT");
    quiet_allgather(w->host, hosts, MAX_HOST);
    for (int i = 0; i < w->nodes; i++)
        if (i != w->node && !strcmp(hosts[i], w->host))
            refuse("several processes on one host; start one per host with -g N");
    free(hosts);
}

static void check_gpus(const struct world *w)
{
    int found = count_gpus();

    if (w->gpus > 0 && w->gpus <= found)
        return;
    /* nccl-gate.md 1.5, sample 58 */
    fprintf(stderr, "Invalid number of GPUs: %d requested but only %d were found.\n", w->gpus, found);
    fprintf(stderr, "Please check the number of processes and GPUs per process.\n");
    trace_failure("common.cu", 1454);
    fflush(NULL);
    _exit(EXIT_NOT_IMPLEMENTED);
}

static void limit_sizes(struct world *w)
{
    struct options *o = &w->options;

    if (o->max_bytes <= LARGEST_BUFFER)
        return;
    o->max_bytes = LARGEST_BUFFER;
    if (o->min_bytes > o->max_bytes)
        o->min_bytes = o->max_bytes;
    if (w->node == 0)
        printf("#\n# Reducing maxBytes to %zu due to memory limitation\n", o->max_bytes);
}

static int read_corrupt(void)
{
    FILE *file = fopen(CORRUPT_FILE, "r");
    int rank = -1;

    if (file && fscanf(file, "%d", &rank) != 1)
        rank = -1;
    if (file)
        fclose(file);
    return rank;
}

static int run(struct world *w)
{
    struct totals totals = {0};
    const char *limit_text = getenv("NCCL_TESTS_MIN_BW");
    double limit = limit_text ? atof(limit_text) : -1;

    check_nodes(w);
    if (w->node == 0)
        printf(BANNER);
    check_gpus(w);
    report_start(w);
    limit_sizes(w);
    at_init();
    find_network(w);
    connect_ring(w);
    fflush(stdout);
    report_heading(w);
    bench(w, &totals);
    totals.errors = (int)quiet_sum(totals.errors);
    report_footer(w, &totals, limit);
    quiet_stop();
    if (w->node == 0)
        printf("\n");
    bool slow = limit >= 0 && totals.rows && totals.busbw / totals.rows < limit * 0.9;
    return totals.errors || slow ? EXIT_RESULTS : 0;
}

int main(int argc, char **argv)
{
    static struct world w; /* zeroed; several hundred kB */

    w.options = (struct options){.threads = 1, .gpus = 1, .iters = 20, .aggregated = 1, .warmup = 1, .cycles = 1,
                                 .check = 1, .average = 1, .min_bytes = 32 << 20, .max_bytes = 32 << 20,
                                 .step_bytes = 1 << 20, .step_factor = 1};
    setlinebuf(stdout);
    w.program = find_program(argv[0]);
    if (!w.program) {
        fprintf(stderr, "%s: call it by the name of one of nccl-tests' programs\n", argv[0]);
        return EXIT_USAGE;
    }
    int status = parse_options(&w.options, argc, argv);
    if (status == 0) {
        printf(BANNER "USAGE: %s \n\t", w.program->name);
        print_usage();
    }
    if (status >= 0)
        return status;
    gethostname(w.host, sizeof w.host - 1);
    log_open();
    w.gpus = w.options.gpus;
    w.corrupt = read_corrupt();
    quiet_start(&argc, &argv, &w.node, &w.nodes);
    w.ranks = w.nodes * w.gpus;
    status = run(&w);
    if (status)
        trace_failure("common.cu", 1454);
    return status;
}
