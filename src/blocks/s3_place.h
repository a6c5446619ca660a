/* Which bucket, where, and whose keys: an s3: URL and what the environment and
 * AWS's files say, as AWS's own programs read them. */
#ifndef BLOCKS_S3_PLACE_H
#define BLOCKS_S3_PLACE_H

#include "core/sigv4.h"

typedef struct bal_s3_place {
    bal_arena arena;    /* of all that follows */
    const char *text;   /* "s3://bucket/prefix", for messages */
    const char *prefix; /* of keys: "", or with a '/' at its end */
    const char *origin; /* "https://host:port" */
    const char *host;   /* as in the Host line */
    const char *path;   /* what is before a key's '/': "", "/bucket" */
    const char *region;
    const char *ca;       /* a file of certificates, NULL: the system's */
    bal_sigv4_keys keys;  /* access NULL: there are none */
    const char *endpoint; /* that was asked for, NULL: AWS */
    unsigned tries;       /* of one request at most */
    bool tls;
} bal_s3_place;

/* rest: the URL behind "s3:". EINVAL: it is none (it is not repeated: there may
 * be a key in it), a profile, region or endpoint that makes no sense. */
BAL_CHECK int bal_s3_place_init(bal_s3_place *self, const char *rest,
                                bal_error *err);
void bal_s3_place_done(bal_s3_place *self);

/* ---- s3_profile.c ------------------------------------------------------- */

/* What a profile of AWS's files says; NULL: nothing. */
typedef struct bal_s3_profile {
    const char *access, *secret, *session;
    const char *region, *endpoint;
} bal_s3_profile;

/* A profile out of a file: of its credentials, or of its configuration, where
 * names have "profile " before them. *found is set if it is there. ECORRUPT
 * with the line's number, and nothing of what is in it. */
enum bal_s3_file { BAL_S3_CREDENTIALS, BAL_S3_CONFIG };
BAL_CHECK int bal_s3_profile_read(bal_s3_profile *out, bool *found,
                                  bal_arena *arena, bal_bytes text,
                                  const char *name, enum bal_s3_file kind,
                                  bal_error *err);
/* By AWS_PROFILE, AWS_SHARED_CREDENTIALS_FILE, AWS_CONFIG_FILE. ENOTFOUND: no
 * file has the profile that AWS_PROFILE names. */
BAL_CHECK int bal_s3_profile_find(bal_s3_profile *out, bal_arena *arena,
                                  bal_error *err);

#endif
