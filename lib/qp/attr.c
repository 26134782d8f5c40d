/* SPDX-License-Identifier: BSD-3-Clause */
/* The attributes that each transition of a queue pair's state requires and accepts
 * (ibv_modify_qp(3), IBTA 11.2.5.2). */
#include "qp/attr.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <rte_common.h>

#include "base/psn.h"
#include "base/reason.h"
#include "base/verbs_later.h"
#include "wire/headers.h"

/* Access flags that a queue pair accepts. Programs use the same flags for regions and queue pairs,
 * so all flags of a region are kept and returned by a query, as Linux does. Only remote access has
 * an effect. */
#define ATTR_ACCESS_FLAGS                                                                        \
	((unsigned int)(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |                       \
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | \
			IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB |      \
			LATER_ACCESS_FLUSH_GLOBAL | LATER_ACCESS_FLUSH_PERSISTENT |              \
			IBV_ACCESS_OPTIONAL_RANGE))

struct transition {
	enum ibv_qp_state from;
	enum ibv_qp_state to;
	int required; /* enum ibv_qp_attr_mask, without IBV_QP_STATE */
	int optional;
};

/*
 * A transition may name its start state (CUR_STATE) where the manual page's table allows it. The
 * rate limit is accepted for types that send; Linux accepts it for raw packet queue pairs.
 */
static const struct transition rc_transitions[] = {
	{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
	{IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_INIT, IBV_QPS_RTR,
	 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		 IBV_QP_MIN_RNR_TIMER,
	 IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH},
	{IBV_QPS_RTR, IBV_QPS_RTS,
	 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		 IBV_QP_TIMEOUT,
	 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_ALT_PATH |
		 IBV_QP_PATH_MIG_STATE | IBV_QP_RATE_LIMIT},
	{IBV_QPS_RTS, IBV_QPS_RTS, 0,
	 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_ALT_PATH |
		 IBV_QP_PATH_MIG_STATE | IBV_QP_RATE_LIMIT},
	{IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPS_SQD, IBV_QPS_RTS, 0,
	 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_ALT_PATH |
		 IBV_QP_PATH_MIG_STATE},
	{IBV_QPS_SQD, IBV_QPS_SQD, 0,
	 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS | IBV_QP_AV |
		 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ALT_PATH |
		 IBV_QP_PATH_MIG_STATE | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT |
		 IBV_QP_MIN_RNR_TIMER},
};

/* UC: as RC, without the attributes of acknowledgements, retries and READ resources. */
static const struct transition uc_transitions[] = {
	{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
	{IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	 IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH},
	{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN,
	 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE |
		 IBV_QP_RATE_LIMIT},
	{IBV_QPS_RTS, IBV_QPS_RTS, 0,
	 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE |
		 IBV_QP_RATE_LIMIT},
	{IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPS_SQD, IBV_QPS_RTS, 0,
	 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE},
	{IBV_QPS_SQD, IBV_QPS_SQD, 0,
	 IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS | IBV_QP_AV | IBV_QP_ALT_PATH |
		 IBV_QP_PATH_MIG_STATE},
	{IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
};

/* UD: no peer, so no path and no expected PSN; a Q_Key instead of access rights. */
static const struct transition ud_transitions[] = {
	{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
	{IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
	{IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
	{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN,
	 IBV_QP_CUR_STATE | IBV_QP_QKEY | IBV_QP_RATE_LIMIT},
	{IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY | IBV_QP_RATE_LIMIT},
	{IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPS_SQD, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
	{IBV_QPS_SQD, IBV_QPS_SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
	{IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
};

/* XRC: each side has one half of the attributes of an RC queue pair (annex A14). */
static const struct transition xrc_send_transitions[] = {
	{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
	{IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	 IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH},
	{IBV_QPS_RTR, IBV_QPS_RTS,
	 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		 IBV_QP_TIMEOUT,
	 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE |
		 IBV_QP_RATE_LIMIT},
	{IBV_QPS_RTS, IBV_QPS_RTS, 0,
	 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE |
		 IBV_QP_RATE_LIMIT},
	{IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPS_SQD, IBV_QPS_RTS, 0,
	 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE},
	{IBV_QPS_SQD, IBV_QPS_SQD, 0,
	 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS | IBV_QP_AV |
		 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE |
		 IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT},
};

static const struct transition xrc_recv_transitions[] = {
	{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
	{IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_INIT, IBV_QPS_RTR,
	 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		 IBV_QP_MIN_RNR_TIMER,
	 IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH},
	{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN | IBV_QP_TIMEOUT,
	 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_ALT_PATH |
		 IBV_QP_PATH_MIG_STATE},
	{IBV_QPS_RTS, IBV_QPS_RTS, 0,
	 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_ALT_PATH |
		 IBV_QP_PATH_MIG_STATE},
	{IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPS_SQD, IBV_QPS_RTS, 0,
	 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_ALT_PATH |
		 IBV_QP_PATH_MIG_STATE},
	{IBV_QPS_SQD, IBV_QPS_SQD, 0,
	 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS | IBV_QP_AV |
		 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE |
		 IBV_QP_TIMEOUT | IBV_QP_MIN_RNR_TIMER},
};

int attr_own(enum ibv_qp_type type, int mask)
{
	switch (type) {
	case IBV_QPT_XRC_SEND:
		return mask & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	case IBV_QPT_XRC_RECV:
		return mask & ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
	default:
		return mask;
	}
}

static const struct {
	const struct transition *transitions;
	size_t count;
} tables[] = {
	[IBV_QPT_RC] = {rc_transitions, RTE_DIM(rc_transitions)},
	[IBV_QPT_UC] = {uc_transitions, RTE_DIM(uc_transitions)},
	[IBV_QPT_UD] = {ud_transitions, RTE_DIM(ud_transitions)},
	[IBV_QPT_XRC_SEND] = {xrc_send_transitions, RTE_DIM(xrc_send_transitions)},
	[IBV_QPT_XRC_RECV] = {xrc_recv_transitions, RTE_DIM(xrc_recv_transitions)},
};

static const struct transition *attr_find(enum ibv_qp_type type, enum ibv_qp_state from,
					  enum ibv_qp_state to)
{
	if ((size_t)type >= RTE_DIM(tables))
		return NULL;
	for (size_t i = 0; i < tables[type].count; i++) {
		const struct transition *transition = &tables[type].transitions[i];

		if (transition->from == from && transition->to == to)
			return transition;
	}
	return NULL;
}

/* Return the name of the first attribute of a mask. */
static const char *mask_name(int mask)
{
#define NAME(bit)         \
	{                 \
		bit, #bit \
	}
	static const struct {
		int bit;
		const char *name;
	} names[] = {
		NAME(IBV_QP_CUR_STATE),
		NAME(IBV_QP_EN_SQD_ASYNC_NOTIFY),
		NAME(IBV_QP_ACCESS_FLAGS),
		NAME(IBV_QP_PKEY_INDEX),
		NAME(IBV_QP_PORT),
		NAME(IBV_QP_QKEY),
		NAME(IBV_QP_AV),
		NAME(IBV_QP_PATH_MTU),
		NAME(IBV_QP_TIMEOUT),
		NAME(IBV_QP_RETRY_CNT),
		NAME(IBV_QP_RNR_RETRY),
		NAME(IBV_QP_RQ_PSN),
		NAME(IBV_QP_MAX_QP_RD_ATOMIC),
		NAME(IBV_QP_ALT_PATH),
		NAME(IBV_QP_MIN_RNR_TIMER),
		NAME(IBV_QP_SQ_PSN),
		NAME(IBV_QP_MAX_DEST_RD_ATOMIC),
		NAME(IBV_QP_PATH_MIG_STATE),
		NAME(IBV_QP_CAP),
		NAME(IBV_QP_DEST_QPN),
		NAME(IBV_QP_RATE_LIMIT),
	};
#undef NAME

	for (size_t i = 0; i < RTE_DIM(names); i++) {
		if (mask & names[i].bit)
			return names[i].name;
	}
	return "an unknown bit";
}

/* An attribute of the mask is there, or is not there, against the rules. */
static int refuse_mask(enum ibv_qp_state from, enum ibv_qp_state to, int mask, const char *what)
{
	return CALL_REASON(-EINVAL, "%s -> %s: %s is %s (IBTA 11.2.5.2)", attr_state_name(from),
			   attr_state_name(to), mask_name(mask), what);
}

#define MISSING	  "missing from the mask"
#define NOT_TAKEN "in the mask, and this transition does not take it"

int attr_check_mask(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	const struct transition *transition;

	mask &= ~IBV_QP_STATE;
	/* Any state may go to RESET and ERR, with no other attribute. */
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return mask == 0 ? 0 : refuse_mask(from, to, mask, NOT_TAKEN);
	transition = attr_find(type, from, to);
	if (transition == NULL)
		return CALL_REASON(-EINVAL, "no transition leads from %s to %s (IBTA 10.3.1)",
				   attr_state_name(from), attr_state_name(to));
	if ((mask & transition->required) != transition->required)
		return refuse_mask(from, to, transition->required & ~mask, MISSING);
	mask &= ~(transition->required | transition->optional);
	return mask == 0 ? 0 : refuse_mask(from, to, mask, NOT_TAKEN);
}

int attr_check_values(const struct ibv_qp_attr *attr, int mask, const struct attr_limits *limits)
{
#define AT_MOST(bit, field, max)              \
	{                                     \
		bit, #field, attr->field, max \
	}
	const struct {
		int bit;
		const char *name;
		uint32_t value;
		uint32_t max;
	} limited[] = {
		AT_MOST(IBV_QP_PKEY_INDEX, pkey_index, 0),
		AT_MOST(IBV_QP_DEST_QPN, dest_qp_num, WIRE_QPN_MASK),
		AT_MOST(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic, limits->max_rd_atomic),
		AT_MOST(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, limits->max_dest_rd_atomic),
		AT_MOST(IBV_QP_MIN_RNR_TIMER, min_rnr_timer, 31),
		AT_MOST(IBV_QP_TIMEOUT, timeout, 31),
		AT_MOST(IBV_QP_RETRY_CNT, retry_cnt, 7),
		AT_MOST(IBV_QP_RNR_RETRY, rnr_retry, 7),
		AT_MOST(IBV_QP_RATE_LIMIT, rate_limit, limits->max_rate_kbps),
	};
#undef AT_MOST

	if ((mask & IBV_QP_PORT) && attr->port_num != 1)
		return CALL_REASON(-EINVAL, "port_num is %u; it must be 1", attr->port_num);
	if ((mask & IBV_QP_ACCESS_FLAGS) && (attr->qp_access_flags & ~ATTR_ACCESS_FLAGS))
		return CALL_REASON(-EINVAL, "qp_access_flags have 0x%x, which uroce does not know",
				   attr->qp_access_flags & ~ATTR_ACCESS_FLAGS);
	if ((mask & IBV_QP_PATH_MTU) &&
	    (attr->path_mtu < IBV_MTU_256 || attr->path_mtu > limits->port_mtu))
		return CALL_REASON(-EINVAL,
				   "path_mtu is %d; it must be 1 to %d (enum ibv_mtu), the port's",
				   attr->path_mtu, limits->port_mtu);
	for (size_t i = 0; i < RTE_DIM(limited); i++) {
		if ((mask & limited[i].bit) && limited[i].value > limited[i].max)
			return CALL_REASON(-EINVAL, "%s is %u; it must be at most %u",
					   limited[i].name, limited[i].value, limited[i].max);
	}
	/* IBV_DEVICE_AUTO_PATH_MIG is not set. */
	if ((mask & IBV_QP_ALT_PATH) ||
	    ((mask & IBV_QP_PATH_MIG_STATE) && attr->path_mig_state != IBV_MIG_MIGRATED))
		return CALL_REASON(-EINVAL, "uroce has no alternate paths and no path migration");
	return 0;
}

void attr_apply(struct attr_kept *to, const struct ibv_qp_attr *from, int mask)
{
	if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY)
		to->en_sqd_async_notify = from->en_sqd_async_notify;
	if (mask & IBV_QP_ACCESS_FLAGS)
		to->qp_access_flags = from->qp_access_flags;
	if (mask & IBV_QP_PKEY_INDEX)
		to->pkey_index = from->pkey_index;
	if (mask & IBV_QP_PORT)
		to->port_num = from->port_num;
	if (mask & IBV_QP_AV)
		to->ah_attr = from->ah_attr;
	if (mask & IBV_QP_PATH_MTU)
		to->path_mtu = from->path_mtu;
	if (mask & IBV_QP_TIMEOUT)
		to->timeout = from->timeout;
	if (mask & IBV_QP_RETRY_CNT)
		to->retry_cnt = from->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		to->rnr_retry = from->rnr_retry;
	if (mask & IBV_QP_RQ_PSN)
		to->rq_psn = from->rq_psn & PSN_MASK;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		to->max_rd_atomic = from->max_rd_atomic;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		to->min_rnr_timer = from->min_rnr_timer;
	if (mask & IBV_QP_SQ_PSN)
		to->sq_psn = from->sq_psn & PSN_MASK;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		to->max_dest_rd_atomic = from->max_dest_rd_atomic;
	if (mask & IBV_QP_QKEY)
		to->qkey = from->qkey;
	if (mask & IBV_QP_DEST_QPN)
		to->dest_qp_num = from->dest_qp_num;
	if (mask & IBV_QP_RATE_LIMIT)
		to->rate_limit = from->rate_limit;
}

void attr_tell(const struct attr_kept *from, struct ibv_qp_attr *to)
{
	memset(to, 0, sizeof(*to));
	to->ah_attr = from->ah_attr;
	to->path_mtu = from->path_mtu;
	to->qkey = from->qkey;
	to->rq_psn = from->rq_psn;
	to->sq_psn = from->sq_psn;
	to->dest_qp_num = from->dest_qp_num;
	to->qp_access_flags = from->qp_access_flags;
	to->rate_limit = from->rate_limit;
	to->pkey_index = from->pkey_index;
	to->en_sqd_async_notify = from->en_sqd_async_notify;
	to->max_rd_atomic = from->max_rd_atomic;
	to->max_dest_rd_atomic = from->max_dest_rd_atomic;
	to->min_rnr_timer = from->min_rnr_timer;
	to->port_num = from->port_num;
	to->timeout = from->timeout;
	to->retry_cnt = from->retry_cnt;
	to->rnr_retry = from->rnr_retry;
}

const char *attr_state_name(uint32_t state)
{
	static const char *const names[] = {
		[IBV_QPS_RESET] = "RESET", [IBV_QPS_INIT] = "INIT", [IBV_QPS_RTR] = "RTR",
		[IBV_QPS_RTS] = "RTS",	   [IBV_QPS_SQD] = "SQD",   [IBV_QPS_SQE] = "SQE",
		[IBV_QPS_ERR] = "ERR",
	};

	return state < RTE_DIM(names) ? names[state] : "UNKNOWN";
}
