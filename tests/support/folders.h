/* Model folders for tests, and what is said of those that are refused. */
#ifndef SUPPORT_FOLDERS_H
#define SUPPORT_FOLDERS_H

#include "support/files.h"

/* A file of dir. */
void folder_put(const char *dir, const char *name, const char *text);
/* A safetensors file whose data are the len bytes 1, 2, 3, … (16 at most). */
void folder_tensors(const char *dir, const char *name, const char *json,
                    size_t len);
/* The last error's text or hint holds word. */
void folder_says(const char *word);
/* bal_model_from_path fails with code and says word. */
void folder_refused(int code, const char *dir, const char *word);

#endif
