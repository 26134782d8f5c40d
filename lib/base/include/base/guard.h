/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies from and to memory that the application may take away at any time: it may unmap or protect
 * the memory, or truncate the mapped file. A fault in such a copy becomes an error, and does not
 * end the process.
 *
 * For this, SIGSEGV and SIGBUS are handled. Every signal that is not the fault of a guarded copy
 * gets the same treatment as without us. If the program ignores one of the two signals, it stays
 * ignored; a faulty copy then ends the process, as any fault does there.
 */
#ifndef BASE_GUARD_H
#define BASE_GUARD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Period after which a thread's signal mask is checked again; the check is a system call of 0.2 us.
 * The kernel ends a process for a fault whose signal the thread blocks, whatever handler is set. */
#define GUARD_PERIOD_NS UINT64_C(100000)

/**
 * Install our handlers in front of the program's handlers of SIGSEGV and SIGBUS. MT-safe. Call it
 * before the first copy, and again from time to time: a program that sets its own handler later
 * stands in front of us until the next call.
 *
 * @return
 *   0; -ENOSPC if the program has set too many different handlers (warns once); or -errno of
 *   sigaction(2).
 */
int guard_install(void);

/**
 * Run a function that may access memory that does not exist. MT-safe; may nest. On a fault the
 * function ends at the faulting instruction: so it must hold no lock, and what it has written stays
 * written. The first call in a thread unblocks the two signals, because a blocked fault would kill
 * the process; later calls rely on guard_refresh.
 *
 * @return
 *   0, or -EFAULT.
 */
int guard_run(void (*copy)(void *arg), void *arg);

/**
 * Copy eight bytes between addresses that may not be mapped, by one load and one store. No
 * alignment needed. MT-safe. Same as guard_run with a copy, but faster.
 *
 * @return
 *   0, or -EFAULT if nothing was stored.
 */
int guard_copy_word(void *to, const void *from);

/**
 * Unblock the two signals in this thread, unless that was done less than GUARD_PERIOD_NS ago: the
 * program may have blocked them meanwhile. MT-safe; call it in every engine poll that may make
 * guarded copies.
 *
 * @param now_ns
 *   The time, of a clock that does not stand still.
 */
void guard_refresh(uint64_t now_ns);

/**
 * Mark this thread as one of ours. A SIGSEGV or SIGBUS that somebody sent to the process and that
 * arrives in this thread is kept, and guard_pause returns it to the process.
 */
void guard_serve(void);

/** Block the two signals in this thread before it sleeps or leaves the engine, and return the kept
 * signals to the process. The program's threads then receive them as if we did not exist. Only
 * after guard_serve. */
void guard_pause(void);

/**
 * Do the same for a sleep in ppoll(2) or a similar call, to which the caller must pass `mask`: that
 * saves two system calls. Only for threads that block all other signals.
 */
void guard_pause_in_call(sigset_t *mask);

/** Return true if guard_pause has signals to return. A thread that never sleeps should then call
 * it, and let the program's threads run for a moment. */
bool guard_owes(void);

#endif
