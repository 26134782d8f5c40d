/* SPDX-License-Identifier: BSD-3-Clause */
/* A table of the program's descriptors. */
#include "fds.h"

#include <pthread.h>
#include <stdint.h>

static int32_t rsockets[FDS_MAX]; /* by descriptor: its rsocket plus 1, or 0 */
static uint32_t counts[FDS_MAX];  /* by rsocket: how many descriptors mean it */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_number(int fd)
{
	return fd >= 0 && fd < FDS_MAX;
}

int fds_get(int fd)
{
	return is_number(fd) ? __atomic_load_n(&rsockets[fd], __ATOMIC_ACQUIRE) - 1 : -1;
}

bool fds_alias(int fd, int rsocket)
{
	if (!is_number(fd) || !is_number(rsocket))
		return false;
	pthread_mutex_lock(&lock);
	counts[rsocket]++;
	__atomic_store_n(&rsockets[fd], rsocket + 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	return true;
}

bool fds_add(int rsocket)
{
	return fds_alias(rsocket, rsocket);
}

bool fds_remove(int fd, int *rsocket)
{
	bool last = false;

	pthread_mutex_lock(&lock);
	*rsocket = fds_get(fd);
	if (*rsocket >= 0) {
		__atomic_store_n(&rsockets[fd], 0, __ATOMIC_RELEASE);
		last = --counts[*rsocket] == 0;
	}
	pthread_mutex_unlock(&lock);
	return last;
}

bool fds_has_aliases(int fd)
{
	bool has;

	if (!is_number(fd))
		return false;
	pthread_mutex_lock(&lock);
	has = counts[fd] > (fds_get(fd) == fd);
	pthread_mutex_unlock(&lock);
	return has;
}
