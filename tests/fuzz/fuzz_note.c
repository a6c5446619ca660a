/* Checkpoints of any bytes: what is read is in the text, and its head survives
 * being written and read. */
#include <stdlib.h>
#include <string.h>

#include "core/key_inside.h"
#include "core/note.h"
#include "support/fuzz.h"

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_written(const bal_note *read, const bal_key *pair)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_LOCAL(bal_note) back = { 0 };
    bool good = false;

    /* A log may have a name that no key can have, or a long one. */
    if (bal_note_write(&text, read->origin, &read->head, pair, NULL))
        return;
    must(!bal_note_read(&back, (bal_bytes){ text.data, text.len }, NULL));
    must(!strcmp(back.origin, read->origin));
    must(back.head.size == read->head.size);
    must(bal_sha256_equal(&back.head.root, &read->head.root));
    must(!bal_note_verify(&back, pair, &good, NULL) && good);
    must(back.text.len <= read->text.len);
    must(!memcmp(back.text.data, read->text.data, back.text.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t seed[32] = { 1, 2, 3 };
    BAL_LOCAL(bal_note) read = { 0 };
    BAL_OWN(bal_key) pair = NULL;
    bool good = true;

    int rc = bal_note_read(&read, (bal_bytes){ data, size }, NULL);
    must(!rc || rc == BAL_ECORRUPT);
    if (rc)
        return 0;
    must(read.text.len + 1 + read.signatures.len == size);
    must(!memcmp(read.text.data, data, read.text.len));
    must(!bal_key_of_seed(&pair, seed, NULL));
    must(!bal_note_verify(&read, pair, &good, NULL) && !good);
    check_written(&read, pair);
    return 0;
}
