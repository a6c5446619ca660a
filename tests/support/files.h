/* Files and folders for tests, made by hand. A failure aborts. */
#ifndef SUPPORT_FILES_H
#define SUPPORT_FILES_H

#include "core/buf.h"

/* A path below check_dir(), its folders made; good until the next 16 calls. */
const char *file_path(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
/* The path of a new empty folder below check_dir(). */
const char *file_dir(void);
void file_put(const char *path, const void *data, size_t len);
void file_text(const char *path, const char *text);
/* A safetensors file: the length of json, json, data. */
void file_tensors(const char *path, const char *json, const void *data,
                  size_t len);
void file_get(bal_buf *to, const char *path);
bool file_same(const char *a, const char *b);
bool file_is(const char *path, const char *text);
bool file_exists(const char *path);
/* How many names a folder holds, hidden ones included. */
size_t file_count(const char *dir);

/* What the library warns of, while it is listened to. */
void file_listen(void);
/* True if a warning since then holds text. */
bool file_heard(const char *text);

#endif
