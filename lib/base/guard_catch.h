/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of guarded copies (guard.c) for the handlers of SIGSEGV and SIGBUS (guard_install.c).
 * All are async-signal-safe and act on the calling thread. */
#ifndef BASE_GUARD_CATCH_H
#define BASE_GUARD_CATCH_H

#include <signal.h>
#include <stdbool.h>
#include <ucontext.h>

/** Return true if an instruction of this thread has caused the signal, so that it would fault again
 * if it ran again. */
bool guard_is_fault(int sig, const siginfo_t *info);

/** Return true for the fault of a guarded copy. When the handler returns, the thread continues
 * where the copy fails. */
bool guard_catch(int sig, const siginfo_t *info, ucontext_t *context);

/** Return true if the signal has interrupted a guarded copy. */
bool guard_is_in_copy(const ucontext_t *context);

/** Suspend the current copy while the program's handler runs, because the handler may never return;
 * and resume it. */
void **guard_suspend(void);
void guard_resume(void **frame);

#endif
