/* GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Command line of nccl-tests v2.19.6 (nccl-gate.md 1.2): the same letters, defaults and refusals. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "standin.h"

enum value { NUMBER, LONG_NUMBER, SIZE, OPERATION, DATATYPE, HELP };

struct entry {
    char letter;
    const char *name;
    enum value value;
    size_t where;
};

#define NUM(letter, name, field) {letter, name, NUMBER, offsetof(struct options, field)}
#define BYTES(letter, name, field) {letter, name, SIZE, offsetof(struct options, field)}

static const struct entry entries[] = {
    NUM('t', "nthreads", threads), NUM('g', "ngpus", gpus), BYTES('b', "minbytes", min_bytes),
    BYTES('e', "maxbytes", max_bytes), BYTES('i', "stepbytes", step_bytes),
    {'f', "stepfactor", LONG_NUMBER, offsetof(struct options, step_factor)}, NUM('n', "iters", iters),
    NUM('m', "agg_iters", aggregated), NUM('w', "warmup_iters", warmup), NUM('N', "run_cycles", cycles),
    NUM('p', "parallel_init", parallel), NUM('c', "check", check), {'o', "op", OPERATION, 0},
    {'d', "datatype", DATATYPE, 0}, NUM('r', "root", ignored), NUM('z', "blocking", unsimulated),
    NUM('y', "stream_null", ignored), NUM('T', "timeout", timeout), NUM('G', "cudagraph", unsimulated),
    NUM('C', "report_cputime", unsimulated), NUM('S', "report_timestamps", unsimulated),
    {'J', "output_file", NUMBER, offsetof(struct options, unsimulated)}, NUM('a', "average", average),
    NUM('R', "local_register", ignored), NUM('x', "cta_policy", ignored),
    NUM('D', "device_implementation", unsimulated), NUM('V', "device_cta_count", ignored),
    NUM('M', "memory", unsimulated), NUM('u', "unalign", unalign), NUM('I', "per_iter_timing", unsimulated),
    NUM('K', "per_iter_skip", unsimulated), {'h', "help", HELP, 0},
};
#define ENTRIES (sizeof entries / sizeof *entries)

static const struct program programs[] = {
    {"all_reduce_perf", "all_reduce.cu", 574, ALL_REDUCE, "sum"},
    {"all_gather_perf", "all_gather.cu", 87, ALL_GATHER, "none"},
    {"reduce_scatter_perf", "reduce_scatter.cu", 98, REDUCE_SCATTER, "sum"},
    {"sendrecv_perf", "sendrecv.cu", 120, SEND_RECV, "sum"},
};

const struct program *find_program(const char *argv0)
{
    const char *slash = strrchr(argv0, '/'), *name = slash ? slash + 1 : argv0;

    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        if (!strcmp(name, programs[i].name))
            return &programs[i];
    return NULL;
}

/* Binary units; -1 for what nccl-tests calls an invalid size. */
static double parse_size(const char *text)
{
    double size;
    char unit;

    switch (sscanf(text, "%lf %1c", &size, &unit)) {
    case 1:
        return size;
    case 2:
        break;
    default:
        return -1;
    }
    switch (unit | 0x20) {
    case 'g':
        return size * (1 << 30);
    case 'm':
        return size * (1 << 20);
    case 'k':
        return size * (1 << 10);
    default:
        return -1;
    }
}

static int set_size(const struct entry *e, size_t *field)
{
    double size = parse_size(optarg);

    if (size < 0) {
        fprintf(stderr, "invalid size specified for '%s'\n", e->letter == 'i' ? "stepBytes" : e->name);
        return 255;
    }
    *field = (size_t)size;
    return -1;
}

/* Whatever the real tool could do and this one cannot is an error, never a run of something else. */
static int refuse(const struct entry *e)
{
    fprintf(stderr, "-%c %s: the stand-in does not simulate this\n", e->letter, optarg);
    return EXIT_USAGE;
}

static bool is_one_of(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(word, *list))
            return true;
    return false;
}

static int set_word(const struct entry *e)
{
    static const char *const operations[] = {"prod", "max", "min", "avg", "mulsum", "all", NULL};
    static const char *const types[] = {"int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "double",
                                        "bfloat16", "f8e4m3", "f8e5m2", "all", NULL};
    bool type = e->value == DATATYPE;
    const char *simulated = type ? "float" : "sum";

    if (is_one_of(optarg, type ? types : operations))
        return refuse(e);
    if (strcmp(optarg, simulated) != 0)
        printf("invalid %s %s, defaulting to %s .. \n", type ? "type" : "op", optarg, simulated);
    return -1;
}

static int apply(struct options *o, const struct entry *e)
{
    char *field = (char *)o + e->where;

    switch (e->value) {
    case SIZE:
        return set_size(e, (size_t *)field);
    case LONG_NUMBER:
        *(size_t *)field = strtoul(optarg, NULL, 0);
        return -1;
    case NUMBER:
        *(int *)field = (int)strtol(optarg, NULL, 0);
        if (e->letter == 'J' || o->unsimulated != 0 || o->threads != 1)
            return refuse(e);
        return -1;
    default:
        return set_word(e);
    }
}

static int check_sizes(const struct options *o)
{
    if (o->min_bytes <= o->max_bytes)
        return -1;
    fprintf(stderr, "invalid sizes for 'minbytes' and 'maxbytes': %zu > %zu\n", o->min_bytes, o->max_bytes);
    return 255;
}

int parse_options(struct options *o, int argc, char **argv)
{
    struct option longs[ENTRIES + 1] = {0};
    char shorts[2 * ENTRIES + 1] = "";
    int letter;

    for (size_t i = 0; i < ENTRIES; i++) {
        bool argument = entries[i].value != HELP;
        longs[i] = (struct option){entries[i].name, argument, NULL, entries[i].letter};
        snprintf(shorts + strlen(shorts), 3, "%c%s", entries[i].letter, argument ? ":" : "");
    }
    while ((letter = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        const struct entry *e = entries;
        while (e < entries + ENTRIES && e->letter != letter)
            e++;
        if (e == entries + ENTRIES || e->value == HELP) {
            if (letter != 'h')
                printf("invalid option '%c'\n", letter);
            return 0; /* usage text and exit status 0, as nccl-tests (nccl-gate.md 1.2) */
        }
        int status = apply(o, e);
        if (status >= 0)
            return status;
    }
    return check_sizes(o);
}
