/* ballast sync-vllm: servers made to hold what the refs say. */
#include <string.h>
#include <sys/stat.h>

#include "cli/commands.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"
#include "core/signals.h"
#include "core/str.h"
#include "fleet/fleet.h"

enum {
    KEY_MAX = 8192,
    EXIT_PARTIAL = 4,
    EXIT_UNREACHED = 7,
};

static const double look_every = 0.1;   /* seconds, for changes of the store */
static const double check_every = 30;   /* for what became of the servers */
static const double first_pause = 1;    /* before what failed is tried again */
static const double longest_wait = 600; /* of --timeout */
static const double lock_wait = 30;

struct sync_opts {
    bal_opt_list urls;
    const char *dir, *engine, *key_file, *base;
    bool no_prune, watch, dry_run, adapt;
    bal_opt_f64 every, timeout;
    bal_opt_u64 max_rank, slots;
};

static const bal_opt opts[] = {
    { 0, "url", BAL_OPT_LIST, offsetof(struct sync_opts, urls), "URL",
      "a server, http://host:port; may be given again", BAL_OPT_REQUIRED },
    { 'o', "out", BAL_OPT_STRING, offsetof(struct sync_opts, dir), "DIR",
      "where exports go, under the same path on the servers",
      BAL_OPT_REQUIRED },
    { 0, "no-prune", BAL_OPT_FLAG, offsetof(struct sync_opts, no_prune), NULL,
      "unload nothing, and remove no folders" },
    { 0, "engine", BAL_OPT_ENUM, offsetof(struct sync_opts, engine),
      "vllm|sglang", "what the servers are; else as they say" },
    { 0, "api-key-file", BAL_OPT_STRING, offsetof(struct sync_opts, key_file),
      "FILE", "has the servers' API key; else BALLAST_API_KEY, VLLM_API_KEY" },
    { 0, "watch", BAL_OPT_FLAG, offsetof(struct sync_opts, watch), NULL,
      "go on, and follow the refs" },
    { 0, "every", BAL_OPT_DOUBLE, offsetof(struct sync_opts, every), "SECONDS",
      "how often --watch looks after the servers; else 30" },
    { 'n', "dry-run", BAL_OPT_FLAG, offsetof(struct sync_opts, dry_run), NULL,
      "ask the servers and tell the plan, change nothing" },
    { 0, "base", BAL_OPT_STRING, offsetof(struct sync_opts, base), "DIR",
      "the base model, to compare names and shapes with" },
    { 0, "max-rank", BAL_OPT_U64, offsetof(struct sync_opts, max_rank), "N",
      "that the servers were started with; else the engine's usual" },
    { 0, "slots", BAL_OPT_U64, offsetof(struct sync_opts, slots), "N",
      "how many adapters a server takes: then old ones go first" },
    { 0, "adapt", BAL_OPT_FLAG, offsetof(struct sync_opts, adapt), NULL,
      "rewrite what the engine would get wrong, where the maths stay" },
    { 0, "timeout", BAL_OPT_DOUBLE, offsetof(struct sync_opts, timeout),
      "SECONDS", "of one request; else 30" },
    { 0 },
};

/* ---- the key ------------------------------------------------------------ */

static int read_key(const char **out, bal_cli *cli, const char *path,
                    bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    struct stat info;
    int rc = bal_file_slurp(&text, path, KEY_MAX, err);

    if (rc)
        return rc;
    if (!stat(path, &info) && info.st_mode & (S_IRWXG | S_IRWXO))
        bal_warn("sync-vllm", "'%s' can be read by others: chmod 600", path);
    const char *key = bal_buf_string(&text);
    key += strspn(key, " \t\r\n");
    size_t len = strcspn(key, " \t\r\n");
    if (!len || key[len + strspn(key + len, " \t\r\n")])
        return bal_fail(err, BAL_EINVAL, "'%s' does not hold one API key",
                        path);
    *out = bal_arena_copy(&cli->arena, key, len);
    return *out ? 0 : bal_fail_memory(err, "a key");
}

static int find_key(const char **out, bal_cli *cli, const char *path,
                    bal_error *err)
{
    static const char *const names[] = { "BALLAST_API_KEY", "VLLM_API_KEY" };

    if (path)
        return read_key(out, cli, path, err);
    for (size_t i = 0; !*out && i < sizeof(names) / sizeof(names[0]); i++) {
        const char *key = getenv(names[i]);
        if (key && key[0])
            *out = key;
    }
    return 0;
}

/* ---- what came of it ---------------------------------------------------- */

typedef struct outcome {
    bal_fate fate;
    const char *label, *why;
    const char *name, *server;
} outcome;

typedef struct results {
    bal_cli *cli;
    const struct sync_opts *given;
    bal_arena arena;
    outcome *rows;
    size_t count, room;
    bool no_memory;
} results;

static void results_done(results *self)
{
    free(self->rows);
    bal_arena_done(&self->arena);
}

static const char *keep(results *self, const char *text)
{
    const char *copy =
        text ? bal_arena_copy(&self->arena, text, strlen(text)) : NULL;

    self->no_memory |= text && !copy;
    return copy;
}

static int collect(void *ctx, const bal_fleet_row *row)
{
    results *self = ctx;
    BAL_LOCAL(bal_buf) label = { 0 };
    bool several = self->given->urls.count > 1 && row->server;

    if (self->count == self->room) {
        size_t room = self->room ? self->room * 2 : 64;
        outcome *rows = realloc(self->rows, room * sizeof(*rows));
        self->no_memory |= !rows;
        if (!rows)
            return 1;
        self->rows = rows;
        self->room = room;
    }
    self->no_memory |=
        bal_buf_format(&label, NULL, "%s%s%s", row->name, several ? "@" : "",
                       several ? row->server : "") != 0;
    self->rows[self->count++] = (outcome){
        .fate = row->fate,
        .label = keep(self, bal_buf_string(&label)),
        .why = keep(self, row->why),
        .name = keep(self, row->name),
        .server = several ? keep(self, row->server) : NULL,
    };
    return self->no_memory;
}

static const char *const fates[BAL_FATES] = {
    "loaded", "unloaded", "unchanged", "skipped", "failed",
};

static void print_json(results *self, bool dry)
{
    bal_out *out = &self->cli->out;
    bal_json json;

    if (self->given->watch)
        bal_line_open(&json, out, self->cli->command->name);
    else
        bal_doc_open(&json, out, self->cli->command->name);
    for (int fate = 0; fate < BAL_FATES; fate++) {
        bool told = fate >= BAL_FATE_SKIPPED;
        bal_json_key(&json, fates[fate]);
        if (told)
            bal_json_object(&json);
        else
            bal_json_array(&json);
        for (size_t i = 0; i < self->count; i++) {
            const outcome *row = &self->rows[i];
            if ((int)row->fate != fate)
                continue;
            if (told)
                bal_json_key(&json, row->label);
            bal_json_string(&json, told ? row->why : row->label);
        }
        bal_json_close(&json);
    }
    if (dry) {
        bal_json_key(&json, "dry_run");
        bal_json_bool(&json, true);
    }
    bal_doc_close(&json, out);
}

static void print_text(results *self, bool again)
{
    bal_out *out = &self->cli->out;

    for (size_t i = 0; i < self->count; i++) {
        const outcome *row = &self->rows[i];
        if (again && row->fate == BAL_FATE_UNCHANGED)
            continue;
        bal_out_text(out, "%-10s ", fates[row->fate]);
        bal_out_safe(out, row->name);
        if (row->server) {
            bal_out_text(out, " (");
            bal_out_safe(out, row->server);
            bal_out_text(out, ")");
        }
        if (row->why) {
            bal_out_text(out, ": ");
            bal_out_safe(out, row->why);
        }
        bal_out_text(out, "\n");
    }
    if (!self->count)
        bal_out_text(out, "nothing to change\n");
}

static int sync_once(results *self, const bal_fleet_options *options,
                     bal_fleet_report *report, bal_error *err)
{
    bal_cli *cli = self->cli;
    int rc = bal_fleet_sync(cli->tenant, options, collect, self, report,
                            cli->work, err);

    if (!rc && self->no_memory)
        return bal_fail_memory(err, "what was done");
    return rc;
}

static void print(results *self, bool dry, bool again)
{
    if (self->cli->out.json)
        print_json(self, dry);
    else
        print_text(self, again);
}

static uint64_t troubles(const bal_fleet_report *report)
{
    return report->counts[BAL_FATE_SKIPPED] + report->counts[BAL_FATE_FAILED];
}

static int run_once(bal_cli *cli, const struct sync_opts *given,
                    const bal_fleet_options *options, bal_error *err)
{
    BAL_LOCAL(results) all = { .cli = cli, .given = given };
    bal_fleet_report report;
    int rc = sync_once(&all, options, &report, err);

    if (rc)
        return rc;
    print(&all, given->dry_run, false);
    if (troubles(&report))
        cli->status = EXIT_PARTIAL;
    if (report.unreached)
        cli->status = EXIT_UNREACHED;
    return 0;
}

/* ---- following the refs ------------------------------------------------- */

typedef struct watching {
    bal_cli *cli;
    const struct sync_opts *given;
    const bal_fleet_options *options;
    double every;
    bool begun;      /* one sync went through */
    uint64_t seen;   /* of the store's changes */
    uint64_t facts;  /* that the last sync stood on */
    double due;      /* on the clock: then servers are looked after */
    double pause;    /* after a failure */
    uint64_t before; /* troubles that were told */
} watching;

/* A signal lets the sync that runs be finished. */
static int never(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx, (void)done, (void)total;
    return 0;
}

/* What goes away by itself, or by somebody's doing. */
static bool passes(int rc)
{
    return rc == BAL_EIO || rc == BAL_EBUSY || rc == BAL_ECONFLICT;
}

static int tell_change(watching *self, results *all,
                       const bal_fleet_report *report, bal_error *err)
{
    const uint64_t *counts = report->counts;
    bool news = !self->begun || counts[BAL_FATE_LOADED] ||
                counts[BAL_FATE_UNLOADED] || troubles(report) != self->before;

    self->before = troubles(report);
    if (!news)
        return 0;
    print(all, false, self->begun);
    return bal_out_end(&self->cli->out, err);
}

static int watch_once(watching *self, bal_error *err)
{
    BAL_LOCAL(results) all = { .cli = self->cli, .given = self->given };
    bal_error why = { 0 };
    bal_fleet_report report;
    int rc = sync_once(&all, self->options, &report, &why);

    if (rc && (!self->begun || !passes(rc))) {
        if (err)
            *err = why;
        return rc;
    }
    if (rc)
        bal_warn("sync-vllm", "%s", why.text);
    bool good = !rc && !report.counts[BAL_FATE_FAILED];
    if (!rc)
        rc = tell_change(self, &all, &report, err);
    else
        rc = 0;
    self->begun = true;
    double wait = good ? self->every : self->pause;
    if (wait > self->every)
        wait = self->every;
    self->pause = good ? first_pause : wait * 2;
    self->due = bal_clock_ticks() + wait;
    return rc;
}

/* Has anything changed that matters? Our own notes change the store, too. */
static int has_news(watching *self, bool *news, bal_error *err)
{
    uint64_t changes = 0;
    uint64_t facts = 0;
    int rc = bal_store_changes(&changes, self->cli->store, err);

    *news = false;
    if (rc || (self->begun && changes == self->seen))
        return rc;
    rc = bal_fleet_facts(&facts, self->cli->tenant, self->options->specs,
                         self->options->spec_count, err);
    if (rc)
        return rc;
    *news = !self->begun || facts != self->facts;
    self->seen = changes;
    self->facts = facts;
    return 0;
}

static int follow(watching *self, bal_error *err)
{
    int rc = 0;

    bal_work_watch(self->cli->work, never, NULL);
    while (!rc && !bal_signals_pending() && !self->cli->out.gone) {
        bool news = false;
        bal_error why = { 0 };
        rc = has_news(self, &news, &why);
        if (rc && !(self->begun && passes(rc))) {
            if (err)
                *err = why;
            return rc;
        }
        if (rc) {
            bal_warn("sync-vllm", "%s", why.text);
            bal_clock_sleep(first_pause);
            rc = 0;
        } else if (news || bal_clock_ticks() >= self->due) {
            rc = watch_once(self, err);
        } else {
            bal_clock_sleep(look_every);
        }
    }
    return rc;
}

/* ---- the command -------------------------------------------------------- */

static int check(const struct sync_opts *given, bal_error *err)
{
    if (given->watch && given->dry_run)
        return bal_fail(err, BAL_EINVAL,
                        "--watch and --dry-run do not go together");
    if (given->every.given && !given->watch)
        return bal_fail(err, BAL_EINVAL, "--every goes with --watch");
    if (given->every.given && given->every.value < look_every)
        return bal_fail(err, BAL_EINVAL, "--every: not less than 0.1");
    if (given->timeout.given && (given->timeout.value < look_every ||
                                 given->timeout.value > longest_wait))
        return bal_fail(err, BAL_EINVAL, "--timeout: 0.1 to 600");
    if (given->slots.given && !given->slots.value)
        return bal_fail(err, BAL_EINVAL, "--slots: not 0");
    return 0;
}

/* Before a lock or a state is made there. */
static int check_place(const bal_cli *cli, const char *dir, bal_error *err)
{
    char *root = NULL;
    char *real = NULL;
    int rc = bal_path_real(&root, bal_store_root(cli->store), err);
    if (!rc && dir[0])
        rc = bal_path_real(&real, dir, err);
    if (!rc && real && bal_path_holds(root, real)) {
        rc = bal_fail(err, BAL_EINVAL, "'%s' lies inside the store '%s'", dir,
                      root);
        bal_hint(err, rc, "choose another place for exports");
    }
    bal_str_free(root);
    bal_str_free(real);
    return rc;
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const struct sync_opts *given = values;
    const bal_opt_f64 *wait = &cli->globals.wait;
    BAL_LOCAL(bal_named) base = { 0 };
    bal_fleet_options options = {
        .urls = given->urls.items,
        .url_count = given->urls.count,
        .engine = given->engine,
        .specs = cli->args,
        .spec_count = cli->arg_count,
        .dir = given->dir,
        .max_rank = given->max_rank.value,
        .slots = given->slots.value,
        .timeout = given->timeout.value,
        /* What is watched is tried again anyway, and others wait for it. */
        .retries = given->watch ? 1 : 0,
        .wait = wait->given ? wait->value : lock_wait,
        .flags = (given->dry_run ? BAL_FLEET_DRY_RUN : 0) |
                 (given->no_prune ? BAL_FLEET_NO_PRUNE : 0) |
                 (given->adapt ? BAL_FLEET_ADAPT : 0),
    };
    int rc = check(given, err);

    if (!rc)
        rc = check_place(cli, given->dir, err);
    if (!rc)
        rc = find_key(&options.token, cli, given->key_file, err);
    if (!rc && given->base)
        rc = bal_cli_model(&base, cli, given->base, err);
    if (rc)
        return rc;
    options.base = base.model;
    if (!given->watch)
        return run_once(cli, given, &options, err);
    watching self = {
        .cli = cli,
        .given = given,
        .options = &options,
        .every = given->every.given ? given->every.value : check_every,
        .pause = first_pause,
    };
    return follow(&self, err);
}

const bal_command bal_cmd_sync_vllm = {
    .name = "sync-vllm",
    .synopsis = "[SPEC...] --url U -o DIR [--no-prune] [--watch] [--dry-run]",
    .summary = "make vLLM and SGLang servers hold what the refs say",
    .about =
        "Each ref (or each SPEC) is exported, loaded under the name "
        "tenant-ref-<8 hex of its commit>, and looked for in the server's "
        "list; then what was loaded for refs that have moved or gone is "
        "unloaded, and its folder removed once no server lists it. With "
        "SPECs, only older versions of these are unloaded.\n\n"
        "Unloaded is only what 'sync-vllm' loaded itself: DIR has a file that "
        "says what that is. Servers read the folders when they like, so DIR "
        "must be there for them under the same absolute path, and nothing "
        "else may remove or change what is in it. vLLM loads at run time only "
        "with VLLM_ALLOW_RUNTIME_LORA_UPDATING=1.\n\n"
        "With --watch the command goes on until SIGTERM, syncs when the store "
        "changes, and looks after servers that were started anew. Exit status "
        "4: something was skipped or failed; 7: a server could not be "
        "reached.",
    .examples =
        "ballast sync-vllm --url http://127.0.0.1:8000 -o /srv/adapters\n"
        "ballast sync-vllm support --url http://a:8000 --url http://b:8000 -o "
        "/srv/adapters --watch\n",
    .arg = "SPEC",
    .needs = BAL_NEEDS_TENANT,
    .max_args = BAL_ANY_ARGS,
    .opts = opts,
    .opts_size = sizeof(struct sync_opts),
    .run = run,
};
