/* Which of a server's models is the commit's. A name alone proves little: an
 * adapter's entry has to say that it is one, for a server answers with the base
 * where it does not know a name, and where the model lies on this machine its
 * ballast.json says whose it is. */
#include <string.h>

#include "core/error.h"
#include "core/file.h"
#include "core/str.h"
#include "probe/http_server.h"

enum {
    SHORT_HEX = 8,   /* digits of a commit at the end of a name */
    SHOWN_HEX = 12,  /* digits of a commit in messages */
    SHOWN_NAMES = 8, /* of models in messages */
    PROVENANCE_MAX = 1 << 20,
};

/* ---- messages ---------------------------------------------------------- */

static int list_names(bal_buf *to, const bal_server *self, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < self->count && i < SHOWN_NAMES; i++)
        rc = bal_buf_format(to, err, "%s'%s'", i ? ", " : "",
                            self->served[i].id);
    if (!rc && self->count > SHOWN_NAMES)
        rc =
            bal_buf_format(to, err, " and %zu more", self->count - SHOWN_NAMES);
    return rc;
}

/* "… does not serve X; it serves A, B". */
static int not_served(const bal_server *self, const char *what,
                      const char *name, bal_error *err)
{
    BAL_LOCAL(bal_buf) names = { 0 };
    int rc = list_names(&names, self, err);

    if (rc)
        return rc;
    rc =
        bal_fail(err, BAL_ENOTFOUND, "'%s' does not serve %s'%s'; it serves %s",
                 self->url, what, name, bal_buf_string(&names));
    return bal_hint(err, rc, "--model says by which name it is served");
}

static int several(const bal_server *self, const bal_served *a,
                   const bal_served *b, bal_error *err)
{
    int rc = bal_fail(err, BAL_EINVAL,
                      "'%s' serves two models that it may be: '%s' and '%s'",
                      self->url, a->model, b->model);
    return bal_hint(err, rc, "--model says which one is asked");
}

/* ---- ballast.json ------------------------------------------------------ */

/* The folder of a model: its root, or that of the file that its root is. False:
 * it does not say one on a machine. */
static bool folder_of(bal_buf *out, const char *root)
{
    size_t len = root ? strlen(root) : 0;

    if (!len || root[0] != '/')
        return false;
    if (bal_glob("*.gguf", root)) {
        while (root[len - 1] != '/')
            len--;
    }
    return !bal_buf_append(out, root, len, NULL);
}

/* The commit that a model was written from, by the ballast.json beside it. */
static bool commit_of(bal_id *out, const bal_served *served)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_OWN(json_t) value = NULL;

    if (!folder_of(&path, served->root) ||
        bal_buf_text(&path, "/ballast.json", NULL) ||
        bal_file_slurp(&text, path.data, PROVENANCE_MAX, NULL) ||
        bal_json_parse(&value, bal_buf_string(&text), text.len, "", NULL))
        return false;
    const char *hex = json_string_value(json_object_get(value, "commit"));
    return hex && !bal_id_parse(out, hex, NULL);
}

/* ---- finding it -------------------------------------------------------- */

static bool is_called(const bal_served *served, const char *name)
{
    return !strcmp(served->id, name) ||
           (served->lora < 0 && !strcmp(served->model, name)) ||
           (served->other && !strcmp(served->other, name));
}

static bool ends_with(const char *name, const char *end)
{
    size_t len = strlen(name);

    return len >= strlen(end) && !strcmp(name + len - strlen(end), end);
}

static bool is_commits(const bal_served *served, const bal_id *commit)
{
    bal_id there;

    return commit_of(&there, served) && !memcmp(&there, commit, sizeof(there));
}

typedef struct wanted {
    const char *name;     /* NULL: not given */
    const char *end;      /* of a name */
    const bal_id *commit; /* of a ballast.json */
} wanted;

static bool matches(const bal_served *served, const wanted *want)
{
    if (want->name)
        return is_called(served, want->name);
    if (want->end)
        return ends_with(served->id, want->end) ||
               (served->other && ends_with(served->other, want->end));
    return is_commits(served, want->commit);
}

/* Two names of one model: the same folder, read as a model of its own. */
static bool same_model(const bal_served *a, const bal_served *b)
{
    return !a->parent && !b->parent && a->root && b->root &&
           !strcmp(a->root, b->root);
}

/* The one that matches, *out NULL: none does. */
static int find(const bal_served **out, const bal_server *self,
                const wanted *want, bal_error *err)
{
    const bal_served *found = NULL;

    for (size_t i = 0; i < self->count; i++) {
        const bal_served *served = &self->served[i];
        if (!matches(served, want))
            continue;
        if (found && want->commit && same_model(found, served))
            continue;
        if (found)
            return several(self, found, served, err);
        found = served;
    }
    *out = found;
    return 0;
}

static int find_commits(const bal_served **out, const bal_server *self,
                        const bal_question *question, bal_error *err)
{
    char hex[BAL_ID_HEX + 1];
    char end[SHORT_HEX + 2];

    bal_id_hex(hex, question->commit);
    end[0] = '-';
    memcpy(end + 1, hex, SHORT_HEX);
    end[SHORT_HEX + 1] = '\0';
    int rc = find(out, self, &(wanted){ .end = end }, err);
    if (rc || *out)
        return rc;
    rc = find(out, self, &(wanted){ .commit = question->commit }, err);
    if (rc || *out)
        return rc;
    return not_served(self, "a model whose name ends in ", end, err);
}

/* ---- is it the right one? ---------------------------------------------- */

static int check_adapter(const bal_server *self, const bal_served *served,
                         bal_error *err)
{
    if (served->parent)
        return 0;
    if (!self->engine->known) {
        bal_warn("probe",
                 "model=%s adapter=unknown why=\"the server does not "
                 "tell adapters from base models\"",
                 served->id);
        return 0;
    }
    int rc =
        bal_fail(err, BAL_EIO, "'%s' at '%s' is no adapter, but a base model",
                 served->id, self->url);
    return bal_hint(err, rc, "--model takes the name of the adapter");
}

static int check_commit(const bal_server *self, const bal_served *served,
                        const bal_id *commit, bal_error *err)
{
    char there[BAL_ID_HEX + 1];
    char want[BAL_ID_HEX + 1];
    bal_id id;

    if (!commit_of(&id, served) || !memcmp(&id, commit, sizeof(id)))
        return 0;
    bal_id_hex(there, &id);
    bal_id_hex(want, commit);
    return bal_fail(err, BAL_EIO, "'%s' at '%s' is commit %.*s, not %.*s",
                    served->id, self->url, SHOWN_HEX, there, SHOWN_HEX, want);
}

int bal_server_pick(const bal_served **out, const bal_server *self,
                    const bal_question *question, bal_error *err)
{
    const char *name = question->options->model;
    const bal_served *served = NULL;
    int rc;

    if (name && name[0])
        rc = find(&served, self, &(wanted){ .name = name }, err);
    else
        rc = find_commits(&served, self, question, err);
    if (rc)
        return rc;
    if (!served)
        return not_served(self, "", name, err);
    if (bal_model_facts(question->model)->kind == BAL_KIND_ADAPTER)
        rc = check_adapter(self, served, err);
    if (!rc)
        rc = check_commit(self, served, question->commit, err);
    if (rc)
        return rc;
    *out = served;
    return 0;
}

const bal_served *bal_server_base(const bal_server *self,
                                  const bal_served *adapter)
{
    for (size_t i = 0; adapter->parent && i < self->count; i++) {
        const bal_served *served = &self->served[i];
        if (!served->parent && !strcmp(served->id, adapter->parent))
            return served;
    }
    return NULL;
}
