/*
 * libcurl's handles that transfers have given back, for later ones: a new handle costs its
 * allocation and some 30 options that are the same for all. A handle is given back after a plain
 * GET that has ended well, so that nothing of another kind of request is set in it.
 *
 * One thread.
 */
#ifndef SUNPROXY_FETCH_HANDLES_H
#define SUNPROXY_FETCH_HANDLES_H

#include <curl/curl.h>
#include <stdbool.h>

#define HANDLES_MAX 256u /* kept; each is some 8 KiB */
#define HANDLES_LINES                                                             \
    2048u /* bytes of a response's lines, which the handle keeps: with more it is \
             not given back */

struct handles {
    CURL *kept[HANDLES_MAX];
    unsigned count;
};

/* A handle that was given back, which is the caller's now. NULL: there is none. */
CURL *handles_take(struct handles *handles);

/* Takes a handle that is in no multi handle. What it refers to for its transfer is used no more. */
void handles_give_back(struct handles *handles, CURL *easy);

/* Frees those that are kept. Before the shares that they have used. */
void handles_free(struct handles *handles);

#endif
