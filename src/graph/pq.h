/* libpq, loaded when it is first needed: who keeps the graph in a file does not
 * pay for it. */
#ifndef GRAPH_PQ_H
#define GRAPH_PQ_H

#include <libpq-fe.h>

#include "ballast.h"

/* Its functions, without "PQ". */
typedef struct bal_pq {
    __typeof__(PQclear) *clear;
    __typeof__(PQcmdStatus) *cmdStatus;
    __typeof__(PQcmdTuples) *cmdTuples;
    __typeof__(PQconnectdbParams) *connectdbParams;
    __typeof__(PQconninfoFree) *conninfoFree;
    __typeof__(PQconninfoParse) *conninfoParse;
    __typeof__(PQconsumeInput) *consumeInput;
    __typeof__(PQenterPipelineMode) *enterPipelineMode;
    __typeof__(PQerrorMessage) *errorMessage;
    __typeof__(PQfinish) *finish;
    __typeof__(PQfreemem) *freemem;
    __typeof__(PQfname) *fname;
    __typeof__(PQftype) *ftype;
    __typeof__(PQgetisnull) *getisnull;
    __typeof__(PQgetlength) *getlength;
    __typeof__(PQgetResult) *getResult;
    __typeof__(PQgetvalue) *getvalue;
    __typeof__(PQnfields) *nfields;
    __typeof__(PQntuples) *ntuples;
    __typeof__(PQpipelineSync) *pipelineSync;
    __typeof__(PQresultErrorField) *resultErrorField;
    __typeof__(PQresultStatus) *resultStatus;
    __typeof__(PQsendPrepare) *sendPrepare;
    __typeof__(PQsendQueryParams) *sendQueryParams;
    __typeof__(PQsendQueryPrepared) *sendQueryPrepared;
    __typeof__(PQsetNoticeProcessor) *setNoticeProcessor;
    __typeof__(PQsetSingleRowMode) *setSingleRowMode;
    __typeof__(PQsocket) *socket;
    __typeof__(PQstatus) *status;
} bal_pq;

/* Load it, once. EUNSUPPORTED: it is not installed. */
BAL_CHECK int bal_pq_load(bal_error *err);
/* After that has gone well. */
const bal_pq *bal_pq_use(void);

#endif
