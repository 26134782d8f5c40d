/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the provider of devices needs in a process that owns its port, or has EAL for another
 * reason. A library for attached programs alone has no such table (owning.c), and links none of
 * DPDK's libraries.
 */
#ifndef ENGINE_OWNING_H
#define ENGINE_OWNING_H

struct link;
struct report;
struct settings;

struct owning {
	/* Return the settings of the port that the program attaches (uroce_attach_port), or has
	 * attached last; NULL if it has attached none. */
	const struct settings *(*attached_port)(void);
	/* Open the link on that port, or else on the one that the settings name. 0 or -errno
	 * (logged). */
	int (*open_link)(const struct settings *settings, struct link *link);
	/* Start EAL with what a prepared port needs. 0 or -errno (logged). */
	int (*start_runtime)(const struct settings *settings, const struct link *link);
	/* Show a report by DPDK's telemetry. 0 or -errno (logged). */
	int (*start_telemetry)(struct report *report);
	/* Drop privileges of EAL's threads after the ports are open (runtime_settle). */
	void (*settle)(void);
};

/** Give the provider the table. Before the first device. Not MT-safe. */
void provider_set_owning(const struct owning *owning);

/** Let a prepared port have buffers, and queues if it can, for each engine, which keeps some
 * buffers in its cache of the pool. */
void provider_size_pool(const struct settings *settings, struct link *link);

#endif
