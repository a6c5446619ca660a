#include "blocks/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/arith.h"
#include "core/file.h"

enum { SHARE = 16 }; /* of the free bytes, one in so many */

struct bal_spill {
    int fd;
    size_t slot, slots;
};

static size_t slots_of(int fd, size_t slot, size_t most)
{
    struct statvfs facts;

    if (fstatvfs(fd, &facts))
        return 0;
    uint64_t free_bytes = (uint64_t)facts.f_bavail * facts.f_frsize;
    return (size_t)bal_min(free_bytes / SHARE, most) / slot;
}

bal_spill *bal_spill_new(const char *folder, size_t slot, size_t most)
{
    bal_spill *self = calloc(1, sizeof(*self));
    if (!self)
        return NULL;

    self->slot = slot;
    self->fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (self->fd >= 0)
        self->slots = slots_of(self->fd, slot, most);
    if (self->slots)
        return self;
    bal_spill_free(self);
    return NULL;
}

void bal_spill_free(bal_spill *self)
{
    if (!self)
        return;
    if (self->fd >= 0)
        close(self->fd);
    free(self);
}

size_t bal_spill_slots(const bal_spill *self)
{
    return self->slots;
}

bool bal_spill_write(bal_spill *self, size_t slot, const void *data, size_t len)
{
    return !bal_write_at(self->fd, (uint64_t)slot * self->slot, data, len, NULL,
                         NULL);
}

bool bal_spill_read(const bal_spill *self, size_t slot, void *to, size_t len)
{
    off_t at = (off_t)(slot * self->slot);
    ssize_t got = 0;

    for (size_t done = 0; done < len; done += (size_t)got) {
        do
            got = pread(self->fd, (char *)to + done, len - done,
                        at + (off_t)done);
        while (got < 0 && errno == EINTR);
        if (got <= 0)
            return false;
    }
    return true;
}
