/* SPDX-License-Identifier: BSD-3-Clause */
/* Our threads have fewer privileges than their program. */
#ifndef EAL_PRIVILEGE_H
#define EAL_PRIVILEGE_H

#include <pthread.h>
#include <stdbool.h>

/**
 * Drop the calling thread's capabilities, and those that exec(3) could give it. Capabilities belong
 * to a thread: if the program drops its own later, our threads would keep theirs. The program's
 * threads are not changed.
 *
 * The thread keeps CAP_SETUID and CAP_SETGID: when the program changes its user, the C library
 * makes all threads do so, and aborts if a thread is not allowed to. The kernel clears both with
 * that change. It also keeps CAP_IPC_LOCK: without it a thread gets no memory if the program has
 * called mlockall(2) and exceeds its limit.
 *
 * @param opens_files
 *   True if the thread connects to sockets by name: it then keeps CAP_DAC_OVERRIDE.
 */
void privilege_drop(bool opens_files);

/** Start a thread as pthread_create does. When this function returns, the thread has called
 * privilege_drop. 0 or -errno. */
int privilege_create(pthread_t *thread, void *(*run)(void *arg), void *arg, bool opens_files);

#endif
