/* Texts, each once, by number. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "probe/fingerprint_inside.h"

enum { FIRST_ROOM = 256 };

static int grow(bal_token_words *self, bal_error *err)
{
    size_t room = self->room ? self->room * 2 : FIRST_ROOM;
    const char **texts = realloc(self->texts, room * sizeof(*texts));

    if (!texts)
        return bal_fail_memory(err, "a list of words");
    self->texts = texts;
    self->room = room;
    return 0;
}

int bal_token_words_add(bal_token_words *self, const char *text, size_t *index,
                        bool *there, bal_error *err)
{
    int rc = self->count == self->room ? grow(self, err) : 0;
    if (rc)
        return rc;

    *index = self->count;
    rc = bal_map_add(&self->map, text, strlen(text), index, there, err);
    if (!rc && !*there)
        self->texts[self->count++] = text;
    return rc;
}

int bal_token_words_keep(bal_token_words *self, bal_arena *arena,
                         const char *text, const char **kept, bal_error *err)
{
    size_t len = strlen(text);
    size_t index = bal_map_find(&self->map, text, len);
    bool there;

    if (index == BAL_NONE) {
        const char *copy = bal_arena_copy(arena, text, len);
        int rc = copy ? bal_token_words_add(self, copy, &index, &there, err)
                      : bal_fail_memory(err, "a list of words");
        if (rc)
            return rc;
    }
    *kept = self->texts[index];
    return 0;
}

void bal_token_words_done(bal_token_words *self)
{
    bal_map_done(&self->map);
    free(self->texts);
    *self = (bal_token_words){ 0 };
}
