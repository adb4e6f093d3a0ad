/* GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdio.h>

#include "standin.h"

/* The lines a wrapper may look for; the wording follows nccl-tests, cut to what this program knows. */
void print_usage(void)
{
    printf("[-t,--nthreads <num threads>] \n\t"
           "[-g,--ngpus <gpus per thread>] \n\t"
           "[-b,--minbytes <min size in bytes>] \n\t"
           "[-e,--maxbytes <max size in bytes>] \n\t"
           "[-i,--stepbytes <increment size>] \n\t"
           "[-f,--stepfactor <increment factor>] \n\t"
           "[-n,--iters <iteration count>] \n\t"
           "[-m,--agg_iters <aggregated iteration count>] \n\t"
           "[-w,--warmup_iters <warmup iteration count>] \n\t"
           "[-N,--run_cycles <cycle count> run & print each cycle (default: 1; 0=infinite)] \n\t"
           "[-p,--parallel_init <0/1>] \n\t"
           "[-c,--check <check iteration count>] \n\t"
           "[-o,--op <sum>] \n\t"
           "[-d,--datatype <float>] \n\t"
           "[-r,--root <root>] \n\t"
           "[-T,--timeout <time in seconds>] \n\t"
           "[-a,--average <0/1/2/3> report average iteration time <0=RANK0/1=AVG/2=MIN/3=MAX>] \n\t"
           "[-u,--unalign <index of first element>] \n\t"
           "[-h,--help]\n");
}
