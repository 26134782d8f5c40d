/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults that a user asks for (uroce-run --inject): calls that fail, work requests that complete
 * with an error, asynchronous events. A fault is a rule; this room reads the rules, and decides
 * which of the things that match a rule it hits. lib/verbs makes them happen.
 *
 * Without --inject nobody calls this room.
 */
#ifndef INJECT_INJECT_H
#define INJECT_INJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#define INJECT_RULES_MAX 256
#define INJECT_TEXT_MAX	 160 /* of a rule, with the final zero byte */
#define INJECT_ERROR_MAX 512 /* room for the reason of a failure */

enum inject_call {
#define CALL(type, function, parameters, arguments) INJECT_##function,
#include "inject/calls.def"
#undef CALL
#define OPERATION(type, table, member, parameters, arguments) INJECT_##member,
#include "inject/operations.def"
#undef OPERATION
#define RDMA_CALL(function) INJECT_##function,
#include "inject/rdma_calls.def"
#undef RDMA_CALL
	/* They are work requests, too, so lib/verbs has functions of its own for them. */
	INJECT_post_send,
	INJECT_post_recv,
	INJECT_post_srq_recv,
	INJECT_CALLS,
	INJECT_ANY_CALL = INJECT_CALLS,
};

/* Bits. */
enum inject_op {
	INJECT_SEND = 1 << 0,
	INJECT_WRITE = 1 << 1,
	INJECT_READ = 1 << 2,
	INJECT_ATOMIC = 1 << 3,
	INJECT_RECV = 1 << 4,
};
#define INJECT_REQUESTS (INJECT_SEND | INJECT_WRITE | INJECT_READ | INJECT_ATOMIC)

enum inject_what {
	INJECT_FAILS_CALL,
	INJECT_FAILS_WORK,
	INJECT_RAISES,
};

struct inject_rule {
	char text[INJECT_TEXT_MAX];
	enum inject_what what;
	enum inject_call call;	    /* INJECT_FAILS_CALL */
	int error;		    /* INJECT_FAILS_CALL: a positive errno value */
	uint32_t ops;		    /* INJECT_FAILS_WORK: bits of enum inject_op */
	enum ibv_wc_status status;  /* INJECT_FAILS_WORK */
	enum ibv_event_type event;  /* INJECT_RAISES */
	uint32_t qpn;		    /* 0: any queue pair */
	uint64_t nth, every, times; /* 0: not given */
	bool each_call;		    /* every=call: for uroce-run alone */
	uint64_t share;		    /* of 2^32: the probability; 2^32 if it is not given */
	uint64_t after_ns;
	uint64_t seed;
	/* Written by any thread. */
	uint64_t matched; /* atomic: what the rule applies to, since `begin_ns` + `after_ns` */
	uint64_t hit;	  /* atomic: what of it has failed */
	uint64_t begin_ns;
};

/* A rule has been added, or may be added later. Set before the first device is opened, and then
 * constant. */
extern bool inject_wanted;

/**
 * Read a rule: KEY=VALUE,... (uroce-run(1), --inject). MT-safe.
 *
 * @param error
 *   Gets the reason of a failure.
 * @return
 *   0 or -EINVAL.
 */
int inject_read(const char *text, struct inject_rule *rule, char *error, size_t error_size);

/** Read a list of rules with `;` between them, and do nothing with them. As inject_read. */
int inject_check(const char *text, char *error, size_t error_size);

/**
 * Add a list of rules, or none of them. MT-safe.
 *
 * @return
 *   The number of the last one, from 1; 0 for an empty list; -EINVAL, or -ENOSPC if there are more
 *   than INJECT_RULES_MAX then.
 */
int inject_add(const char *text, char *error, size_t error_size);

/** End a rule. MT-safe. -ENOENT if there is no such rule. */
int inject_end(int number);

/** Return how many faults a rule has made, or -ENOENT. MT-safe. */
int64_t inject_count(int number);

/** Return the errno value with which this call is to fail, or 0. MT-safe. */
int inject_into_call(enum inject_call call);

/** Do the same for a call of rdma_cm by its name; 0 if it cannot be made to fail. MT-safe. */
int inject_into_rdma_call(const char *name);

/** Return the status with which this work request is to complete, or IBV_WC_SUCCESS. MT-safe. */
enum ibv_wc_status inject_into_work(enum inject_op op, uint32_t qpn, uint64_t wr_id);

/** Return true if there is a rule for work requests. MT-safe. */
bool inject_has_work_rules(void);

/** Let an event stay due that was taken: nothing could have it yet. MT-safe. */
void inject_return_event(const struct inject_rule *rule);

/** Begin to count anew, in a child of fork(). While the child has one thread. */
void inject_after_fork(void);

/**
 * Take the next event that is due. MT-safe.
 *
 * @param wait_ns
 *   Gets the time until the next one is due; UINT64_MAX if there is none.
 * @return
 *   The rule, or NULL if none is due.
 */
const struct inject_rule *inject_take_event(uint64_t *wait_ns);

/* How a call says that it has failed. */
enum inject_way {
	INJECT_NEVER,	 /* its value is no error, or it has none */
	INJECT_NULL,	 /* NULL, and errno */
	INJECT_ERRNO,	 /* the errno value, and errno */
	INJECT_MINUS_1,	 /* -1, and errno */
	INJECT_NEGATIVE, /* the negative errno value */
	INJECT_REREG,	 /* of ibv_rereg_mr(3): nothing was changed */
};

/** Return how a call says that it has failed. MT-safe. */
enum inject_way inject_way(enum inject_call call);

/** Return true for an event of a queue pair. MT-safe. */
bool inject_is_of_qp(enum ibv_event_type event);

/** Return a call's name as programs know it. MT-safe. */
const char *inject_call_name(enum inject_call call);

#endif
