/* GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Sizes as nccl-tests counts them (nccl-gate.md 1.7), input data, and the check of every element. */
#include <string.h>

#include "standin.h"

struct sizes sizes_of(const struct world *w, size_t bytes)
{
    size_t count = bytes / sizeof(float), ranks = (size_t)w->ranks;
    size_t block = count / ranks & ~(16 / sizeof(float) - 1); /* whole 16 bytes per rank */

    switch (w->program->kind) {
    case ALL_GATHER:
        return (struct sizes){block, block, block * ranks};
    case REDUCE_SCATTER:
        return (struct sizes){block, block * ranks, block};
    default:
        return (struct sizes){count, count, count};
    }
}

/* Whole numbers, small enough that every sum of them is exact in a float: no rounding to argue about. */
static float value(int rank, size_t index, int repetition)
{
    return (float)((index + (size_t)repetition) % 251) + (float)rank;
}

static float total(const struct world *w, size_t index, int repetition)
{
    return (float)w->ranks * value(0, index, repetition) + (float)(w->ranks * (w->ranks - 1) / 2);
}

static float *input_of(const struct world *w, const struct buffers *b, int local, bool in_place)
{
    if (!in_place)
        return b->in[local];
    return b->out[local] + (w->program->kind == ALL_GATHER ? b->count * (size_t)(first_rank(w) + local) : 0);
}

static size_t whole(const struct world *w, size_t count)
{
    bool blocks = w->program->kind == ALL_GATHER || w->program->kind == REDUCE_SCATTER;

    return blocks ? count * (size_t)w->ranks : count;
}

/* Fills the input of each local rank; in place, b->in becomes that part of b->out. */
void fill(const struct world *w, struct buffers *b, int repetition, bool in_place)
{
    size_t count = w->program->kind == REDUCE_SCATTER ? whole(w, b->count) : b->count;

    for (int local = 0; local < w->gpus; local++) {
        float *in = input_of(w, b, local, in_place);
        memset(b->out[local], 0, whole(w, b->count) * sizeof *in);
        for (size_t i = 0; i < count; i++)
            in[i] = value(first_rank(w) + local, i, repetition);
        if (in_place)
            b->in[local] = in;
    }
}

static float expected(const struct world *w, size_t count, int rank, size_t index, int repetition)
{
    switch (w->program->kind) {
    case ALL_GATHER:
        return value((int)(index / count), index % count, repetition);
    case SEND_RECV:
        return value((rank + w->ranks - 1) % w->ranks, index, repetition);
    default:
        return total(w, index, repetition);
    }
}

long count_wrong(const struct world *w, const struct buffers *b, int repetition)
{
    bool scatter = w->program->kind == REDUCE_SCATTER;
    size_t count = scatter ? b->count : whole(w, b->count);
    long wrong = 0;

    for (int local = 0; local < w->gpus; local++) {
        int rank = first_rank(w) + local;
        size_t start = scatter ? b->count * (size_t)rank : 0;
        for (size_t i = start; i < start + count; i++)
            /* "not equal" also counts what is not a number */
            if (!(b->out[local][i] == expected(w, b->count, rank, i, repetition)))
                wrong++;
    }
    return wrong;
}
