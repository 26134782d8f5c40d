/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DCQCN (Zhu et al., SIGCOMM 2015): the rate of a sender whose packets are marked. A congestion
 * notification cuts the rate by alpha / 2, where alpha is an average of how often notifications
 * come. Without them a timer and a byte counter raise the rate: first half of the way back five
 * times, then also the target by a constant, then faster. At the link's rate the sender is free
 * again. The parameters are in transport/cc_params.h.
 */
#ifndef TRANSPORT_DCQCN_H
#define TRANSPORT_DCQCN_H

#include <stdbool.h>
#include <stdint.h>

struct dcqcn {
	bool slowed;	      /* the fields below are valid */
	uint32_t target_kbps; /* rate before the last cut */
	double alpha;
	uint64_t cut_ns;   /* time of the last cut */
	uint64_t alpha_ns; /* deadline of alpha's timer */
	uint64_t raise_ns; /* deadline of the timer that raises the rate */
	uint32_t bytes;	   /* sent since the byte counter last expired */
	uint32_t timer_steps;
	uint32_t byte_steps;
};

struct cc_ops;
extern const struct cc_ops dcqcn_ops;

#endif
