/* libpq by dlopen. Its binary interface has been libpq.so.5 since 2006;
 * pipelines came with the 14th version of it. */
#include "graph/pq.h"

#include <stddef.h>

#include "core/library.h"

static const char *const names[] = {
    "libpq.so.5",
    "libpq.5.dylib",
};

static const bal_library_row functions[] = {
    { "PQclear", offsetof(bal_pq, clear) },
    { "PQcmdStatus", offsetof(bal_pq, cmdStatus) },
    { "PQcmdTuples", offsetof(bal_pq, cmdTuples) },
    { "PQconnectdbParams", offsetof(bal_pq, connectdbParams) },
    { "PQconninfoFree", offsetof(bal_pq, conninfoFree) },
    { "PQconninfoParse", offsetof(bal_pq, conninfoParse) },
    { "PQconsumeInput", offsetof(bal_pq, consumeInput) },
    { "PQenterPipelineMode", offsetof(bal_pq, enterPipelineMode) },
    { "PQerrorMessage", offsetof(bal_pq, errorMessage) },
    { "PQfinish", offsetof(bal_pq, finish) },
    { "PQfreemem", offsetof(bal_pq, freemem) },
    { "PQfname", offsetof(bal_pq, fname) },
    { "PQftype", offsetof(bal_pq, ftype) },
    { "PQgetisnull", offsetof(bal_pq, getisnull) },
    { "PQgetlength", offsetof(bal_pq, getlength) },
    { "PQgetResult", offsetof(bal_pq, getResult) },
    { "PQgetvalue", offsetof(bal_pq, getvalue) },
    { "PQnfields", offsetof(bal_pq, nfields) },
    { "PQntuples", offsetof(bal_pq, ntuples) },
    { "PQpipelineSync", offsetof(bal_pq, pipelineSync) },
    { "PQresultErrorField", offsetof(bal_pq, resultErrorField) },
    { "PQresultStatus", offsetof(bal_pq, resultStatus) },
    { "PQsendPrepare", offsetof(bal_pq, sendPrepare) },
    { "PQsendQueryParams", offsetof(bal_pq, sendQueryParams) },
    { "PQsendQueryPrepared", offsetof(bal_pq, sendQueryPrepared) },
    { "PQsetNoticeProcessor", offsetof(bal_pq, setNoticeProcessor) },
    { "PQsetSingleRowMode", offsetof(bal_pq, setSingleRowMode) },
    { "PQsocket", offsetof(bal_pq, socket) },
    { "PQstatus", offsetof(bal_pq, status) },
};

enum { FUNCTIONS = sizeof(functions) / sizeof(functions[0]) };

_Static_assert(FUNCTIONS * sizeof(void *) == sizeof(bal_pq),
               "a row for each function");

static bal_pq table;

static bal_library library = {
    .names = names,
    .name_count = sizeof(names) / sizeof(names[0]),
    .rows = functions,
    .row_count = FUNCTIONS,
    .table = &table,
    .lack = "there is no libpq, of version 14 or later, to ask PostgreSQL with",
    .packages = "libpq5, libpq",
};

int bal_pq_load(bal_error *err)
{
    return bal_library_need(&library, err);
}

const bal_pq *bal_pq_use(void)
{
    return &table;
}
