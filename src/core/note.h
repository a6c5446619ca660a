/* Checkpoints: the head of a log as a signed note (c2sp.org/tlog-checkpoint,
 * c2sp.org/signed-note):
 *
 *     origin\nsize\nbase64(root)\n\n— origin base64(key id ‖ signature)\n */
#ifndef CORE_NOTE_H
#define CORE_NOTE_H

#include "core/key.h"
#include "core/merkle.h"

/* Append the checkpoint of a log, signed by an Ed25519 pair under the origin's
 * name. EINVAL: a key that is not one; an origin with a space, '+' or a
 * control character. */
BAL_CHECK int bal_note_write(bal_buf *to, const char *origin,
                             const bal_merkle_head *head, const bal_key *key,
                             bal_error *err);

typedef struct bal_note {
    const char *origin;
    bal_merkle_head head;
    bal_bytes text;       /* what signatures are of */
    bal_bytes signatures; /* the lines behind the empty one */
    bal_arena arena;
} bal_note;

/* ECORRUPT: not a checkpoint. Extension lines and signatures of others are
 * passed over; 64 KiB at most. */
BAL_CHECK int bal_note_read(bal_note *out, bal_bytes text, bal_error *err);
void bal_note_done(bal_note *self);
/* *good: a line has the origin's name, this key's id (the first 4 bytes of
 * SHA-256(name ‖ 0x0A ‖ 0x01 ‖ key)), and its signature. */
BAL_CHECK int bal_note_verify(const bal_note *self, const bal_key *key,
                              bool *good, bal_error *err);

#endif
