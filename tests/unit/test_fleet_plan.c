/* What is planned for one server, from what is wanted, listed and known. Rows
 * are written as words: "a:1" is the version of ref a whose commit is 111…, and
 * "@/x" the folder that it was loaded from where that is not its own. */
#include <string.h>

#include "core/buf.h"
#include "core/str.h"
#include "fleet/plan.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

enum { MOST = 8 };

static const char place[] = "/d/acme";

struct plan_row {
    const char *about;
    const char *wants, *listed, *known;
    const char *scope; /* NULL: the whole tenant */
    const char *held;
    const char *steps; /* + load, - unload, ^ early, = same, ! taken, ~ gone */
    uint64_t slots;
    bool no_prune;
    bool full;
};

static const struct plan_row rows[] = {
    { "nothing is nothing", "", "", "", .steps = "" },
    { "missing ones are loaded", "a:1 b:2", "", "", .steps = "+a:1 +b:2" },
    { "what is there is left", "a:1", "a:1", "a:1", .steps = "=a:1" },
    { "though nobody noted it", "a:1", "a:1", "", .steps = "=a:1" },
    { "a moved ref", "a:2", "a:1", "a:1", .steps = "+a:2 -a:1" },
    { "a ref that went", "", "a:1", "a:1", .steps = "-a:1" },
    { "a server that was started anew", "a:1", "", "a:1", .steps = "+a:1" },
    { "which lost what is not wanted either", "a:2", "", "a:1",
      .steps = "+a:2 ~a:1" },
    { "a name that is taken", "a:1", "a:1@/x", "", .steps = "!a:1" },
    { "a base model that has the name", "a:1", "a:1@base", "",
      .steps = "!a:1" },
    { "a folder of exports that moved", "a:1", "a:1@/old", "a:1@/old",
      .steps = "^a:1 +a:1" },
    { "which is not to be pruned", "a:1", "a:1@/old", "a:1@/old",
      .no_prune = true, .steps = "!a:1" },
    { "another commit with the same digits", "a:1", "=acme-a-11111111@2",
      "=acme-a-11111111@2", .steps = "!a:1" },
    { "likely names prove nothing", "", "a:1@/x b:2@/y", "", .steps = "" },
    { "nor does a place", "", "=acme@1 =acme-a@1 =acme-eu-a-22222222@1", "",
      .steps = "" },
    { "nor do both of another tenant", "", "=eu-a-11111111@/d/eu/1", "",
      .steps = "" },
    { "both do", "", "a:1", "", .steps = "-a:1" },
    { "as for a commit without a ref", "", "=acme-111111111111@1", "",
      .steps = "-:1" },
    { "known, and loaded by somebody else since", "", "a:1@/x", "a:1",
      .steps = "~a:1" },
    { "known of another tenant", "", "u/a:1@/x", "u/a:1@/x", .steps = "" },
    { "a list without roots: known", "a:1", "a:1@-", "a:1", .steps = "=a:1" },
    { "a list without roots: unknown", "a:1", "a:1@- b:2@-", "",
      .steps = "!a:1" },
    { "a list without roots: to go", "", "a:1@-", "a:1", .steps = "-a:1" },
    { "only named refs", "a:2", "a:1 b:1", "a:1 b:1", .scope = "a",
      .steps = "+a:2 -a:1" },
    { "a named ref that is no more", "", "a:1 b:1", "a:1 b:1", .scope = "a",
      .steps = "-a:1" },
    { "others are not even forgotten", "", "", "a:1 b:1", .scope = "a",
      .steps = "~a:1" },
    { "no pruning", "a:2", "a:1", "a:1 b:1", .no_prune = true,
      .steps = "+a:2" },
    { "held refs keep what they have", "", "a:1 b:2", "a:1 b:2", .held = "a b",
      .steps = "" },
    { "but for what is lost", "", "a:9 b:2", "a:9 b:2", .held = "a b",
      .steps = "-a:9" },
    { "without a note too", "", "a:9 b:2", "", .held = "a b", .steps = "-a:9" },
    { "room for one more", "a:1 b:2", "a:1", "a:1", .slots = 2,
      .steps = "=a:1 +b:2" },
    { "no room, bases apart", "a:2", "a:1 b:2@/x =base@base", "a:1", .slots = 2,
      .steps = "+a:2 -a:1", .full = true },
};

/* ---- words -------------------------------------------------------------- */

typedef struct word {
    const char *tenant, *ref, *name, *path;
    bool base;
    bal_id commit;
} word;

static bal_arena arena;

static const char *text(const char *a, const char *b, const char *c,
                        const char *d)
{
    BAL_LOCAL(bal_buf) out = { 0 };

    CHECK_OK(bal_buf_format(&out, &check_err, "%s%s%s%s", a, b, c, d));
    return bal_arena_copy(&arena, out.data ? out.data : "", out.len);
}

/* One of "a:1", "u/a:1", "=name", then "@" and a root: "/x", "-" (none), "base"
 * or the digit of a commit in our place. */
static word read_word(const char *from, size_t len)
{
    char *all = bal_arena_copy(&arena, from, len);
    char *at = strchr(all, '@');
    char *slash = strchr(all, '/');
    char hex[BAL_ID_HEX + 1];
    word out = { .tenant = "acme" };
    char digit = 0;

    if (at)
        *at++ = '\0';
    if (slash && (!at || slash < at)) {
        *slash = '\0';
        out.tenant = all;
        all = slash + 1;
    }
    if (all[0] == '=') {
        out.name = all + 1;
        if (at && at[0] != '/' && !at[1])
            digit = at[0];
    } else {
        char *colon = strchr(all, ':');
        *colon = '\0';
        digit = colon[1];
        out.ref = all;
    }
    memset(hex, digit ? digit : '0', BAL_ID_HEX);
    hex[BAL_ID_HEX] = '\0';
    CHECK_OK(bal_id_parse(&out.commit, hex, &check_err));
    out.path = text(place, "/", hex, "");
    hex[8] = '\0';
    if (out.ref)
        out.name = text(text(out.tenant, "-", out.ref, "-"), hex, "", "");
    if (at && at[0] == '/')
        out.path = at;
    if (at && !strcmp(at, "-"))
        out.path = NULL;
    out.base = at && !strcmp(at, "base");
    return out;
}

static size_t read_words(word out[MOST], const char *from)
{
    size_t n = 0;

    while (from && from[0]) {
        size_t len = strcspn(from, " ");
        out[n++] = read_word(from, len);
        from += len + strspn(from + len, " ");
    }
    return n;
}

static size_t read_names(const char *out[MOST], const char *from)
{
    size_t n = 0;

    while (from && from[0]) {
        size_t len = strcspn(from, " ");
        out[n++] = bal_arena_copy(&arena, from, len);
        from += len + strspn(from + len, " ");
    }
    return n;
}

/* ---- the plan as words -------------------------------------------------- */

static const char *written(const bal_fleet_plan *plan)
{
    static const char *const signs[] = {
        [BAL_STEP_LOAD] = "+",  [BAL_STEP_UNLOAD] = "-", [BAL_STEP_SAME] = "=",
        [BAL_STEP_TAKEN] = "!", [BAL_STEP_GONE] = "~",
    };
    const char *out = "";

    for (size_t i = 0; i < plan->count; i++) {
        const bal_step *step = &plan->steps[i];
        char hex[BAL_ID_HEX + 1];
        const char *sign = step->early ? "^" : signs[step->kind];
        bal_id_hex(hex, &step->what.commit);
        hex[1] = '\0';
        out = text(out, i ? " " : "", sign,
                   text(step->what.ref ? step->what.ref : "", ":", hex, ""));
    }
    return out;
}

/* Commits of nines may not be served any more. */
static bool is_lost(void *ctx, const bal_id *commit)
{
    (void)ctx;
    return commit->bytes[0] == 0x99;
}

static void check_plan(const struct plan_row *row)
{
    word wants[MOST];
    word listed[MOST];
    word known[MOST];
    bal_want want_rows[MOST];
    bal_listed listed_rows[MOST];
    bal_known known_rows[MOST];
    const char *scope[MOST];
    const char *held[MOST];
    bal_fleet_aims aims = {
        .tenant = "acme",
        .place = place,
        .wants = want_rows,
        .want_count = read_words(wants, row->wants),
        .listed = listed_rows,
        .listed_count = read_words(listed, row->listed),
        .known = known_rows,
        .known_count = read_words(known, row->known),
        .whole = !row->scope,
        .scope = scope,
        .scope_count = read_names(scope, row->scope),
        .held = held,
        .held_count = read_names(held, row->held),
        .lost = is_lost,
        .slots = row->slots,
        .no_prune = row->no_prune,
    };
    bal_fleet_plan plan;

    for (size_t i = 0; i < aims.want_count; i++)
        want_rows[i] = (bal_want){ wants[i].name, wants[i].ref, wants[i].path,
                                   wants[i].commit };
    for (size_t i = 0; i < aims.listed_count; i++)
        listed_rows[i] =
            (bal_listed){ listed[i].name, listed[i].path, listed[i].base };
    for (size_t i = 0; i < aims.known_count; i++)
        known_rows[i] = (bal_known){ .server = "u",
                                     .name = known[i].name,
                                     .tenant = known[i].tenant,
                                     .ref = known[i].ref,
                                     .path = known[i].path,
                                     .commit = known[i].commit,
                                     .loaded_at = 1 };
    CHECK_OK(bal_fleet_plan_make(&plan, &aims, &arena, &check_err));
    const char *got = written(&plan);
    check_row(text(row->about, ": ", got, ""));
    CHECK(!strcmp(got, row->steps));
    CHECK(plan.full == row->full);
}

static void plans_come_out_as_written(void)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        check_plan(&rows[i]);
        bal_arena_done(&arena);
    }
}

static void only_a_folder_of_the_place_names_a_commit(void)
{
    static const struct {
        const char *before, *behind;
        bool is;
    } paths[] = {
        { "/d/acme/", "", true },   { "/d/acme/", "/", false },
        { "/d/acme/", "0", false }, { "/d/acme//", "", false },
        { "/d/acme", "", false },   { "/d/acme-eu/", "", false },
        { "d/acme/", "", false },
    };
    static const char hex[] =
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    bal_id id;

    for (size_t i = 0; i < COUNT(paths); i++) {
        const char *path = text(paths[i].before, hex, paths[i].behind, "");
        check_row(path);
        CHECK(bal_fleet_commit_of(&id, place, path) == paths[i].is);
    }
    CHECK(!bal_fleet_commit_of(&id, place, NULL));
    bal_arena_done(&arena);
}

static const check_test tests[] = {
    { TEST(plans_come_out_as_written) },
    { TEST(only_a_folder_of_the_place_names_a_commit) },
};

CHECK_MAIN(tests)
