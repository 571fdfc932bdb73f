/*
 * The queue of a worker's requests for the request database: records of a ring (base/ring.h), which
 * says what the reading thread may do with them. The texts of a row are made by the reader.
 */
#ifndef SUNPROXY_SERVER_LOGS_REQUEST_QUEUE_H
#define SUNPROXY_SERVER_LOGS_REQUEST_QUEUE_H

#include "base/ring.h"
#include "server/logs/access_entry.h"
#include "server/logs/request_table.h"

/* Copies a request that ends now. False if the queue is full, which it counts. [worker] */
bool request_queue_add(struct ring *queue, const struct access_entry *entry);

/* The next request, valid until it is released. False: there is none. [reading thread] */
bool request_queue_read(struct ring *queue, struct request_row *row);

#endif
