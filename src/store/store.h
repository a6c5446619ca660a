/* What the files of this floor share: a store is a graph, blocks and the
 * settings that say where they are; a tenant is a name within it. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "blocks/blocks.h"
#include "core/file.h"
#include "core/pool.h"
#include "graph/graph.h"

#define BAL_STORE_FORMAT 1

/* The settings, by the order of the rows in settings.c. */
typedef enum bal_setting {
    BAL_SETTING_ANCHORING,
    BAL_SETTING_BACKEND,
    BAL_SETTING_BLOCK_SIZE,
    BAL_SETTING_COMPRESSION,
    BAL_SETTING_DB,
    BAL_SETTING_DEFAULT_JOBS,
    BAL_SETTING_FORMAT,
    BAL_SETTING_TENANT,
    BAL_SETTING_VIEW_CACHE,
    BAL_SETTINGS,
} bal_setting;

struct bal_store {
    char *root;
    bal_work *work; /* borrowed */
    bal_blocks *blocks;
    bal_graph *graph;
    double wait;
    uint64_t block_size;
    bal_effort effort;
    uint64_t view_cap;            /* bytes of the view cache at most, 0: off */
    bool no_cache;                /* nor for this handle */
    bool told_of_reader;          /* that holds up a deletion; the lock is held
                                     alone */
    char *settings[BAL_SETTINGS]; /* NULL: not set */
    _Atomic uint64_t placed;      /* the changes when it was here still */
};

BAL_OWNABLE(bal_store)

struct bal_tenant {
    bal_store *store;
    char name[65];
    int64_t number; /* 0: not in the graph (yet) */
};

BAL_OWNABLE(bal_tenant)
BAL_OWNABLE(bal_commit)

/* ---- settings.c --------------------------------------------------------- */

/* The name of a setting in the database and in `ballast config`. */
const char *bal_setting_name(bal_setting setting);
/* Read them all, and what follows from them. */
BAL_CHECK int bal_settings_load(bal_store *self, bal_error *err);
/* EINVAL unless value fits the setting. */
BAL_CHECK int bal_setting_check(bal_setting setting, const char *value,
                                bal_error *err);
/* Record what a new store is made with; one that has them is left as it is. */
BAL_CHECK int bal_settings_make(bal_graph *graph,
                                const bal_store_options *options,
                                const char *backend, const char *db,
                                bal_error *err);
/* ECONFLICT where the options ask for what the store is not. */
BAL_CHECK int bal_settings_match(const bal_store *self,
                                 const bal_store_options *options,
                                 bal_error *err);

/* ---- write_lock.c ------------------------------------------------------- */

/* Writers share the lock, what removes blocks has it alone. Who shares it finds
 * no deletion half done: one that was killed is finished first. */
BAL_CHECK int bal_store_lock(bal_db_lock **out, bal_store *self,
                             enum bal_lock_mode mode, bal_error *err);
/* The lock alone, whatever is in the journal: for who only looks. */
BAL_CHECK int bal_store_lock_waiting(bal_db_lock **out, bal_store *self,
                                     enum bal_lock_mode mode, bal_error *err);
/* Alone, without waiting; EBUSY. */
BAL_CHECK int bal_store_lock_now(bal_db_lock **out, bal_store *self,
                                 bal_error *err);
/* ECONFLICT: it has moved since it was opened. */
BAL_CHECK int bal_store_placed(bal_store *self, bal_error *err);
/* Remove what killed writers left: temporaries (flags of bal_sweep_flags), and
 * blocks that were published and never named. The lock is held alone. */
BAL_CHECK int bal_store_clear(bal_store *self, unsigned flags, bal_error *err);
/* Finish deletions that were killed, then the same, if no writer is at work. */
BAL_CHECK int bal_store_recover(bal_store *self, bal_error *err);

/* ---- fingerprint.c ------------------------------------------------------ */

/* Scrub the database where probes were forgotten and that is still due. The
 * lock is held alone. */
BAL_CHECK int bal_probes_scrub(bal_store *self, bal_error *err);

/* ---- tenant.c ----------------------------------------------------------- */

/* Its number as it is now: who has waited for the store looks again, since the
 * tenant may have been made, or forgotten and made anew. */
BAL_CHECK int bal_tenant_renew(bal_tenant *self, bal_error *err);
/* Its number, made in the graph if need be; inside a transaction or not. */
BAL_CHECK int bal_tenant_make(bal_tenant *self, bal_error *err);

#endif
