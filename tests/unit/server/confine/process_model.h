/*
 * A model of the process and of the kernel's rules about it, for programs named faults_*.c: the
 * calls by which a process gives up what it may do are recorded and change the model only, so that
 * the test's process stays as it is and all of the code is measured. The model answers as the
 * kernel does: without the capability another user or group is EPERM, Landlock wants no_new_privs,
 * and a process that filters its system calls cannot restrict its files any more.
 *
 * One thread. Each call is a call of faults.h too, and fails when a test says so. Without
 * process_model_begin() all calls are real.
 */
#ifndef SUNPROXY_TESTS_SERVER_CONFINE_PROCESS_MODEL_H
#define SUNPROXY_TESTS_SERVER_CONFINE_PROCESS_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCESS_MODEL_GROUPS 8

struct process_model {
    /* the process */
    uid_t real, effective, saved;
    gid_t real_group, effective_group, saved_group;
    gid_t groups[PROCESS_MODEL_GROUPS];
    size_t group_count;
    uint64_t capabilities, bounding; /* bit CAP_... */
    bool ambient;
    bool dumpable, no_new_privs, files_restricted, calls_filtered;

    /* the kernel and the machine */
    int landlock;            /* version; 0: none */
    int filter_error;        /* of seccomp_load(); 0: it succeeds */
    bool no_capget;          /* the call is forbidden */
    bool returns_to_root;    /* a change of user is not for good */
    unsigned ids_kept;       /* by setresuid() and setresgid(): real 1, effective 2, saved 4, and
                                for groups 8, 16, 32 */
    int chown_error;         /* of fchown() and fchownat(); 0: they succeed */
    const char *resolv_conf; /* where /etc/resolv.conf leads; NULL: as on this machine */
    int user_groups;         /* of a user, for getgrouplist(); 0: as on this machine */
};

extern struct process_model process_model;

/* The model of a process of root with all capabilities, or of user 1000 without any, on a kernel
 * with Landlock 6; nothing is recorded yet. */
void process_model_begin(bool root);
void process_model_end(void);

/* The calls so far, a line each: "setresuid 65534 65534 65534", "allow /etc read_file read_dir".
 * Static memory. */
const char *process_model_calls(void);

/* Is there such a line, whole? */
bool process_model_called(const char *line);

/* Is the first line recorded before the second, and both are? */
bool process_model_in_order(const char *first, const char *second);

#endif
