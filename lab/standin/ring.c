/* GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The ring of all ranks, as NCCL's RING algorithm: one thread per channel, one channel per rail. A node's ranks
 * pass chunks on in memory; from a node's last rank to the next node's first they go over the wire. In all_reduce
 * each node boundary carries 2(R-1)/R x size / channels per channel (simulation.md 0.5). */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "standin.h"

struct span {
    size_t start, length;
};

/* In a phase, step k: rank r passes chunk (r + shift - k) on to rank r + 1. */
struct phase {
    bool reduce;
    int shift, steps;
    bool own_first; /* the first chunk passed on comes from the input buffer */
};

struct job {
    struct world *world;
    const struct buffers *buffers;
    int channel;
    float *scratch;
};

/* Part `index` of `parts` of `whole`, all parts alike but for one element. */
static struct span part(struct span whole, int index, int parts)
{
    size_t begin = whole.length * (size_t)index / (size_t)parts;
    size_t end = whole.length * (size_t)(index + 1) / (size_t)parts;

    return (struct span){whole.start + begin, end - begin};
}

static struct span chunk(const struct job *j, int index)
{
    const struct world *w = j->world;
    struct span all = {0, j->buffers->count};

    index = (index % w->ranks + w->ranks) % w->ranks;
    switch (w->program->kind) {
    case ALL_REDUCE:
        return part(part(all, j->channel, w->rails), index, w->ranks);
    case SEND_RECV:
        return part(all, j->channel, w->rails);
    default: /* one block per rank */
        all.start = j->buffers->count * (size_t)index;
        return part(all, j->channel, w->rails);
    }
}

/* The only input that is not real: the rank in /run/aidc-lab/corrupt-rank flips one bit of each chunk it passes on;
 * from there on the wrong bytes travel and are summed like any others. */
static void flip(const struct job *j, int local, float *data, size_t length)
{
    uint32_t bits;

    if (first_rank(j->world) + local != j->world->corrupt || length == 0)
        return;
    memcpy(&bits, data, sizeof bits);
    bits ^= 1u << 30;
    memcpy(data, &bits, sizeof bits);
}

static void deliver(const struct job *j, const struct phase *p, int local, struct span s, const float *from)
{
    float *out = j->buffers->out[local] + s.start;
    const float *in = j->buffers->in[local] + s.start;

    if (!p->reduce) {
        memcpy(out, from, s.length * sizeof *out);
        return;
    }
    for (size_t i = 0; i < s.length; i++)
        out[i] = in[i] + from[i];
}

static float *source(const struct job *j, const struct phase *p, int k, int local, struct span s)
{
    return (k == 0 && p->own_first ? j->buffers->in : j->buffers->out)[local] + s.start;
}

static void step(const struct job *j, const struct phase *p, int k)
{
    struct world *w = j->world;
    int last = w->gpus - 1, index = first_rank(w) + p->shift - k;
    struct span out = chunk(j, index + last), in = chunk(j, index - 1);
    float *from = source(j, p, k, last, out);

    flip(j, last, from, out.length);
    if (w->nodes > 1)
        wire_exchange(w, j->channel, from, out.length * sizeof *from, j->scratch, in.length * sizeof *from);
    else
        memcpy(j->scratch, from, out.length * sizeof *from);
    flip(j, last, from, out.length);
    /* Downwards: in sendrecv a rank's input may be the buffer that its own delivery overwrites. */
    for (int local = last; local > 0; local--) {
        struct span s = chunk(j, index + local - 1);
        from = source(j, p, k, local - 1, s);
        flip(j, local - 1, from, s.length);
        deliver(j, p, local, s, from);
        flip(j, local - 1, from, s.length);
    }
    deliver(j, p, 0, in, j->scratch);
}

static int plan(const struct world *w, struct phase phases[2])
{
    int steps = w->ranks - 1;

    switch (w->program->kind) {
    case ALL_REDUCE:
        phases[0] = (struct phase){true, 0, steps, true};
        phases[1] = (struct phase){false, 1, steps, false};
        return 2;
    case REDUCE_SCATTER: /* one chunk earlier, so that rank r ends with block r */
        phases[0] = (struct phase){true, -1, steps, true};
        return 1;
    case ALL_GATHER:
        phases[0] = (struct phase){false, 0, steps, false};
        return 1;
    default:
        phases[0] = (struct phase){false, 0, 1, true};
        return 1;
    }
}

static void *run_channel(void *argument)
{
    struct job *j = argument;
    struct phase phases[2];
    int count = plan(j->world, phases);

    for (int i = 0; i < count; i++)
        for (int k = 0; k < phases[i].steps; k++)
            step(j, &phases[i], k);
    return NULL;
}

/* What stays where it is: all_gather's own block, and everything when there is one rank only. */
static void keep_own(const struct world *w, const struct buffers *b)
{
    bool gather = w->program->kind == ALL_GATHER;

    for (int local = 0; local < w->gpus; local++) {
        float *own = b->out[local] + (gather ? b->count * (size_t)(first_rank(w) + local) : 0);
        if ((gather || w->ranks == 1) && b->in[local] != own && b->in[local] != b->out[local])
            memcpy(own, b->in[local], b->count * sizeof *own);
    }
}

void ring_run(struct world *w, const struct buffers *b)
{
    pthread_t threads[MAX_RAILS];
    struct job jobs[MAX_RAILS];

    w->deadline = w->options.timeout > 0 ? now() + w->options.timeout : 0;
    keep_own(w, b);
    for (int c = 0; c < w->rails; c++) {
        jobs[c] = (struct job){w, b, c, NULL};
        jobs[c].scratch = malloc((b->count + 1) * sizeof(float));
        pthread_create(&threads[c], NULL, run_channel, &jobs[c]);
    }
    for (int c = 0; c < w->rails; c++) {
        pthread_join(threads[c], NULL);
        free(jobs[c].scratch);
    }
}
