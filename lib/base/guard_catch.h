/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of guarded copies (guard.c) that the handlers of SIGSEGV and SIGBUS (guard_install.c)
 * call. All are async-signal-safe, and about the calling thread. */
#ifndef BASE_GUARD_CATCH_H
#define BASE_GUARD_CATCH_H

#include <signal.h>
#include <stdbool.h>
#include <ucontext.h>

/** Return true if an instruction of this thread has caused the signal: it would fault again if it
 * ran again. */
bool guard_is_fault(int sig, const siginfo_t *info);

/** Return true for the fault of a guarded copy. When the handler returns, the thread goes on where
 * the copy fails. */
bool guard_catch(int sig, const siginfo_t *info, ucontext_t *context);

/** Return true if a guarded copy was interrupted. */
bool guard_is_in_copy(const ucontext_t *context);

/** Have no copy while the program's handler runs, which may never return; and have it again. */
void **guard_suspend(void);
void guard_resume(void **frame);

#endif
