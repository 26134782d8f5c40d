/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine of a device that a packet is for, for ports that have a queue for each engine. */
#ifndef ENGINE_OF_H
#define ENGINE_OF_H

#include <stdint.h>

#include <rte_mbuf.h>

#include "wire/headers.h"
#include "wire/mad.h"
#include "wire/packet.h"

/* Return the engine that a queue pair number names, of `count` engines (device_engine_of_qpn). The
 * first engine has the management queue pairs, and the packets to groups. */
static inline uint32_t engine_of_qpn(uint32_t qpn, uint32_t count)
{
	return qpn <= GSI_QPN || qpn == WIRE_QPN_MULTICAST ? 0 : qpn % count;
}

/* Return the engine of a frame. The first engine has all that is not RoCE. */
static inline uint32_t engine_of_frame(const struct rte_mbuf *mbuf, uint32_t count)
{
	uint32_t qpn;

	return packet_peek_qpn(rte_pktmbuf_mtod(mbuf, const uint8_t *), mbuf->data_len, &qpn)
		       ? engine_of_qpn(qpn, count)
		       : 0;
}

#endif
