/* What an adapter does to one tensor, as a formula over rectangles of it: the
 * maths of every kind of adapter is sums and products of matrices that lie in
 * the adapter's file, one way up or the other. */
#ifndef MODEL_UPDATE_H
#define MODEL_UPDATE_H

#include "model/model.h"

/* Elements that are computed at once: rows of a rectangle times its columns. At
 * least BAL_LORA_RANK_MAX, so that a row of a factor fits. */
enum { BAL_UPDATE_CHUNK = 64 * 1024 };

/* A matrix in an entry of the adapter: element (i, j) of the stack's matrix n
 * is element n * step + i * down + j * right of it. Strides of 0 repeat. */
typedef struct bal_strided {
    size_t entry;
    uint64_t start, step, down, right;
} bal_strided;

/* left, or with a rank left times right, [rows, rank] and [rank, cols]; between
 * them the diagonal, rank numbers, where its entry is not BAL_NONE. */
typedef struct bal_operand {
    bal_strided left, right;
    uint64_t rank;
    size_t diagonal;
} bal_operand;

typedef enum bal_formula {
    BAL_FORMULA_ONE,       /* the first operand */
    BAL_FORMULA_HADAMARD,  /* the product of both, element by element */
    BAL_FORMULA_KRONECKER, /* of the first, and the second of rows2 x cols2; a
                            * row of each fits in half a chunk */
} bal_formula;

/* How the formula's value x meets a weight w. */
typedef enum bal_meeting {
    BAL_MEETING_ADD,   /* w + scale x */
    BAL_MEETING_TIMES, /* w x */
    BAL_MEETING_DORA,  /* (w + scale x) lengths[the module's output] */
} bal_meeting;

typedef struct bal_update {
    bal_formula formula;
    bal_meeting meeting;
    bal_operand operands[2];
    uint64_t rows, cols; /* of each matrix of the tensor, as it is stored */
    uint64_t rows2, cols2;
    double scale;
    size_t magnitude; /* DoRA's entry */
    bool turned;      /* outputs are columns */
    double *lengths;  /* DoRA: magnitude / norm by output, borrowed */
} bal_update;

/* Part of a matrix of the tensor. */
typedef struct bal_area {
    uint64_t matrix, row, col;
    size_t rows, cols;
} bal_area;

/* The next rectangle of elements [start, start + n) of the tensor: part of one
 * row, or several whole rows. */
bal_area bal_update_next(const bal_update *self, uint64_t start, uint64_t n);

/* Room of one thread; what of a factor was read last is kept for the next
 * rectangle. */
typedef struct bal_update_room {
    double *memory; /* owns all */
    double *sum, *other, *left, *right, *raw;
    const bal_operand *held; /* whose rows of `right` are there, NULL: none */
    bal_area held_area;
} bal_update_room;

BAL_CHECK int bal_update_room_init(bal_update_room *self, bal_error *err);
void bal_update_room_done(bal_update_room *self);

/* room->sum = scale x over the area; -0.0 where it is 0, which added to any
 * weight leaves its bits. */
BAL_CHECK int bal_update_value(const bal_update *self, bal_model *adapter,
                               const bal_area *area, bal_update_room *room,
                               bal_error *err);
/* Elements [start, start + n) of a tensor of dtype at `to` are changed. The
 * result of an element is rounded once, and does not depend on how the tensor
 * is cut into reads. ECORRUPT: a weight that was finite is not any more. */
BAL_CHECK int bal_update_apply(const bal_update *self, bal_model *adapter,
                               bal_dtype dtype, uint64_t start, uint64_t n,
                               void *to, bal_error *err);

/* What a difference is computed of: an adapter and the tensor that its update
 * is of. The base may be NULL where they meet by addition. */
typedef struct bal_update_sides {
    bal_model *adapter;
    bal_model *base;
    size_t entry; /* of the base */
} bal_update_sides;

/* Elements [start, start + n) of what the update adds to the tensor, in dtype:
 * the value itself where they meet by addition, exact but for its rounding;
 * else what the weight becomes less what it is, in double, rounded once. Does
 * not depend on how it is cut. ECORRUPT: it is not finite where the weight is.
 */
BAL_CHECK int bal_update_difference(const bal_update *self,
                                    const bal_update_sides *sides,
                                    bal_dtype dtype, uint64_t start, uint64_t n,
                                    void *to, bal_error *err);

#endif
