/* A small head, the same for both kinds, and the bytes behind it. */
#include "blocks/s3_hold.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/error.h"

enum { HEAD = 64 };

typedef struct head {
    size_t len;
    bool mapped;
} head;

_Static_assert(sizeof(head) <= HEAD, "the bytes are behind it");

/* A file of its own, whose blocks are there before it is written to: a page
 * that found no room on the disk would be a signal. NULL in *out: there can be
 * none here. */
static int map_file(char **out, const bal_s3_room *room, size_t size,
                    bal_error *err)
{
    int fd = room->folder
                 ? open(room->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)
                 : -1;
    *out = NULL;
    if (fd < 0)
        return 0;
    int error = posix_fallocate(fd, 0, (off_t)size);
    void *at =
        error ? MAP_FAILED
              : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (at != MAP_FAILED) {
        *out = at;
        return 0;
    }
    errno = error ? error : errno;
    return bal_fail_errno(err, "staging in '%s'", room->folder);
}

/* Takes room in memory; false: there is not so much. */
static bool take_room(bal_s3_room *room, size_t size)
{
    size_t used = atomic_fetch_add(&room->used, size);

    if (used + size <= room->most)
        return true;
    atomic_fetch_sub(&room->used, size);
    return false;
}

static int find_place(char **out, bool *mapped, bal_s3_room *room, size_t size,
                      bal_error *err)
{
    char *at = NULL;
    bool fits = take_room(room, size);
    int rc = fits ? 0 : map_file(&at, room, size, err);
    if (rc)
        return rc;
    *mapped = at != NULL;
    if (!at) {
        at = malloc(size);
        /* More than there should be in memory, and no disk to put it on. */
        if (!fits)
            atomic_fetch_add(&room->used, size);
    }
    if (!at) {
        atomic_fetch_sub(&room->used, size);
        return bal_fail_memory(err, "a staged block");
    }
    *out = at;
    return 0;
}

int bal_s3_hold(char **out, bal_s3_room *room, const bal_bytes *parts,
                size_t count, bal_error *err)
{
    head made = { 0 };
    char *at = NULL;

    for (size_t i = 0; i < count; i++)
        made.len += parts[i].len;
    int rc = find_place(&at, &made.mapped, room, HEAD + made.len, err);
    if (rc)
        return rc;
    assert(at);
    memcpy(at, &made, sizeof(made));
    *out = at;
    at += HEAD;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].len)
            memcpy(at, parts[i].data, parts[i].len);
        at += parts[i].len;
    }
    return 0;
}

static head head_of(const char *hold)
{
    head read;

    memcpy(&read, hold, sizeof(read));
    return read;
}

bal_bytes bal_s3_held(const char *hold)
{
    return (bal_bytes){ hold + HEAD, head_of(hold).len };
}

void bal_s3_let_go(bal_s3_room *room, char *hold)
{
    if (!hold)
        return;
    head read = head_of(hold);
    if (read.mapped) {
        munmap(hold, HEAD + read.len);
        return;
    }
    free(hold);
    atomic_fetch_sub(&room->used, HEAD + read.len);
}
