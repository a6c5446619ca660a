/* By dlopen. */
#include "core/library.h"

#include <dlfcn.h>
#include <string.h>

bool bal_library_load(void *table, const bal_library *library)
{
    void *handle = NULL;

    for (size_t i = 0; i < library->name_count && !handle; i++)
        handle = dlopen(library->names[i], RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < library->row_count && handle; i++) {
        const bal_library_row *row = &library->rows[i];
        void *function = dlsym(handle, row->name);
        if (!function)
            return false;
        memcpy((char *)table + row->offset, &function, sizeof(function));
    }
    return handle != NULL;
}
