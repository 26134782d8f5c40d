/* SPDX-License-Identifier: BSD-3-Clause */
/* Preserves a program's affinity, signal handlers and descriptors while EAL and drivers start. */
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
 * Save the state, and block all signals: threads that start from now on never run a handler of the
 * program. Call footprint_restore from the same thread.
 *
 * @return
 *   0 or -errno, with nothing changed.
 */
int footprint_save(struct footprint *footprint);

/** Make descriptors close-on-exec that were opened since and for which `is_ours` returns true. */
void footprint_seal(const struct footprint *footprint, bool (*is_ours)(const void *arg, int fd),
		    const void *arg);

/**
 * Undo DPDK's changes, but not those that the program's other threads have made meanwhile. DPDK's
 * signal handlers are removed, except on real-time signals, which a driver needs. Descriptors of
 * the kinds that DPDK opens become close-on-exec. Frees the saved state.
 */
void footprint_restore(struct footprint *footprint);

#endif
