/* A tokens file of any bytes, and the same bytes as a header: no token is found
 * that the file does not have, and none is in what is said of it. */
#include <stdlib.h>
#include <string.h>

#include "serve/tokens.h"
#include "support/fuzz.h"

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* The header is what stands behind the first NUL. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    BAL_OWN(bal_tokens) tokens = NULL;
    BAL_LOCAL(bal_buf) text = { 0 };
    bal_error err = { 0 };

    must(!bal_buf_append(&text, data, size, NULL));
    must(!bal_buf_append(&text, "", 1, NULL));
    size_t len = strlen(text.data);
    const char *header = len < size ? text.data + len + 1 : NULL;
    int rc = bal_tokens_parse(&tokens, text.data, len, "fuzz", &err);
    must(!rc || (rc == BAL_EINVAL && err.text[0]));
    must(rc ? !tokens : tokens != NULL);
    const bal_scope *scope = bal_tokens_find(tokens, header, 1);
    must(scope != NULL);
    must(!bal_scope_writes(scope, "acme") || bal_scope_reads(scope, "acme"));
    must(scope == &bal_scope_none || scope->number);
    return 0;
}
