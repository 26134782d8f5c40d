/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signals that other processes, or the program itself, have sent, and that a thread of ours
 * received only because it has SIGSEGV and SIGBUS unblocked for its copies. The thread keeps such a
 * signal and gives it back to the process: a program that blocks it everywhere reads it by
 * signalfd(2).
 */
#ifndef BASE_HOLD_H
#define BASE_HOLD_H

#include <signal.h>
#include <stdbool.h>

/** From now on signals that are sent are kept in this thread, which is not the program's. */
void hold_begin(void);

/** Keep this signal, if the thread keeps any. Async-signal-safe. */
bool hold_keep(int sig, const siginfo_t *info);

/** Return true if a signal is kept. */
bool hold_has(void);

/** Send what is kept to the process once more. The signals are blocked in this thread. */
void hold_give_back(void);

#endif
