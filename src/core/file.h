/* Files: whole or not at all, durable when said so. */
#ifndef CORE_FILE_H
#define CORE_FILE_H

#include "core/buf.h"

/* A file open for reading. */
typedef struct bal_file {
    int fd;
    uint64_t size;
    uint64_t stamp; /* mtime in ns and inode, mixed: changed while read? */
    char *path;
} bal_file;

/* Refuses what is not a regular file (EINVAL). */
BAL_CHECK int bal_file_open(bal_file **out, const char *path, bal_error *err);
/* Exactly len bytes, by pread; ECORRUPT if the file ends before. */
BAL_CHECK int bal_file_read(const bal_file *self, uint64_t offset, void *to,
                            size_t len, bal_error *err);
/* EIO "… changed while it was read" unless size and stamp are as at open. */
BAL_CHECK int bal_file_unchanged(const bal_file *self, bal_error *err);
void bal_file_free(bal_file *self);
BAL_OWNABLE(bal_file)

/* All of a small file; ceiling bytes at most (EINVAL). */
BAL_CHECK int bal_file_slurp(bal_buf *out, const char *path, size_t ceiling,
                             bal_error *err);

/* write(2) until all is written; the same at a place in the file. In pieces of
 * 256 KiB: for larger ones the kernel takes pages of megabytes, which a virtual
 * machine has to be given anew by its host. path NULL: the caller says which
 * file it is. */
BAL_CHECK int bal_write_all(int fd, const void *data, size_t len,
                            const char *path, bal_error *err);
BAL_CHECK int bal_write_at(int fd, uint64_t at, const void *data, size_t len,
                           const char *path, bal_error *err);
/* fsync of an open file, of a directory by path, of the one that holds path. */
BAL_CHECK int bal_sync_fd(int fd, const char *path, bal_error *err);
BAL_CHECK int bal_sync_dir(const char *path, bal_error *err);
BAL_CHECK int bal_sync_parent(const char *path, bal_error *err);
/* Ask for write-back to begin, without waiting for it. */
void bal_sync_begin(int fd, uint64_t offset, uint64_t len);

/* mkdir -p; every directory made is fsynced into its parent. */
BAL_CHECK int bal_make_dirs(const char *path, bal_error *err);
/* rename, then fsync of the directory that holds `to` (and of `from`'s, where
 * it is another). */
BAL_CHECK int bal_rename(const char *from, const char *to, bal_error *err);
/* EINVAL where a device, pipe or socket is. A small file in one go: temporary
 * name, fsync, rename, fsync of the directory. */
BAL_CHECK int bal_file_replace(const char *path, const void *data, size_t len,
                               bal_error *err);
/* rm -r, never through a symbolic link; absent is fine. */
BAL_CHECK int bal_remove_tree(const char *path, bal_error *err);
/* Calls fn for each name in a directory but . and .., sorted. */
typedef int bal_dir_fn(void *ctx, const char *name, bal_error *err);
BAL_CHECK int bal_dir_each(const char *path, bal_dir_fn *fn, void *ctx,
                           bal_error *err);
typedef enum bal_path_type {
    BAL_PATH_ABSENT,
    BAL_PATH_FILE,
    BAL_PATH_DIR,
    BAL_PATH_OTHER,
} bal_path_type;
bal_path_type bal_path_type_of(const char *path);
/* "a/b": allocated with bal_str_copy's allocator; NULL: no memory. */
char *bal_path_join(const char *dir, const char *name);
/* The real path of what exists of it, "..", "." and links resolved. */
BAL_CHECK int bal_path_real(char **out, const char *path, bal_error *err);
/* True if b equals a or lies in it; both from bal_path_real. */
bool bal_path_holds(const char *a, const char *b);

/* A lock on a file that ends with the process (flock). */
typedef struct bal_lock {
    int fd;
} bal_lock;
enum bal_lock_mode { BAL_LOCK_SHARED, BAL_LOCK_EXCLUSIVE };
/* Waits at most wait seconds (0: not at all); EBUSY after that. Makes the file
 * if need be. */
BAL_CHECK int bal_lock_take(bal_lock **out, const char *path,
                            enum bal_lock_mode mode, double wait,
                            bal_error *err);
void bal_lock_free(bal_lock *self);
BAL_OWNABLE(bal_lock)

#endif
