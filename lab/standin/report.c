/* GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Text as nccl-tests v2.19.6 prints it (nccl-gate.md 1.3; samples 33, 46). Two differences, both on purpose: the
 * line that says SIMULATED, and four decimals for bandwidths below 1 GB/s (see narrow). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "quiet.h"
#include "standin.h"

#define LINE 2048

static void gather_devices(const struct world *w)
{
    char lines[LINE] = "", *all = calloc((size_t)w->nodes, LINE);
    size_t used = 0;

    for (int i = 0; i < w->gpus && used < LINE; i++)
        used += (size_t)snprintf(lines + used, LINE - used,
                                 "#  Rank %2d Group %2d Pid %6d on %10s device %2d [%04x:%02x:%02x] %s\n",
                                 first_rank(w) + i, 0, (int)getpid(), w->host, i, 0, 0x10 + i, 0,
                                 "SIMULATED (no GPU)");
    quiet_allgather(lines, all, LINE);
    for (int node = 0; node < w->nodes && w->node == 0; node++)
        fputs(all + (size_t)node * LINE, stdout);
    free(all);
}

void report_start(const struct world *w)
{
    const struct options *o = &w->options;
    bool factor = o->step_factor > 1;

    if (w->node == 0) {
        printf("# nccl-tests version 2.19.6 nccl-headers=22903 nccl-library=22903\n");
        printf("# Collective test starting: %s\n", w->program->name);
        printf("# nThread %d nGpus %d minBytes %zu maxBytes %zu step: %zu(%s) warmup iters: %d iters: %d agg iters: %d "
               "validation: %d graph: 0 unalign: %d\n", o->threads, o->gpus, o->min_bytes, o->max_bytes,
               factor ? o->step_factor : o->step_bytes, factor ? "factor" : "bytes", o->warmup, o->iters,
               o->aggregated, o->check, o->unalign);
        if (o->parallel)
            printf("# Parallel Init Enabled: threads call into NcclInitRank concurrently \n");
        printf("#\n# Using devices\n");
    }
    gather_devices(w);
}

void report_heading(const struct world *w)
{
    if (w->node != 0)
        return;
    printf("#\n");
    printf("# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place          \n", "", "", "",
           "", "");
    printf("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s %*s\n", "size", "count", "type",
           "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong", 0, "");
    printf("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s %*s\n", "(B)", "(elements)", "", "",
           "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "", 0, "");
}

void report_row(const struct world *w, struct sizes s)
{
    size_t elements = s.send > s.expected ? s.send : s.expected;

    if (w->node == 0)
        printf("%12zu  %12zu  %8s  %6s  %6s", elements * sizeof(float), s.param, "float", w->program->redop, "    -1");
}

/* Decimals are dropped until the number fits (2.17.3 and later). The lab's links are 10,000 times slower than the
 * real ones, and 0.02 GB/s with two decimals could be anything from 0.015 to 0.025: below 1 four decimals, which
 * take the same width. */
static const char *narrow(char *text, double value, int width, bool bandwidth)
{
    int decimals = bandwidth && value > 0 && value < 0.99995 ? width - 2 : 2;

    for (; decimals >= 0; decimals -= decimals > 2 ? decimals - 2 : 1)
        if (snprintf(text, 32, "%*.*f", width, decimals, value) <= width)
            return text;
    snprintf(text, 32, width >= 7 ? "%*.1e" : "%*.0e", width, value);
    return text;
}

void report_half(const struct world *w, double seconds, double algbw, double busbw, long wrong, bool checked)
{
    char time[32], alg[32], bus[32];

    if (w->node != 0)
        return;
    printf("  %7s  %6s  %6s", narrow(time, seconds * 1e6, 7, false), narrow(alg, algbw, 6, true),
           narrow(bus, busbw, 6, true));
    if (checked)
        printf("  %6g", (double)wrong);
    else
        printf("    N/A");
}

void report_row_end(const struct world *w)
{
    if (w->node == 0)
        printf("\n");
}

void report_footer(const struct world *w, const struct totals *totals, double limit)
{
    double average = totals->rows ? totals->busbw / totals->rows : 0;

    if (w->node != 0)
        return;
    printf("# %-20s : %d %s\n", "Out of bounds values", totals->errors, totals->errors ? "FAILED" : "OK");
    printf("# %-20s : %g %s\n", "Avg bus bandwidth", average,
           limit < 0 ? "" : average < limit * 0.9 ? "FAILED" : "OK"); /* NCCL_TESTS_MIN_BW (nccl-gate.md 1.6) */
    printf("#\n# Collective test concluded: %s\n#\n", w->program->name);
}
