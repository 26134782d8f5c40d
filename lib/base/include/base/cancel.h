/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts in which the calling thread cannot be cancelled (pthreads(7)): a thread cancelled there
 * would leave something locked, or half done. */
#ifndef BASE_CANCEL_H
#define BASE_CANCEL_H

#include <pthread.h>

/** Disable cancellation of this thread. Returns what cancel_restore needs. The C library does each
 * of the two by an atomic operation. */
static inline int cancel_disable(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

/** Undo cancel_disable. A request to cancel the thread that arrived meanwhile takes effect at its
 * next cancellation point. */
static inline void cancel_restore(int state)
{
	pthread_setcancelstate(state, NULL);
}

#endif
