/* A folder that an adapter was exported to, <dir>/<tenant>/<commit>: its files,
 * and the ballast.json that says what they are. */
#ifndef STORE_EXPORT_FOLDER_H
#define STORE_EXPORT_FOLDER_H

#include "core/json.h"
#include "store/store.h"

#define BAL_EXPORT_SCHEMA "ballast/export/1"

/* What an export is, beside its commit. */
typedef struct bal_export_form {
    const char *engine; /* NULL: none */
    bool adapted;
    const char *store; /* the id of the store it came from */
} bal_export_form;

/* The folder of a tenant's exports below dir, to be freed with bal_str_free. A
 * part of it that is not there is fine. EINVAL: it is a link, or no folder. */
BAL_CHECK int bal_exports_place(char **out, const bal_tenant *tenant,
                                const char *dir, bal_error *err);
/* What is at a path: ABSENT, DIR, or OTHER, which a link always is. */
bal_path_type bal_export_type(const char *path);

/* Calls fn for each file below a folder, by name; path is relative, '/'
 * between. ECORRUPT: a link, or another thing that is no file. */
BAL_CHECK int bal_export_files(const char *folder, bal_dir_fn *fn, void *ctx,
                               bal_error *err);
/* The digest of a file's bytes, and how many they are. Never through a link.
 * expect: if not UINT64_MAX, the size that it must have to be read. ENOTFOUND;
 * ECORRUPT: it is no file, or of another size. */
BAL_CHECK int bal_export_digest(bal_id *out, uint64_t *size, const char *path,
                                uint64_t expect, bal_error *err);

/* Writes ballast.json: provenance's members, and the digests of all files that
 * are in the folder. */
BAL_CHECK int bal_export_note(const char *folder, const char *provenance,
                              const bal_export_form *form, bal_error *err);
/* Reads ballast.json of the export of a commit. ECORRUPT: it is none, or that
 * of another commit or tenant. */
BAL_CHECK int bal_export_read(json_t **out, const char *folder,
                              const char *tenant, const bal_id *commit,
                              bal_error *err);
/* ECONFLICT unless it came from that store. */
BAL_CHECK int bal_export_is_of(const char *folder, const json_t *noted,
                               const char *store, bal_error *err);
/* ECORRUPT names the first file that is not as ballast.json says: changed, not
 * there, or not told of. */
BAL_CHECK int bal_export_verify(const char *folder, const json_t *noted,
                                bal_error *err);
/* ECONFLICT unless it was made in this form. */
BAL_CHECK int bal_export_fits(const char *folder, const json_t *noted,
                              const bal_export_form *form, bal_error *err);

/* Files in `made`, which will be a folder below `exports`, become links to
 * equal ones of its other folders. Where none can be made, files stay. */
BAL_CHECK int bal_export_link(const char *made, const char *exports,
                              const char *tenant, bal_error *err);

#endif
