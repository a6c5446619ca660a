/* What a folder tells about a model: its kind, its base, the base's revision.
 */
#ifndef MODEL_FACTS_H
#define MODEL_FACTS_H

#include "model/folder.h"

/* Fill in self's facts. dir: the folder, NULL for a single file. adapter: a
 * PEFT folder; without it tensors that only adapters have decide. */
enum bal_facts_flags {
    BAL_FACTS_ADAPTER = 1, /* a PEFT folder */
    BAL_FACTS_ALONE = 2,   /* one weights file: its tensors may say adapter */
};
BAL_CHECK int bal_folder_facts(bal_folder *self, const char *name,
                               const char *dir, unsigned flags, bal_error *err);

#endif
