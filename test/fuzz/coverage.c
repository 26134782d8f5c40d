/* SPDX-License-Identifier: BSD-3-Clause */
/* Records which opcodes of which service the inputs have reached. */
#include "coverage.h"

#include <stdio.h>

#include "qp_internal.h"
#include "wire/headers.h"
#include "wire/packet.h"
#include "world.h"

/* Counts of each opcode: how many came to a queue pair of its service, and how many of them had
 * their effect: a request was executed, a response was used. */
static struct {
	uint64_t came;
	uint64_t done;
} opcodes[256];

static struct coverage_mark mark(const struct qp *qp)
{
	return (struct coverage_mark){
		.qp = qp,
		/* A message in progress counts as half a message. */
		.msn = 2 * qp->responder.msn + (qp->responder.message != MESSAGE_NONE),
		.epsn = qp->responder.epsn.v,
		.una = qp->loss.una.v,
		.received = qp->rq->cons,
	};
}

struct coverage_mark coverage_before(const struct world *world, const struct packet *packet)
{
	for (unsigned int i = 0; i < WORLD_QPS; i++) {
		if (world->qps[i].qpn == packet->dest_qpn)
			return mark(world->qps[i].qp);
	}
	return (struct coverage_mark){0};
}

void coverage_after(const struct coverage_mark *before, const struct packet *packet)
{
	const uint8_t service = packet->opcode & OPCODE_SERVICE_MASK;
	struct coverage_mark after;
	bool done;

	/* A selective acknowledgement is for any reliable service. */
	if (before->qp == NULL ||
	    (before->qp->kind->service != service && packet->opcode != OPCODE_SACK))
		return;
	after = mark(before->qp);
	if (service == OPCODE_UD)
		done = after.received != before->received;
	else if (packet->op->flags & OPCODE_REQUEST)
		done = after.msn != before->msn || (after.epsn != before->epsn && (after.msn & 1));
	else
		done = after.una != before->una;
	opcodes[packet->opcode].came++;
	opcodes[packet->opcode].done += done;
}

unsigned int coverage_report(void)
{
	unsigned int missing = 0, known = 0;

	for (unsigned int opcode = 0; opcode < 256; opcode++) {
		const struct opcode_info *info = opcode_info((uint8_t)opcode);

		/* No queue pair accepts congestion notifications. */
		if (!(info->flags & OPCODE_KNOWN) || opcode == OPCODE_CNP)
			continue;
		known++;
		missing += opcodes[opcode].done == 0;
		printf("fuzz: %-36s %8llu came, %8llu carried out%s\n", info->name,
		       (unsigned long long)opcodes[opcode].came,
		       (unsigned long long)opcodes[opcode].done,
		       opcodes[opcode].done == 0 ? "  NEVER" : "");
	}
	printf("fuzz: the seeds reach %u of %u opcodes\n", known - missing, known);
	fflush(stdout);
	return missing;
}
