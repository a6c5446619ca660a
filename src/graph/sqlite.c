/* The SQLite driver: opening, transactions.
 *
 * One connection in WAL mode with synchronous=FULL: a commit is durable when
 * it returns, readers never wait for the writer. Writing transactions begin
 * IMMEDIATE, so the only place where one waits for another process is its
 * begin, and there it waits at most `wait` seconds. */
#include "graph/sqlite.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"
#include "core/str.h"
#include "graph/inside.h"

#define LONG_LOG ((off_t)4 << 20)

/* ---- the row ----------------------------------------------------------- */

static int sqlite_query(bal_db *base, const bal_query *query, bal_error *err)
{
    bal_sqlite *self = (bal_sqlite *)base;

    pthread_mutex_lock(&self->lock);
    int rc = bal_sqlite_query_locked(self, query, err);
    pthread_mutex_unlock(&self->lock);
    return rc;
}

static int begin_locked(bal_sqlite *self, unsigned flags, bal_error *err)
{
    bool write = flags & BAL_TX_WRITE;

    if (self->depth) {
        assert(!write || self->write);
        assert(self->depth < BAL_SQLITE_LEVELS);
        self->changes[self->depth++] = sqlite3_total_changes(self->handle);
        return 0;
    }
    self->doomed = 0;
    int rc =
        bal_sqlite_run_locked(self, write ? "BEGIN IMMEDIATE" : "BEGIN", err);
    if (rc)
        return rc;
    self->write = write;
    self->depth = 1;
    return 0;
}

static int sqlite_begin(bal_db *base, unsigned flags, bal_error *err)
{
    bal_sqlite *self = (bal_sqlite *)base;

    pthread_mutex_lock(&self->lock);
    int rc = begin_locked(self, flags, err);
    if (rc)
        pthread_mutex_unlock(&self->lock);
    return rc;
}

/* Takes back what sqlite_begin did, the lock included. */
static void level_end(bal_sqlite *self)
{
    self->depth--;
    if (!self->depth)
        self->doomed = 0;
    pthread_mutex_unlock(&self->lock);
}

static int sqlite_commit(bal_db *base, bal_error *err)
{
    bal_sqlite *self = (bal_sqlite *)base;

    assert(self->depth);
    int rc = bal_sqlite_alive(self, err);
    if (rc)
        return rc;
    if (self->depth == 1)
        rc = bal_sqlite_run_locked(self, "COMMIT", err);
    if (rc)
        return rc;
    level_end(self);
    return 0;
}

static void sqlite_rollback(bal_db *base)
{
    bal_sqlite *self = (bal_sqlite *)base;

    assert(self->depth);
    int before = self->changes[self->depth - 1];
    if (self->depth > 1 && before != sqlite3_total_changes(self->handle))
        self->doomed = BAL_EIO; /* half of it will not be committed */
    if (self->depth == 1 && !sqlite3_get_autocommit(self->handle))
        sqlite3_exec(self->handle, "ROLLBACK", NULL, NULL, NULL);
    level_end(self);
}

/* ---- scrubbing ---------------------------------------------------------- */

/* The pragma succeeds where it could not get through, and says so in its first
 * column. */
static int is_whole(void *ctx, const bal_value *columns, size_t count,
                    bal_error *err)
{
    const char *path = ctx;

    if (count && columns[0].type == BAL_VALUE_INT && !columns[0].number)
        return 0;
    return bal_fail(err, BAL_EBUSY, "database '%s': a reader holds its log",
                    path);
}

/* secure_delete zeroes cells that are deleted, but a page that was split or
 * defragmented keeps copies of cells in its gaps. VACUUM builds every page anew
 * from the rows that are left. It takes as much memory as the database is large
 * (temp_store is MEMORY, for nothing of a tenant is to reach /tmp), and writes
 * it twice: to the log, from there to the file. Who does not want to wait
 * copies the log first: while a reader holds it, each VACUUM would make it
 * longer by the whole database. */
static int scrub_locked(bal_sqlite *self, unsigned flags, bal_error *err)
{
    const bal_query checkpoint = {
        .sql = "PRAGMA wal_checkpoint(TRUNCATE)",
        .fn = is_whole,
        .ctx = self->path,
    };

    if (self->depth)
        return bal_fail(err, BAL_EINVAL,
                        "a database is not scrubbed inside a transaction");
    int rc = flags & BAL_SCRUB_NOW
                 ? bal_sqlite_query_locked(self, &checkpoint, err)
                 : 0;
    if (!rc)
        rc = bal_sqlite_run_locked(self, "VACUUM", err);
    return rc ? rc : bal_sqlite_query_locked(self, &checkpoint, err);
}

static int sqlite_scrub(bal_db *base, unsigned flags, bal_error *err)
{
    bal_sqlite *self = (bal_sqlite *)base;

    pthread_mutex_lock(&self->lock);
    double wait = self->wait;
    if (flags & BAL_SCRUB_NOW)
        self->wait = 0;
    int rc = scrub_locked(self, flags, err);
    self->wait = wait;
    pthread_mutex_unlock(&self->lock);
    return rc;
}

/* ---- what has changed ---------------------------------------------------- */

static int take_number(void *ctx, const bal_value *columns, size_t count,
                       bal_error *err)
{
    (void)count;
    (void)err;
    *(int64_t *)ctx = columns[0].number;
    return BAL_ROW_STOP;
}

/* The pragma tells of what other connections have committed, in 32 bits; the
 * count of what this one wrote. */
static int sqlite_changes(bal_db *base, uint64_t *out, bal_error *err)
{
    bal_sqlite *self = (bal_sqlite *)base;
    int64_t others = 0;
    const bal_query query = {
        .sql = "PRAGMA data_version",
        .fn = take_number,
        .ctx = &others,
    };

    pthread_mutex_lock(&self->lock);
    int rc = bal_sqlite_query_locked(self, &query, err);
    uint64_t own = (uint64_t)sqlite3_total_changes64(self->handle);
    pthread_mutex_unlock(&self->lock);
    if (!rc)
        *out = (uint64_t)others << 32 ^ own;
    return rc;
}

static int sqlite_place(bal_db *base, bal_buf *to, bal_error *err)
{
    char *real = NULL;
    int rc = bal_path_real(&real, ((bal_sqlite *)base)->path, err);

    if (!rc)
        rc = bal_buf_format(to, err, "sqlite:%s", real);
    bal_str_free(real);
    return rc;
}

/* ---- closing ------------------------------------------------------------ */

/* A close by the last connection copies the log into the database, with two
 * syncs that every short command would pay. A short log is left for the next
 * one, which reads it through when it opens. */
static void keep_short_log(bal_sqlite *self)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    struct stat log;

    if (bal_buf_format(&path, NULL, "%s-wal", self->path))
        return;
    if (stat(bal_buf_string(&path), &log) || log.st_size > LONG_LOG)
        return;
    sqlite3_db_config(self->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
}

/* ---- holding it ---------------------------------------------------------- */

typedef struct file_lock {
    bal_db_lock base;
    bal_lock *held;
} file_lock;

/* Beside the database: several roots may have the same one. */
static char *lock_path(const bal_sqlite *self)
{
    char *dir = bal_str_copy(self->path);
    char *slash = dir ? strrchr(dir, '/') : NULL;

    if (slash)
        slash[slash == dir] = '\0';
    char *path = dir ? bal_path_join(dir, "lock") : NULL;
    bal_str_free(dir);
    return path;
}

static int sqlite_lock(bal_db *base, bal_db_lock **out, enum bal_lock_mode mode,
                       double wait, bal_error *err)
{
    file_lock *self = calloc(1, sizeof(*self));
    char *path = lock_path((bal_sqlite *)base);
    int rc = self && path ? bal_lock_take(&self->held, path, mode, wait, err)
                          : bal_fail_memory(err, "locking a database");

    bal_str_free(path);
    if (rc) {
        free(self);
        return rc;
    }
    self->base.ops = &bal_db_sqlite;
    *out = &self->base;
    return 0;
}

static void sqlite_unlock(bal_db_lock *base)
{
    file_lock *self = (file_lock *)base;

    bal_lock_free(self->held);
    free(self);
}

/* A file's lock is the process's for as long as it wants it. */
static int sqlite_held(bal_db *self, bal_error *err)
{
    (void)self;
    (void)err;
    return 0;
}

static void sqlite_free(bal_db *base)
{
    bal_sqlite *self = (bal_sqlite *)base;

    if (self->handle && self->path)
        keep_short_log(self);
    for (size_t i = 0; i < BAL_SQLITE_CACHED; i++)
        sqlite3_finalize(self->cache[i].stmt);
    sqlite3_close_v2(self->handle);
    pthread_mutex_destroy(&self->lock);
    bal_str_free(self->path);
    free(self);
}

/* ---- opening ----------------------------------------------------------- */

static int lock_init(bal_sqlite *self)
{
    pthread_mutexattr_t attr;

    int rc = pthread_mutexattr_init(&attr);
    if (rc)
        return rc;
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    rc = pthread_mutex_init(&self->lock, &attr);
    pthread_mutexattr_destroy(&attr);
    return rc;
}

/* Never a name that SQLite takes for something else, as ":memory:". */
static char *path_of(const char *rest, const char *root)
{
    if (rest[0] == '/')
        return bal_str_copy(rest);

    char *joined = bal_path_join(root, rest);
    if (!joined || joined[0] == '/')
        return joined;
    char *plain = bal_path_join(".", joined);
    bal_str_free(joined);
    return plain;
}

static int sync_parent(const char *path, bal_error *err)
{
    BAL_LOCAL(bal_buf) dir = { 0 };
    const char *slash = strrchr(path, '/');

    if (slash == path)
        return bal_sync_dir("/", err);
    int rc = bal_buf_append(&dir, path, slash - path, err);
    if (rc)
        return rc;
    return bal_sync_dir(bal_buf_string(&dir), err);
}

static int is_wal(void *ctx, const bal_value *columns, size_t count,
                  bal_error *err)
{
    const char *path = ctx;

    if (count == 1 && columns[0].type == BAL_VALUE_TEXT &&
        !strcmp(columns[0].bytes.data, "wal"))
        return 0;
    return bal_fail(err, BAL_EUNSUPPORTED,
                    "database '%s': the file system cannot share memory, "
                    "which SQLite's log needs",
                    path);
}

/* secure_delete: what is forgotten is overwritten, not only unlinked.
 * temp_store: nothing of a tenant goes to /tmp. trusted_schema and
 * cell_size_check: the file may have been made by somebody else. cache_size:
 * 16 MiB, for a check of a large database goes over it many times. */
static const char *const pragmas[] = {
    "PRAGMA trusted_schema = OFF", /* one a line */
    "PRAGMA cell_size_check = ON", "PRAGMA temp_store = MEMORY",
    "PRAGMA foreign_keys = ON",    "PRAGMA secure_delete = ON",
    "PRAGMA synchronous = FULL",   "PRAGMA cache_size = -16384",
};

static int settle(bal_sqlite *self, bal_error *err)
{
    for (size_t i = 0; i < sizeof(pragmas) / sizeof(pragmas[0]); i++) {
        int rc = bal_sqlite_run_locked(self, pragmas[i], err);
        if (rc)
            return rc;
    }
    const bal_query wal = {
        .sql = "PRAGMA journal_mode = WAL",
        .fn = is_wal,
        .ctx = self->path,
    };
    return bal_sqlite_query_locked(self, &wal, err);
}

static int connect_to(bal_sqlite *self, unsigned flags, bal_error *err)
{
    bool create = flags & BAL_DB_CREATE;
    bool absent = bal_path_type_of(self->path) == BAL_PATH_ABSENT;

    if (absent && !create)
        return bal_fail(err, BAL_ENOTFOUND, "no database '%s'", self->path);
    int rc = sqlite3_open_v2(self->path, &self->handle,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
                                 (create ? SQLITE_OPEN_CREATE : 0),
                             NULL);
    if (!self->handle)
        return bal_fail_memory(err, "opening a database");
    if (rc != SQLITE_OK)
        return bal_sqlite_fail(self, rc, err);
    sqlite3_extended_result_codes(self->handle, 1);
    sqlite3_db_config(self->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_busy_handler(self->handle, bal_sqlite_wait, self);
    rc = settle(self, err);
    if (rc)
        return rc;
    return absent ? sync_parent(self->path, err) : 0;
}

static int sqlite_open(bal_db **out, const char *rest, const char *root,
                       double wait, unsigned flags, bal_error *err)
{
    if (!rest[0])
        return bal_fail(err, BAL_EINVAL, "database 'sqlite:' names no file");

    bal_sqlite *file = calloc(1, sizeof(*file));
    if (!file)
        return bal_fail_memory(err, "opening a database");
    if (lock_init(file)) {
        free(file);
        return bal_fail_memory(err, "opening a database");
    }
    file->base.ops = &bal_db_sqlite;
    file->wait = wait;
    BAL_OWN(bal_db) self = &file->base;

    file->path = path_of(rest, root);
    if (!file->path)
        return bal_fail_memory(err, "opening a database");
    int rc = connect_to(file, flags, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(self);
    return 0;
}

/* A path has no secret. */
static int sqlite_plain(char **out, const char *rest, bal_error *err)
{
    BAL_LOCAL(bal_buf) url = { 0 };
    int rc = bal_buf_format(&url, err, "sqlite:%s", rest);
    if (rc)
        return rc;

    *out = bal_str_copy(bal_buf_string(&url));
    return *out ? 0 : bal_fail_memory(err, "a database's address");
}

static const bal_db_word words[] = { { NULL, NULL } };

const bal_db_ops bal_db_sqlite = {
    .scheme = "sqlite",
    .words = words,
    .open = sqlite_open,
    .plain = sqlite_plain,
    .query = sqlite_query,
    .begin = sqlite_begin,
    .commit = sqlite_commit,
    .rollback = sqlite_rollback,
    .scrub = sqlite_scrub,
    .changes = sqlite_changes,
    .place = sqlite_place,
    .lock = sqlite_lock,
    .unlock = sqlite_unlock,
    .held = sqlite_held,
    .free = sqlite_free,
};
