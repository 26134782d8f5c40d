/* SPDX-License-Identifier: BSD-3-Clause */
/* A mode of testroce: the functions of the active side, which measures, and of the passive side,
 * which serves it. */
#ifndef TESTROCE_MODE_H
#define TESTROCE_MODE_H

#include <stddef.h>
#include <stdint.h>

struct endpoint_config;
struct passive;
struct plan;
struct result;
struct run;
struct stream_ops;

struct mode {
	const char *name;
	const struct stream_ops *stream; /* of modes that keep queues full; or NULL */

	/* Check that the plan makes sense for this mode. 0 or -EINVAL with `error`. */
	int (*check)(const struct plan *plan, char *error, size_t error_size);
	/* Set the memory and queues that a side needs; the config holds the common part. */
	void (*shape)(const struct plan *plan, struct endpoint_config *active,
		      struct endpoint_config *passive);

	/* Begin on the active side, once all queue pairs are connected. 0 or -errno. */
	int (*begin)(struct run *run);
	/* Post and poll once, without waiting. 0 or -errno. */
	int (*poll)(struct run *run);
	/* Add the results that only this mode has to those of the other threads' runs; or NULL. The
	 * run may go on in its thread meanwhile, as also for qp_messages. */
	void (*stats)(const struct run *run, struct result *result);
	/* Return the completed messages of one queue pair. */
	uint64_t (*qp_messages)(const struct run *run, uint32_t qp);
	void (*end)(struct run *run);

	/*
	 * Functions of the passive side; each may be NULL. serve_begin runs after its memory was
	 * made, serve_qp once a queue pair is connected, serve_poll repeatedly, and serve_end after
	 * the last message, to verify. They return 0 or -errno.
	 */
	int (*serve_begin)(struct passive *passive);
	int (*serve_qp)(struct passive *passive, unsigned int qp);
	int (*serve_poll)(struct passive *passive);
	void (*serve_end)(struct passive *passive);
	/* Check a verified message that passive_receive has taken. */
	void (*check_message)(struct passive *passive, uint32_t qp, void *bytes);
};

enum mode_index {
	MODE_WRITE,
	MODE_READ,
	MODE_SEND,
	MODE_ATOMIC,
	MODE_LATENCY,
	MODE_SOURCE,
	MODE_SINK,
	MODE_NULL,
	MODE_STORAGE,
	MODE_INCAST,
	MODE_COUNT,
};

extern const struct mode mode_write, mode_read, mode_send, mode_atomic, mode_latency;
extern const struct mode mode_source, mode_sink, mode_null, mode_storage, mode_incast;
extern const struct mode *const modes[MODE_COUNT]; /* plan.c */

#endif
