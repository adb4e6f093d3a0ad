/* GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The order of work of nccl-tests v2.19.6 (src/common.cu, TimeTest and BenchTime). A row of a run with -w W -n N
 * -m M -c C makes W + 2 (1 + N M + C) collectives, W once per power of two from -b to -e. */
#include <stdlib.h>

#include "log.h"
#include "quiet.h"
#include "standin.h"

struct bench {
    struct world *world;
    struct totals *totals;
    float *send[MAX_GPUS], *receive[MAX_GPUS];
    int repetition;
};

static struct buffers buffers_of(const struct bench *b, size_t count)
{
    struct buffers buffers = {.count = count};

    for (int i = 0; i < b->world->gpus; i++) {
        buffers.in[i] = b->send[i];
        buffers.out[i] = b->receive[i];
    }
    return buffers;
}

static void collective(struct bench *b, struct buffers *buffers, int caller, int outer)
{
    struct world *w = b->world;

    at_collective(w->program->source, w->program->line, caller, outer);
    ring_run(w, buffers);
}

static void warm_up(struct bench *b)
{
    const struct options *o = &b->world->options;

    for (size_t size = o->min_bytes; size <= o->max_bytes && size > 0; size *= 2) {
        struct buffers buffers = buffers_of(b, sizes_of(b->world, size).param);
        for (int i = 0; i < o->warmup; i++)
            collective(b, &buffers, 930, 0);
    }
}

static double bus_factor(const struct world *w)
{
    double ranks = w->ranks;

    switch (w->program->kind) { /* nccl-gate.md 1.7 */
    case ALL_REDUCE:
        return 2 * (ranks - 1) / ranks;
    case SEND_RECV:
        return 1;
    default:
        return (ranks - 1) / ranks;
    }
}

static double measure(struct bench *b, struct buffers *buffers, int outer)
{
    const struct options *o = &b->world->options;
    int operations = o->iters * o->aggregated;
    double start;

    collective(b, buffers, 703, outer);
    quiet_barrier();
    start = now();
    for (int i = 0; i < operations; i++)
        collective(b, buffers, 769, outer);
    return quiet_combine((now() - start) / operations, o->average);
}

static long check(struct bench *b, struct buffers *buffers, bool in_place, int outer)
{
    long all = 0;

    b->repetition++;
    for (int c = 0; c < b->world->options.check && all == 0; c++) {
        fill(b->world, buffers, b->repetition, in_place);
        collective(b, buffers, 836, outer);
        long wrong = count_wrong(b->world, buffers, b->repetition);
        /* "Out of bounds values" counts failed checks, not elements (nccl-gate.md 1.3) */
        b->totals->errors += wrong > 0;
        all = quiet_sum(wrong);
    }
    return all;
}

static void half_row(struct bench *b, struct sizes s, bool in_place)
{
    struct world *w = b->world;
    struct buffers buffers = buffers_of(b, s.param);
    int outer = in_place ? 940 : 939;
    bool checked = w->options.check > 0 && !(in_place && w->program->kind == SEND_RECV); /* never in place */
    size_t bytes = (s.send > s.expected ? s.send : s.expected) * sizeof(float);
    long wrong = 0;

    fill(w, &buffers, 99, in_place);
    double seconds = measure(b, &buffers, outer);
    double algbw = (double)bytes / 1e9 / seconds;
    quiet_barrier();
    if (checked)
        wrong = check(b, &buffers, in_place, outer);
    report_half(w, seconds, algbw, algbw * bus_factor(w), wrong, checked);
    b->totals->busbw += algbw * bus_factor(w);
    b->totals->rows++;
}

static void one_cycle(struct bench *b)
{
    const struct options *o = &b->world->options;
    size_t size = o->min_bytes;

    while (size <= o->max_bytes) {
        struct sizes s = sizes_of(b->world, size);
        report_row(b->world, s);
        half_row(b, s, false);
        half_row(b, s, true);
        report_row_end(b->world);
        size_t next = o->step_factor > 1 ? size * o->step_factor : size + o->step_bytes;
        if (next == size) /* -b 0 with -f, or -i 0: nccl-tests repeats this row for ever */
            return;
        size = next;
    }
}

void bench(struct world *w, struct totals *totals)
{
    struct bench b = {.world = w, .totals = totals};
    int left = w->options.cycles;

    for (int i = 0; i < w->gpus; i++) {
        b.send[i] = calloc(1, w->options.max_bytes + sizeof(float));
        b.receive[i] = calloc(1, w->options.max_bytes + sizeof(float));
    }
    quiet_barrier();
    warm_up(&b);
    do
        one_cycle(&b);
    while (--left); /* -N 0: endless */
    for (int i = 0; i < w->gpus; i++) {
        free(b.send[i]);
        free(b.receive[i]);
    }
}
