/* SPDX-License-Identifier: BSD-3-Clause */
/* Congestion control: what all algorithms share. It times packets, tells the pacer what they allow,
 * and changes the algorithm of a queue pair that may have packets in flight. */
#include "transport/cc.h"

#include <errno.h>
#include <string.h>

#include "base/cachelines.h"
#include "transport/loss.h"
#include "transport/pacer.h"
#include "transport/sack.h"
#include "wire/headers.h"
#include "wire/packet.h"

#define LINK_MBPS_UNKNOWN 100000 /* assumed if the port does not know its speed */

static const struct cc_ops none_ops = {.name = "none"};

const struct cc_ops *cc_ops(enum cc_kind kind)
{
	static const struct cc_ops *const ops[CC_KINDS] = {
		[CC_NONE] = &none_ops, [CC_DCQCN] = &dcqcn_ops, [CC_SWIFT] = &swift_ops};

	return ops[kind];
}

const struct cc_ops *cc_ops_of(const struct cc_attr *attr)
{
	return attr->kind == CC_GIVEN ? attr->given : cc_ops(attr->kind);
}

enum cc_kind cc_find(const char *name)
{
	int kind = CC_NONE;

	while (kind < CC_KINDS && strcmp(cc_ops((enum cc_kind)kind)->name, name) != 0)
		kind++;
	return (enum cc_kind)kind;
}

void cc_apply(struct cc *cc)
{
	struct pacer *pacer = cc->pacer;

	if (cc->rate_kbps != 0 && (cc->limit_kbps == 0 || cc->rate_kbps < cc->limit_kbps)) {
		pacer->rate_kbps = cc->rate_kbps;
		pacer->burst_ns = cc->limit_kbps == 0 ? CC_BURST_NS
						      : RTE_MIN(CC_BURST_NS, cc->limit_burst_ns);
		return;
	}
	pacer->rate_kbps = cc->limit_kbps;
	pacer->burst_ns = cc->limit_burst_ns;
	if (pacer->rate_kbps == 0 && cc->ops->times)
		pacer->rate_kbps = PACER_FREE_KBPS;
}

void cc_reset(struct cc *cc)
{
	cc_path_put(cc->path);
	cc->path = NULL;
	cc->alone = (struct cc_path){0};
	cc->rate_kbps = 0;
	cc->wait_ns = 0;
	cc->timer_ns = UINT64_MAX;
	cc->losses = cc->loss->losses;
	cc->sent_psns = 0;
	cc->expired = false;
	cc->last_sent = 0;
	cc->timed = false;
	cc->has_notified = false;
	cc->pacer->window = UINT32_MAX;
	if (cc->ops->start != NULL)
		cc->ops->start(cc);
	cc_apply(cc);
}

int cc_create(const struct cc_attr *attr, struct pacer *pacer, const struct loss *loss,
	      struct cc **out)
{
	const uint64_t mbps = attr->link_mbps != 0 ? attr->link_mbps : LINK_MBPS_UNKNOWN;
	struct cc *cc;

	*out = NULL;
	if (attr->kind == CC_NONE)
		return 0;
	cc = cachelines_alloc(sizeof(*cc));
	if (cc == NULL)
		return -ENOMEM;
	*cc = (struct cc){.kind = attr->kind,
			  .ops = cc_ops_of(attr),
			  .pacer = pacer,
			  .loss = loss,
			  .link_kbps = (uint32_t)RTE_MIN(1000 * mbps, UINT32_MAX - 1),
			  .paths = attr->paths,
			  .params = attr->params != NULL ? attr->params : &cc_params_normal,
			  /* The start of an algorithm of ours overwrites it. */
			  .given = attr->given_state};
	cc_reset(cc);
	*out = cc;
	return 0;
}

void cc_destroy(struct cc *cc)
{
	if (cc == NULL)
		return;
	cc_path_put(cc->path);
	cachelines_free(cc, sizeof(*cc));
}

void cc_connect(struct cc *cc, const uint8_t gid[16])
{
	if (!cc->ops->times || cc->paths == NULL)
		return;
	cc_path_put(cc->path);
	cc->path = cc_path_get(cc->paths, gid);
}

void cc_poll(struct cc *cc, uint64_t now_ns)
{
	if (cc->losses != cc->loss->losses) {
		cc->losses = cc->loss->losses;
		if (cc->ops->lost != NULL)
			cc->ops->lost(cc, now_ns);
	}
	if (cc->expired)
		cc->wait_ns = 0;
	cc->expired = false;
	if (cc->ops->poll != NULL)
		cc->ops->poll(cc, now_ns);
}

void cc_expired(struct cc *cc)
{
	cc->expired = true;
}

void cc_sent(struct cc *cc, struct psn psn, uint32_t psns, uint32_t bytes, bool again,
	     uint64_t now_ns)
{
	cc->sent_psns += psns;
	if (again) {
		/* Stop timing: an answer would not tell which transmission of the packet it
		 * answers. */
		cc->timed = false;
	} else if (cc_times_next(cc)) {
		cc->timed = true;
		cc->timed_psn = psn;
		cc->timed_ns = now_ns;
		cc->timed_alone = psn_eq(psn, cc->loss->una);
		cc->timed_sent = cc->sent_psns;
	}
	if (cc->ops->sent != NULL)
		cc->ops->sent(cc, bytes, psns, now_ns);
}

void cc_responded(struct cc *cc, uint32_t bytes, uint64_t now_ns)
{
	if (cc->ops->sent != NULL)
		cc->ops->sent(cc, bytes, 0, now_ns);
}

/* Return true if the packet answers the timed packet, or a later one. */
static bool ends_timing(const struct cc *cc, const struct packet *packet)
{
	const bool is_nak = (packet->op->flags & OPCODE_HAS_AETH) &&
			    (packet->syndrome & AETH_KIND_MASK) != AETH_ACK;
	/* A NAK names a packet that was not executed: it answers those before it. */
	const struct psn last = psn_add(packet->psn, -(int32_t)is_nak);

	return !psn_before(last, cc->loss->una) && psn_before(last, cc->loss->top) &&
	       !psn_before(last, cc->timed_psn);
}

/* End the timing of a packet that was answered. */
static void cc_timed(struct cc *cc, uint64_t now_ns)
{
	const uint32_t psns = cc->timed_sent - cc->last_sent;

	cc->timed = false;
	cc->last_sent = cc->timed_sent;
	cc->ops->answered(cc, now_ns - cc->timed_ns, psns, now_ns);
}

void cc_answered(struct cc *cc, const struct packet *packet, uint64_t now_ns)
{
	if (cc->timed && ends_timing(cc, packet))
		cc_timed(cc, now_ns);
}

/* A packet that the peer keeps behind a gap has had its round trip, too. */
void cc_told(struct cc *cc, const struct packet *sack, uint64_t now_ns)
{
	const int32_t ahead = psn_diff(cc->timed_psn, sack->psn);

	if (!cc->timed || !cc->loss->sack || psn_before(sack->psn, cc->loss->una) ||
	    psn_before(cc->loss->top, sack->psn))
		return;
	if (ahead < 0 || (sack_word(sack, (uint32_t)ahead) & 1))
		cc_timed(cc, now_ns);
}

bool cc_notified(struct cc *cc, uint64_t now_ns)
{
	return cc->ops->notified != NULL && cc->ops->notified(cc, now_ns);
}

bool cc_marked(struct cc *cc, uint64_t now_ns)
{
	const uint64_t apart_ns = UINT64_C(1000) * cc->params->min_time_between_cnps;

	if (!cc->ops->marks || (cc->has_notified && now_ns - cc->notified_ns < apart_ns))
		return false;
	cc->has_notified = true;
	cc->notified_ns = now_ns;
	return true;
}

int cc_change(const struct cc_attr *attr, struct pacer *pacer, const struct loss *loss)
{
	struct cc *former = pacer->cc;
	const uint32_t limit_kbps = former != NULL ? former->limit_kbps : pacer->rate_kbps;
	const uint64_t limit_burst_ns = former != NULL ? former->limit_burst_ns : pacer->burst_ns;
	struct cc *cc;
	const int err = cc_create(attr, pacer, loss, &cc);

	if (err != 0)
		return err;
	pacer->cc = cc;
	pacer->deadline_ns = PACER_NEVER;
	if (cc != NULL) {
		cc->limit_kbps = limit_kbps;
		cc->limit_burst_ns = limit_burst_ns;
		cc_apply(cc);
	} else {
		pacer->rate_kbps = limit_kbps;
		pacer->burst_ns = limit_burst_ns;
		pacer->window = UINT32_MAX;
	}
	cc_destroy(former);
	return 0;
}
