/* SPDX-License-Identifier: BSD-3-Clause */
/* The start of DPDK's runtime (EAL) inside a program that knows nothing of it. */
#ifndef EAL_RUNTIME_H
#define EAL_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>

#include "config/devargs.h"

struct runtime_config {
	/* Devices to be found while EAL starts (PCI and other hardware); nothing else is probed. */
	const struct devargs *devices;
	size_t device_count;
	size_t memory_bytes; /* what will be needed of it */
	bool telemetry; /* EAL's socket, which is a file until the process exits, and its threads */
	const char *file_prefix; /* of such files; NULL: EAL's own */
	bool secondary;		 /* of the primary process with that prefix, whose memory it is */
	bool shared; /* others may be secondaries of this one: memory and more are files */
};

/**
 * Start EAL, once a process. Not MT-safe. Says on the log, in one line, what is wrong and what to
 * do. What the program can see of itself stays as it was (footprint.h).
 *
 * @return
 *   0 or -errno.
 */
int runtime_start(const struct runtime_config *config);

/** The program has started EAL itself, with options of its own: runtime_start finds it running. Not
 * MT-safe. */
void runtime_adopt(void);

/**
 * Wait until EAL's interrupt thread has taken up everything that was registered with it: it opens a
 * descriptor of its own each time. Then it gives up its privileges. Not MT-safe.
 */
void runtime_settle(void);

/** Remove the files of a shared memory; the memory stays as long as it is mapped. Not MT-safe. */
void runtime_remove_files(const char *file_prefix);

/** Whether the memory is huge pages. Only after runtime_start. */
bool runtime_has_huge_pages(void);

#endif
