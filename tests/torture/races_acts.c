/* What the two of a race do, and what must hold afterwards. */
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "merge/merge.h"
#include "support/memory_model.h"
#include "torture/races.h"

enum {
    VALUES = 64,   /* of `w` */
    COMMON = 1024, /* of the tensor that all have: a block of its own */
    PATTERN = 64,  /* bytes that are looked for */
    FILE_MAX = 64, /* MiB of a file below the root, at most */
};

/* ---- acting ------------------------------------------------------------- */

/* SplitMix64; floats in [1, 2), so that a view of weight 1 has the same. */
static void values_of(float out[VALUES], uint64_t seed)
{
    for (size_t i = 0; i < VALUES; i++) {
        uint64_t z = seed * 0x10001 + (i + 1) * 0x9E3779B97F4A7C15U;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
        uint32_t bits = 0x3F800000U | (uint32_t)(z >> 41);
        memcpy(&out[i], &bits, sizeof(bits));
    }
}

static void message_of(char out[32], uint64_t seed)
{
    snprintf(out, 32, "message %016llx", (unsigned long long)seed);
}

bal_model *race_model(uint64_t seed)
{
    static const uint64_t values = VALUES;
    static const uint64_t commons = COMMON;
    float w[VALUES];
    float common[COMMON];
    bal_model *model = memory_new(BAL_KIND_WEIGHTS, "made");

    values_of(w, seed);
    for (size_t i = 0; i < COMMON; i++)
        common[i] = (float)i;
    memory_tensor(model, "common", BAL_F32, 1, &commons, common);
    memory_tensor(model, "w", BAL_F32, 1, &values, w);
    memory_finish(model);
    return model;
}

int race_commit(race_side *self, bal_model *model, uint64_t seed,
                const char *ref, bal_id *id, bal_error *err)
{
    BAL_OWN(bal_commit) commit = NULL;
    char message[32];
    const bal_draft draft = {
        .ref = ref,
        .message = message,
        .author = "a",
        .flags = BAL_DRAFT_ALLOW_EMPTY,
    };

    message_of(message, seed);
    int rc = bal_commit_model(&commit, self->acme, model, &draft, NULL, err);
    if (!rc)
        *id = bal_commit_info_of(commit)->id;
    return rc;
}

int race_view(race_side *self, bal_tenant *tenant, const bal_id *input,
              const char *ref, bal_id *id, bal_error *err)
{
    BAL_OWN(bal_recipe) recipe = NULL;
    BAL_OWN(bal_commit) commit = NULL;
    const bal_draft draft = { .ref = ref, .message = "m", .author = "a" };
    char hex[BAL_ID_HEX + 1];
    char text[96];

    (void)self;
    bal_id_hex(hex, input);
    snprintf(text, sizeof(text), "acme:%s@1", hex);
    int rc = bal_recipe_new(&recipe, "linear", err);
    if (!rc)
        rc = bal_recipe_input(recipe, tenant, text, err);
    if (!rc)
        rc = bal_commit_view(&commit, tenant, recipe, &draft, NULL, err);
    if (!rc)
        *id = bal_commit_info_of(commit)->id;
    return rc;
}

static int read_through(bal_model *model, uint64_t seed, bool *whole,
                        bal_error *err)
{
    float want[VALUES];
    uint8_t bytes[4 * COMMON];

    *whole = false;
    values_of(want, seed);
    for (size_t i = 0; i < bal_model_count(model); i++) {
        const bal_tensor *entry = bal_model_at(model, i);
        if (entry->size > sizeof(bytes))
            continue;
        int rc = bal_model_read(model, i, 0, bytes, entry->size, err);
        if (rc)
            return rc;
        if (!strcmp(entry->name, "w"))
            *whole = !memcmp(bytes, want, sizeof(want));
    }
    return 0;
}

int race_read(race_side *self, bal_tenant *tenant, const bal_id *id,
              uint64_t seed, bool *whole, bal_error *err)
{
    BAL_OWN(bal_model) model = NULL;

    (void)self;
    int rc = bal_model_from_commit(&model, tenant, id, err);
    return rc ? rc : read_through(model, seed, whole, err);
}

void race_tell(race_side *self, int rc, const bal_error *err)
{
    self->result.rc = rc;
    if (rc)
        snprintf(self->result.text, sizeof(self->result.text), "%.255s",
                 err->text);
}

void race_forget(race_side *self, const bal_id *commit)
{
    BAL_OWN(bal_proof) proof = NULL;
    bal_error err = { 0 };
    const bal_forget_options options = {
        .commit = commit,
        .reason = "a race",
        .key = self->key,
    };
    int rc = bal_forget(&proof, self->acme, &options, &err);
    if (!rc)
        snprintf(self->result.attestation, sizeof(self->result.attestation),
                 "%s", bal_proof_info_of(proof)->attestation);
    race_tell(self, rc, &err);
}

/* ---- judging ------------------------------------------------------------ */

void race_rc(const race_side *side, int other, const char *name)
{
    const race_result *result = &side->result;

    if (result->rc && result->rc != other)
        print_error("%s: %d %s\n", name, result->rc, result->text);
    CHECK(!result->rc || result->rc == other);
}

static void hold(race *self, race_side *side, const char *tenant,
                 const bal_id *id)
{
    BAL_OWN(bal_tenant) whose = NULL;
    bal_model *model = NULL;

    CHECK(self->held_count < RACE_HELD);
    CHECK_OK(bal_tenant_open(&whose, side->store, tenant, &check_err));
    CHECK_OK(bal_model_from_commit(&model, whose, id, &check_err));
    self->held[self->held_count++] = model;
}

void race_hold(race *self, const char *tenant, const bal_id *id)
{
    hold(self, &self->judge, tenant, id);
    if (self->left.store)
        hold(self, &self->left, tenant, id);
}

void race_denied(race *self)
{
    for (size_t h = 0; h < self->held_count; h++) {
        bal_model *model = self->held[h];
        uint8_t bytes[4 * COMMON];
        for (size_t i = 0; i < bal_model_count(model); i++) {
            int rc = bal_model_read(model, i, 0, bytes,
                                    bal_model_at(model, i)->size, &check_err);
            CHECK(rc == BAL_ENOTFOUND || rc == BAL_EBROKEN);
        }
    }
}

void race_there(race *self, const bal_id *id, uint64_t seed)
{
    bool whole = false;

    CHECK_OK(race_read(&self->judge, self->judge.acme, id, seed, &whole,
                       &check_err));
    CHECK(whole);
}

/* ---- looking through every byte ----------------------------------------- */

/* nftw gives its function nothing: what is looked for, and where it was. */
static struct {
    const void *bytes;
    size_t len;
    char found[512];
} look;

static int look_into(const char *path, const struct stat *stat, int type,
                     struct FTW *ftw)
{
    BAL_LOCAL(bal_buf) text = { 0 };

    (void)stat;
    (void)ftw;
    if (type != FTW_F)
        return 0;
    CHECK_OK(bal_file_slurp(&text, path, (size_t)FILE_MAX << 20, &check_err));
    const char *at = text.data;
    for (size_t left = text.len; left >= look.len;) {
        const char *hit =
            memchr(at, *(const char *)look.bytes, left - look.len + 1);
        if (!hit)
            break;
        if (!memcmp(hit, look.bytes, look.len)) {
            snprintf(look.found, sizeof(look.found), "%s", path);
            return 1;
        }
        left -= (size_t)(hit - at) + 1;
        at = hit + 1;
    }
    return 0;
}

static void none_has(const char *root, const void *bytes, size_t len,
                     const char *what)
{
    look.bytes = bytes;
    look.len = len;
    look.found[0] = '\0';
    if (access(root, F_OK))
        return;
    nftw(root, look_into, 16, FTW_PHYS);
    if (look.found[0])
        print_error("%s is in '%s'\n", what, look.found);
    CHECK(!look.found[0]);
}

void race_silent(race *self, uint64_t seed)
{
    char message[32];

    message_of(message, seed);
    none_has(self->task.root, message, strlen(message), message);
}

void race_absent(race *self, uint64_t seed, const char *folder)
{
    char path[160];
    float values[VALUES];

    values_of(values, seed);
    snprintf(path, sizeof(path), "%s/%s", self->task.root, folder);
    none_has(path, values, PATTERN, "a forgotten tensor");
}

void race_gone(race *self, uint64_t seed)
{
    race_absent(self, seed, ".");
    race_silent(self, seed);
}

static int tell_finding(void *ctx, bal_finding finding, const char *text)
{
    (void)ctx;
    if (finding == BAL_FINDING_PROBLEM)
        print_error("verify: %s\n", text);
    return 0;
}

static void holds(race *self, const char *attestation)
{
    BAL_OWN(bal_proof) proof = NULL;
    bal_verdict verdict = { 0 };
    bal_store *store = self->judge.store;

    CHECK_OK(bal_proof_open(&proof, store, attestation, &check_err));
    CHECK_OK(bal_proof_verify(proof, store, NULL, tell_finding, NULL, &verdict,
                              &check_err));
    CHECK(!verdict.problems);
    CHECK(verdict.signed_by_trusted == (self->judge.key != NULL));
}

void race_proved(race *self, const char *attestation)
{
    const size_t room = sizeof(self->proofs) / sizeof(self->proofs[0]);

    CHECK(attestation[0] && self->proof_count < room);
    snprintf(self->proofs[self->proof_count++], 65, "%s", attestation);
}

static int tell_problem(void *ctx, const bal_problem *problem)
{
    (void)ctx;
    if (!problem->expected)
        print_error("fsck: %s %s %s\n", problem->kind, problem->what,
                    problem->detail);
    return 0;
}

void race_sound(race *self)
{
    bal_fsck_report report = { 0 };

    CHECK_OK(bal_fsck(self->judge.store, NULL, NULL, tell_problem, NULL,
                      &report, &check_err));
    CHECK(!report.problems);
    for (size_t i = 0; i < self->proof_count; i++)
        holds(self, self->proofs[i]);
}
