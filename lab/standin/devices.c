/* GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * HCAs as NCCL would use them, read from sysfs (mlx5-roce.md 1.1, 1.3, 6.4). */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "standin.h"
#include "sysfs.h"

bool read_line(char *text, size_t size, const char *format, const char *hca, int port, int index)
{
    char path[PATH_MAX];
    FILE *file;

    snprintf(path, sizeof path, format, hca, port, index);
    file = fopen(path, "r");
    *text = '\0';
    if (!file)
        return false;
    /* EINVAL: the entry is empty or not for us (mlx5-roce.md 1.2) */
    bool good = fgets(text, (int)size, file) != NULL;
    fclose(file);
    text[strcspn(text, "\n")] = '\0';
    return good && *text;
}

static bool usable(struct rail *rail)
{
    char text[64];

    /* Only ports in state 4: ACTIVE count; link_layer tells RoCE from IB (mlx5-roce.md 1.1, 6.4). */
    if (!read_line(text, sizeof text, SYSFS "/%s/ports/%d/state", rail->hca, rail->port, 0) || atoi(text) != 4)
        return false;
    if (!read_line(text, sizeof text, SYSFS "/%s/ports/%d/link_layer", rail->hca, rail->port, 0))
        return false;
    rail->link = !strcmp(text, "Ethernet") ? "RoCE" : !strcmp(text, "InfiniBand") ? "IB" : NULL;
    return rail->link != NULL;
}

static void first_netdev(struct rail *rail)
{
    char path[PATH_MAX];
    struct dirent *entry;

    snprintf(path, sizeof path, SYSFS "/%s/device/net", rail->hca);
    DIR *directory = opendir(path);
    while (directory && (entry = readdir(directory)))
        if (entry->d_name[0] != '.')
            snprintf(rail->netdev, IFNAMSIZ, "%.*s", IFNAMSIZ - 1, entry->d_name);
    if (directory)
        closedir(directory);
}

/* A packet of a GID leaves by that GID's netdev (a VLAN has its own); entry 0 is the port's (mlx5-roce.md 1.3). */
static void find_netdev(struct rail *rail)
{
    const char *const file = SYSFS "/%s/ports/%d/gid_attrs/ndevs/%d";

    if (!read_line(rail->netdev, IFNAMSIZ, file, rail->hca, rail->port, rail->gid_index) &&
        !read_line(rail->netdev, IFNAMSIZ, file, rail->hca, rail->port, 0))
        first_netdev(rail);
}

static int by_pci_path(const void *a, const void *b)
{
    const struct rail *x = a, *y = b;
    int order = strcmp(x->pci, y->pci);

    if (order == 0)
        order = strverscmp(x->hca, y->hca);
    return order ? order : x->port - y->port;
}

static int add_ports(struct rail *rails, int found, const char *hca, const struct name_list *wanted)
{
    char path[PATH_MAX], pci[PATH_MAX];

    snprintf(path, sizeof path, SYSFS "/%s/device", hca);
    if (!realpath(path, pci))
        *pci = '\0';
    for (int port = 1; port <= 2 && found < MAX_RAILS; port++) {
        struct rail *rail = &rails[found];
        memset(rail, 0, sizeof *rail);
        snprintf(rail->hca, sizeof rail->hca, "%.63s", hca);
        memcpy(rail->pci, pci, sizeof pci);
        rail->port = port;
        if (usable(rail) && names_match(wanted, hca, port)) {
            choose_gid(rail);
            find_netdev(rail);
            found++;
        }
    }
    return found;
}

int find_hcas(struct rail *rails)
{
    struct name_list wanted;
    struct dirent *entry;
    DIR *directory = opendir(SYSFS);
    int found = 0;

    parse_names(&wanted, getenv("NCCL_IB_HCA"));
    while (directory && (entry = readdir(directory)))
        if (entry->d_name[0] != '.')
            found = add_ports(rails, found, entry->d_name, &wanted);
    if (directory)
        closedir(directory);
    /* NCCL_IB_DEVICE_PCI_ORDER=1 is NCCL's default: the same order on all nodes. */
    qsort(rails, (size_t)found, sizeof *rails, by_pci_path);
    return found;
}
