/* ballast key: make a signing key, show the public half of one, trust it. */
#include "cli/commands.h"
#include "core/error.h"
#include "core/key.h"

struct key_opts {
    const char *out;
};

static const bal_opt opts[] = {
    { 'o', "out", BAL_OPT_STRING, offsetof(struct key_opts, out), "FILE",
      "the file to make" },
    { 0 },
};

static void report(bal_cli *cli, const bal_key *key, const char *path)
{
    bal_out *out = &cli->out;
    bal_json json;

    if (!out->json) {
        bal_out_text(out, "key ");
        bal_out_paint(out, BAL_PAINT_ID, bal_key_id(key));
        bal_out_text(out, "\n");
        bal_out_puts(out, bal_key_public(key));
        return;
    }
    bal_doc_open(&json, out, cli->command->name);
    bal_json_key(&json, "key_id");
    bal_json_string(&json, bal_key_id(key));
    bal_json_key(&json, "algorithm");
    bal_json_string(&json, bal_key_algorithm(key));
    bal_json_key(&json, "public_key");
    bal_json_string(&json, bal_key_public(key));
    if (path) {
        bal_json_key(&json, "path");
        bal_json_string(&json, path);
    }
    bal_doc_close(&json, out);
}

static int generate(bal_cli *cli, const char *path, bal_error *err)
{
    BAL_OWN(bal_key) key = NULL;
    int rc = bal_key_generate(&key, err);
    if (rc)
        return rc;
    rc = bal_key_write(key, path, err);
    if (rc)
        return rc;

    report(cli, key, path);
    return 0;
}

static int show(bal_cli *cli, const char *path, bal_error *err)
{
    BAL_OWN(bal_key) key = NULL;
    int rc = bal_key_load(&key, path, err);
    if (rc)
        return rc;

    report(cli, key, NULL);
    return 0;
}

static int trust(bal_cli *cli, const char *path, bal_error *err)
{
    BAL_OWN(bal_key) key = NULL;
    int rc = bal_key_load(&key, path, err);
    if (rc)
        return rc;
    rc = bal_cli_store(cli, 0, err);
    if (rc)
        return rc;
    rc = bal_key_trust(cli->store, key, err);
    if (rc)
        return rc;

    report(cli, key, NULL);
    return 0;
}

static const struct {
    const char *word;
    bool makes; /* the file is -o's, else the argument */
    int (*run)(bal_cli *cli, const char *path, bal_error *err);
} actions[] = {
    { "generate", true, generate },
    { "show", false, show },
    { "trust", false, trust },
};

static int unknown(const char *word, bal_error *err)
{
    bal_nearest nearest;
    int rc = bal_fail(err, BAL_EINVAL, "key: no action '%s'", word);

    bal_nearest_begin(&nearest, word);
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
        bal_nearest_offer(&nearest, actions[i].word);
    if (nearest.best[0])
        return bal_hint(err, rc, "did you mean '%s'?", nearest.best);
    return bal_hint(err, rc, "usage: ballast key %s", bal_cmd_key.synopsis);
}

/* One file: behind the word, or behind -o. */
static int check_words(const bal_cli *cli, const char *out, bool makes,
                       bal_error *err)
{
    int rc = 0;

    if (makes && !out)
        rc = bal_fail(err, BAL_EINVAL, "key: '-o FILE' is missing");
    else if (makes && cli->arg_count > 1)
        rc = bal_fail(err, BAL_EINVAL, "key: '%s' is one argument too many",
                      cli->args[1]);
    else if (!makes && out)
        rc = bal_fail(err, BAL_EINVAL, "key: '-o' is for generate alone");
    else if (!makes && cli->arg_count < 2)
        rc = bal_fail(err, BAL_EINVAL, "key: an argument is missing");
    return rc ? bal_hint(err, rc, "usage: ballast key %s", bal_cmd_key.synopsis)
              : 0;
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const struct key_opts *given = values;
    const char *word = cli->args[0];

    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
        if (strcmp(actions[i].word, word) != 0)
            continue;
        int rc = check_words(cli, given->out, actions[i].makes, err);
        if (rc)
            return rc;
        return actions[i].run(cli, actions[i].makes ? given->out : cli->args[1],
                              err);
    }
    return unknown(word, err);
}

const bal_command bal_cmd_key = {
    .name = "key",
    .synopsis = "generate -o FILE | show FILE | trust FILE",
    .summary = "make, show or trust a key that signs proofs",
    .about = "generate makes an Ed25519 pair and writes it as PEM to a file "
             "that only its owner can read, never over one that is there. "
             "show prints the id and the public half of a pair or of a public "
             "half. trust makes it a key by which the store's proofs are "
             "believed; the first that signs in a store is trusted without "
             "it.\n\n"
             "Commands that sign take the pair whose path BALLAST_SIGNING_KEY "
             "holds, or a shared secret of 16 bytes or more that is in it.",
    .examples = "ballast key generate -o deletion.pem\n"
                "ballast key show deletion.pem\n",
    .words = "generate|show|trust",
    .arg = "FILE",
    .min_args = 1,
    .max_args = 2,
    .opts = opts,
    .opts_size = sizeof(struct key_opts),
    .run = run,
};
