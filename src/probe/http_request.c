/* Requests. All that moves probabilities is set, for a server may have other
 * defaults: its own, or those that a model brings along. */
#include "probe/http_answer.h"

bal_api bal_probe_api(const bal_probe *probe)
{
    return probe->prompt ? BAL_API_PROMPT : BAL_API_CHAT;
}

const char *bal_api_path(bal_api api)
{
    static const char *const paths[] = {
        [BAL_API_PROMPT] = "/v1/completions",
        [BAL_API_CHAT] = "/v1/chat/completions",
    };

    return paths[api];
}

static void write_question(bal_json *json, const bal_probe *probe)
{
    bal_json_key(json, probe->prompt ? "prompt" : "messages");
    if (probe->prompt)
        bal_json_string(json, probe->prompt);
    else
        bal_json_raw(json, probe->messages);
    if (!probe->stop_count)
        return;
    bal_json_key(json, "stop");
    bal_json_array(json);
    for (size_t i = 0; i < probe->stop_count; i++)
        bal_json_string(json, probe->stop[i]);
    bal_json_close(json);
}

static void write_number(bal_json *json, const char *name, uint64_t value)
{
    bal_json_key(json, name);
    bal_json_u64(json, value);
}

static void write_sampling(bal_json *json)
{
    static const struct {
        const char *name;
        uint64_t value;
    } rows[] = {
        { "temperature", 0 },
        { "top_p", 1 },
        { "n", 1 },
        { "seed", 0 },
        { "presence_penalty", 0 },
        { "frequency_penalty", 0 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        write_number(json, rows[i].name, rows[i].value);
    bal_json_key(json, "stream");
    bal_json_bool(json, false);
}

static void write_logprobs(bal_json *json, bal_api api, unsigned top)
{
    if (!top)
        return;
    if (api == BAL_API_PROMPT) {
        write_number(json, "logprobs", top);
        return;
    }
    bal_json_key(json, "logprobs");
    bal_json_bool(json, true);
    write_number(json, "top_logprobs", top);
}

/* Every adapter that has a number, and how much of it: those that are not named
 * would be taken as the server was started with them, and an empty list is none
 * at all. */
static void write_adapters(bal_json *json, const bal_http_ask *self)
{
    const bal_server *server = self->server;

    if (!server->adapters)
        return;
    bal_json_key(json, "lora");
    bal_json_array(json);
    for (size_t i = server->count - server->adapters; i < server->count; i++) {
        const bal_served *served = &server->served[i];
        bal_json_object(json);
        bal_json_key(json, "id");
        bal_json_i64(json, served->lora);
        write_number(json, "scale", served == self->served);
        bal_json_close(json);
    }
    bal_json_close(json);
}

int bal_http_write(bal_buf *body, const bal_http_ask *self,
                   const bal_probe *probe, bal_error *err)
{
    bal_json json;
    bal_api api = bal_probe_api(probe);
    uint64_t most = probe->max_tokens;

    bal_json_begin(&json, body, 0);
    bal_json_object(&json);
    bal_json_key(&json, "model");
    bal_json_string(&json, self->served->model);
    write_question(&json, probe);
    write_number(&json, "max_tokens", most ? most : self->options->max_tokens);
    write_sampling(&json);
    write_logprobs(&json, api, self->top[api]);
    bal_json_members(&json, self->server->engine->extra);
    write_adapters(&json, self);
    if (self->server->engine->salt) {
        bal_json_key(&json, "cache_salt");
        bal_json_string(&json, self->salt);
    }
    bal_json_close(&json);
    return bal_json_end(&json, err);
}
