/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks of queue pair numbers. Each program that shares a port has the numbers of one block, and
 * the upper bits of a number name the block.
 *
 * Between such programs the owner of the port marks packets of a program that it does not trust: it
 * replaces their source MAC address by one that names the program's block. A packet of a connection
 * has no queue pair number of its sender, so the receiver compares this block with that of its
 * peer. The ICRC does not cover the Ethernet header. A frame from the network may have such an
 * address, too: then it is checked as if it were marked, which helps no attacker.
 */
#ifndef WIRE_QPN_BLOCK_H
#define WIRE_QPN_BLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define WIRE_QPN_BLOCK_SHIFT 14

/** Return the bit of a queue pair's block in a word that has a bit for each block. There are more
 * blocks than bits, so some have the same one. MT-safe. */
static inline uint64_t wire_block_bit(uint32_t qpn)
{
	return UINT64_C(1) << (qpn >> WIRE_QPN_BLOCK_SHIFT) % 64;
}

/* The upper half of such an address. It is locally administered. */
static const uint8_t wire_mark[] = {0x02, 'u', 'r'};

/** Write the source MAC address of packets of a program with these queue pair numbers. MT-safe. */
static inline void wire_mark_sender(uint8_t src_mac[6], uint32_t qpn_first)
{
	memcpy(src_mac, wire_mark, sizeof(wire_mark));
	src_mac[3] = (uint8_t)(qpn_first >> 16);
	src_mac[4] = (uint8_t)(qpn_first >> 8);
	src_mac[5] = (uint8_t)qpn_first;
}

/** Return false if a packet is marked, and the marked program does not have the queue pair `qpn`.
 * MT-safe. */
static inline bool wire_sender_may_be(const uint8_t src_mac[6], uint32_t qpn)
{
	const uint32_t marked =
		(uint32_t)src_mac[3] << 16 | (uint32_t)src_mac[4] << 8 | (uint32_t)src_mac[5];

	return memcmp(src_mac, wire_mark, sizeof(wire_mark)) != 0 ||
	       (marked ^ qpn) >> WIRE_QPN_BLOCK_SHIFT == 0;
}

#endif
