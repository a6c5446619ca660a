#include "merge/vocab_words.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "core/json_edit.h"
#include "merge/vocab.h"

enum { FIRST_ROOM = 256, LEVELS = 64 };

/* ---- the list ------------------------------------------------------------ */

static int grow(bal_words *self, bal_error *err)
{
    size_t room = self->room ? 2 * self->room : FIRST_ROOM;

    if (self->count < self->room)
        return 0;
    if (self->count >= BAL_VOCAB_TOKENS_MAX)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "a vocabulary of more than %zu tokens",
                        BAL_VOCAB_TOKENS_MAX);
    bal_word *words = realloc(self->words, room * sizeof(*words));
    if (!words)
        return bal_fail_memory(err, "a vocabulary");
    self->words = words;
    self->room = room;
    return 0;
}

int bal_words_add(bal_words *self, const bal_word *word, bal_error *err)
{
    size_t index = self->count;
    bool there = false;
    int rc = grow(self, err);

    if (!rc)
        rc =
            bal_map_add(&self->map, word->text, word->len, &index, &there, err);
    if (rc)
        return rc;
    if (there) {
        self->words[index].id = word->id;
        return 0;
    }
    self->words[self->count++] = *word;
    return 0;
}

static bal_word *find(const bal_words *self, const char *text, size_t len)
{
    size_t index = bal_map_find(&self->map, text, len);

    return index == BAL_NONE ? NULL : &self->words[index];
}

const bal_word *bal_words_find(const bal_words *self, const char *text,
                               size_t len)
{
    return find(self, text, len);
}

void bal_words_done(bal_words *self)
{
    bal_map_done(&self->map);
    bal_arena_done(&self->arena);
    free(self->words);
    *self = (bal_words){ 0 };
}

/* What is sorted: an id, and an index behind it. */
static int by_key(const void *a, const void *b)
{
    const uint64_t *left = a;
    const uint64_t *right = b;

    return (*left > *right) - (*left < *right);
}

int bal_words_order(size_t **out, const bal_words *self, bal_error *err)
{
    uint64_t *keys = malloc((self->count + 1) * sizeof(*keys));
    size_t *order = malloc((self->count + 1) * sizeof(*order));

    if (!keys || !order) {
        free(keys);
        free(order);
        return bal_fail_memory(err, "a vocabulary");
    }
    for (size_t i = 0; i < self->count; i++)
        keys[i] = (uint64_t)self->words[i].id << 32 | i;
    qsort(keys, self->count, sizeof(*keys), by_key);
    for (size_t i = 0; i < self->count; i++)
        order[i] = (size_t)(keys[i] & UINT32_MAX);
    free(keys);
    *out = order;
    return 0;
}

/* ---- model.vocab --------------------------------------------------------- */

typedef struct reading {
    bal_words *words;
    bal_scan scan;
} reading;

static int put(reading *self, bal_word *word, uint64_t id, bal_error *err)
{
    if (id >= UINT32_MAX)
        return bal_fail(err, BAL_ECORRUPT, "%s: a token of too large an id",
                        self->scan.what);
    word->id = (uint32_t)id;
    int rc = bal_words_add(self->words, word, err);
    return rc ? bal_within(err, rc, "%s", self->scan.what) : 0;
}

/* "piece": id */
static int read_member(reading *self, bal_error *err)
{
    bal_word word = { 0 };
    uint64_t id = 0;
    int rc = bal_scan_key(&self->scan, &word.text, &word.len, err);

    if (!rc)
        rc = bal_scan_u64(&self->scan, &id, err);
    if (rc)
        return rc;
    return put(self, &word, id, err);
}

/* ["piece", score] */
static int read_piece(reading *self, bal_error *err)
{
    bal_word word = { 0 };
    bool more = false;
    int rc = bal_scan_open(&self->scan, '[', err);

    if (!rc)
        rc = bal_scan_string(&self->scan, &word.text, &word.len, err);
    if (!rc)
        rc = put(self, &word, self->words->next++, err);
    while (!rc) {
        rc = bal_scan_more(&self->scan, ']', false, &more, err);
        if (rc || !more)
            break;
        rc = bal_scan_skip(&self->scan, LEVELS, err);
    }
    return rc;
}

typedef int read_fn(reading *self, bal_error *err);

static int read_items(reading *self, char open, char closing, read_fn *read,
                      bal_error *err)
{
    bool more = false;
    int rc = bal_scan_open(&self->scan, open, err);

    for (bool first = true; !rc; first = false) {
        rc = bal_scan_more(&self->scan, closing, first, &more, err);
        if (rc || !more)
            return rc;
        rc = read(self, err);
    }
    return rc;
}

static int read_vocab(reading *self, bal_error *err)
{
    bal_words *words = self->words;
    char opening = bal_scan_peek(&self->scan);

    if (opening != '{' && opening != '[')
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "%s: no vocabulary that can be read", self->scan.what);
    words->listed = opening == '[';
    int rc = words->listed ? read_items(self, '[', ']', read_piece, err)
                           : read_items(self, '{', '}', read_member, err);
    words->plain = words->count;
    if (!words->listed)
        words->next = words->count;
    return rc;
}

/* ---- added_tokens -------------------------------------------------------- */

static bool is(const char *key, size_t len, const char *name)
{
    return len == strlen(name) && !memcmp(key, name, len);
}

static int read_added_key(reading *self, bal_word *word, bal_error *err)
{
    const char *key = NULL;
    size_t len = 0;
    int rc = bal_scan_key(&self->scan, &key, &len, err);
    if (rc)
        return rc;

    if (is(key, len, "content"))
        return bal_scan_string(&self->scan, &word->text, &word->len, err);
    if (is(key, len, "special"))
        word->special = bal_scan_peek(&self->scan) == 't';
    return bal_scan_skip(&self->scan, LEVELS, err);
}

static int read_added(reading *self, bal_error *err)
{
    bal_words *words = self->words;
    bal_word word = { .added = true };
    bool more = false;
    int rc = bal_scan_open(&self->scan, '{', err);

    for (bool first = true; !rc; first = false) {
        rc = bal_scan_more(&self->scan, '}', first, &more, err);
        if (rc || !more)
            break;
        rc = read_added_key(self, &word, err);
    }
    if (rc)
        return rc;
    if (!word.text)
        return bal_fail(err, BAL_ECORRUPT, "%s: an added token without content",
                        self->scan.what);
    bal_word *there = find(words, word.text, word.len);
    if (there) {
        there->added = true;
        there->special = there->special || word.special;
    }
    /* The library passes an empty one over. */
    return there || !word.len ? 0 : put(self, &word, words->next++, err);
}

/* ---- all ----------------------------------------------------------------- */

static int find_parts(bal_words *self, bal_bytes text, const char *what,
                      bal_error *err)
{
    bal_bytes model = { 0 };
    int rc = bal_json_find(&model, text, "model", what, err);

    if (!rc)
        rc = bal_json_find(&self->added, text, "added_tokens", what, err);
    if (!rc)
        rc = bal_json_find(&self->vocab, model, "vocab", what, err);
    if (!rc)
        rc = bal_json_find(&self->merges, model, "merges", what, err);
    return rc;
}

static reading reading_of(bal_words *self, bal_bytes part, const char *what)
{
    return (reading){
        .words = self,
        .scan = { part.data, part.len, 0, &self->arena, what },
    };
}

int bal_words_read(bal_words *out, bal_bytes text, const char *what,
                   bal_error *err)
{
    BAL_LOCAL(bal_words) words = { 0 };
    int rc = find_parts(&words, text, what, err);
    if (rc)
        return rc;

    reading vocab = reading_of(&words, words.vocab, what);
    rc = read_vocab(&vocab, err);
    if (rc)
        return rc;
    reading added = reading_of(&words, words.added, what);
    if (words.added.data)
        rc = read_items(&added, '[', ']', read_added, err);
    if (rc)
        return rc;
    *out = words;
    words = (bal_words){ 0 };
    return 0;
}
