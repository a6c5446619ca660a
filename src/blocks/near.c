#include "blocks/near.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "blocks/near_files.h"
#include "core/error.h"
#include "core/note.h"
#include "core/str.h"

/* A process looks at the whole folder again after adding this part of what may
 * be in it, for others add to it as well. */
enum { LOOK_AGAIN = 8, EMPTYING_WAITS = 30 };

typedef struct near_backend {
    bal_backend base;
    bal_backend *inner;
    char *dir;
    bal_near_options options;
    bool ours;            /* the folder: only what is in it then goes */
    pthread_mutex_t lock; /* guards what follows */
    uint64_t epoch;       /* that the copies are of */
    bool known;           /* it was looked at */
    uint64_t room;        /* bytes to add before the folder is looked at */
    bool off;
} near_backend;

static near_backend *of(bal_backend *self)
{
    return (near_backend *)self;
}

static bool is_off(near_backend *self)
{
    pthread_mutex_lock(&self->lock);
    bool off = self->off;
    pthread_mutex_unlock(&self->lock);
    return off;
}

/* Whatever goes wrong here, the caller has its bytes from where they are. */
static void give_up(near_backend *self, const bal_error *why)
{
    pthread_mutex_lock(&self->lock);
    bool first = !self->off;
    self->off = true;
    pthread_mutex_unlock(&self->lock);
    if (first)
        bal_warn("cache", "'%s' is not used: %s", self->dir, why->text);
}

/* ---- the epoch ---------------------------------------------------------- */

/* The folder is of an older epoch, or of none that it tells: it is emptied. One
 * that is of a newer epoch was emptied by somebody who asked later than us. */
static int follow_alone(near_backend *self, uint64_t *now, bal_error *err)
{
    uint64_t own = 0;
    bool there = false;
    int rc = bal_near_epoch(self->dir, &own, &there, err);

    if (rc || (there && own >= *now)) {
        *now = there ? own : *now;
        return rc;
    }
    rc = bal_near_empty(self->dir, err);
    return rc ? rc : bal_near_set_epoch(self->dir, *now, err);
}

/* So that nothing of before is read. */
static int follow(near_backend *self, bal_error *err)
{
    BAL_OWN(bal_lock) alone = NULL;
    uint64_t now = 0;
    int rc = self->options.epoch(self->options.ctx, &now, err);
    if (rc)
        return rc;

    pthread_mutex_lock(&self->lock);
    bool same = self->known && self->epoch >= now;
    pthread_mutex_unlock(&self->lock);
    if (same)
        return 0;
    rc = bal_near_lock(&alone, self->dir, BAL_LOCK_EXCLUSIVE, EMPTYING_WAITS,
                       err);
    if (!rc)
        rc = follow_alone(self, &now, err);
    if (rc)
        return rc;
    pthread_mutex_lock(&self->lock);
    self->known = true;
    self->epoch = now > self->epoch ? now : self->epoch;
    pthread_mutex_unlock(&self->lock);
    return 0;
}

/* ---- adding ------------------------------------------------------------- */

static int make_room(near_backend *self, uint64_t size, bal_error *err)
{
    uint64_t held = 0, most = self->options.most;

    pthread_mutex_lock(&self->lock);
    bool enough = self->room >= size;
    self->room -= enough ? size : 0;
    pthread_mutex_unlock(&self->lock);
    if (enough)
        return 0;
    int rc = bal_near_trim(self->dir, most - size, &held, err);
    if (rc)
        return rc;
    uint64_t left = most - size - held, part = most / LOOK_AGAIN;
    pthread_mutex_lock(&self->lock);
    self->room = left < part ? left : part;
    pthread_mutex_unlock(&self->lock);
    return 0;
}

/* A copy of what was asked for at an epoch that is not the folder's any more
 * may be of what is deleted. */
static int add_shared(near_backend *self, const char *name, bal_bytes bytes,
                      uint64_t epoch, bal_error *err)
{
    uint64_t now = 0;
    bool there = false;
    int rc = bal_near_epoch(self->dir, &now, &there, err);

    if (rc || !there || now != epoch)
        return rc;
    rc = make_room(self, bytes.len, err);
    return rc ? rc : bal_near_write(self->dir, name, bytes, err);
}

static void add(near_backend *self, const char *name, bal_bytes bytes,
                uint64_t epoch)
{
    BAL_OWN(bal_lock) lock = NULL;
    bal_error why;

    if (bytes.len > self->options.most / LOOK_AGAIN ||
        bal_near_lock(&lock, self->dir, BAL_LOCK_SHARED, 0, NULL))
        return;
    if (add_shared(self, name, bytes, epoch, &why))
        give_up(self, &why);
}

/* ---- the row ------------------------------------------------------------ */

static int near_claim(bal_backend *self, const char *store, unsigned flags,
                      bal_error *err)
{
    return bal_backend_claim(of(self)->inner, store, flags, err);
}

static int near_get(bal_backend *self, const char *name, uint64_t offset,
                    uint64_t len, bal_buf *to, bal_error *err)
{
    return bal_backend_get(of(self)->inner, name, offset, len, to, err);
}

/* From the folder if it is there, else from afar, and then into the folder. */
static int get_both(near_backend *self, const char *name, bal_buf *to,
                    bool *copy, bal_error *err)
{
    size_t before = to->len;

    pthread_mutex_lock(&self->lock);
    uint64_t epoch = self->epoch;
    pthread_mutex_unlock(&self->lock);
    *copy = !bal_near_read(self->dir, name, to, NULL);
    if (*copy)
        return 0;
    to->len = before;
    int rc = bal_backend_get(self->inner, name, 0, 0, to, err);
    if (!rc)
        add(self, name, (bal_bytes){ to->data + before, to->len - before },
            epoch);
    return rc;
}

static int near_get_near(bal_backend *base, const char *name, bal_buf *to,
                         bool *copy, bal_error *err)
{
    near_backend *self = of(base);
    bal_error why;

    if (!is_off(self) && !follow(self, &why))
        return get_both(self, name, to, copy, err);
    if (!is_off(self))
        give_up(self, &why);
    return bal_backend_get(self->inner, name, 0, 0, to, err);
}

static void near_drop(bal_backend *self, const char *name)
{
    bal_error why;

    if (of(self)->ours && bal_near_drop(of(self)->dir, name, &why))
        give_up(of(self), &why);
}

static int near_stage(bal_backend *self, bal_staged *out, const char *name,
                      const bal_bytes *parts, size_t count, bal_error *err)
{
    return bal_backend_stage(of(self)->inner, out, name, parts, count, err);
}

static int near_settle(bal_backend *self, bal_staged *staged, size_t count,
                       bal_work *work, bal_error *err)
{
    return bal_backend_settle(of(self)->inner, staged, count, work, err);
}

static void near_discard(bal_backend *self, bal_staged *staged)
{
    bal_backend_discard(of(self)->inner, staged);
}

static int near_size(bal_backend *self, const char *name, uint64_t *size,
                     bal_error *err)
{
    return bal_backend_size(of(self)->inner, name, size, err);
}

/* The copies first: nothing is said to be gone that is here. */
static int near_remove(bal_backend *base, const char *const *names,
                       size_t count, uint64_t *freed, bal_error *err)
{
    near_backend *self = of(base);
    int rc = 0;

    for (size_t i = 0; self->ours && i < count && !rc; i++)
        rc = bal_near_drop(self->dir, names[i], err);
    return rc ? rc : bal_backend_remove(self->inner, names, count, freed, err);
}

static int near_list(bal_backend *self, const char *prefix, bal_listed_fn *fn,
                     void *ctx, bal_error *err)
{
    return bal_backend_list(of(self)->inner, prefix, fn, ctx, err);
}

static int near_sweep(bal_backend *self, uint64_t *bytes, unsigned flags,
                      bal_error *err)
{
    return bal_backend_sweep(of(self)->inner, bytes, flags, err);
}

static void near_free(bal_backend *base)
{
    near_backend *self = of(base);

    bal_backend_free(self->inner);
    pthread_mutex_destroy(&self->lock);
    bal_str_free(self->dir);
    free(self);
}

static const bal_backend_ops near_ops = {
    .scheme = "near",
    .claim = near_claim,
    .get = near_get,
    .get_near = near_get_near,
    .drop_near = near_drop,
    .stage = near_stage,
    .settle = near_settle,
    .discard = near_discard,
    .size = near_size,
    .remove = near_remove,
    .list = near_list,
    .sweep = near_sweep,
    .free = near_free,
};

/* ---- opening ------------------------------------------------------------ */

/* For the user alone: what tenants may not see of each other lies side by
 * side. Where others may write, one could have put a link there, to a folder of
 * ours that is to be emptied. */
static int make_folder(const char *dir, bal_error *err)
{
    struct stat info;
    int rc = bal_make_dirs(dir, err);
    if (rc)
        return rc;

    if (lstat(dir, &info))
        return bal_fail_errno(err, "looking at '%s'", dir);
    if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid())
        return bal_fail(err, BAL_EIO, "it is not a folder of this user's");
    if (chmod(dir, 0700))
        return bal_fail_errno(err, "changing '%s'", dir);
    return 0;
}

int bal_near_open(bal_backend **out, bal_backend *inner,
                  const bal_near_options *options, bal_error *err)
{
    bal_error why;
    near_backend *made = calloc(1, sizeof(*made));
    char *dir = bal_str_copy(options->dir);
    char *url = bal_str_copy(inner->url);
    if (!made || !dir || !url) {
        free(made);
        bal_str_free(dir);
        bal_str_free(url);
        return bal_fail_memory(err, "a cache");
    }
    made->base =
        (bal_backend){ &near_ops, url, inner->parallel, inner->at_once };
    made->inner = inner;
    made->dir = dir;
    made->options = *options;
    made->options.dir = dir;
    pthread_mutex_init(&made->lock, NULL);
    made->ours = !make_folder(dir, &why);
    if (!made->ours)
        give_up(made, &why);
    *out = &made->base;
    return 0;
}
