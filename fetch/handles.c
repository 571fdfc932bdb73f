#include "fetch/handles.h"

CURL *
handles_take(struct handles *handles)
{
    return handles->count ? handles->kept[--handles->count] : NULL;
}

/* Ends the use of a share, and of the buffer for errors. */
static bool
let_go(CURL *easy)
{
    return curl_easy_setopt(easy, CURLOPT_SHARE, NULL) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, NULL) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_VERBOSE, 0L) == CURLE_OK;
}

void
handles_give_back(struct handles *handles, CURL *easy)
{
    if (handles->count < HANDLES_MAX && let_go(easy))
        handles->kept[handles->count++] = easy;
    else
        curl_easy_cleanup(easy);
}

void
handles_free(struct handles *handles)
{
    while (handles->count)
        curl_easy_cleanup(handles->kept[--handles->count]);
}
