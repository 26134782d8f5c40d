/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keeping of SIGSEGV and SIGBUS that another process or the program itself has sent. A thread of
 * ours has them unblocked for its copies, and so it may receive them in place of the program's
 * threads. It keeps such a signal and returns it to the process. A program that blocks the signal
 * in all threads can then read it by signalfd(2).
 */
#ifndef BASE_HOLD_H
#define BASE_HOLD_H

#include <signal.h>
#include <stdbool.h>

/** Begin to keep sent signals in this thread, which is one of ours. */
void hold_begin(void);

/** Keep this signal if the thread has called hold_begin. Return true if it was kept.
 * Async-signal-safe. */
bool hold_keep(int sig, const siginfo_t *info);

/** Return true if this thread has kept a signal. */
bool hold_has(void);

/** Send the kept signals to the process once more. They are blocked in this thread. */
void hold_give_back(void);

#endif
