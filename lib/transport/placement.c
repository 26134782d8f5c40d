/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer's requests of the memory placement extensions: ATOMIC WRITE and FLUSH (IBTA annex A19). */
#include "transport/placement.h"

#include <string.h>

#include <rte_atomic.h>

#include "base/verbs_later.h"
#include "mem/atomics.h"
#include "mem/mr.h"
#include "wire/headers.h"
#include "wire/packet.h"

static uint8_t operation(const struct packet *packet)
{
	return packet->opcode & OPCODE_OPERATION_MASK;
}

bool placement_is(const struct packet *packet)
{
	return operation(packet) == OPCODE_ATOMIC_WRITE || operation(packet) == OPCODE_FLUSH;
}

unsigned int placement_access(const struct packet *packet)
{
	unsigned int access = 0;

	if (operation(packet) == OPCODE_ATOMIC_WRITE)
		return IBV_ACCESS_REMOTE_WRITE;
	if (packet->flush_place & FETH_PLACE_GLOBAL)
		access |= LATER_ACCESS_FLUSH_GLOBAL;
	if (packet->flush_place & FETH_PLACE_PERSISTENT)
		access |= LATER_ACCESS_FLUSH_PERSISTENT;
	return access;
}

static enum fault atomic_write(const struct pd *pd, uint32_t qpn, const struct packet *packet,
			       bool *absent)
{
	const struct mr_touch touch = {.now = sizeof(uint64_t)};
	enum mr_status status;
	uint64_t value;
	uint8_t *bytes;

	if (packet->payload_len != sizeof(value) || packet->dma_length != sizeof(value) ||
	    packet->iova % sizeof(value) != 0)
		return FAULT_INVALID_REQUEST;
	status = mr_reach_remote(pd, qpn, packet->rkey, packet->iova, sizeof(value),
				 placement_access(packet), touch, &bytes);
	*absent = status == MR_ABSENT;
	if (status != MR_OK)
		return FAULT_ACCESS;
	/* A region may start at an odd address of this process under an even one of the key's. */
	if ((uintptr_t)bytes % sizeof(value) != 0)
		return FAULT_INVALID_REQUEST;
	/* The bytes are the application's, in its order. */
	memcpy(&value, packet->payload, sizeof(value));
	return atomics_store((uint64_t *)(void *)bytes, value) == 0 ? FAULT_NONE : FAULT_ACCESS;
}

/*
 * What was written before is in this host's memory, which all its processors and devices see alike,
 * as soon as the stores have left this processor: a range is as good as a whole region. Persistence
 * is never asked for successfully, for no region grants it.
 */
static enum fault flush(const struct pd *pd, uint32_t qpn, const struct packet *packet)
{
	const unsigned int need = placement_access(packet);
	uint8_t *addr;

	if (need == 0 || packet->flush_select > FETH_SELECT_REGION ||
	    (packet->flush_place & ~(FETH_PLACE_GLOBAL | FETH_PLACE_PERSISTENT)))
		return FAULT_INVALID_REQUEST;
	/* By itself, because a range of no length has no key that is looked at (C9-88). */
	if (mr_check_remote(pd, qpn, packet->rkey, need) != MR_OK)
		return FAULT_ACCESS;
	if (packet->flush_select == FETH_SELECT_RANGE &&
	    mr_resolve_remote(pd, qpn, packet->rkey, packet->iova, packet->dma_length, need,
			      &addr) != MR_OK)
		return FAULT_ACCESS;
	rte_wmb();
	return FAULT_NONE;
}

enum fault placement_execute(const struct pd *pd, uint32_t qpn, const struct packet *packet,
			     bool *absent)
{
	*absent = false;
	return operation(packet) == OPCODE_FLUSH ? flush(pd, qpn, packet)
						 : atomic_write(pd, qpn, packet, absent);
}
