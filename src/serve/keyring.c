#include "serve/keyring.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/str.h"

struct bal_keys {
    atomic_uint references;
    bal_tokens *tokens; /* NULL: an open server */
};

struct bal_keyring {
    pthread_mutex_t lock; /* guards which keys are in force */
    char *path;
    bal_keys *keys;
};

static int load(bal_keys **out, const char *path, bal_error *err)
{
    bal_keys *keys = calloc(1, sizeof(*keys));

    if (!keys)
        return bal_fail_memory(err, "reading tokens");
    atomic_init(&keys->references, 1);
    int rc = path ? bal_tokens_load(&keys->tokens, path, err) : 0;
    if (rc) {
        free(keys);
        return rc;
    }
    *out = keys;
    return 0;
}

int bal_keyring_new(bal_keyring **out, const char *path, bal_error *err)
{
    BAL_OWN(bal_keyring) self = calloc(1, sizeof(*self));

    if (!self)
        return bal_fail_memory(err, "reading tokens");
    pthread_mutex_init(&self->lock, NULL);
    self->path = path ? bal_str_copy(path) : NULL;
    if (path && !self->path)
        return bal_fail_memory(err, "reading tokens");
    int rc = load(&self->keys, path, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(self);
    return 0;
}

void bal_keyring_free(bal_keyring *self)
{
    if (!self)
        return;
    bal_keys_free(self->keys);
    pthread_mutex_destroy(&self->lock);
    bal_str_free(self->path);
    free(self);
}

int bal_keyring_reload(bal_keyring *self, bal_error *err)
{
    bal_keys *fresh = NULL;

    if (!self->path)
        return 0;
    int rc = load(&fresh, self->path, err);
    if (rc)
        return rc;
    pthread_mutex_lock(&self->lock);
    bal_keys *old = self->keys;
    self->keys = fresh;
    pthread_mutex_unlock(&self->lock);
    bal_keys_free(old);
    return 0;
}

bal_keys *bal_keyring_take(bal_keyring *self)
{
    pthread_mutex_lock(&self->lock);
    bal_keys *keys = self->keys;
    atomic_fetch_add(&keys->references, 1);
    pthread_mutex_unlock(&self->lock);
    return keys;
}

void bal_keys_free(bal_keys *self)
{
    if (!self || atomic_fetch_sub(&self->references, 1) > 1)
        return;
    bal_tokens_free(self->tokens);
    free(self);
}

const bal_scope *bal_keys_find(const bal_keys *self, const char *header,
                               int64_t now)
{
    return self->tokens ? bal_tokens_find(self->tokens, header, now)
                        : &bal_scope_open;
}
