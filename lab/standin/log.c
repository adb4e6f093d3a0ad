/* GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Lines as NCCL 2.29.3 writes them (its src/debug.cc; nccl-gate.md 2): NCCL_DEBUG unset prints nothing,
 * not even warnings; NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE (%h, %p) work. */
#include "log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "standin.h"

enum level { LEVEL_NONE, LEVEL_VERSION, LEVEL_WARN, LEVEL_INFO };

static enum level level;
static unsigned mask = SUB_INIT | SUB_BOOTSTRAP | SUB_ENV; /* NCCL's default */
static FILE *file;
static char host[MAX_HOST];
static char last_error[1024];
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t failing = PTHREAD_MUTEX_INITIALIZER;

void append(char *line, size_t size, const char *format, ...)
{
    size_t used = strlen(line);
    va_list list;

    va_start(list, format);
    vsnprintf(line + used, size - used, format, list);
    va_end(list);
}

static enum level parse_level(const char *text)
{
    if (!text)
        return LEVEL_NONE;
    if (!strcasecmp(text, "VERSION"))
        return LEVEL_VERSION;
    if (!strcasecmp(text, "WARN"))
        return LEVEL_WARN;
    return !strcasecmp(text, "INFO") || !strcasecmp(text, "TRACE") || !strcasecmp(text, "ABORT") ? LEVEL_INFO
                                                                                                 : LEVEL_NONE;
}

static unsigned parse_mask(const char *text)
{
    static const struct {
        const char *name;
        unsigned bit;
    } names[] = {{"INIT", SUB_INIT}, {"NET", SUB_NET}, {"ENV", SUB_ENV}, {"BOOTSTRAP", SUB_BOOTSTRAP},
                 {"SHM", SUB_SHM},   {"ALL", SUB_ALL}};
    bool invert = text[0] == '^';
    char copy[256], *save = NULL;
    unsigned found = 0;

    snprintf(copy, sizeof copy, "%s", text + invert);
    for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save))
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (!strcasecmp(word, names[i].name))
                found |= names[i].bit;
    return invert ? SUB_ALL & ~found : found;
}

static FILE *open_file(const char *pattern)
{
    char path[PATH_MAX] = "";
    size_t used = 0;

    for (const char *p = pattern; *p && used < sizeof path - MAX_HOST - 1; p++) {
        if (p[0] == '%' && p[1] == 'h')
            used += (size_t)sprintf(path + used, "%s", host), p++;
        else if (p[0] == '%' && p[1] == 'p')
            used += (size_t)sprintf(path + used, "%d", (int)getpid()), p++;
        else
            path[used++] = *p;
    }
    path[used] = '\0';
    FILE *opened = fopen(path, "w");
    if (opened)
        setlinebuf(opened);
    return opened;
}

void log_open(void)
{
    const char *subsystems = getenv("NCCL_DEBUG_SUBSYS"), *name = getenv("NCCL_DEBUG_FILE");

    gethostname(host, sizeof host - 1);
    level = parse_level(getenv("NCCL_DEBUG"));
    if (subsystems)
        mask = parse_mask(subsystems);
    file = level > LEVEL_VERSION && name && *name ? open_file(name) : NULL;
    if (!file)
        file = stdout;
}

void log_version(void)
{
    /* NCCL: "NCCL version 2.x.y+cudaZ", bare at VERSION and WARN (nccl-gate.md 1.3). */
    if (level == LEVEL_VERSION || level == LEVEL_WARN)
        fprintf(file, "NCCL version 2.29.3+simulated\n");
    log_info(SUB_ALL, 0, "NCCL version 2.29.3+simulated");
}

static void write_line(const char *stamp, int device, const char *where, const char *kind, const char *text)
{
    pthread_mutex_lock(&writing);
    fprintf(file, "%s%s:%d:%d [%d] %s%s %s\n", stamp, host, (int)getpid(), (int)gettid(), device, where, kind, text);
    pthread_mutex_unlock(&writing);
}

void log_info(unsigned subsystems, int device, const char *format, ...)
{
    char text[2048];
    va_list list;

    if (level < LEVEL_INFO || !(subsystems & mask))
        return;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    write_line("", device, "", "NCCL INFO", text);
}

void log_warn(int device, const char *where, const char *format, ...)
{
    char text[sizeof last_error], stamp[32], place[64];
    time_t seconds = time(NULL);
    struct tm local;
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    pthread_mutex_lock(&writing);
    if (!*last_error)
        memcpy(last_error, text, sizeof text);
    pthread_mutex_unlock(&writing);
    if (level < LEVEL_WARN)
        return;
    localtime_r(&seconds, &local);
    strftime(stamp, sizeof stamp, "[%F %T] ", &local); /* since 2.26 */
    snprintf(place, sizeof place, "%s ", where);
    write_line(stamp, device, place, "NCCL WARN", text);
}

long env_number(const char *name, long fallback)
{
    const char *text = getenv(name);

    return text && *text ? strtol(text, NULL, 0) : fallback;
}

void echo_numbers(void)
{
    /* Numbers are echoed when they are set and not empty, as ncclLoadParam does. */
    static const char *const names[] = {
        "NCCL_IB_DISABLE", "NCCL_IB_GID_INDEX", "NCCL_IB_ROCE_VERSION_NUM", "NCCL_IB_TIMEOUT", "NCCL_IB_RETRY_CNT",
        "NCCL_IB_SL", "NCCL_IB_TC", "NCCL_IB_FIFO_TC", "NCCL_IB_PKEY", "NCCL_IB_QPS_PER_CONNECTION",
        "NCCL_IB_PCI_RELAXED_ORDERING", "NCCL_IB_ADAPTIVE_ROUTING", "NCCL_IB_MERGE_NICS", "NCCL_CROSS_NIC",
        "NCCL_IGNORE_NET_MISMATCH", "NCCL_MNNVL_ENABLE", "NCCL_NVLS_ENABLE", "NCCL_CUMEM_ENABLE"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        if (text && *text)
            log_info(SUB_ENV, 0, "%s set by environment to %ld.", names[i], env_number(names[i], 0));
    }
}

/* Lines of nccl-tests v2.19.6, src/common.cu: the failing check and then one " .. " line per caller. */
static struct {
    int check;
    const char *source[7];
    int line[7], count;
} chain;

static void add_caller(const char *source, int line)
{
    chain.source[chain.count] = source;
    chain.line[chain.count++] = line;
}

void at_init(void)
{
    chain.check = 222;
    chain.count = 0;
    add_caller("common.cu", 1620);
    add_caller("common.cu", 1454);
}

void at_collective(const char *source, int source_line, int caller_line, int outer_line)
{
    chain.check = 514;
    chain.count = 0;
    add_caller("common.cu", 632);
    add_caller("common.cu", caller_line);
    if (outer_line)
        add_caller("common.cu", outer_line);
    add_caller(source, source_line);
    add_caller("common.cu", 972);
    add_caller("common.cu", 1768);
    add_caller("common.cu", 1454);
}

void trace_failure(const char *source, int line)
{
    printf(" .. %s pid %d: Test failure %s:%d\n", host, (int)getpid(), source, line);
}

static _Noreturn void end(int status)
{
    for (int i = 0; i < chain.count; i++)
        trace_failure(chain.source[i], chain.line[i]);
    fflush(NULL);
    /* No MPI_Finalize, as nccl-tests: the launcher sees a rank that failed and ends the others. */
    _exit(status);
}

_Noreturn void fail_nccl(const char *error)
{
    pthread_mutex_lock(&failing); /* never released: the other channels wait for the end */
    printf("%s: Test NCCL failure common.cu:%d '%s / %s'\n", host, chain.check, error, last_error);
    end(EXIT_NCCL);
}

_Noreturn void fail_timeout(int seconds)
{
    pthread_mutex_lock(&failing);
    printf("%s: Test timeout (%ds) common.cu:523\n", host, seconds);
    end(EXIT_TIMEOUT);
}
