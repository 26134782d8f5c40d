/* SPDX-License-Identifier: BSD-3-Clause */
/* The plan of one test. Both sides have the same, so it goes over the control connection. */
#ifndef TESTROCE_PLAN_H
#define TESTROCE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_QPS_MAX	 16384
#define PLAN_THREADS_MAX 32 /* each has a connection: at most SERVING_CLIENTS_MAX */
#define PLAN_REGION_MAX \
	(UINT64_C(4) << 30) /* memory limit of one side; a server gives a client no more */
#define PLAN_SPREAD_DEFAULT (UINT64_C(64) << 20)  /* spread_bytes of a whole plan */
#define PLAN_DISK_DEFAULT   (UINT64_C(256) << 20) /* the region of mode storage */
#define PLAN_CAPSULE_MAX    (UINT64_C(1) << 20)
#define PLAN_NAMES_MAX	    256
#define PLAN_BATCH_MAX	    64

enum plan_op { PLAN_OP_WRITE, PLAN_OP_READ, PLAN_OP_SEND, PLAN_OP_ATOMIC };

/* All members have one width, because the struct itself is sent over the control connection. */
struct plan {
	uint64_t mode; /* index of modes[] */
	uint64_t op;   /* enum plan_op: what the latency mode measures */
	uint64_t size_bytes;
	uint64_t qps;
	uint64_t threads; /* of the active side; the passive side gets plans of one thread */
	uint64_t depth;	  /* messages in flight per queue pair */
	uint64_t path_mtu_bytes;
	uint64_t batch;		   /* work requests in one post */
	uint64_t signal;	   /* messages per signalled completion; 0: derived from depth */
	uint64_t inline_bytes;	   /* larger messages are not posted inline */
	uint64_t read_percent;	   /* share of reads in mode storage */
	uint64_t in_capsule_bytes; /* mode storage: larger blocks are not sent with their command */
	uint64_t region_bytes;	   /* memory that messages cycle through; 0: a slot for each */
	uint64_t spread_bytes;	   /* then messages in flight share slots beyond this */
	uint64_t messages;	   /* the test ends after this number; 0: after duration_ns */
	uint64_t duration_ns;
	uint64_t verify; /* the receiver checks the bytes */
	uint64_t seed;
	uint64_t loss_ppm; /* packets that each side drops of a million received */
	uint64_t without;  /* disabled optimisations: one bit each, in the order of base/tuning.h */
};

/* The layout of messages in a region; slot_of() gives the offset of a message. */
struct slots {
	uint64_t stride_bytes;
	uint64_t per_qp;
	uint64_t total;
};

void plan_init(struct plan *plan);

/** Set the usual message size of the mode. MT-safe. */
void plan_default_size(struct plan *plan);

/**
 * Set one value by its name, as the command line and the prompt do: "mode", "size", "qps",
 * "threads", "depth", "mtu", "batch", "signal", "inline", "op", "read-percent", "in-capsule",
 * "region", "seconds", "messages", "verify", "seed", "loss", "without". MT-safe.
 *
 * @param value
 *   Numbers may end in K, M or G; "verify" takes "on" or "off"; "without" takes a list of names or
 * "none".
 * @return
 *   0; -ENOENT: unknown name; -EINVAL: bad value. `error` explains a failure.
 */
int plan_set(struct plan *plan, const char *name, const char *value, char *error,
	     size_t error_size);

/** The names that plan_set takes, terminated by NULL. */
extern const char *const plan_names[];

/** Write the value of a name in the syntax of plan_set. MT-safe. */
void plan_get(const struct plan *plan, const char *name, char *value, size_t size);

/** Check that the values are consistent and fit the mode. MT-safe. Returns 0, or -EINVAL with
 * `error`. */
int plan_check(const struct plan *plan, char *error, size_t error_size);

/**
 * Make the plan of one thread: its part of the queue pairs, messages and memory. All threads
 * together have those of the whole plan; each has a seed of its own. MT-safe.
 *
 * @param thread
 *   Below plan->threads.
 */
void plan_share(const struct plan *plan, uint64_t thread, struct plan *share);

/** Write the names of optimisations, separated by commas; "" for none. MT-safe. */
void plan_without_names(uint64_t without, char *names, size_t size);

/** Return the number of messages per signalled completion. MT-safe. */
uint64_t plan_signal(const struct plan *plan);

/** Return the queue pairs' acknowledgement timeout, encoded as for ibv_modify_qp(3). */
uint8_t plan_timeout(const struct plan *plan);

/** Return slots for the messages in flight, `depth` per queue pair. plan_check limits their total
 * size. MT-safe. */
struct slots plan_slots(const struct plan *plan, uint64_t depth);

static inline uint64_t slots_bytes(const struct slots *slots)
{
	return slots->total * slots->stride_bytes;
}

/* Return the byte offset of a queue pair's n-th message. */
static inline uint64_t slot_of(const struct slots *slots, uint64_t qp, uint64_t n)
{
	const uint64_t index = qp * slots->per_qp + n % slots->per_qp;

	return (index < slots->total ? index : index % slots->total) * slots->stride_bytes;
}

/** Parse a number that may end in K, M or G (powers of 1024); no other text may follow. MT-safe. */
bool plan_parse_number(const char *text, uint64_t *value);

#endif
