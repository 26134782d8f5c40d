/* SPDX-License-Identifier: BSD-3-Clause */
/* QP 1 of a device: received management datagrams, and those to send (IBTA 3.9, 13.5). */
#ifndef DEVICE_GSI_H
#define DEVICE_GSI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct device;
struct packet;
struct packet_sink;

/* The source or destination of a MAD: our address, the peer's, and the peer's link address. */
struct gsi_address {
	uint8_t local[16]; /* GIDs */
	uint8_t remote[16];
	int32_t vlan_id; /* -1: untagged */
	bool mac_known;
	uint8_t mac[6];
};

/* A connection or listener of the connection manager, as users see it. */
struct gsi_conn {
	uint32_t number; /* unique among those of the device */
	const char *state;
	uint64_t service_id;
	uint32_t qpn;		       /* our queue pair; 0: none yet */
	bool active;		       /* we have asked the peer */
	uint8_t local[16], remote[16]; /* GIDs, all zero: any */
};

typedef void gsi_tell_conn(const struct gsi_conn *conn, void *arg);

/* The receiver of a device's MADs. Set under the engine's lock; NULL: packets to QP 1 are
 * dropped. */
struct gsi_ops {
	/* Receive a MAD to QP 1 with the right Q_Key, of any content and length. If
	 * device.gsi_holds is set, tell no events, but set device.gsi_untold. Engine's thread or
	 * lock. */
	void (*receive)(void *user, const struct gsi_address *from, const uint8_t *mad, size_t len,
			uint64_t now_ns);
	/* Send pending MADs, and run the timers that are due; device.gsi_holds applies to their
	 * events, too. Engine's thread or lock. Returns how much there was to do. NULL: nothing is
	 * ever due. */
	unsigned int (*run)(void *user, uint64_t now_ns, struct packet_sink *sink);
	/* Tell the events that `receive` has left. Engine's thread or lock. */
	void (*tell)(void *user, uint64_t now_ns);
	/* Return when `run` is due; 0: now, UINT64_MAX: never. Engine's thread or lock. */
	uint64_t (*deadline_ns)(void *user);
	/* The process ends: tell peers that their connections are over, in the next pass. Engine's
	 * lock. Return how many; 0: all are told. May be NULL. */
	unsigned int (*end)(void *user, uint64_t now_ns);
	/* An event of the device (device_raise). Engine's thread or lock. May be NULL. */
	void (*device_event)(void *user, enum ibv_event_type type);
	/* Call `tell` for each connection and listener. Engine's thread or lock. May be NULL. */
	void (*each_conn)(void *user, gsi_tell_conn *tell, void *arg);
};

/** Call `tell` for each connection and listener of the device's receiver of MADs. Engine's thread
 * or lock. */
void gsi_each_conn(struct device *device, gsi_tell_conn *tell, void *arg);

/** Tell the device's receiver of MADs that the process ends, as gsi_ops.end. Engine's lock. */
unsigned int gsi_end(struct device *device, uint64_t now_ns);

/** Call `run` of the device's receiver of MADs if it is due. Engine's thread or lock. Returns how
 * much there was to do. */
unsigned int gsi_run(struct device *device, uint64_t now_ns, struct packet_sink *sink);

/** Tell the events that were left since device.gsi_holds was set; see gsi_ops. Engine's thread or
 * lock. */
void gsi_tell(struct device *device, uint64_t now_ns);

/** Return when gsi_run has something to do. Engine's thread or lock. */
uint64_t gsi_deadline_ns(const struct device *device);

/**
 * Send a MAD of MAD_LEN bytes. Engine's thread or lock.
 *
 * @return
 *   0; -EDESTADDRREQ if the peer's link address is not known; -EADDRNOTAVAIL if `to->local` is not
 *   an address of the device; -EAGAIN if the sink is full.
 */
int gsi_send(struct device *device, const struct gsi_address *to, const uint8_t *mad,
	     struct packet_sink *sink);

/* The result of gsi_receive. */
enum gsi_taken {
	GSI_TAKEN,
	GSI_NOBODY,    /* there is no receiver of MADs */
	GSI_NO_MAD,    /* an opcode other than UD SEND Only */
	GSI_WRONG_KEY, /* the Q_Key or the source queue pair is not that of QP 1 */
};

/** Process a packet to QP 1 from device_receive. Engine's thread or lock. */
enum gsi_taken gsi_receive(struct device *device, const struct packet *packet, uint64_t now_ns);

#endif
