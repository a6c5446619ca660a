/* The S3 server that tests/support/s3-server has started for this build. */
#ifndef SUPPORT_S3_H
#define SUPPORT_S3_H

#include <stdbool.h>
#include <stddef.h>

/* Its place and keys go into the environment; a URL in its bucket that is this
 * call's own. False: there is none, which is told once. */
bool s3_url(char *out, size_t room);

#endif
