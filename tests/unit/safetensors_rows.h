/* Headers at the edges of the format, and who takes them. The column `taken`
 * was held against the reference (the safetensors package, 0.8): ROW_STRICT is
 * all that the two disagree in, and each of those lets two readers see
 * different weights in one file. */
#ifndef UNIT_SAFETENSORS_ROWS_H
#define UNIT_SAFETENSORS_ROWS_H

#include <stddef.h>
#include <stdint.h>

typedef enum row_taken {
    ROW_BOTH,    /* by the reference and by us */
    ROW_STRICT,  /* by the reference, not by us */
    ROW_NEITHER, /* by nobody */
} row_taken;

typedef struct st_row {
    const char *name;
    const char *json;
    uint64_t data; /* bytes behind the header */
    row_taken taken;
    const char *word; /* in the message, where we refuse */
    size_t nul_at;    /* where not 0: this byte of json is made a NUL */
} st_row;

static const st_row st_rows[] = {
    /* ---- taken ---- */
    { "nothing", "{}", 0, ROW_BOTH, NULL },
    { "spaces behind", "{}      ", 0, ROW_BOTH, NULL },
    { "any white space around", " \t\r\n{} \t\r\n", 0, ROW_BOTH, NULL },
    { "one tensor",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
      ROW_BOTH, NULL },
    { "keys in another order",
      "{\"a\":{\"data_offsets\":[0,8],\"shape\":[2],\"dtype\":\"F32\"}}", 8,
      ROW_BOTH, NULL },
    { "tensors not in the order of their data",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]},"
      "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
      2, ROW_BOTH, NULL },
    { "metadata",
      "{\"__metadata__\":{\"format\":\"pt\"},\"a\":{\"dtype\":\"U8\","
      "\"shape\":[1],\"data_offsets\":[0,1]}}",
      1, ROW_BOTH, NULL },
    { "empty metadata", "{\"__metadata__\":{}}", 0, ROW_BOTH, NULL },
    { "a scalar",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4,
      ROW_BOTH, NULL },
    { "a surrogate pair in a name",
      "{\"\\ud83d\\ude00\":{\"dtype\":\"U8\",\"shape\":[1],"
      "\"data_offsets\":[0,1]}}",
      1, ROW_BOTH, NULL },
    { "zero size at 0",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0,
      ROW_BOTH, NULL },
    { "zero size between others",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
      "\"b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[1,1]},"
      "\"c\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
      2, ROW_BOTH, NULL },
    { "several of zero size at one offset",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},"
      "\"b\":{\"dtype\":\"U8\",\"shape\":[3,0],\"data_offsets\":[0,0]}}",
      0, ROW_BOTH, NULL },
    { "F4 of two",
      "{\"a\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[0,1]}}", 1,
      ROW_BOTH, NULL },
    { "F6 of four",
      "{\"a\":{\"dtype\":\"F6_E2M3\",\"shape\":[4],\"data_offsets\":[0,3]}}", 3,
      ROW_BOTH, NULL },
    { "a zero before what would overflow",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[0,9223372036854775808,4],"
      "\"data_offsets\":[0,0]}}",
      0, ROW_BOTH, NULL },
    { "F64 behind a U8, unaligned",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
      "\"b\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[1,9]}}",
      9, ROW_BOTH, NULL },

    /* ---- taken by the reference alone ---- */
    { "duplicate name",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
      "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
      1, ROW_STRICT, "duplicate name" },
    { "duplicate name, the first one broken",
      "{\"a\":{\"dtype\":\"F64\",\"shape\":[9],\"data_offsets\":[7,1]},"
      "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
      1, ROW_STRICT, "duplicate name" },
    { "duplicate name by an escape",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
      "\"\\u0061\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
      1, ROW_STRICT, "duplicate name" },
    { "duplicate key in the metadata",
      "{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0, ROW_STRICT,
      "duplicate key" },
    { "duplicate key in the metadata by an escape",
      "{\"__metadata__\":{\"a\":\"1\",\"\\u0061\":\"2\"}}", 0, ROW_STRICT,
      "duplicate key" },
    { "unknown key in an info",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],"
      "\"x\":[[[1]]]}}",
      1, ROW_STRICT, "unknown key 'x'" },
    { "positional info", "{\"a\":[\"F32\",[2],[0,8]]}", 8, ROW_STRICT,
      "not an object" },
    { "dtype as an enum object",
      "{\"a\":{\"dtype\":{\"F32\":null},\"shape\":[2],"
      "\"data_offsets\":[0,8]}}",
      8, ROW_STRICT, "dtype that is not a string" },
    { "null metadata", "{\"__metadata__\":null}", 0, ROW_STRICT,
      "expected '{'" },
    { "empty name",
      "{\"\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
      ROW_STRICT, "without a name" },
    { "a NUL in a name",
      "{\"a\\u0000b\":{\"dtype\":\"U8\",\"shape\":[1],"
      "\"data_offsets\":[0,1]}}",
      1, ROW_STRICT, "NUL" },
    { "a NUL in the metadata", "{\"__metadata__\":{\"a\":\"\\u0000\"}}", 0,
      ROW_STRICT, "NUL" },

    /* ---- taken by nobody ---- */
    { "duplicate metadata", "{\"__metadata__\":{},\"__metadata__\":{}}", 0,
      ROW_NEITHER, "duplicate __metadata__" },
    { "duplicate key in an info",
      "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],"
      "\"data_offsets\":[0,1]}}",
      1, ROW_NEITHER, "duplicate key 'dtype'" },
    { "no dtype", "{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
      ROW_NEITHER, "'dtype' is missing" },
    { "no shape", "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1,
      ROW_NEITHER, "'shape' is missing" },
    { "no offsets", "{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, ROW_NEITHER,
      "'data_offsets' is missing" },
    { "empty info", "{\"a\":{}}", 0, ROW_NEITHER, "missing" },
    { "dtype in lower case",
      "{\"a\":{\"dtype\":\"f32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
      ROW_NEITHER, "unknown dtype 'f32'" },
    { "a dtype of the future",
      "{\"a\":{\"dtype\":\"F2\",\"shape\":[4],\"data_offsets\":[0,1]}}", 1,
      ROW_NEITHER, "unknown dtype 'F2'" },
    { "a negative dimension",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,1]}}", 1,
      ROW_NEITHER, "whole number" },
    { "minus zero",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[-0],\"data_offsets\":[0,0]}}", 0,
      ROW_NEITHER, "whole number" },
    { "a real dimension",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[2.0],\"data_offsets\":[0,2]}}", 2,
      ROW_NEITHER, "whole number" },
    { "an exponent",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[2e0],\"data_offsets\":[0,2]}}", 2,
      ROW_NEITHER, "whole number" },
    { "a dimension as a string",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[\"2\"],\"data_offsets\":[0,2]}}", 2,
      ROW_NEITHER, "whole number" },
    { "a null dimension",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[null],\"data_offsets\":[0,2]}}", 2,
      ROW_NEITHER, "whole number" },
    { "true as a dimension",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[true],\"data_offsets\":[0,1]}}", 1,
      ROW_NEITHER, "whole number" },
    { "a dimension over u64",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[18446744073709551616],"
      "\"data_offsets\":[0,1]}}",
      1, ROW_NEITHER, "too large" },
    { "a leading zero",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[02],\"data_offsets\":[0,2]}}", 2,
      ROW_NEITHER, "whole number" },
    { "one offset",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1]}}", 1,
      ROW_NEITHER, "not two" },
    { "three offsets",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,2]}}", 1,
      ROW_NEITHER, "more than 2" },
    { "offsets backwards",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,0]}}", 1,
      ROW_NEITHER, "backwards" },
    { "a hole at the start",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}", 2,
      ROW_NEITHER, "a hole" },
    { "a hole between",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
      "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,3]}}",
      3, ROW_NEITHER, "a hole" },
    { "an overlap",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
      "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
      3, ROW_NEITHER, "an overlap" },
    { "many names on the same bytes",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
      "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
      "\"c\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}",
      2, ROW_NEITHER, "an overlap" },
    { "zero size inside of another",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
      "\"b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[1,1]}}",
      2, ROW_NEITHER, "an overlap" },
    { "zero size alone behind 0",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[4,4]}}", 4,
      ROW_NEITHER, "a hole" },
    { "shape and bytes that differ",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8,
      ROW_NEITHER, "the shape takes 12" },
    { "trailing bytes",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 3,
      ROW_NEITHER, "trailing bytes" },
    { "trailing bytes behind nothing", "{}", 1, ROW_NEITHER, "trailing bytes" },
    { "two bytes missing",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 6,
      ROW_NEITHER, "cut short" },
    { "a number in the metadata", "{\"__metadata__\":{\"a\":1}}", 0,
      ROW_NEITHER, "expected a string" },
    { "an object in the metadata", "{\"__metadata__\":{\"a\":{}}}", 0,
      ROW_NEITHER, "expected a string" },
    { "null in the metadata", "{\"__metadata__\":{\"a\":null}}", 0, ROW_NEITHER,
      "expected a string" },
    { "metadata that is a list", "{\"__metadata__\":[]}", 0, ROW_NEITHER,
      "expected '{'" },
    { "padded with NUL", "{}x", 0, ROW_NEITHER, "NUL", 2 },
    { "garbage behind", "{}x", 0, ROW_NEITHER, "behind the end" },
    { "two objects", "{}{}", 0, ROW_NEITHER, "behind the end" },
    { "a byte order mark", "\xef\xbb\xbf{}", 0, ROW_NEITHER, "not a JSON" },
    { "bad UTF-8",
      "{\"\xff\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
      ROW_NEITHER, "utf-8" },
    { "an overlong form",
      "{\"\xc0\x80\":{\"dtype\":\"U8\",\"shape\":[1],"
      "\"data_offsets\":[0,1]}}",
      1, ROW_NEITHER, "utf-8" },
    { "a lone surrogate",
      "{\"\\ud800\":{\"dtype\":\"U8\",\"shape\":[1],"
      "\"data_offsets\":[0,1]}}",
      1, ROW_NEITHER, "bad escape" },
    { "a raw control character",
      "{\"a\nb\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
      ROW_NEITHER, "control character" },
    { "a trailing comma",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},}", 1,
      ROW_NEITHER, "trailing comma" },
    { "a trailing comma in a shape",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[1,],\"data_offsets\":[0,1]}}", 1,
      ROW_NEITHER, "trailing comma" },
    { "a comment", "{/* */}", 0, ROW_NEITHER, "expected" },
    { "NaN", "{\"a\":NaN}", 0, ROW_NEITHER, "not an object" },
    { "F4 as a scalar",
      "{\"a\":{\"dtype\":\"F4\",\"shape\":[],\"data_offsets\":[0,1]}}", 1,
      ROW_NEITHER, "whole bytes" },
    { "F4 of three",
      "{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}", 2,
      ROW_NEITHER, "whole bytes" },
    { "F6 of two",
      "{\"a\":{\"dtype\":\"F6_E3M2\",\"shape\":[2],\"data_offsets\":[0,2]}}", 2,
      ROW_NEITHER, "whole bytes" },
    { "elements that overflow",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[9223372036854775808,4],"
      "\"data_offsets\":[0,0]}}",
      0, ROW_NEITHER, "overflows" },
    { "a zero behind what overflows",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[9223372036854775808,4,0],"
      "\"data_offsets\":[0,0]}}",
      0, ROW_NEITHER, "overflows" },
    { "bits that overflow",
      "{\"a\":{\"dtype\":\"F64\",\"shape\":[1152921504606846976],"
      "\"data_offsets\":[0,0]}}",
      0, ROW_NEITHER, "overflows" },
    { "an array", "[]", 0, ROW_NEITHER, "not a JSON object" },
    { "null", "null", 0, ROW_NEITHER, "not a JSON object" },
    { "a number", "12", 0, ROW_NEITHER, "not a JSON object" },
    { "white space only", "        ", 0, ROW_NEITHER, "not a JSON object" },
    { "cut off", "{\"a\":{\"dtype\":", 0, ROW_NEITHER, "dtype" },
    { "a key without a value", "{\"a\"}", 0, ROW_NEITHER, "expected ':'" },
};

enum { ST_ROWS = sizeof(st_rows) / sizeof(st_rows[0]) };

#endif
