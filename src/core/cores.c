/* A container with two cores' worth of time on a machine of 64 shall get two
 * threads. The quota is a line in a file of the process's control group or of
 * one above it, in the one hierarchy of cgroup v2 or v1's for "cpu". What
 * cannot be read is no limit. */
#include "core/cores.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/file.h"
#include "core/str.h"

enum { SMALL_FILE = 65536 };

/* Where a hierarchy is mounted, and the files that hold quota and period: one
 * file of two numbers where they are the same. */
typedef struct hierarchy {
    const char *mark; /* in a line of /proc/self/cgroup, before the path */
    const char *mount;
    const char *quota;
    const char *period;
} hierarchy;

static const hierarchy hierarchies[] = {
    { "0::", "/sys/fs/cgroup", "cpu.max", "cpu.max" },
    { ":cpu:", "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "cpu.cfs_period_us" },
    { ":cpu,cpuacct:", "/sys/fs/cgroup/cpu,cpuacct", "cpu.cfs_quota_us",
      "cpu.cfs_period_us" },
};

/* The words of a small file; false if it cannot be read. */
static bool read_file(bal_buf *out, const char *dir, const char *name)
{
    char *path = bal_path_join(dir, name);
    bool found = path && !bal_file_slurp(out, path, SMALL_FILE, NULL);

    bal_str_free(path);
    return found;
}

/* The number that word `i` of text is; 0 if it is none ("max", "-1"). */
static uint64_t number_at(const char *text, size_t i)
{
    char word[24];
    uint64_t value;

    for (; i; i--) {
        text += strcspn(text, " \n");
        text += strspn(text, " \n");
    }
    size_t len = strcspn(text, " \n");
    snprintf(word, sizeof(word), "%.*s", (int)bal_min(len, sizeof(word)), text);
    return bal_parse_u64(&value, word, NULL) ? 0 : value;
}

/* The limit that one group sets in cores, rounded up; BAL_JOBS_MAX: none. */
static uint64_t limit_of(const hierarchy *row, const char *group)
{
    BAL_LOCAL(bal_buf) quota_text = { 0 };
    BAL_LOCAL(bal_buf) period_text = { 0 };

    if (!read_file(&quota_text, group, row->quota) ||
        !read_file(&period_text, group, row->period))
        return BAL_JOBS_MAX;
    bool one_file = !strcmp(row->quota, row->period);
    uint64_t quota = number_at(bal_buf_string(&quota_text), 0);
    uint64_t period = number_at(bal_buf_string(&period_text), one_file);
    if (!quota || !period)
        return BAL_JOBS_MAX;
    return quota / period + (quota % period != 0);
}

/* The least limit of a group and of those above it. */
static uint64_t limit_up(const hierarchy *row, const char *path, size_t len)
{
    BAL_LOCAL(bal_buf) group = { 0 };
    uint64_t least = BAL_JOBS_MAX;
    size_t mount = strlen(row->mount);

    if (bal_buf_text(&group, row->mount, NULL) ||
        bal_buf_append(&group, path, len, NULL))
        return least;
    for (;;) {
        least = bal_min(least, limit_of(row, group.data));
        if (group.len <= mount)
            return least;
        while (group.len > mount && group.data[group.len] != '/')
            group.len--;
        group.data[group.len] = '\0';
    }
}

static uint64_t quota_cores(void)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    uint64_t least = BAL_JOBS_MAX;

    if (!read_file(&text, "/proc/self", "cgroup"))
        return least;
    for (size_t i = 0; i < sizeof(hierarchies) / sizeof(hierarchies[0]); i++) {
        const hierarchy *row = &hierarchies[i];
        const char *path = strstr(bal_buf_string(&text), row->mark);
        if (!path)
            continue;
        path += strlen(row->mark);
        least = bal_min(least, limit_up(row, path, strcspn(path, "\n")));
    }
    return least;
}

static uint64_t affinity_cores(void)
{
    cpu_set_t set;

    if (!sched_getaffinity(0, sizeof(set), &set))
        return (uint64_t)CPU_COUNT(&set);
    /* More cores than a cpu_set_t holds. */
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (uint64_t)online : 1;
}

unsigned bal_cores_usable(void)
{
    uint64_t cores = bal_min(affinity_cores(), quota_cores());

    return (unsigned)bal_min(bal_max(cores, 1), BAL_JOBS_MAX);
}
