/*
 * The files that a configuration names and that are a part of it: the authorities of --cacert,
 * the users of --users, the keys of --peer-key-file and --shared-key-file, and the files of rules. They are read where
 * files can be opened, and are then one text: behind the length of each, 8 bytes, its content, in
 * this order, and those of rules in the order in which the options name them.
 */
#ifndef SUNPROXY_SERVER_CONFIG_CONFIG_FILES_H
#define SUNPROXY_SERVER_CONFIG_CONFIG_FILES_H

#include "base/buf.h"
#include "server/config/options.h"

#define CONFIG_FILES_MAX ((size_t)64 << 20)

/* Appends the files, with a ceiling of CONFIG_FILES_MAX. False with a line in `why` for each that
 * cannot be read. */
bool config_files_read(const struct options *options, struct buf *files, struct buf *why);

/* Takes the first file off; false: there is none. */
bool config_files_next(struct span *files, struct span *content);

#endif
