/* A row's rules are put together as they are told. */
#include "support/preflights.h"

#include <string.h>

#include "core/buf.h"
#include "support/check.h"

const char *const preflight_engines[] = { "vllm", "sglang", "llama.cpp",
                                          "peft" };

typedef struct told {
    bal_buf text;
    char last[64];
} told;

static int tell(void *ctx, const bal_preflight_row *row)
{
    static const char letters[] = "RWFAN";
    told *to = ctx;

    CHECK(row->text[0] && row->engine[0] && row->where);
    CHECK(!strchr(row->text, '\n'));
    if (!strcmp(row->rule, to->last))
        return 0;
    snprintf(to->last, sizeof(to->last), "%s", row->rule);
    CHECK_OK(bal_buf_format(&to->text, &check_err, "%s%s:%c",
                            to->text.len ? " " : "", row->rule,
                            letters[row->outcome]));
    return 0;
}

bool preflight_tells(bal_model *adapter, const bal_serving_options *options,
                     const char *want)
{
    told got = { 0 };

    CHECK_OK(bal_preflight(adapter, options, tell, &got, &check_err));
    bool same = !strcmp(bal_buf_string(&got.text), want);
    if (!same)
        print_message("%s told '%s', not '%s'\n", options->engine,
                      bal_buf_string(&got.text), want);
    bal_buf_done(&got.text);
    return same;
}

void preflights_check(const adapter_row *rows, size_t count)
{
    bal_model *base = served_base("LlamaForCausalLM", false);
    bool all = true;

    for (size_t i = 0; i < count; i++) {
        bal_model *adapter =
            served_adapter(rows[i].config, rows[i].tensors, NULL);

        check_row(rows[i].what);
        for (size_t k = 0; k < PREFLIGHT_ENGINES; k++) {
            const bal_serving_options options = { preflight_engines[k], base,
                                                  0 };
            bool told_so = preflight_tells(adapter, &options, rows[i].want[k]);
            if (!told_so)
                print_message("of %s\n", rows[i].what);
            all &= told_so;
        }
        bal_model_free(adapter);
    }
    bal_model_free(base);
    CHECK(all);
}
