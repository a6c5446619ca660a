/* The last step of every commit: rows and ref in one transaction. */
#ifndef STORE_PUBLISH_H
#define STORE_PUBLISH_H

#include "store/intent.h"

/* A manifest and blocks that are settled, to be made a commit on a ref. */
typedef struct bal_publication {
    const bal_manifest_row *manifest;
    const bal_block_row *blocks; /* new rows */
    size_t block_count;
    const bal_id *ids; /* every block that the manifest uses */
    size_t id_count;
    const bal_intent *intent; /* that it fulfils, NULL: none */
    const char *op;           /* for the reflog */
    const char *base_model;
} bal_publication;

/* One transaction: rows, commit on the ref's head, the ref moved, the reflog.
 * Sets report->nothing_changed and gives the head where the same content and
 * message are there already. */
BAL_CHECK int bal_publish(bal_commit **out, bal_tenant *tenant,
                          const bal_publication *publication,
                          const bal_draft *draft, bal_commit_report *report,
                          bal_error *err);
/* EINVAL: a draft without a message, texts that are not UTF-8, a ref that is no
 * name, metadata that is not an object. */
BAL_CHECK int bal_draft_check(const bal_draft *draft, bal_error *err);
/* EINVAL: not a ref's name. */
BAL_CHECK int bal_ref_check(const char *ref, bal_error *err);

#endif
