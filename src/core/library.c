/* By dlopen. */
#include "core/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "core/error.h"

enum { NOT_TRIED, LOADED, LACKING };

/* Guards the states, and who loads. */
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

static bool load(const bal_library *self)
{
    void *handle = NULL;

    for (size_t i = 0; i < self->name_count && !handle; i++)
        handle = dlopen(self->names[i], RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < self->row_count && handle; i++) {
        const bal_library_row *row = &self->rows[i];
        void *function = dlsym(handle, row->name);
        if (!function)
            return false;
        memcpy((char *)self->table + row->offset, &function, sizeof(function));
    }
    return handle && (!self->begin || self->begin());
}

int bal_library_need(bal_library *self, bal_error *err)
{
    pthread_mutex_lock(&loading);
    if (self->state == NOT_TRIED)
        self->state = load(self) ? LOADED : LACKING;
    bool there = self->state == LOADED;
    pthread_mutex_unlock(&loading);
    if (there)
        return 0;
    bal_fail(err, BAL_EUNSUPPORTED, "%s", self->lack);
    return bal_hint(err, BAL_EUNSUPPORTED, "install it: %s", self->packages);
}
