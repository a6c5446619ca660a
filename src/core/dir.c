/* Directories and paths. */
#include <dirent.h>
#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/file.h"
#include "core/str.h"

/* The directory that holds path: "." for a bare name. */
static int parent_of(bal_buf *out, const char *path, bal_error *err)
{
    size_t len = strlen(path);

    while (len > 1 && path[len - 1] == '/')
        len--;
    while (len && path[len - 1] != '/')
        len--;
    while (len > 1 && path[len - 1] == '/')
        len--;
    bal_buf_clear(out);
    return len ? bal_buf_append(out, path, len, err)
               : bal_buf_text(out, ".", err);
}

int bal_sync_parent(const char *path, bal_error *err)
{
    BAL_LOCAL(bal_buf) parent = { 0 };
    int rc = parent_of(&parent, path, err);
    if (rc)
        return rc;

    return bal_sync_dir(parent.data, err);
}

static int make_dir(const char *path, bal_error *err)
{
    if (!mkdir(path, 0777))
        return bal_sync_parent(path, err);
    if (errno != EEXIST)
        return bal_fail_errno(err, "making '%s'", path);
    if (bal_path_type_of(path) != BAL_PATH_DIR)
        return bal_fail(err, BAL_EEXISTS,
                        "'%s' is there and is not a directory", path);
    return 0;
}

int bal_make_dirs(const char *path, bal_error *err)
{
    BAL_LOCAL(bal_buf) part = { 0 };
    int rc;

    if (bal_path_type_of(path) == BAL_PATH_DIR)
        return 0;
    for (size_t at = 0; path[at];) {
        size_t next = at + strspn(path + at, "/");
        next += strcspn(path + next, "/");
        rc = bal_buf_append(&part, path + at, next - at, err);
        if (rc)
            return rc;
        at = next;
        if (bal_path_type_of(part.data) == BAL_PATH_DIR)
            continue;
        rc = make_dir(part.data, err);
        if (rc)
            return rc;
    }
    return 0;
}

int bal_rename(const char *from, const char *to, bal_error *err)
{
    BAL_LOCAL(bal_buf) old = { 0 };
    BAL_LOCAL(bal_buf) now = { 0 };
    int rc = parent_of(&old, from, err);
    if (rc)
        return rc;
    rc = parent_of(&now, to, err);
    if (rc)
        return rc;

    if (rename(from, to))
        return bal_fail_errno(err, "renaming '%s' to '%s'", from, to);
    rc = bal_sync_dir(now.data, err);
    if (rc || !strcmp(old.data, now.data))
        return rc;
    return bal_sync_dir(old.data, err);
}

static int remove_entry(const FTSENT *entry, bal_error *err)
{
    int failed = 0;

    switch (entry->fts_info) {
    case FTS_D:
        return 0;
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS:
        errno = entry->fts_errno;
        failed = -1;
        break;
    case FTS_DP:
        failed = rmdir(entry->fts_accpath);
        break;
    default:
        failed = unlink(entry->fts_accpath);
        break;
    }
    /* Two may be removing the same tree. */
    if (failed && errno != ENOENT)
        return bal_fail_errno(err, "removing '%s'", entry->fts_path);
    return 0;
}

/* By fts, which keeps its own stack: a deep tree costs memory, not ours. Not
 * by chdir, which other threads would feel. */
int bal_remove_tree(const char *path, bal_error *err)
{
    BAL_LOCAL(bal_buf) copy = { 0 };
    int rc = bal_buf_text(&copy, path, err);
    if (rc)
        return rc;
    char *roots[] = { copy.data, NULL };
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    if (!walk)
        return bal_fail_errno(err, "removing '%s'", path);

    errno = 0;
    for (FTSENT *entry = fts_read(walk); entry && !rc; entry = fts_read(walk)) {
        rc = remove_entry(entry, err);
        if (rc)
            break;
        errno = 0;
    }
    if (!rc && errno && errno != ENOENT)
        rc = bal_fail_errno(err, "removing '%s'", path);
    fts_close(walk);
    return rc;
}

typedef struct names {
    bal_arena arena;
    bal_buf list; /* of const char * */
} names;

static void names_done(names *self)
{
    bal_arena_done(&self->arena);
    bal_buf_done(&self->list);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int add_name(names *self, const char *name, bal_error *err)
{
    if (!strcmp(name, ".") || !strcmp(name, ".."))
        return 0;
    const char *copy = bal_arena_copy(&self->arena, name, strlen(name));
    if (!copy)
        return bal_fail_memory(err, "listing a directory");
    return bal_buf_append(&self->list, &copy, sizeof(copy), err);
}

static int read_names(names *self, const char *path, bal_error *err)
{
    int rc = 0;
    DIR *dir = opendir(path);
    if (!dir)
        return bal_fail_errno(err, "opening '%s'", path);

    errno = 0;
    for (const struct dirent *entry = readdir(dir); entry && !rc;) {
        rc = add_name(self, entry->d_name, err);
        errno = 0;
        if (!rc)
            entry = readdir(dir);
    }
    if (!rc && errno)
        rc = bal_fail_errno(err, "reading '%s'", path);
    closedir(dir);
    return rc;
}

int bal_dir_each(const char *path, bal_dir_fn *fn, void *ctx, bal_error *err)
{
    BAL_LOCAL(names) all = { 0 };
    int rc = read_names(&all, path, err);
    if (rc)
        return rc;

    size_t count = all.list.len / sizeof(char *);
    const char **list = (const char **)(void *)all.list.data;
    if (count)
        qsort(list, count, sizeof(*list), compare_names);
    for (size_t i = 0; i < count && !rc; i++)
        rc = fn(ctx, list[i], err);
    return rc;
}

static bal_path_type type_in(const struct stat *info)
{
    if (S_ISDIR(info->st_mode))
        return BAL_PATH_DIR;
    return S_ISREG(info->st_mode) ? BAL_PATH_FILE : BAL_PATH_OTHER;
}

bal_path_type bal_path_type_of(const char *path)
{
    struct stat info;

    /* One look decides: between two, others make the file or remove it. */
    if (lstat(path, &info)) {
        bool absent = errno == ENOENT || errno == ENOTDIR;
        return absent ? BAL_PATH_ABSENT : BAL_PATH_OTHER;
    }
    /* A link to nowhere is in the way, too. */
    if (S_ISLNK(info.st_mode) && stat(path, &info))
        return BAL_PATH_OTHER;
    return type_in(&info);
}

char *bal_path_join(const char *dir, const char *name)
{
    size_t len = strlen(dir);
    bool slash = len && dir[len - 1] != '/';
    size_t room = len + strlen(name) + 2;
    char *path = malloc(room);

    if (path)
        snprintf(path, room, "%s%s%s", dir, slash ? "/" : "", name);
    return path;
}

/* Follow one part of a path from where `real` is, which has no links in it. */
static int step(bal_buf *real, const char *part, size_t len, bal_error *err)
{
    char resolved[PATH_MAX];

    if (!len || (len == 1 && part[0] == '.'))
        return 0;
    if (len == 2 && part[0] == '.' && part[1] == '.') {
        while (real->len && real->data[--real->len] != '/')
            continue;
        real->data[real->len] = '\0';
        return 0;
    }
    int rc = bal_buf_format(real, err, "/%.*s", (int)len, part);
    if (rc)
        return rc;
    if (real->len >= PATH_MAX)
        return bal_fail(err, BAL_EINVAL, "a path of more than %d bytes",
                        PATH_MAX);
    if (realpath(real->data, resolved)) {
        bal_buf_clear(real);
        return strcmp(resolved, "/") ? bal_buf_text(real, resolved, err) : 0;
    }
    if (errno == ENOENT)
        return 0;
    return bal_fail_errno(err, "resolving '%s'", real->data);
}

int bal_path_real(char **out, const char *path, bal_error *err)
{
    BAL_LOCAL(bal_buf) real = { 0 };
    char here[PATH_MAX];
    int rc = 0;

    if (path[0] != '/' && !getcwd(here, sizeof(here)))
        return bal_fail_errno(err, "finding the working directory");
    rc = bal_buf_text(&real, path[0] == '/' ? "" : here, err);
    if (!rc && real.len == 1)
        bal_buf_clear(&real); /* "/" itself */
    for (size_t at = 0; path[at] && !rc;) {
        at += strspn(path + at, "/");
        size_t len = strcspn(path + at, "/");
        rc = len > NAME_MAX ? bal_fail(err, BAL_EINVAL,
                                       "a name of more than %d bytes", NAME_MAX)
                            : step(&real, path + at, len, err);
        at += len;
    }
    if (rc)
        return rc;
    char *copy = bal_str_copy(real.len ? real.data : "/");
    if (!copy)
        return bal_fail_memory(err, "resolving a path");
    *out = copy;
    return 0;
}

bool bal_path_holds(const char *a, const char *b)
{
    size_t len = strlen(a);

    while (len && a[len - 1] == '/')
        len--;
    if (strncmp(a, b, len) != 0)
        return false;
    return !b[len] || b[len] == '/';
}
