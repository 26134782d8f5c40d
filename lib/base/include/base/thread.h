/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of the library in a program. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/** Start a detached thread that handles no signal: the program's own threads must handle them.
 * `stack` is in bytes, 0 for the default. MT-safe. 0 or a positive errno value. */
static inline int thread_start(void *(*run)(void *arg), void *arg, size_t stack)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (stack > 0)
		pthread_attr_setstacksize(&attr, stack);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&thread, &attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return rc;
}

#endif
