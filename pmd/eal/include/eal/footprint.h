/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program can see of itself, kept as it is while EAL and drivers start: affinity, signals,
 * descriptors. */
#ifndef EAL_FOOTPRINT_H
#define EAL_FOOTPRINT_H

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct fd_list {
	int *fds; /* ascending */
	size_t count;
};

/** List the open descriptors of this process. MT-safe. 0 or -errno; free with fd_list_free. */
int fd_list_read(struct fd_list *list);
void fd_list_free(struct fd_list *list);

/** Call `each` for every descriptor that is open now and was not in `before`. MT-safe. */
void fd_list_new(const struct fd_list *before, void (*each)(int fd, void *arg), void *arg);

struct footprint {
	cpu_set_t affinity; /* of the calling thread */
	sigset_t mask;
	struct sigaction actions[NSIG];
	struct fd_list fds;
};

/**
 * Remember how things are, and block all signals, so that threads started from here on never run a
 * handler of the program. Call both from the same thread.
 *
 * @return
 *   0 or -errno, with nothing changed.
 */
int footprint_save(struct footprint *footprint);

/** Make close-on-exec what was opened since and is `is_ours`. */
void footprint_seal(const struct footprint *footprint, bool (*is_ours)(const void *arg, int fd),
		    const void *arg);

/**
 * Put back what DPDK has changed; what the program's other threads have set and opened meanwhile
 * stays as it is. A handler of DPDK's goes, unless it has appeared on a real-time signal, which a
 * driver then needs. Descriptors of the kinds that DPDK opens become close-on-exec. Frees what was
 * saved.
 */
void footprint_restore(struct footprint *footprint);

#endif
