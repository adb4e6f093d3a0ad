/* GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef STANDIN_SYSFS_H
#define STANDIN_SYSFS_H

#include <stdbool.h>
#include <stddef.h>

#define SYSFS "/sys/class/infiniband"

/* First line of the file named by format (hca, port, index); false when there is none or it is empty. */
bool read_line(char *text, size_t size, const char *format, const char *hca, int port, int index)
    __attribute__((format(printf, 3, 0)));

#endif
