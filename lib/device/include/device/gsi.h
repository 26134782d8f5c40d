/* SPDX-License-Identifier: BSD-3-Clause */
/* QP 1 of a device: management datagrams that come in, and those that go out (IBTA 3.9, 13.5). */
#ifndef DEVICE_GSI_H
#define DEVICE_GSI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct device;
struct packet;
struct packet_sink;

/* Where a MAD comes from or goes to: our address and the peer's, and the peer's on the link. */
struct gsi_address {
	uint8_t local[16]; /* GIDs */
	uint8_t remote[16];
	int32_t vlan_id; /* -1: untagged */
	bool mac_known;
	uint8_t mac[6];
};

/* The receiver of a device's MADs. Set under the engine's lock; NULL: packets to QP 1 are dropped.
 */
struct gsi_ops {
	/* A MAD to QP 1 with the right Q_Key, of any content and length. Engine's thread or lock.
	 */
	void (*receive)(void *user, const struct gsi_address *from, const uint8_t *mad, size_t len,
			uint64_t now_ns);
	/* Send what waits, and run the timers that are due. Engine's thread or lock. Return how
	 * much there was to do. NULL: nothing is ever due. */
	unsigned int (*run)(void *user, uint64_t now_ns, struct packet_sink *sink);
	/* When `run` is due; 0: now, UINT64_MAX: never. Engine's thread or lock. */
	uint64_t (*deadline_ns)(void *user);
	/* The process ends: tell all peers, in the last passes. Engine's lock. May be NULL. */
	void (*end)(void *user, uint64_t now_ns);
};

/** Tell the device's receiver of MADs that the process ends. Engine's lock. */
void gsi_end(struct device *device, uint64_t now_ns);

/** Call `run` of the device's receiver of MADs, where it is due. Engine's thread or lock. Returns
 * how much there was to do. */
unsigned int gsi_run(struct device *device, uint64_t now_ns, struct packet_sink *sink);

/** When gsi_run has something to do. Engine's thread or lock. */
uint64_t gsi_deadline_ns(const struct device *device);

/**
 * Send a MAD of MAD_LEN bytes. Engine's thread or lock.
 *
 * @return
 *   0; -EDESTADDRREQ where the peer's link address is not known; -EADDRNOTAVAIL where `to->local`
 * is none of the device's; -EAGAIN where the sink is full.
 */
int gsi_send(struct device *device, const struct gsi_address *to, const uint8_t *mad,
	     struct packet_sink *sink);

/* How a packet to QP 1 was taken. */
enum gsi_taken {
	GSI_TAKEN,
	GSI_NOBODY,    /* no ops */
	GSI_NO_MAD,    /* another opcode than UD SEND Only */
	GSI_WRONG_KEY, /* Q_Key or source queue pair are not those of QP 1 */
};

/** The way in: device_receive has a packet for QP 1. Engine's thread or lock. */
enum gsi_taken gsi_receive(struct device *device, const struct packet *packet, uint64_t now_ns);

#endif
