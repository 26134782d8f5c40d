/* SPDX-License-Identifier: BSD-3-Clause */
/* Our threads have fewer privileges than their program. */
#ifndef EAL_PRIVILEGE_H
#define EAL_PRIVILEGE_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

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

/** Start a thread as pthread_create does, which handles no signal (privilege_fill_mask): the
 * program's own threads must handle them. It keeps the privileges of the calling thread. MT-safe. 0
 * or -errno. */
int privilege_create_same(pthread_t *thread, void *(*run)(void *arg), void *arg);

/** The same. When this function returns, the thread has called privilege_drop. */
int privilege_create(pthread_t *thread, void *(*run)(void *arg), void *arg, bool opens_files);

/**
 * Let privilege_limit reach the threads that DPDK and uroce start from now on: they do not block
 * its signal, SIGRTMAX. It is for uroced: in an application that signal is the application's.
 *
 * Not MT-safe: call it before EAL starts.
 */
void privilege_reach(void);

/** Set a signal mask for a thread of ours: all signals, except the one of privilege_limit in a
 * process that has called privilege_reach. MT-safe. */
void privilege_fill_mask(sigset_t *mask);

/** Return true if the calling thread has a capability of <linux/capability.h>. MT-safe. */
bool privilege_has(unsigned int capability);

/**
 * Limit the capabilities of all threads of the process to some: permitted, effective, inheritable,
 * ambient and, if the process has CAP_SETPCAP, bounding. Set no_new_privs in the threads that had
 * more. Each thread must do this by itself, so a signal interrupts those that have more.
 *
 * One thread at a time, after privilege_reach.
 *
 * @param kept
 *   Bits by the numbers of <linux/capability.h>. Nothing is added that a thread has not.
 * @return
 *   0; -ETIMEDOUT: a thread that blocks the signal keeps its capabilities; another -errno.
 */
int privilege_limit(uint64_t kept);

#endif
