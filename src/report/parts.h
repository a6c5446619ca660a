/* Where a tensor stands in its model, by its name: which layer, and what of
 * it. */
#ifndef REPORT_PARTS_H
#define REPORT_PARTS_H

#include "core/buf.h"

#define BAL_MODULE_ROOM 128

/* The layer is the first part of the name that is a whole number, BAL_NONE:
 * there is none. The module is what stands behind it, without ".weight" and
 * without what makes a LoRA factor of it; whole numbers further on (experts)
 * are "*". What stands in front of the layer and tells stacks of layers apart
 * ("decoder", "vision_tower") stays in front of the module, what most models
 * have there does not. Without a layer it is the whole name, but for
 * "base_model.model.". Names that are longer lose their front. */
void bal_part_of(const char *name, size_t *layer, char module[BAL_MODULE_ROOM]);
/* The same layer, and what to call it: "12", "decoder 12"; "" without one. */
void bal_part_layer(const char *name, size_t *layer,
                    char text[BAL_MODULE_ROOM]);

#endif
