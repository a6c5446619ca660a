/* Models written by tests, and what came of it. */
#ifndef SUPPORT_WRITES_H
#define SUPPORT_WRITES_H

#include "support/files.h"

/* bal_model_write by so many threads; the error is in check_err. */
int write_with(bal_model *model, const char *out,
               const bal_write_options *options, bal_written *written,
               unsigned jobs);
int write_plain(bal_model *model, const char *out);
/* The path of a new place in an empty folder of its own. */
const char *write_place(void);
/* Nothing is beside it there. */
bool write_alone(const char *out);
/* A file of dir holds text; NULL: it is not there. */
void write_holds(const char *dir, const char *name, const char *text);

#endif
