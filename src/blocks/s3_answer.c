/* Answers that are errors: <Error><Code>…</Code><Message>…</Message></Error>.
 * Only a code that says so makes a key absent; whatever else comes (a proxy's
 * page, a bucket that is not there, no right to look) means that it is not
 * known. */
#include <string.h>

#include "blocks/s3_client.h"
#include "core/error.h"
#include "core/str.h"
#include "core/xml.h"

enum { MESSAGE = 160, REGION = 40 };

typedef struct refusal {
    char code[BAL_S3_CODE];
    char region[REGION];
    char message[MESSAGE];
} refusal;

static const struct {
    const char *path;
    size_t offset, room;
} fields[] = {
    { "Error/Code", offsetof(refusal, code), BAL_S3_CODE },
    { "Error/Region", offsetof(refusal, region), REGION },
    { "Error/Message", offsetof(refusal, message), MESSAGE },
};

static int take(void *ctx, bal_xml_end end, const char *path, const char *text,
                bal_error *err)
{
    (void)err;
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (end == BAL_XML_CLOSES && !strcmp(path, fields[i].path))
            snprintf((char *)ctx + fields[i].offset, fields[i].room, "%s",
                     text);
    }
    return 0;
}

/* Letters and digits alone, so that it can be shown as it is. */
static bool is_word(const char *text)
{
    return text[0] && !text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJK"
                                         "LMNOPQRSTUVWXYZ0123456789-.")];
}

static void read_answer(refusal *out, const bal_s3_reply *reply)
{
    BAL_LOCAL(bal_buf) region = { 0 };

    memset(out, 0, sizeof(*out));
    if (bal_xml_walk(reply->body.data, reply->body.len, "answer", take, out,
                     NULL))
        memset(out, 0, sizeof(*out));
    if (!is_word(out->code))
        out->code[0] = '\0';
    if (bal_s3_reply_header(reply, "x-amz-bucket-region", &region))
        snprintf(out->region, sizeof(out->region), "%s", region.data);
    if (!is_word(out->region))
        out->region[0] = '\0';
}

void bal_s3_reply_code(const bal_s3_reply *self, char code[BAL_S3_CODE])
{
    refusal answer;

    read_answer(&answer, self);
    memcpy(code, answer.code, BAL_S3_CODE);
}

/* What to do about it. */
static const struct {
    const char *code;
    const char *hint;
} hints[] = {
    { "AccessDenied", "the key lacks the right to do this, or is of another "
                      "account" },
    { "ExpiredToken", "the temporary keys are too old: get new ones" },
    { "InvalidAccessKeyId", "the access key is not known there" },
    { "InvalidToken", "the session token does not go with the access key" },
    { "NoSuchBucket", "make the bucket first, or mend the URL" },
    { "RequestTimeTooSkewed", "the clock of this machine is wrong" },
    { "SignatureDoesNotMatch", "the secret key does not go with the access "
                               "key" },
};

/* A redirect names the bucket's region, and is not followed: what is signed for
 * one region is good for no other. */
static int with_hint(const refusal *answer, int status, int rc, bal_error *err)
{
    bool elsewhere = status / 100 == 3 ||
                     !strcmp(answer->code, "AuthorizationHeaderMalformed");

    if (elsewhere && answer->region[0])
        return bal_hint(err, rc, "the bucket is in region '%s': AWS_REGION=%s",
                        answer->region, answer->region);
    for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
        if (!strcmp(answer->code, hints[i].code))
            return bal_hint(err, rc, "%s", hints[i].hint);
    }
    return rc;
}

int bal_s3_refused(const bal_s3_reply *self, const char *what, bal_error *err)
{
    const bal_s3_place *place = &self->client->place;
    refusal answer;
    BAL_LOCAL(bal_buf) said = { 0 };

    read_answer(&answer, self);
    if (self->status == 404 && !strcmp(answer.code, "NoSuchKey"))
        return bal_fail(err, BAL_ENOTFOUND, "%s in '%s': there is none", what,
                        place->text);
    int rc = bal_printable(&said, answer.message, strlen(answer.message), false,
                           err);
    if (rc)
        return rc;
    rc = bal_fail(err, BAL_EIO, "%s in '%s': %d%s%s%s%s", what, place->text,
                  self->status, answer.code[0] ? " " : "", answer.code,
                  said.len ? ": " : "", bal_buf_string(&said));
    return with_hint(&answer, self->status, rc, err);
}
