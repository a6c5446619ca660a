/* Models that people bring: a folder of safetensors, a PEFT adapter folder, one
 * file. bal_model_from_path of ballast.h is here.
 *
 * A folder is read by model.safetensors.index.json where there is one and no
 * model.safetensors that it does not name (every
 * mapped tensor must be in exactly its shard; a shard tensor that is not
 * mapped, a shard that is missing, a shard that no entry names are told); else
 * model.safetensors; else adapter_model.safetensors; else the one or several
 * *.safetensors that are there. Files that are not tensors come along as
 * entries of part FILE by the rows of side.c; what is passed over is logged. */
#ifndef MODEL_PATH_H
#define MODEL_PATH_H

#include "model/model.h"

/* True if a path below a model folder is carried along as a side file. */
bool bal_side_file(const char *path);
/* The size up to which it is: 0 for what is passed over, UINT64_MAX for what
 * belongs to a model by its name. */
uint64_t bal_side_limit(const char *path);
/* True for the files that a base is recognised by beside its tensors: the
 * tokenizer and the chat template. */
bool bal_side_identity(const char *path);
/* Names fit for a shard or side file: relative, no "..", no backslash, no drive
 * letter, no control character, no NUL; at most 255 bytes a component. */
bool bal_side_name_valid(const char *path);

#endif
