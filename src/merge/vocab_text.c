/* Writing a vocabulary into the tokenizer.json that it came from. The text is
 * somebody's: what stays keeps its bytes, and what is new is laid out like what
 * stands beside it. */
#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "core/json_edit.h"
#include "merge/vocab_items.h"
#include "merge/vocab_words.h"

typedef struct editing {
    bal_items items;
    const bal_rewording *of;
    uint64_t bound;
} editing;

static bal_scan scan_of(editing *self, bal_bytes part)
{
    return bal_items_scan(&self->items, part);
}

/* ---- what stays ---------------------------------------------------------- */

static bool goes(const editing *self, const char *text, size_t len)
{
    const bal_word *word = bal_words_find(self->of->donor, text, len);

    return word && word->id >= self->bound;
}

static int keep_member(bal_items *items, bal_bytes item, size_t index,
                       bool *keep, bal_error *err)
{
    editing *self = (editing *)items;
    bal_scan scan = scan_of(self, item);
    const char *text = NULL;
    size_t len = 0;
    uint64_t id = 0;
    int rc = bal_scan_key(&scan, &text, &len, err);

    (void)index;
    if (!rc)
        rc = bal_scan_u64(&scan, &id, err);
    *keep = id < self->bound;
    return rc;
}

static int keep_piece(bal_items *items, bal_bytes item, size_t index,
                      bool *keep, bal_error *err)
{
    editing *self = (editing *)items;
    (void)item;
    (void)err;
    *keep = index < self->bound;
    return 0;
}

static int keep_added(bal_items *items, bal_bytes item, size_t index,
                      bool *keep, bal_error *err)
{
    editing *self = (editing *)items;
    bal_bytes content = { 0 };
    const char *text = NULL;
    size_t len = 0;
    int rc = bal_json_find(&content, item, "content", self->items.what, err);

    (void)index;
    if (rc)
        return rc;
    bal_scan scan = scan_of(self, content);
    rc = bal_scan_string(&scan, &text, &len, err);
    *keep = !rc && !goes(self, text, len);
    return rc;
}

/* Is a merge's part, or what comes of it, no longer there? Then the library
 * would not load the tokenizer. */
static int merge_goes(editing *self, bool *out, bal_bytes left, bal_bytes right,
                      bal_error *err)
{
    BAL_LOCAL(bal_buf) both = { 0 };
    int rc = bal_buf_append(&both, left.data, left.len, err);

    if (!rc)
        rc = bal_buf_append(&both, right.data, right.len, err);
    *out = goes(self, left.data, left.len) ||
           goes(self, right.data, right.len) ||
           (both.len && goes(self, both.data, both.len));
    return rc;
}

/* "left right" */
static int read_merge_text(bal_bytes part[2], bal_scan *scan, bal_error *err)
{
    const char *text = NULL;
    size_t len = 0;
    int rc = bal_scan_string(scan, &text, &len, err);
    if (rc)
        return rc;
    const char *space = memchr(text, ' ', len);
    if (!space)
        return bal_fail(err, BAL_ECORRUPT, "%s: a merge of one part",
                        scan->what);
    size_t left = (size_t)(space - text);
    part[0] = (bal_bytes){ text, left };
    part[1] = (bal_bytes){ space + 1, len - left - 1 };
    return 0;
}

/* ["left", "right"] */
static int read_merge_pair(bal_bytes part[2], bal_scan *scan, bal_error *err)
{
    int rc = bal_scan_open(scan, '[', err);

    for (size_t i = 0; i < 2 && !rc; i++) {
        const char *text = NULL;
        bool more = false;

        rc = bal_scan_more(scan, ']', !i, &more, err);
        if (!rc && !more)
            return bal_fail(err, BAL_ECORRUPT, "%s: a merge of one part",
                            scan->what);
        if (!rc)
            rc = bal_scan_string(scan, &text, &part[i].len, err);
        part[i].data = text;
    }
    return rc;
}

static int keep_merge(bal_items *items, bal_bytes item, size_t index,
                      bool *keep, bal_error *err)
{
    editing *self = (editing *)items;
    bal_scan scan = scan_of(self, item);
    bal_bytes part[2] = { { 0 } };
    bool gone = false;
    int rc = bal_scan_peek(&scan) == '[' ? read_merge_pair(part, &scan, err)
                                         : read_merge_text(part, &scan, err);

    (void)index;
    if (!rc)
        rc = merge_goes(self, &gone, part[0], part[1], err);
    *keep = !gone;
    return rc;
}

/* A member of added_tokens_decoder: "32000": {…} */
static int keep_numbered(bal_items *items, bal_bytes item, size_t index,
                         bool *keep, bal_error *err)
{
    editing *self = (editing *)items;
    bal_scan scan = scan_of(self, item);
    const char *text = NULL;
    size_t len = 0;
    int rc = bal_scan_key(&scan, &text, &len, err);
    if (rc)
        return rc;

    bal_scan digits = { text, len, 0, NULL, self->items.what };
    uint64_t id = 0;
    (void)index;
    *keep = bal_scan_u64(&digits, &id, NULL) || id < self->bound;
    return 0;
}

/* ---- what is new --------------------------------------------------------- */

/* A member's name, the comma before it and the colon behind. */
static int put_name(editing *self, bal_buf *out, const char *name,
                    bal_error *err)
{
    const char *space = self->items.gap_len ? " " : "";
    bool first = !strcmp(name, "id");
    int rc = first ? 0 : bal_buf_text(out, ",", err);

    if (!rc && !first && !bal_items_pretty(&self->items))
        rc = bal_buf_text(out, space, err);
    if (!rc)
        rc = bal_items_line(&self->items, out, "  ", err);
    if (rc)
        return rc;
    return bal_buf_format(out, err, "\"%s\":%s", name, space);
}

static int put_flags(editing *self, bal_buf *out, const bal_word *word,
                     bal_error *err)
{
    static const char *const names[] = { "single_word", "lstrip", "rstrip",
                                         "normalized", "special" };
    size_t count = sizeof(names) / sizeof(names[0]);
    int rc = 0;

    for (size_t i = 0; i < count && !rc; i++) {
        bool set = i == count - 1 && word->special;
        rc = put_name(self, out, names[i], err);
        if (!rc)
            rc = bal_buf_text(out, set ? "true" : "false", err);
    }
    return rc;
}

static int put_added(editing *self, bal_buf *out, const bal_word *word,
                     bal_error *err)
{
    int rc = bal_items_next(&self->items, out, err);

    if (!rc)
        rc = bal_buf_text(out, "{", err);
    if (!rc)
        rc = put_name(self, out, "id", err);
    if (!rc)
        rc = bal_buf_format(out, err, "%u", word->id);
    if (!rc)
        rc = put_name(self, out, "content", err);
    if (!rc)
        rc = bal_json_quote(out, word->text, word->len, err);
    if (!rc)
        rc = put_flags(self, out, word, err);
    if (!rc)
        rc = bal_items_line(&self->items, out, "", err);
    if (rc)
        return rc;
    return bal_buf_text(out, "}", err);
}

static int put_member(editing *self, bal_buf *out, const bal_word *word,
                      bal_error *err)
{
    int rc = bal_items_next(&self->items, out, err);

    if (!rc)
        rc = bal_json_quote(out, word->text, word->len, err);
    if (rc)
        return rc;
    return bal_buf_format(out, err, ":%s%u", self->items.gap_len ? " " : "",
                          word->id);
}

/* ---- the three parts ----------------------------------------------------- */

static int write_added(editing *self, bal_buf *out, bal_error *err)
{
    const bal_rewording *of = self->of;
    bal_bytes none = { "[]", 2 };
    bal_bytes from = of->donor->added.data ? of->donor->added : none;
    size_t tail = 1;
    int rc = bal_items_edit(&self->items, out, from, keep_added, &tail, err);

    for (size_t i = of->kept; !rc && i < of->want->count; i++)
        rc = put_added(self, out, &of->want->words[i], err);
    return rc ? rc : bal_items_end(&self->items, out, from, tail, err);
}

/* numbered: with every word that it has not, by the id that it has to have. */
static int write_vocab(editing *self, bal_buf *out, bool numbered,
                       bal_error *err)
{
    const bal_rewording *of = self->of;
    const bal_words *donor = of->donor;
    size_t tail = 1;
    int rc =
        bal_items_edit(&self->items, out, donor->vocab,
                       donor->listed ? keep_piece : keep_member, &tail, err);

    for (size_t i = donor->plain; numbered && !rc && i < donor->count; i++) {
        if (donor->words[i].id < self->bound)
            rc = put_member(self, out, &donor->words[i], err);
    }
    for (size_t i = of->kept; numbered && !rc && i < of->want->count; i++)
        rc = put_member(self, out, &of->want->words[i], err);
    return rc ? rc : bal_items_end(&self->items, out, donor->vocab, tail, err);
}

static int write_merges(editing *self, bal_buf *out, bal_error *err)
{
    bal_bytes from = self->of->donor->merges;
    const char *data = from.data;
    size_t tail = 1;

    if (!from.len || data[0] != '[')
        return bal_buf_text(out, "[]", err);
    int rc = bal_items_edit(&self->items, out, from, keep_merge, &tail, err);
    return rc ? rc : bal_items_end(&self->items, out, from, tail, err);
}

static bool cuts(const bal_rewording *self)
{
    for (size_t i = 0; i < self->donor->count; i++) {
        if (self->donor->words[i].id >= self->bound)
            return true;
    }
    return false;
}

static int compose(bal_buf *out, const bal_rewording *of, bool numbered,
                   bal_error *err)
{
    BAL_LOCAL(bal_buf) added = { 0 };
    BAL_LOCAL(bal_buf) vocab = { 0 };
    BAL_LOCAL(bal_buf) merges = { 0 };
    editing self = { { .what = of->what }, of, of->bound };
    bool cut = cuts(of);
    bal_json_change changes[3];
    size_t count = 0;

    int rc = write_added(&self, &added, err);
    changes[count++] =
        (bal_json_change){ "added_tokens", bal_buf_string(&added), true };
    if (!rc && (cut || numbered))
        rc = write_vocab(&self, &vocab, numbered, err);
    if (cut || numbered)
        changes[count++] =
            (bal_json_change){ "model.vocab", bal_buf_string(&vocab), false };
    if (!rc && cut)
        rc = write_merges(&self, &merges, err);
    if (cut)
        changes[count++] =
            (bal_json_change){ "model.merges", bal_buf_string(&merges), false };
    bal_arena_done(&self.items.arena);
    if (rc)
        return rc;
    return bal_json_edit(out, of->text, changes, count, of->what, err);
}

/* ---- all
 * -----------------------------------------------------------------------------
 */

static bool reads_as(const bal_words *got, const bal_words *want)
{
    if (got->count != want->count)
        return false;
    for (size_t i = 0; i < want->count; i++) {
        const bal_word *word = &want->words[i];
        const bal_word *there = bal_words_find(got, word->text, word->len);
        if (!there || there->id != word->id)
            return false;
    }
    return true;
}

bool bal_words_same(const bal_rewording *self)
{
    return self->kept == self->want->count && !cuts(self);
}

/* A text that was made is read again: how added tokens are numbered depends on
 * all that is before them. */
static int attempt(bal_buf *out, const bal_rewording *self, bool numbered,
                   bool *right, bal_error *err)
{
    BAL_LOCAL(bal_words) got = { 0 };
    BAL_LOCAL(bal_buf) text = { 0 };

    *right = false;
    int rc = compose(&text, self, numbered, err);
    if (!rc)
        rc = bal_words_read(&got, (bal_bytes){ text.data, text.len },
                            self->what, err);
    if (rc || !reads_as(&got, self->want))
        return rc;
    *right = true;
    return bal_buf_append(out, text.data, text.len, err);
}

int bal_words_write(bal_buf *out, const bal_rewording *self, bal_error *err)
{
    bool right = false;

    if (bal_words_same(self))
        return bal_buf_append(out, self->text.data, self->text.len, err);
    int rc = attempt(out, self, false, &right, err);
    if (!rc && !right && !self->donor->listed)
        rc = attempt(out, self, true, &right, err);
    if (rc || right)
        return rc;
    return bal_fail(err, BAL_EUNSUPPORTED,
                    "%s: the new vocabulary cannot be written into it, for its "
                    "ids leave some out",
                    self->what);
}

int bal_words_config(bal_buf *out, bal_bytes text, uint64_t bound,
                     const char *what, bal_error *err)
{
    static const char key[] = "added_tokens_decoder";
    editing self = { { .what = what }, NULL, bound };
    BAL_LOCAL(bal_buf) value = { 0 };
    bal_bytes from = { 0 };
    size_t tail = 1;

    int rc = bal_json_find(&from, text, key, what, err);
    if (rc)
        return rc;
    const char *data = from.data;
    if (!from.len || data[0] != '{')
        return bal_buf_append(out, text.data, text.len, err);
    rc = bal_items_edit(&self.items, &value, from, keep_numbered, &tail, err);
    if (!rc)
        rc = bal_items_end(&self.items, &value, from, tail, err);
    bal_arena_done(&self.items.arena);
    if (rc)
        return rc;
    bal_json_change change = { key, bal_buf_string(&value), false };
    return bal_json_edit(out, text, &change, 1, what, err);
}
