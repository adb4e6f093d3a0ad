/* GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * MPI, for the bootstrap only, without its busy waiting. */
#ifndef STANDIN_QUIET_H
#define STANDIN_QUIET_H

#include <stddef.h>

void quiet_start(int *argc, char ***argv, int *rank, int *size);
void quiet_stop(void);
void quiet_barrier(void);
void quiet_allgather(const void *mine, void *all, size_t bytes);
/* average as nccl-tests' -a: 0 rank 0's, 1 mean, 2 smallest, 3 largest. */
double quiet_combine(double value, int average);
long quiet_sum(long value);

#endif
