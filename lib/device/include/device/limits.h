/* SPDX-License-Identifier: BSD-3-Clause */
/* What one device holds at most: told by device_query, checked by whoever creates an object. */
#ifndef DEVICE_LIMITS_H
#define DEVICE_LIMITS_H

#define DEVICE_MAX_QP	  65536
#define DEVICE_MAX_QP_WR  32768 /* work requests of a send or a receive queue */
#define DEVICE_MAX_SGE	  32	/* entries of a gather or scatter list, READ's as well */
#define DEVICE_MAX_INLINE 1024	/* bytes */
/* READs and atomics in flight, on either side; a byte tells them. */
#define DEVICE_MAX_RD_ATOMIC 255
/*
 * What is told of them: as many as Soft-RoCE has. Programs (perftest) have a peer send as many as
 * this device tells, and it refuses more than its own.
 */
#define DEVICE_TOLD_RD_ATOMIC 128
#define DEVICE_MAX_RATE_KBPS  100000000 /* that a queue pair may be paced to */
#define DEVICE_MAX_CQ	      65536
#define DEVICE_MAX_CQE	      4194303
/* Completions, and microseconds, that an event waits for. */
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
#define DEVICE_COMP_VECTORS	   1
/* As an exponent of 4.096 us: 134 ms, the longest that an engine that slept answers late. */
#define DEVICE_LOCAL_ACK_DELAY 15

/*
 * 'U', 'R', 'C': a group bit is set in its first octet, so it is no vendor's OUI and will not be.
 * Storage stacks take 0 and 0xffffff for Soft-RoCE, and programs tune themselves for the ids of
 * real vendors.
 */
#define DEVICE_VENDOR_ID      0x555243
#define DEVICE_VENDOR_PART_ID 1

#endif
