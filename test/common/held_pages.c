/* SPDX-License-Identifier: BSD-3-Clause */
/* A madvise(2) in place of the C library's, which waits for pages that a test holds back, or fails.
 */
#include "held_pages.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Defined by Linux 5.14; the C library's headers may be older. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uintptr_t addr; /* the pages that are held back */
	size_t length;
	unsigned int waiting; /* threads */
	unsigned int refused; /* calls that still have to fail */
	int error;	      /* with this one */
} held = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static bool is_held_locked(uintptr_t addr, size_t length)
{
	return held.length > 0 && addr < held.addr + held.length && held.addr < addr + length;
}

/* Return the error that the test wants for this call, or 0. */
static int take_error_locked(void)
{
	if (held.refused == 0)
		return 0;
	held.refused--;
	return held.error;
}

int madvise(void *addr, size_t length, int advice)
{
	int error;

	if (advice == MADV_POPULATE_READ || advice == MADV_POPULATE_WRITE) {
		pthread_mutex_lock(&held.lock);
		while (is_held_locked((uintptr_t)addr, length)) {
			held.waiting++;
			pthread_cond_broadcast(&held.changed);
			pthread_cond_wait(&held.changed, &held.lock);
			held.waiting--;
		}
		error = take_error_locked();
		pthread_mutex_unlock(&held.lock);
		if (error != 0) {
			errno = error;
			return -1;
		}
	}
	return (int)syscall(SYS_madvise, addr, length, advice);
}

void held_pages_begin(const void *addr, size_t length)
{
	pthread_mutex_lock(&held.lock);
	held.addr = (uintptr_t)addr;
	held.length = length;
	pthread_mutex_unlock(&held.lock);
}

void held_pages_await(void)
{
	pthread_mutex_lock(&held.lock);
	while (held.waiting == 0)
		pthread_cond_wait(&held.changed, &held.lock);
	pthread_mutex_unlock(&held.lock);
}

void held_pages_end(void)
{
	pthread_mutex_lock(&held.lock);
	held.length = 0;
	pthread_cond_broadcast(&held.changed);
	pthread_mutex_unlock(&held.lock);
}

void held_pages_refuse(int error, unsigned int times)
{
	pthread_mutex_lock(&held.lock);
	held.error = error;
	held.refused = times;
	pthread_mutex_unlock(&held.lock);
}
