/* SPDX-License-Identifier: BSD-3-Clause */
/* Letting EAL's interrupt thread run only while an engine is stopped. */
#ifndef LINK_GATE_H
#define LINK_GATE_H

#include <stdint.h>

/*
 * Some drivers (memif) take a port's memory away in the interrupt thread when the peer is gone,
 * without regard for who is just reading it. So that thread is kept inside a callback of ours
 * nearly all the time; from time to time it stops the engine, goes round EAL's loop once, and comes
 * back.
 */
struct gate_ops {
	/* Stop the engine; take in what the port still holds. Interrupt thread. */
	void (*enter)(void *user);
	/* Look at what has changed, and start the engine again. Returns how long until the next
	 * round. */
	uint64_t (*leave)(void *user);
	/* Whether the process is ending: the thread must never come back. */
	int (*ended)(void *user);
};

/**
 * Put the gate up, and wait until the interrupt thread has come to it, where it stays. Before the
 * port is made. Not MT-safe; once a process. 0 or -errno.
 */
int gate_start(void);

/**
 * Let the interrupt thread make its rounds from here on. Not MT-safe.
 *
 * @param wake_fd
 *   When this is readable a round is due at once; -1 for none.
 */
void gate_open(const struct gate_ops *ops, void *user, int wake_fd);

/** The descriptor that the interrupt thread comes to the gate by. */
int gate_fd(void);

#endif
