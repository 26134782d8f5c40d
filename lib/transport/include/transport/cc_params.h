/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parameters of DCQCN. All queue pairs of a device share them, and a change applies to the next
 * notification or timer. Names and units are those of ConnectX adapters in
 * /sys/class/net/INTERFACE/ecn; the defaults are those of the paper (transport/dcqcn.h).
 */
#ifndef TRANSPORT_CC_PARAMS_H
#define TRANSPORT_CC_PARAMS_H

#include <stdint.h>

#define CC_DSCP_SAME 64 /* cnp_dscp: the class of the queue pair's packets */

/*
 * Name, least, most and default value. Rates are in Mb/s, times in us.
 *
 * Of the receiver: the DSCP of notifications, and the least time between two of a queue pair.
 *
 * Of the sender, for alpha: the weight of the old alpha in 1/1024 (the paper's 1 - g); after which
 * time without a notification alpha falls; alpha at the first notification, in 1/1024.
 *
 * To cut the rate: if the target becomes the present rate at each notification (1), or only if the
 * byte counter, or with `after_time_inc` the timer, has raised the rate since the last one (0); the
 * least time between two cuts; the rate at the first notification (0: the usual cut); the exponent
 * of the factor of alpha: the rate falls by alpha * 1024 / 2^rpg_gd; the percentage of the rate
 * that a cut leaves at least; the slowest rate.
 *
 * To raise the rate: so often and each time that so many bytes were sent (0: not by bytes); steps
 * of fast recovery; additive and hyper increase; the rate from which on the queue pair is free
 * again (0: the link's).
 */
#define CC_PARAMS(X)                                \
	X(cnp_dscp, 0, CC_DSCP_SAME, CC_DSCP_SAME)  \
	X(min_time_between_cnps, 0, 131071, 50)     \
	X(dce_tcp_g, 0, 1023, 1020)                 \
	X(dce_tcp_rtt, 1, 131071, 55)               \
	X(initial_alpha_value, 1, 1024, 1024)       \
	X(clamp_tgt_rate, 0, 1, 1)                  \
	X(clamp_tgt_rate_after_time_inc, 0, 1, 1)   \
	X(rate_reduce_monitor_period, 0, 131071, 4) \
	X(rate_to_set_on_first_cnp, 0, 1000000, 0)  \
	X(rpg_gd, 10, 15, 11)                       \
	X(rpg_min_dec_fac, 0, 100, 50)              \
	X(rpg_min_rate, 1, 1000000, 10)             \
	X(rpg_time_reset, 1, 131071, 55)            \
	X(rpg_byte_reset, 0, 2000000000, 10000000)  \
	X(rpg_threshold, 1, 31, 5)                  \
	X(rpg_ai_rate, 1, 100000, 40)               \
	X(rpg_hai_rate, 1, 100000, 400)             \
	X(rpg_max_rate, 0, 1000000, 0)

struct cc_params {
#define X(name, least, most, normal) uint32_t name;
	CC_PARAMS(X)
#undef X
};

#define CC_PARAM_COUNT (sizeof(struct cc_params) / sizeof(uint32_t))

/* The defaults. */
extern const struct cc_params cc_params_normal;

/* The name and limits of a parameter. */
struct cc_param {
	const char *name;
	uint32_t least;
	uint32_t most;
};

/** Return a parameter by its index, which is less than CC_PARAM_COUNT. MT-safe. */
const struct cc_param *cc_param(uint32_t index);

/** Return the index of a parameter, or CC_PARAM_COUNT if there is none of this name. MT-safe. */
uint32_t cc_param_find(const char *name);

/** Return a value by its index, which is less than CC_PARAM_COUNT. */
uint32_t cc_param_get(const struct cc_params *params, uint32_t index);

/** Change a value. Engine's thread or lock. 0; -ENOENT: there is no such index; -ERANGE: the value
 * is not allowed. */
int cc_param_set(struct cc_params *params, uint32_t index, uint32_t value);

#endif
