/* Files and folders for tests, made by hand. */
#include "support/files.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/arith.h"
#include "support/check.h"

enum { PATHS = 16, PATH_ROOM = 512, HEARD = 1 << 16 };

static char paths[PATHS][PATH_ROOM];
static size_t path_next;
static unsigned dirs;
static char heard[HEARD];

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    perror(what);
    abort();
}

static void make_parents(char *path)
{
    for (char *at = path + 1; *at; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        mkdir(path, 0777);
        *at = '/';
    }
}

const char *file_path(const char *format, ...)
{
    char *path = paths[path_next++ % PATHS];
    int len = snprintf(path, PATH_ROOM, "%s/", check_dir());
    va_list args;

    va_start(args, format);
    int more = vsnprintf(path + len, PATH_ROOM - (size_t)len, format, args);
    va_end(args);
    must(more >= 0 && len + more < PATH_ROOM, "path");
    make_parents(path);
    return path;
}

const char *file_dir(void)
{
    const char *path = file_path("dir-%u", dirs++);

    must(!mkdir(path, 0777), path);
    return path;
}

static FILE *open_new(const char *path)
{
    FILE *file = fopen(path, "wb");

    must(file != NULL, path);
    return file;
}

void file_put(const char *path, const void *data, size_t len)
{
    FILE *file = open_new(path);

    must(!len || fwrite(data, 1, len, file) == len, path);
    must(!fclose(file), path);
}

void file_text(const char *path, const char *text)
{
    file_put(path, text, strlen(text));
}

void file_tensors(const char *path, const char *json, const void *data,
                  size_t len)
{
    uint8_t length[8];
    size_t json_len = strlen(json);
    FILE *file = open_new(path);

    bal_put64(length, json_len);
    must(fwrite(length, 1, 8, file) == 8, path);
    must(fwrite(json, 1, json_len, file) == json_len, path);
    must(!len || fwrite(data, 1, len, file) == len, path);
    must(!fclose(file), path);
}

void file_get(bal_buf *to, const char *path)
{
    char piece[4096];
    FILE *file = fopen(path, "rb");
    size_t got = 0;

    must(file != NULL, path);
    bal_buf_clear(to);
    do {
        got = fread(piece, 1, sizeof(piece), file);
        must(!bal_buf_append(to, piece, got, NULL), path);
    } while (got);
    fclose(file);
}

bool file_same(const char *a, const char *b)
{
    BAL_LOCAL(bal_buf) left = { 0 };
    BAL_LOCAL(bal_buf) right = { 0 };

    file_get(&left, a);
    file_get(&right, b);
    return left.len == right.len && !memcmp(left.data, right.data, left.len);
}

bool file_is(const char *path, const char *text)
{
    BAL_LOCAL(bal_buf) is = { 0 };

    file_get(&is, path);
    return is.len == strlen(text) && !memcmp(is.data, text, is.len);
}

bool file_exists(const char *path)
{
    struct stat info;

    return !lstat(path, &info);
}

size_t file_count(const char *dir)
{
    DIR *handle = opendir(dir);
    size_t count = 0;

    must(handle != NULL, dir);
    for (struct dirent *one = readdir(handle); one; one = readdir(handle))
        count +=
            strcmp(one->d_name, ".") != 0 && strcmp(one->d_name, "..") != 0;
    closedir(handle);
    return count;
}

static void hear(void *ctx, bal_level level, const char *area, const char *line)
{
    size_t len = strlen(heard);

    (void)ctx;
    (void)area;
    if (level == BAL_WARNING)
        snprintf(heard + len, HEARD - len, "%s\n", line);
}

void file_listen(void)
{
    heard[0] = '\0';
    bal_log_to(hear, NULL);
}

bool file_heard(const char *text)
{
    return strstr(heard, text) != NULL;
}
