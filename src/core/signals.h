/* SIGINT and SIGTERM: noted, and asked for between pieces of work. */
#ifndef CORE_SIGNALS_H
#define CORE_SIGNALS_H

/* Handlers for SIGINT, SIGTERM, SIGHUP; SIGPIPE and SIGXFSZ ignored. Programs
 * only. */
void bal_signals_watch(void);
/* The signal that came, 0: none. */
int bal_signals_pending(void);

#endif
