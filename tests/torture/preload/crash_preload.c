/* A library to be loaded before the program's own (LD_PRELOAD): it counts the
 * calls that change what is on the disk, and at the call whose turn it is kills
 * the process or lets the call fail. It is not linked to anything of ours.
 *
 *   BALLAST_CRASH_COUNT=FILE   at exit, FILE has "<steps> <calls> <logged>"
 *   BALLAST_CRASH_AT=N[,after] SIGKILL before (after) step N
 *   BALLAST_CRASH_LOG=N        SIGKILL when half of write N to a database or
 * its log is done, or before it is cut to length BALLAST_FAIL_AT=N,ERRNO[,on]
 * call N fails with that number; with `on`, so does every later one that needs
 * room BALLAST_FAIL_NOTE=FILE     gets "<function> <path>" of what failed first
 *
 * Steps are fsync, fdatasync, sync_file_range, rename, link, unlink, mkdir and
 * their kin; calls are those and write, pwrite, writev and theirs. Only regular
 * files and directories count. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

typedef struct plan {
    long crash_at, crash_log, fail_at;
    int fail_with;
    bool crash_after, fail_on;
    const char *note;
} plan;

/* Written once, before main. */
static plan todo;
static atomic_long steps, calls, logged;

/* "12,after": the number, and what follows the comma. */
static long number_of(const char *name, const char **rest)
{
    const char *text = getenv(name);
    char *end = NULL;

    *rest = "";
    if (!text)
        return 0;
    long value = strtol(text, &end, 10);
    if (*end == ',')
        *rest = end + 1;
    return value;
}

__attribute__((constructor)) static void begin(void)
{
    const char *rest = "";

    todo.crash_at = number_of("BALLAST_CRASH_AT", &rest);
    todo.crash_after = !strcmp(rest, "after");
    todo.crash_log = number_of("BALLAST_CRASH_LOG", &rest);
    todo.fail_at = number_of("BALLAST_FAIL_AT", &rest);
    todo.fail_with = (int)strtol(rest, NULL, 10);
    todo.fail_on = strstr(rest, ",on") != NULL;
    todo.note = getenv("BALLAST_FAIL_NOTE");
    unsetenv("LD_PRELOAD"); /* not for a pager */
}

static void put(const char *path, const char *text)
{
    FILE *file = path ? fopen(path, "we") : NULL;

    if (!file)
        return;
    fputs(text, file);
    fclose(file);
}

__attribute__((destructor)) static void end(void)
{
    char text[64];
    const char *path = getenv("BALLAST_CRASH_COUNT");

    todo = (plan){ 0 };
    snprintf(text, sizeof(text), "%ld %ld %ld\n", atomic_load(&steps),
             atomic_load(&calls), atomic_load(&logged));
    put(path, text);
}

enum { STEP = 1, ROOM = 2 };

typedef struct turn {
    bool fails;
    bool dies;  /* once it is done */
    bool tears; /* dies with half of it done */
} turn;

static void die(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

static bool is_disk(int fd)
{
    struct stat stat;
    int before = errno;
    bool is = fd > 2 && !fstat(fd, &stat) &&
              (S_ISREG(stat.st_mode) || S_ISDIR(stat.st_mode));

    errno = before;
    return is;
}

static void path_of(char *to, size_t size, int fd)
{
    char link[64];

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, to, size - 1);
    to[len > 0 ? len : 0] = 0;
}

static void note(const char *function, int fd, const char *path)
{
    char text[4200];
    char target[4096] = "";

    if (!todo.note)
        return;
    if (!path) {
        path_of(target, sizeof(target), fd);
        path = target;
    }
    snprintf(text, sizeof(text), "%s %s\n", function, path);
    const char *to = todo.note;
    todo.note = NULL;
    put(to, text);
}

static bool ends(const char *text, const char *end)
{
    size_t len = strlen(text);

    return len >= strlen(end) && !strcmp(text + len - strlen(end), end);
}

/* A write to a database or its log? */
static bool is_log(int fd)
{
    char target[4096] = "";
    int before = errno;

    path_of(target, sizeof(target), fd);
    errno = before;
    return ends(target, ".db") || ends(target, ".db-wal");
}

/* What happens to this call. */
static turn take(const char *function, int what, int fd, const char *path)
{
    turn out = { false, false, false };

    if (!path && !is_disk(fd))
        return out;
    long call = atomic_fetch_add(&calls, 1) + 1;
    long step = what & STEP ? atomic_fetch_add(&steps, 1) + 1 : 0;
    if (step && step == todo.crash_at && !todo.crash_after)
        die();
    out.dies = step && step == todo.crash_at;
    if (!path && !(what & STEP) && is_log(fd))
        out.tears = atomic_fetch_add(&logged, 1) + 1 == todo.crash_log;
    out.fails =
        todo.fail_at && (call == todo.fail_at ||
                         (todo.fail_on && call > todo.fail_at && what & ROOM));
    if (out.fails)
        note(function, fd, path);
    if (out.fails)
        errno = todo.fail_with;
    return out;
}

static void *next(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);

    if (!found)
        abort();
    return found;
}

/* One of ours: declared as in libc, its turn taken, then libc's. */
#define CALL(type, name, params, args, what, fd, path)                         \
    type name params;                                                          \
    type name params                                                           \
    {                                                                          \
        type(*real) params = (type(*) params)(uintptr_t)next(#name);           \
        turn mine = take(#name, what, fd, path);                               \
        if (mine.fails)                                                        \
            return -1;                                                         \
        if (mine.tears)                                                        \
            die();                                                             \
        type rc = real args;                                                   \
        if (mine.dies)                                                         \
            die();                                                             \
        return rc;                                                             \
    }

/* The same of a write at a place, which may be torn. */
#define CALL_AT(name, type_at)                                                 \
    ssize_t name(int fd, const void *data, size_t len, type_at at);            \
    ssize_t name(int fd, const void *data, size_t len, type_at at)             \
    {                                                                          \
        ssize_t (*real)(int, const void *, size_t, type_at) = (ssize_t(*)(     \
            int, const void *, size_t, type_at))(uintptr_t)next(#name);        \
        turn mine = take(#name, ROOM, fd, NULL);                               \
        if (mine.fails)                                                        \
            return -1;                                                         \
        ssize_t rc = real(fd, data, mine.tears ? len / 2 : len, at);           \
        if (mine.tears)                                                        \
            die();                                                             \
        return rc;                                                             \
    }

CALL(int, fsync, (int fd), (fd), STEP, fd, NULL)
CALL(int, fdatasync, (int fd), (fd), STEP, fd, NULL)
CALL(int, syncfs, (int fd), (fd), STEP, fd, NULL)
CALL(int, sync_file_range,
     (int fd, off64_t offset, off64_t len, unsigned flags),
     (fd, offset, len, flags), STEP, fd, NULL)
CALL(int, rename, (const char *from, const char *to), (from, to), STEP, -1, to)
CALL(int, renameat, (int a, const char *from, int b, const char *to),
     (a, from, b, to), STEP, -1, to)
CALL(int, renameat2,
     (int a, const char *from, int b, const char *to, unsigned flags),
     (a, from, b, to, flags), STEP, -1, to)
CALL(int, link, (const char *from, const char *to), (from, to), STEP | ROOM, -1,
     to)
CALL(int, linkat, (int a, const char *from, int b, const char *to, int flags),
     (a, from, b, to, flags), STEP | ROOM, -1, to)
CALL(int, unlink, (const char *path), (path), STEP, -1, path)
CALL(int, unlinkat, (int at, const char *path, int flags), (at, path, flags),
     STEP, -1, path)
CALL(int, rmdir, (const char *path), (path), STEP, -1, path)
CALL(int, remove, (const char *path), (path), STEP, -1, path)
CALL(int, mkdir, (const char *path, mode_t mode), (path, mode), STEP | ROOM, -1,
     path)
CALL(int, mkdirat, (int at, const char *path, mode_t mode), (at, path, mode),
     STEP | ROOM, -1, path)
CALL(int, ftruncate, (int fd, off_t len), (fd, len), ROOM, fd, NULL)
CALL(int, ftruncate64, (int fd, off64_t len), (fd, len), ROOM, fd, NULL)
CALL(ssize_t, write, (int fd, const void *data, size_t len), (fd, data, len),
     ROOM, fd, NULL)
CALL_AT(pwrite, off_t)
CALL_AT(pwrite64, off64_t)
CALL(ssize_t, writev, (int fd, const struct iovec *parts, int count),
     (fd, parts, count), ROOM, fd, NULL)
CALL(ssize_t, pwritev, (int fd, const struct iovec *parts, int count, off_t at),
     (fd, parts, count, at), ROOM, fd, NULL)
CALL(ssize_t, pwritev64,
     (int fd, const struct iovec *parts, int count, off64_t at),
     (fd, parts, count, at), ROOM, fd, NULL)
