/*
 * What may be shown on a terminal of text that comes from elsewhere: a URL, a header, a sentence of
 * a server or an origin, a line of a trace, the name of a file. A terminal obeys control
 * characters, C0 and C1 (ECMA-48, ISO 6429), the latter as UTF-8 and some of them as single bytes,
 * too; and characters that change the direction of text (Unicode Standard Annex #9) make it look
 * like another one. All these, line separators, and bytes that are not UTF-8 (RFC 3629) are not
 * printable here.
 *
 * JSON escapes what is not printable instead, so that nothing is lost (json.h).
 */
#ifndef SUNPROXY_BASE_PRINTABLE_H
#define SUNPROXY_BASE_PRINTABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/span.h"

/*
 * The length in bytes of the UTF-8 character that the text (of at least one byte) begins with, and
 * the character; or 0 if it begins with no such character.
 */
size_t printable_decode(struct span text, uint32_t *character);

/* May this character be shown? */
bool printable_character(uint32_t character);

/* The length of the printable character that the text begins with; 0 if that is not printable. */
size_t printable_length(struct span text);

/* Has the text nothing but printable characters, tabs, carriage returns and line feeds? */
bool printable_lines(struct span text);

/* Replaces each byte of what is not printable by '?', in place. */
void printable_make(char *text, size_t len);

/* Writes the text likewise; errors show in ferror(). */
void printable_write(FILE *to, struct span text);

#endif
