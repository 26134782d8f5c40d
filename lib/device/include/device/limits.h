/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits of one device: device_query reports them, and every function that creates an object checks
 * them. */
#ifndef DEVICE_LIMITS_H
#define DEVICE_LIMITS_H

#define DEVICE_MAX_QP	  65536
#define DEVICE_MAX_QP_WR  32768 /* work requests of a send or a receive queue */
#define DEVICE_MAX_SGE	  32	/* entries of a gather or scatter list, also of a READ's */
#define DEVICE_MAX_INLINE 1024	/* bytes */
/* READs and atomics in flight, on either side; one byte holds their number. */
#define DEVICE_MAX_RD_ATOMIC 255
/*
 * The number that is reported: the same as Soft-RoCE's. Programs (perftest) have a peer send as
 * many as this device reports, and the peer refuses more than its own limit.
 */
#define DEVICE_TOLD_RD_ATOMIC 128
#define DEVICE_MAX_RATE_KBPS  100000000 /* highest rate limit of a queue pair */
#define DEVICE_MAX_CQ	      65536
#define DEVICE_MAX_CQE	      4194303
#define DEVICE_MAX_COMP_CNTR  65536
/* Highest count of completions, and microseconds, by which an event is delayed. */
#define DEVICE_MAX_CQ_MODERATION   65535
#define DEVICE_MAX_MR		   (1 << 20)
#define DEVICE_MAX_MR_BYTES	   UINT64_MAX /* a region may be all of a process (implicit ODP) */
#define DEVICE_MAX_MW		   65536
#define DEVICE_MAX_DM_BYTES	   (64u << 20)
#define DEVICE_MAX_PD		   65536
#define DEVICE_MAX_SRQ		   65535
#define DEVICE_MAX_MCAST_GRP	   4096
#define DEVICE_MAX_MCAST_QP_ATTACH 128
#define DEVICE_MAX_AH		   65536
/* Exponent of 4.096 us: 134 ms, the longest delay of an answer from an engine that was asleep. */
#define DEVICE_LOCAL_ACK_DELAY 15

/*
 * 'U', 'R', 'C'. The group bit of its first octet is set, so it cannot be a vendor's OUI. Storage
 * stacks take 0 and 0xffffff for Soft-RoCE, and programs adjust themselves to the ids of real
 * vendors.
 */
#define DEVICE_VENDOR_ID      0x555243
#define DEVICE_VENDOR_PART_ID 1

#endif
