/* What commands that make an adapter report: how far it is from what it stands
 * for. */
#ifndef CLI_LORA_H
#define CLI_LORA_H

#include "cli/cli.h"

typedef struct bal_lora_report {
    bal_residual residual;
    bal_buf rows; /* bal_lora_row, texts in the program's arena */
} bal_lora_report;

void bal_lora_report_done(bal_lora_report *self);
/* Compare what was made with what was meant. */
BAL_CHECK int bal_lora_report_fill(bal_lora_report *out, bal_cli *cli,
                                   bal_model *meant, bal_model *made,
                                   bal_error *err);
/* The same of an adapter and the delta that it was extracted from. */
BAL_CHECK int bal_lora_report_distance(bal_lora_report *out, bal_cli *cli,
                                       bal_model *delta, bal_model *adapter,
                                       bal_error *err);
/* How many tensors changed that the adapter does not have; their names, of many
 * the first. */
size_t bal_lora_left(const bal_lora_report *self);
void bal_lora_left_text(bal_out *out, const bal_lora_report *self);
/* ", residual 0.0123, at most 0.05 (NAME)" */
void bal_residual_text(bal_out *out, const bal_residual *residual);
/* "residual", into the open object. */
void bal_residual_json(bal_json *json, const bal_residual *residual);
/* "3 modules", and the residual. */
void bal_lora_report_text(bal_cli *cli, const bal_lora_report *self);
/* "residual" and "modules", into the open object. */
void bal_lora_report_json(bal_json *json, const bal_lora_report *self);

/* "residual", "tensors" and "left_out". */
void bal_lora_extract_json(bal_json *json, const bal_lora_report *self);

/* EINVAL unless one of --rank and --energy was given; fills in both. */
BAL_CHECK int bal_lora_rank(bal_lora_options *out, const bal_opt_u64 *rank,
                            const bal_opt_f64 *energy, bal_error *err);

#endif
