/* GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Names as NCCL matches them, and IP interfaces as NCCL finds them. */
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "standin.h"

/* "a,b:1": a leading ^ excludes, = is exact, both as ^= (mlx5-roce.md 6.4). */
void parse_names(struct name_list *list, const char *text)
{
    char copy[1024], *save = NULL;

    memset(list, 0, sizeof *list);
    if (!text)
        return;
    list->exclude = *text == '^';
    text += list->exclude;
    list->exact = *text == '=';
    text += list->exact;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, ",", &save); word && list->count < MAX_RAILS; word = strtok_r(NULL, ",", &save)) {
        char *colon = strchr(word, ':');
        if (colon)
            *colon++ = '\0';
        if (!*word)
            continue;
        snprintf(list->name[list->count], sizeof list->name[0], "%s", word);
        list->port[list->count++] = colon && *colon && *colon != ':' ? atoi(colon) : -1;
    }
}

static bool in_list(const struct name_list *list, const char *name, int port)
{
    if (list->count == 0)
        return true;
    for (int i = 0; i < list->count; i++) {
        /* Without "=" a prefix matches: mlx5_1 also takes mlx5_10 (mlx5-roce.md 6.4). */
        bool same = list->exact ? !strcmp(name, list->name[i]) : !strncmp(name, list->name[i], strlen(list->name[i]));
        if (same && (port == -1 || list->port[i] == -1 || port == list->port[i]))
            return true;
    }
    return false;
}

bool names_match(const struct name_list *list, const char *name, int port)
{
    return in_list(list, name, port) != list->exclude;
}

static int find_matching(const char *names, struct rail *rails, int most)
{
    struct ifaddrs *all, *one;
    struct name_list list;
    int found = 0;

    parse_names(&list, names);
    if (getifaddrs(&all))
        return 0;
    for (one = all; one && found < most; one = one->ifa_next) {
        if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET || !(one->ifa_flags & IFF_RUNNING))
            continue;
        if (!names_match(&list, one->ifa_name, -1) || (found && !strcmp(rails[found - 1].netdev, one->ifa_name)))
            continue;
        memset(&rails[found], 0, sizeof rails[0]);
        snprintf(rails[found].netdev, IFNAMSIZ, "%s", one->ifa_name);
        memcpy(&rails[found++].address, one->ifa_addr, sizeof(struct sockaddr_in));
    }
    freeifaddrs(all);
    return found;
}

/* NCCL_SOCKET_IFNAME, else ib*, else anything but docker, lo and virbr, else those (NCCL src/misc/socket.cc).
 * Only IPv4 here. */
int find_interfaces(struct rail *rails, int most)
{
    static const char *const guesses[] = {"ib", "^docker,lo,virbr", "docker", "lo", "virbr"};
    const char *names = getenv("NCCL_SOCKET_IFNAME");
    int found = 0;

    if (names && strlen(names) > 1)
        return find_matching(names, rails, most);
    for (size_t i = 0; i < sizeof guesses / sizeof *guesses && !found; i++)
        found = find_matching(guesses[i], rails, most);
    return found;
}

bool address_of(const char *netdev, struct sockaddr_in *address)
{
    char exact[IFNAMSIZ + 1];
    struct rail rail;

    snprintf(exact, sizeof exact, "=%s", netdev);
    if (!find_matching(exact, &rail, 1))
        return false;
    memcpy(address, &rail.address, sizeof *address);
    return true;
}
