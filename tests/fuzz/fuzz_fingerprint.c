/* Fingerprints of any bytes, as they are and as the content of a frame: what is
 * read can be written, and reads as the same. */
#include <stdlib.h>
#include <string.h>

#include "probe/compare.h"
#include "probe/fingerprint_inside.h"
#include "support/fuzz.h"
#include "support/probes.h"

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_answer(const bal_fingerprint *self, size_t i)
{
    const bal_answer *first = bal_fingerprint_at(self, i);

    must(!first == !bal_fingerprint_distinct(self, i));
    for (size_t k = 0; first && k < first->token_count; k++) {
        const bal_said *said = &first->tokens[k];
        must(said->top_count && said->top_count <= BAL_TOP_MAX + 1);
        must(said->logprob <= 0);
    }
    must(!first || !bal_answer_check(first, NULL));
}

static void check_read(bal_fingerprint *self, bal_probes *probes)
{
    BAL_OWN(bal_fingerprint) back = NULL;
    BAL_LOCAL(bal_buf) body = { 0 };
    BAL_LOCAL(bal_buf) twice = { 0 };
    bal_answer more = { .output = "one more" };
    bal_behaviour all;

    for (size_t i = 0; i < bal_probes_count(probes); i++)
        check_answer(self, i);
    must(!bal_fingerprint_write(&body, self, NULL));
    must(!bal_fingerprint_parse(
        &back, probes, (bal_bytes){ body.data, body.len }, "{}", NULL));
    must(!bal_fingerprint_write(&twice, back, NULL));
    must(body.len == twice.len && !memcmp(body.data, twice.data, body.len));
    must(!bal_behaviour_compare(&all, self, back, NULL, NULL, NULL));
    must(!all.moved && !(all.kld > 0));
    must(!bal_fingerprint_add(self, 0, &more, NULL));
}

static void read_body(bal_probes *probes, bal_bytes body)
{
    BAL_OWN(bal_fingerprint) self = NULL;
    bal_error err = { 0 };
    int rc = bal_fingerprint_parse(&self, probes, body, "{}", &err);

    must(!rc || (rc == BAL_ECORRUPT && err.text[0]));
    if (!rc)
        check_read(self, probes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    BAL_OWN(bal_probes)
    probes = probes_of("[{\"id\":\"p0\",\"prompt\":\"0\"},"
                       "{\"id\":\"p1\",\"prompt\":\"1\"}]");
    BAL_LOCAL(bal_buf) body = { 0 };
    BAL_LOCAL(bal_buf) content = { 0 };
    char hex[BAL_ID_HEX + 1];

    read_body(probes, (bal_bytes){ data, size });
    /* With the two members in front that say the same in all that are read. */
    bal_id_hex(hex, bal_probes_id(probes));
    must(!bal_buf_format(&content, NULL,
                         "{\"schema\":\"%s\",\"probes\":\"%s\",",
                         BAL_FINGERPRINT_SCHEMA, hex));
    must(!bal_buf_append(&content, data, size, NULL));
    must(!bal_pack(&body, (bal_bytes){ content.data, content.len }, NULL));
    read_body(probes, (bal_bytes){ body.data, body.len });
    return 0;
}
