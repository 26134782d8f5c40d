/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer's requests of the memory placement extensions: ATOMIC WRITE and FLUSH (IBTA annex A19). */
#include "transport/placement.h"

#include <inttypes.h>
#include <string.h>

#include <rte_atomic.h>

#include "base/reason.h"
#include "base/verbs_later.h"
#include "mem/atomics.h"
#include "mem/mr.h"
#include "refusal.h"
#include "wire/headers.h"
#include "wire/packet.h"

bool placement_is(const struct packet *packet)
{
	return packet_operation(packet) == OPCODE_ATOMIC_WRITE ||
	       packet_operation(packet) == OPCODE_FLUSH;
}

unsigned int placement_access(const struct packet *packet)
{
	unsigned int access = 0;

	if (packet_operation(packet) == OPCODE_ATOMIC_WRITE)
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
		return FAULT_REASON(
			FAULT_INVALID_REQUEST,
			"an ATOMIC WRITE has 8 bytes and an address that is a multiple of 8");
	status = mr_reach_remote(pd, qpn, packet->rkey, packet->iova, sizeof(value),
				 placement_access(packet), touch, &bytes);
	*absent = status == MR_ABSENT;
	if (status != MR_OK)
		return FAULT_ACCESS;
	/* A region may begin at an odd address of this process and an even one in the key's address
	 * space. */
	if ((uintptr_t)bytes % sizeof(value) != 0)
		return FAULT_REASON(FAULT_INVALID_REQUEST, REFUSAL_SAY_ALIGNMENT, packet->iova,
				    packet->rkey);
	/* The bytes are the application's, and stay in its byte order. */
	memcpy(&value, packet->payload, sizeof(value));
	if (atomics_store((uint64_t *)(void *)bytes, value) == 0)
		return FAULT_NONE;
	return FAULT_REASON(FAULT_ACCESS, REFUSAL_SAY_UNMAPPED, packet->rkey);
}

/*
 * Execute a FLUSH. Written bytes are in this host's memory, visible to all its processors and
 * devices, as soon as the stores have left this processor: so a range is the same as a whole
 * region. FLUSH to persistence never succeeds, because no region grants it.
 */
static enum fault flush(const struct pd *pd, uint32_t qpn, const struct packet *packet)
{
	const unsigned int need = placement_access(packet);
	uint8_t *addr;

	if (need == 0 || packet->flush_select > FETH_SELECT_REGION ||
	    (packet->flush_place & ~(FETH_PLACE_GLOBAL | FETH_PLACE_PERSISTENT)))
		return FAULT_REASON(FAULT_INVALID_REQUEST,
				    "a FLUSH asks for no placement, or for an unknown one");
	/* Check the rights separately, because for a range of no length the key is not checked
	 * (C9-88). */
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
	return packet_operation(packet) == OPCODE_FLUSH ? flush(pd, qpn, packet)
							: atomic_write(pd, qpn, packet, absent);
}
