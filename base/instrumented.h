/*
 * Is this a build with a sanitizer? Their run-time libraries need more system calls and files than
 * the program.
 */
#ifndef SUNPROXY_BASE_INSTRUMENTED_H
#define SUNPROXY_BASE_INSTRUMENTED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define INSTRUMENTED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define INSTRUMENTED 1
#endif
#endif

#ifndef INSTRUMENTED
#define INSTRUMENTED 0
#endif

#endif
