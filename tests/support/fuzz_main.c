/* Runs a fuzz target without libFuzzer: over every file of its corpus, and over
 * a few thousand changed copies of them. The changes come from a fixed seed, so
 * a failure comes back when it is run again; VERBOSE=1 then tells which file
 * and which change it was. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/fuzz.h"

enum { MUTATIONS = 4000, MAX_FILE = 1 << 20, MAX_FILES = 4096, ROOM = 64 };

typedef struct input {
    char name[256];
    uint8_t *data;
    size_t size;
} input;

static input inputs[MAX_FILES];
static size_t count;
static uint64_t state = 0x9e3779b97f4a7c15u;

/* splitmix64: every run draws the same numbers. */
static uint64_t draw(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static size_t below(size_t limit)
{
    return limit ? (size_t)(draw() % limit) : 0;
}

static int load(const char *dir, const char *name)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        return 0;

    input *one = &inputs[count];
    snprintf(one->name, sizeof(one->name), "%s", name);
    one->data = malloc(MAX_FILE);
    if (!one->data) {
        fclose(file);
        return -1;
    }
    one->size = fread(one->data, 1, MAX_FILE, file);
    fclose(file);
    count++;
    return 0;
}

/* readdir has no order; the draws must meet the same files each time. */
static int by_name(const void *a, const void *b)
{
    return strcmp(((const input *)a)->name, ((const input *)b)->name);
}

static int load_all(const char *dir)
{
    DIR *handle = opendir(dir);
    if (!handle)
        return 0;

    int rc = 0;
    const struct dirent *entry = readdir(handle);
    while (entry && !rc && count < MAX_FILES) {
        if (entry->d_name[0] != '.')
            rc = load(dir, entry->d_name);
        entry = readdir(handle);
    }
    closedir(handle);
    qsort(inputs, count, sizeof(*inputs), by_name);
    return rc;
}

static void set_byte(uint8_t *data, size_t size)
{
    if (size)
        data[below(size)] = (uint8_t)draw();
}

static void flip_bit(uint8_t *data, size_t size)
{
    if (size)
        data[below(size)] ^= (uint8_t)(1u << below(8));
}

/* Lengths and counts break at their edges. */
static void set_edge(uint8_t *data, size_t size)
{
    static const uint64_t edges[] = { 0,          1,          0x7fffffff,
                                      0xffffffff, UINT64_MAX, INT64_MAX };
    uint64_t edge = edges[below(sizeof(edges) / sizeof(edges[0]))];
    size_t width = (size_t)1 << below(4);

    if (size >= width)
        memcpy(data + below(size - width + 1), &edge, width);
}

static void set_token(uint8_t *data, size_t size)
{
    static const char tokens[] = "{}[]\",:\\0-9e.~^@/%u";

    if (size)
        data[below(size)] = (uint8_t)tokens[below(sizeof(tokens) - 1)];
}

static size_t change(uint8_t *data, size_t size)
{
    static void (*const changes[])(uint8_t *, size_t) = { set_byte, flip_bit,
                                                          set_edge, set_token };
    size_t times = 1 + below(6);

    for (size_t i = 0; i < times; i++)
        changes[below(4)](data, size);
    if (below(4) == 0)
        return below(size + 1);
    if (below(8) == 0) {
        size_t more = below(ROOM);
        for (size_t i = 0; i < more; i++)
            data[size + i] = (uint8_t)draw();
        return size + more;
    }
    return size;
}

/* A copy of exactly the right size, so that reading past it is seen. */
static int run(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        return -1;

    if (size)
        memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    return 0;
}

static int run_changed(int verbose)
{
    uint8_t *data = malloc(MAX_FILE + ROOM);
    if (!data)
        return -1;

    int rc = 0;
    for (size_t i = 0; i < MUTATIONS && !rc; i++) {
        const input *from = &inputs[below(count)];
        if (from->size)
            memcpy(data, from->data, from->size);
        size_t size = change(data, from->size);
        if (verbose)
            fprintf(stderr, "%zu of %s, %zu bytes\n", i, from->name, size);
        rc = run(data, size);
    }
    free(data);
    return rc;
}

int main(int argc, char **argv)
{
    int verbose = getenv("VERBOSE") != NULL;
    int rc = 0;

    if (argc > 1)
        rc = load_all(argv[1]);
    printf("%zu files\n", count);
    for (size_t i = 0; i < count && !rc; i++) {
        if (verbose)
            fprintf(stderr, "%s, %zu bytes\n", inputs[i].name, inputs[i].size);
        rc = run(inputs[i].data, inputs[i].size);
    }
    if (!count)
        count = 1;
    if (!rc)
        rc = run_changed(verbose);
    for (size_t i = 0; i < count; i++)
        free(inputs[i].data);
    return rc ? 1 : 0;
}
