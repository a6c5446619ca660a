/* The HTTP client by argv: requests as rows of JSON, answers as they end.
 *
 *   http-client OPTIONS REQUESTS
 *
 * OPTIONS: {"timeout", "deadline", "parallel", "answer_max", "retries"},
 * REQUESTS: [{"url", "method"?, "type"?, "body"?}], the token from TOKEN. Each
 * answer is a line {"i", "status", "type", "body"}; a failure {"error", "text",
 * "hint"} and exit status 1. SIGINT cancels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/http.h"
#include "core/json.h"
#include "core/pool.h"
#include "core/signals.h"

static int stop(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    (void)done;
    (void)total;
    return bal_signals_pending();
}

static void print(json_t *row)
{
    json_dumpf(row, stdout, JSON_COMPACT);
    puts("");
    fflush(stdout);
    json_decref(row);
}

static int make(void *ctx, size_t i, bal_http_request *request, bal_error *err)
{
    json_t *row = json_array_get(ctx, i);
    const json_t *body = json_object_get(row, "body");

    (void)err;
    request->url = json_string_value(json_object_get(row, "url"));
    request->method = json_string_value(json_object_get(row, "method"));
    request->type = json_string_value(json_object_get(row, "type"));
    request->body.data = json_string_value(body);
    request->body.len = json_string_length(body);
    return 0;
}

static int take(void *ctx, size_t i, const bal_http_answer *answer,
                bal_error *err)
{
    const char *body = answer->body.data;

    (void)ctx;
    (void)err;
    if (body[answer->body.len])
        abort();
    print(json_pack("{s:i,s:i,s:s,s:s%}", "i", (int)i, "status", answer->status,
                    "type", answer->type, "body", body, answer->body.len));
    return 0;
}

static double number(const json_t *options, const char *name)
{
    return json_number_value(json_object_get(options, name));
}

static int run(json_t *options, json_t *requests, bal_work *work,
               bal_error *err)
{
    BAL_OWN(bal_http) http = NULL;
    const bal_http_options how = {
        .timeout = number(options, "timeout"),
        .deadline = number(options, "deadline"),
        .parallel = (size_t)number(options, "parallel"),
        .answer_max = (size_t)number(options, "answer_max"),
        .retries = (unsigned)number(options, "retries"),
        .token = getenv("TOKEN"),
    };
    int rc = bal_http_open(&http, &how, err);

    if (rc)
        return rc;
    return bal_http_all(http, json_array_size(requests), make, take, requests,
                        work, err);
}

int main(int argc, char **argv)
{
    BAL_OWN(bal_work) work = NULL;
    bal_error err = { 0 };

    if (argc != 3)
        return 2;
    BAL_OWN(json_t) options = json_loads(argv[1], 0, NULL);
    BAL_OWN(json_t) requests = json_loads(argv[2], 0, NULL);
    if (!options || !requests || bal_work_new(&work, 1, &err))
        return 2;
    bal_signals_watch();
    bal_work_watch(work, stop, NULL);
    int rc = run(options, requests, work, &err);
    if (rc)
        print(json_pack("{s:s,s:s,s:s}", "error", bal_code_find(rc)->word,
                        "text", err.text, "hint", err.hint));
    return rc != 0;
}
