/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes the congestion control of a queue pair that may have packets in flight. */
#include "transport/cc.h"
#include "transport/pacer.h"

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
