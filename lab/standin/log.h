/* GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * NCCL's log lines and nccl-tests' failure lines. */
#ifndef STANDIN_LOG_H
#define STANDIN_LOG_H

#include <stddef.h>

/* Subsystems of NCCL_DEBUG_SUBSYS. */
enum { SUB_INIT = 1, SUB_NET = 2, SUB_ENV = 4, SUB_BOOTSTRAP = 8, SUB_SHM = 16, SUB_OTHER = 32, SUB_ALL = 63 };

/* Adds to the string in `line` as much as fits. */
void append(char *line, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

void log_open(void);
void log_version(void);
void log_info(unsigned subsystems, int device, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Remembers the text: the "last error" of the failure lines. */
void log_warn(int device, const char *where, const char *format, ...) __attribute__((format(printf, 3, 4)));
long env_number(const char *name, long fallback);
void echo_numbers(void);

/* Where in nccl-tests the program is now, so that a failure prints the call chain users know. */
void at_init(void);
void at_collective(const char *source, int source_line, int caller_line, int outer_line);
/* Both end the process with nccl-tests' exit status. Threads may call them; the first one prints. */
_Noreturn void fail_nccl(const char *error);
_Noreturn void fail_timeout(int seconds);
void trace_failure(const char *source, int line);

#define REMOTE_ERROR "remote process exited or there was a network error"
#define SYSTEM_ERROR "unhandled system error (run with NCCL_DEBUG=INFO for details)"

#endif
