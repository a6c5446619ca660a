/* Who frees what: scope cleanup, so that an early return is always right. */
#ifndef CORE_OWN_H
#define CORE_OWN_H

/* Freed (type_free) when the scope ends, unless taken. */
#define BAL_OWN(type) __attribute__((cleanup(type##_drop))) type *
/* A value in place, emptied (type_done) when the scope ends. */
#define BAL_LOCAL(type) __attribute__((cleanup(type##_done))) type
/* Give an owned pointer away: its value, and NULL stays behind. */
#define BAL_TAKE(pointer)                                                      \
    __extension__({                                                            \
        __typeof__(pointer) taken_ = (pointer);                                \
        (pointer) = NULL;                                                      \
        taken_;                                                                \
    })
/* Once beside each type with a type_free: what BAL_OWN calls. */
#define BAL_OWNABLE(type)                                                      \
    static inline void type##_drop(type **pointer)                             \
    {                                                                          \
        type##_free(*pointer);                                                 \
    }

#endif
