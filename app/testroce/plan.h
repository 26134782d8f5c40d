/* SPDX-License-Identifier: BSD-3-Clause */
/* The plan of one test. Both sides have the same, so it goes over the control connection. */
#ifndef TESTROCE_PLAN_H
#define TESTROCE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_QPS_MAX 16384
#define PLAN_REGION_MAX \
	(UINT64_C(4) << 30) /* of one side; a server gives no more to whoever connects */
#define PLAN_SPREAD_DEFAULT (UINT64_C(64) << 20) /* messages under way share places beyond that */
#define PLAN_NAMES_MAX	    256
#define PLAN_BATCH_MAX	    64

enum plan_op { PLAN_OP_WRITE, PLAN_OP_READ, PLAN_OP_SEND, PLAN_OP_ATOMIC };

/* All of one width: it is sent as it is. */
struct plan {
	uint64_t mode; /* index of modes[] */
	uint64_t op;   /* enum plan_op: what the latency mode measures */
	uint64_t size_bytes;
	uint64_t qps;
	uint64_t depth; /* messages under way, of each queue pair */
	uint64_t path_mtu_bytes;
	uint64_t batch;	       /* work requests in one post */
	uint64_t signal;       /* one completion for so many messages; 0: chosen from depth */
	uint64_t inline_bytes; /* messages up to that are posted inline */
	uint64_t read_percent; /* of the storage mode */
	uint64_t region_bytes; /* messages cycle through so much memory; 0: a place for each */
	uint64_t messages;     /* the test ends after so many; 0: after duration_ns */
	uint64_t duration_ns;
	uint64_t verify; /* bytes are checked where they arrive */
	uint64_t seed;
	uint64_t loss_ppm; /* of a million received packets, so many are dropped on each side */
	uint64_t without;  /* optimisations: a bit each, in the order of base/tuning.h */
};

/* Where messages stand in a region: slot_of() of queue pair and count. */
struct slots {
	uint64_t stride_bytes;
	uint64_t per_qp;
	uint64_t total;
};

void plan_init(struct plan *plan);

/** The size that the mode is mostly asked about. MT-safe. */
void plan_default_size(struct plan *plan);

/**
 * Set one thing by its name, as command line and prompt do: "mode", "size", "qps", "depth", "mtu",
 * "batch", "signal", "inline", "op", "read-percent", "region", "seconds", "messages", "verify",
 * "seed", "loss", "without". MT-safe.
 *
 * @param value
 *   Numbers may end in K, M or G; verify takes "on" and "off", without a list or "none".
 * @return
 *   0; -ENOENT: there is no such name; -EINVAL. Then `error` says why.
 */
int plan_set(struct plan *plan, const char *name, const char *value, char *error,
	     size_t error_size);

/** The names that plan_set takes, with a NULL at the end. */
extern const char *const plan_names[];

/** Write the value of a name as plan_set takes it. MT-safe. */
void plan_get(const struct plan *plan, const char *name, char *value, size_t size);

/** Check that the parts fit each other, and the mode. MT-safe. 0 or -EINVAL with `error`. */
int plan_check(const struct plan *plan, char *error, size_t error_size);

/** The names of optimisations, with commas between them; "" for none. MT-safe. */
void plan_without_names(uint64_t without, char *names, size_t size);

/** One completion for so many messages. MT-safe. */
uint64_t plan_signal(const struct plan *plan);

/** The queue pairs' acknowledgement timer, as ibv_modify_qp(3) takes it. */
uint8_t plan_timeout(const struct plan *plan);

/** Places for the messages under way, `depth` of a queue pair; plan_check bounds what they are
 * together. MT-safe. */
struct slots plan_slots(const struct plan *plan, uint64_t depth);

static inline uint64_t slots_bytes(const struct slots *slots)
{
	return slots->total * slots->stride_bytes;
}

/* Byte offset of a queue pair's n-th message. */
static inline uint64_t slot_of(const struct slots *slots, uint64_t qp, uint64_t n)
{
	const uint64_t index = qp * slots->per_qp + n % slots->per_qp;

	return (index < slots->total ? index : index % slots->total) * slots->stride_bytes;
}

/** A number, whole to its end, that may end in K, M or G (of 1024). MT-safe. */
bool plan_parse_number(const char *text, uint64_t *value);

#endif
