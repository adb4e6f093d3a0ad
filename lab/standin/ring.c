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

/* Each chunk travels in this many slices: the first is passed on while the next is still arriving, so the link
 * never waits for a step to end (NCCL pipelines its chunks in the same way). */
#define SLICES 2

/* A channel. Slice i of the whole run is part i % SLICES of the chunk of step i / SLICES. */
struct job {
    struct world *world;
    const struct buffers *buffers;
    int channel;
    struct phase phases[2];
    int slices, sent, received;
    size_t out_done, in_done; /* bytes of the slices under way */
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

/* One hop of one slice: from local rank `from` (-1: from the node before) to the next. */
struct hop {
    const struct phase *phase;
    struct span span;
    float *source;
};

static struct hop hop(const struct job *j, int slice, int from)
{
    const struct phase *p = &j->phases[0];
    int k = slice / SLICES;
    struct hop h;

    if (k >= p->steps) {
        k -= p->steps;
        p++;
    }
    h.phase = p;
    h.span = part(chunk(j, first_rank(j->world) + from + p->shift - k), slice % SLICES, SLICES);
    h.source = from < 0 ? j->scratch : (k == 0 && p->own_first ? j->buffers->in : j->buffers->out)[from] + h.span.start;
    return h;
}

/* All local ranks take the slice that the rank before them has; the first takes what came over the wire. */
static void complete_slice(struct job *j)
{
    /* Downwards: in sendrecv a rank's input may be the buffer that its own delivery overwrites. */
    for (int from = j->world->gpus - 2; from >= -1; from--) {
        struct hop h = hop(j, j->received, from);
        if (from >= 0)
            flip(j, from, h.source, h.span.length);
        deliver(j, h.phase, from + 1, h.span, h.source);
        if (from >= 0)
            flip(j, from, h.source, h.span.length);
    }
    j->received++;
    j->in_done = 0;
}

static void send_some(struct job *j)
{
    int last = j->world->gpus - 1;
    struct hop h = hop(j, j->sent, last);
    size_t bytes = h.span.length * sizeof *h.source;

    if (j->out_done == 0)
        flip(j, last, h.source, h.span.length);
    if (j->out_done < bytes)
        j->out_done += wire_send(j->world, j->channel, (char *)h.source + j->out_done, bytes - j->out_done);
    if (j->out_done < bytes)
        return;
    flip(j, last, h.source, h.span.length);
    j->sent++;
    j->out_done = 0;
}

static void receive_some(struct job *j, size_t bytes)
{
    if (j->in_done < bytes)
        j->in_done += wire_receive(j->world, j->channel, (char *)j->scratch + j->in_done, bytes - j->in_done);
    if (j->in_done == bytes)
        complete_slice(j);
}

static void run_wire(struct job *j)
{
    struct watch watch = {.since = now(), .checked = now()};

    while (j->sent < j->slices || j->received < j->slices) {
        bool out = j->sent < j->slices && j->sent < j->received + SLICES;
        bool in = j->received < j->slices;
        size_t bytes = in ? hop(j, j->received, -1).span.length * sizeof(float) : 0;
        if (in && bytes == 0) { /* fewer elements than ranks */
            complete_slice(j);
            continue;
        }
        int ready = wire_wait(j->world, j->channel, out, in, &watch);
        if (ready & WIRE_OUT)
            send_some(j);
        if (ready & WIRE_IN)
            receive_some(j, bytes);
    }
}

/* One node: from its last rank to its first in memory, too. */
static void run_memory(struct job *j)
{
    int last = j->world->gpus - 1;

    while (j->received < j->slices) {
        struct hop h = hop(j, j->received, last);
        flip(j, last, h.source, h.span.length);
        memcpy(j->scratch, h.source, h.span.length * sizeof *h.source);
        flip(j, last, h.source, h.span.length);
        complete_slice(j);
    }
}

static void plan(struct job *j)
{
    int steps = j->world->ranks - 1;

    switch (j->world->program->kind) {
    case ALL_REDUCE:
        j->phases[0] = (struct phase){true, 0, steps, true};
        j->phases[1] = (struct phase){false, 1, steps, false};
        break;
    case REDUCE_SCATTER: /* one chunk earlier, so that rank r ends with block r */
        j->phases[0] = (struct phase){true, -1, steps, true};
        break;
    case ALL_GATHER:
        j->phases[0] = (struct phase){false, 0, steps, false};
        break;
    default:
        j->phases[0] = (struct phase){false, 0, 1, true};
    }
    j->slices = (j->phases[0].steps + j->phases[1].steps) * SLICES;
}

static void *run_channel(void *argument)
{
    struct job *j = argument;

    plan(j);
    if (j->world->nodes > 1)
        run_wire(j);
    else
        run_memory(j);
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
        jobs[c] = (struct job){.world = w, .buffers = b, .channel = c};
        jobs[c].scratch = malloc((b->count + 1) * sizeof(float));
        pthread_create(&threads[c], NULL, run_channel, &jobs[c]);
    }
    for (int c = 0; c < w->rails; c++) {
        pthread_join(threads[c], NULL);
        free(jobs[c].scratch);
    }
}
