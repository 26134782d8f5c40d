/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DCQCN (Zhu et al., SIGCOMM 2015): the rate of a sender whose packets are marked. A congestion
 * notification cuts the rate by alpha / 2, where alpha is an average of how often notifications
 * come. Without them a timer and a byte counter raise the rate: first half of the way back five
 * times, then also the target by a constant, then faster. At the link's rate the sender is free
 * again.
 */
#ifndef TRANSPORT_DCQCN_H
#define TRANSPORT_DCQCN_H

#include <stdbool.h>
#include <stdint.h>

/* The parameters of the paper. */
#define DCQCN_ALPHA_NS UINT64_C(55000) /* without a notification for so long, alpha falls */
#define DCQCN_TIMER_NS UINT64_C(55000) /* the rate is raised so often; more than CC_NOTIFY_NS */
#define DCQCN_BYTES    10000000u       /* and each time that so many bytes were sent */
#define DCQCN_G	       (1.0 / 256)     /* weight of a new value in alpha */
#define DCQCN_FAST     5	       /* steps of fast recovery (F) */
#define DCQCN_AI_KBPS  40000u	       /* additive increase */
#define DCQCN_HAI_KBPS 400000u	       /* hyper increase: ten times as fast, as in QCN */
/* The paper does not have the following two. */
#define DCQCN_MIN_KBPS 10000u	      /* the slowest rate */
#define DCQCN_APART_NS UINT64_C(4000) /* ignore a notification that comes sooner after another */

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
