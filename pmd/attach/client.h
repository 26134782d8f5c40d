/* SPDX-License-Identifier: BSD-3-Clause */
/* An attached process: its slot's rings, its own mbufs of the shared buffers, and its line to the
 * owner. */
#ifndef CLIENT_H
#define CLIENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "netdev/addresses.h"
#include "psock/psock.h"
#include "share/blocks.h"
#include "share/lane.h"
#include "share/layout.h"
#include "share/message.h"

/* A lane with another process. Engine's thread, but for what is constant. */
struct client_lane {
	/* constant */
	struct share_offer offer;
	struct lane_memory *memory;
	int peer_fd; /* eventfd: wakes the other process */

	enum client_lane_state {
		LANE_UNREADY, /* the other process has not mapped it yet */
		/* What went to it through the owner is on its way still: nothing may overtake it.
		 */
		LANE_SWITCHES,
		LANE_OPEN,
		LANE_CLOSED, /* the other process has ended: nothing goes there any more */
	} state;
	uint32_t owner_ring_end; /* LANE_SWITCHES: the owner has to take as far as this */
	bool has_received;	 /* what came through the owner before has been taken */
	bool touched;		 /* in this burst something was put into it */
	uint64_t full_since_tsc; /* it had no room; 0: it has */
	uint64_t dropped;	 /* packets that the other process did not take in time */
	struct lane_tx tx;
	struct lane_rx rx;
	struct rte_mempool *pool;	   /* of `mbufs`: takes them back only */
	struct rte_mbuf mbufs[LANE_WORDS]; /* by index modulo: packets that we have borrowed */
};

/* An offer that has come, and waits for the engine's thread. */
struct client_offer {
	struct share_offer offer;
	int fds[SHARE_LANE_FDS];
};

struct share_client {
	/* constant once attached */
	int socket;
	int owner_fd;	/* eventfd: wakes the owner */
	int process_fd; /* eventfd: wakes us */
	uint8_t *arena;
	size_t arena_bytes;
	uint32_t buffers;
	uint32_t buffer_bytes;
	uint32_t buffer_stride;
	struct share_page *page;
	size_t page_bytes;
	struct rte_mbuf *mbufs; /* one for each buffer; those that we hold mean something */
	struct rte_mempool *pool;
	uint8_t mac[6];
	bool spares_icrc;      /* between processes packets need none */
	uint64_t patience_tsc; /* for a process that takes nothing */
	uint32_t id_mask;      /* our communication ids have id_value in these bits */
	uint32_t id_value;

	/* engine's thread or lock */
	struct share_ring rings[SHARE_RINGS];
	uint32_t stock_count;
	uint32_t *stock;	/* empty buffers, the one used last on top */
	uint8_t routes[BLOCKS]; /* by block of queue pair numbers: 1 and the index of the lane
				   there, or 0 */
	bool owner_first;	/* of the two ways, in the next burst */
	uint32_t first_lane;	/* whose turn it is to be received from */

	/* written by the engine's thread with the lock, read by it without */
	pthread_mutex_t lanes_lock;
	struct client_lane *lanes[SHARE_LANES_MAX];
	struct client_lane
		*last_lane; /* that something was put into last, or NULL; engine's thread alone */

	pthread_mutex_t lock; /* of the socket and what follows */
	uint32_t requests;
	bool lost;    /* the owner has gone, or let us go; atomic */
	bool link_up; /* isolated: of the owner's port; atomic */
	bool addresses_changed;
	uint32_t offer_count;
	struct client_offer offers[SHARE_LANES_MAX];
	struct addresses addresses;
};

struct share_facts;

/**
 * Ask for a slot.
 *
 * @param fds
 *   Room for SHARE_FDS descriptors that come with the welcome.
 * @return
 *   0; -errno: there is no client.
 */
int attach_open(const char *path, uint32_t number, int report_fd, struct share_client **client,
		struct share_message *welcome, int *fds);

/** What a welcome says of the device. */
void attach_learn(struct share_client *client, struct share_message *welcome,
		  struct share_facts *facts);

/** Say on the log why there is no slot; returns `rc`. */
int attach_error(const char *path, int rc);

/** The mbuf of a buffer that we hold. Engine's thread or lock. */
struct rte_mbuf *client_mbuf(struct share_client *client, uint32_t buffer);

/** A pool of nothing but operations; free(3) it. NULL where there is no memory. Not MT-safe. */
struct rte_mempool *client_new_pool(const char *ops, void *data, uint32_t size, uint32_t room);

/** Make the pool of a client whose rings and arena are there. 0 or -ENOMEM. */
int client_make_pool(struct share_client *client);

/** Take in what the owner says unasked, and notice where it has gone. MT-safe. */
void client_listen(struct share_client *client);

/** Ask the owner, and wait for the answer, which is in `message` then. MT-safe. 0 or -errno. */
int client_ask(struct share_client *client, struct share_message *message);

/** Tell the owner something that it does not answer. MT-safe. */
void client_tell(struct share_client *client, struct share_message *message);

/** Put an empty buffer of ours back. Engine's thread or lock. */
void client_keep(struct share_client *client, uint32_t buffer);

/** A packet in a buffer of ours, as others are told of it. */
static inline struct share_packet client_packet(const struct share_client *client,
						const struct rte_mbuf *mbuf)
{
	return (struct share_packet){
		.buffer = (uint32_t)(mbuf - client->mbufs),
		.flags = mbuf->port == PSOCK_ALONE ? SHARE_FLAG_ALONE : 0,
		.offset = mbuf->data_off,
		.len = mbuf->data_len,
	};
}

/** Whether a word of another process tells of a packet inside a buffer. */
static inline bool client_is_sane(const struct share_client *client,
				  const struct share_packet *packet)
{
	return packet->buffer < client->buffers && packet->len <= client->buffer_bytes &&
	       packet->offset <= client->buffer_bytes - packet->len;
}

/* client_lane.c; engine's thread, where it does not say otherwise */

/** Take up lanes that were offered, and let go of those whose other process has ended. */
void client_lanes_look(struct share_client *client);

/** Keep an offer for client_lanes_look. Holds client->lock. */
void client_lanes_offer(struct share_client *client, const struct share_message *message,
			const int *fds);

/** The lane that packets to a queue pair go through, or NULL: to the owner. */
struct client_lane *client_lane_of(struct share_client *client, uint32_t qpn);

/** Send; returns how many were taken: those there was room for, and those that nobody waits for any
 * more. */
uint16_t client_lane_put(struct share_client *client, struct client_lane *lane,
			 struct rte_mbuf **mbufs, uint16_t n);

/** Take back what the other process has done with. */
void client_lane_collect(struct share_client *client, struct client_lane *lane);

/** Wake processes that sleep and have been sent something. */
void client_lanes_wake(struct share_client *client);

/** Receive up to `n` packets. */
uint16_t client_lanes_take(struct share_client *client, struct rte_mbuf **mbufs, uint16_t n);

/** Take back what other processes have done with. */
void client_lanes_collect(struct share_client *client);

/** Before sleeping: whoever puts must wake us. MT-safe. */
void client_lanes_say_asleep(struct share_client *client);

/** After that and a full fence: whether packets wait. MT-safe. */
bool client_lanes_wait(struct share_client *client);

/* client_short.c: of port_ops */
uint8_t *client_short_offer(void *arg);
bool client_short_suits(void *arg, uint32_t qpn);
void client_short_placed(void *arg, uint32_t len);
void client_short_push(void *arg);

extern const struct rte_mempool_ops lane_pool_ops;
extern const struct port_ops client_port_ops;
extern const struct link_remote client_link_remote;

#endif
