/* A strict reader for the small XML that S3 answers with: elements and text.
 * Attributes are passed over; what could make a document mean another thing
 * somewhere else (doctypes, sections, entities of one's own) is refused.
 * Nothing but the text of one element is allocated; depth is bounded. */
#ifndef CORE_XML_H
#define CORE_XML_H

#include "core/buf.h"

#define BAL_XML_DEPTH 8
#define BAL_XML_PATH  256 /* bytes of a path */
#define BAL_XML_TEXT  ((size_t)16 << 10)

typedef enum bal_xml_end { BAL_XML_OPENS, BAL_XML_CLOSES } bal_xml_end;

/* Where an element opens and where it closes: path is "Root/Child", text all
 * that was directly in it ("" where it opens). A failure ends the walk. */
typedef int bal_xml_fn(void *ctx, bal_xml_end end, const char *path,
                       const char *text, bal_error *err);
/* One element whole, nothing but space, comments and instructions around it;
 * what: how to call it. ECORRUPT, with the place. */
BAL_CHECK int bal_xml_walk(const char *data, size_t len, const char *what,
                           bal_xml_fn *fn, void *ctx, bal_error *err);

#endif
