/* SPDX-License-Identifier: BSD-3-Clause */
/* What threads of ours may do: less than the program that they are in. */
#ifndef EAL_PRIVILEGE_H
#define EAL_PRIVILEGE_H

#include <pthread.h>
#include <stdbool.h>

/**
 * Give up the calling thread's capabilities, and those that an exec could bring. Each thread has
 * its own: when the program drops its capabilities later, those of our threads would stay. The
 * program's threads keep what they have.
 *
 * What stays: CAP_SETUID and CAP_SETGID, because the C library has all threads change their user
 * with the program, and aborts where one may not; these two go with the user. And CAP_IPC_LOCK,
 * without which a thread gets no memory in a program that has called mlockall(2) and exceeds its
 * limit.
 *
 * @param opens_files
 *   The thread connects to sockets by their names, and keeps the right to any file's
 *   (CAP_DAC_OVERRIDE).
 */
void privilege_drop(bool opens_files);

/** pthread_create, for a thread that has called privilege_drop when this returns. 0 or -errno. */
int privilege_create(pthread_t *thread, void *(*run)(void *arg), void *arg, bool opens_files);

#endif
