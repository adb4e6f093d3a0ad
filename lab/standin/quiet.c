/* GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later */
#include "quiet.h"

#include <mpi.h>
#include <time.h>

/* A blocking MPI call spins: with more ranks than cores that costs 10-20 ms per 8-byte operation and
 * the measurement shows the scheduler, not the link (simulation.md 0.5). So: test and sleep. */
static void wait_for(MPI_Request *request)
{
    const struct timespec pause = {0, 300000};
    int done = 0;

    for (;;) {
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (done)
            return;
        nanosleep(&pause, NULL);
    }
}

void quiet_start(int *argc, char ***argv, int *rank, int *size)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, size);
}

void quiet_stop(void)
{
    quiet_barrier(); /* so that nobody spins in MPI_Finalize */
    MPI_Finalize();
}

void quiet_barrier(void)
{
    MPI_Request request;

    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    wait_for(&request);
}

void quiet_allgather(const void *mine, void *all, size_t bytes)
{
    MPI_Request request;

    MPI_Iallgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD, &request);
    wait_for(&request);
}

double quiet_combine(double value, int average)
{
    MPI_Request request;
    MPI_Op op = average == 2 ? MPI_MIN : average == 3 ? MPI_MAX : MPI_SUM;
    double result = value;
    int size;

    if (average == 0) /* each process keeps its own; only rank 0 prints */
        return value;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Iallreduce(&value, &result, 1, MPI_DOUBLE, op, MPI_COMM_WORLD, &request);
    wait_for(&request);
    return average == 1 ? result / size : result;
}

long quiet_sum(long value)
{
    MPI_Request request;
    long result = value;

    MPI_Iallreduce(&value, &result, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &request);
    wait_for(&request);
    return result;
}
