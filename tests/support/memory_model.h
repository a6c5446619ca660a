/* A model of arrays in memory, for tests of what is made of models. */
#ifndef SUPPORT_MEMORY_MODEL_H
#define SUPPORT_MEMORY_MODEL_H

#include "model/model.h"

/* Entries are added, then it is finished, then it can be read. */
bal_model *memory_new(bal_kind kind, const char *name);
/* A WHOLE tensor; size bytes are copied, and must be what the shape takes. */
void memory_tensor(bal_model *self, const char *name, bal_dtype dtype,
                   uint32_t rank, const uint64_t *shape, const void *data);
void memory_file(bal_model *self, bal_part part, const char *name,
                 const void *data, size_t size);
/* Any entry; data may be NULL where the form has no bytes. */
void memory_entry(bal_model *self, const bal_tensor *entry, const void *data);
/* A tensor of strange_fill's values; of rank 1. */
void memory_strange(bal_model *self, const char *name, bal_dtype dtype,
                    uint32_t rank, const uint64_t *shape, uint64_t seed);
void memory_strange1(bal_model *self, const char *name, bal_dtype dtype,
                     uint64_t n, uint64_t seed);
void memory_finish(bal_model *self);

/* got has entry i of want, WHOLE and with the same bits: read in two parts, the
 * later first, to an address that is aligned to nothing. */
void memory_check_entry(bal_model *want, bal_model *got, size_t i);
/* The same of all entries, and got has no others but headers. */
void memory_check_equal(bal_model *want, bal_model *got);

#endif
