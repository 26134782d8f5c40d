/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copying from and to memory that the application may take away at any time: unmapped, protected,
 * or a file cut short behind it. A fault in such a copy is an error, and not the end of the
 * process.
 *
 * SIGSEGV and SIGBUS are handled for this. Every signal that is not the fault of a guarded copy
 * goes on to whatever would have had it without us, in the way it would have had it. Of these two,
 * one that the program ignores stays so: then a faulty copy ends the process, as any fault does
 * there.
 */
#ifndef BASE_GUARD_H
#define BASE_GUARD_H

#include <stdbool.h>
#include <stdint.h>

/* The kernel ends a process for a fault whose signal the thread blocks, whatever handler there is.
 * So often the mask is looked at: a system call of 0.2 us each time. */
#define GUARD_PERIOD_NS UINT64_C(100000)

/**
 * Stand in front of the handlers of SIGSEGV and SIGBUS. MT-safe. To be called before the first
 * copy, and again now and then: a program that sets its own handler later stands in front of us
 * until the next call.
 *
 * @return
 *   0, -ENOSPC when the program has set too many different handlers (said once), or -errno of
 *   sigaction(2).
 */
int guard_install(void);

/**
 * Run a function that may meet memory that is not there. MT-safe; may nest. It is left where the
 * fault happens: it holds no lock, and what it had written before stays written. The first call in
 * a thread unblocks the two signals there, as a fault would kill the process otherwise; those that
 * follow rely on guard_refresh.
 *
 * @return
 *   0, or -EFAULT.
 */
int guard_run(void (*copy)(void *arg), void *arg);

/**
 * Copy eight bytes, at any addresses, of which either may not be there; they are read and stored at
 * once. MT-safe. As by guard_run, only sooner.
 *
 * @return
 *   0, or -EFAULT: nothing was stored.
 */
int guard_copy_word(void *to, const void *from);

/**
 * Unblock the two signals in this thread, unless that was done less than GUARD_PERIOD_NS ago: the
 * program may have blocked them since. MT-safe; for every turn in which there may be guarded
 * copies.
 *
 * @param now_ns
 *   The time, of a clock that does not stand still.
 */
void guard_refresh(uint64_t now_ns);

/**
 * Say that this thread is not the program's. A SIGSEGV or SIGBUS that somebody has sent to the
 * process and that arrives here is kept, and given back to the process by guard_rest.
 */
void guard_serve(void);

/** Block the two signals in this thread, before it sleeps or leaves the engine, and give back what
 * it has kept: the program's threads take it as if we were not there. Only after guard_serve. */
void guard_rest(void);

/** Return true if guard_rest has something to give back, and a thread that never sleeps should call
 * it now, and then let the program's threads run for a moment. */
bool guard_owes(void);

#endif
