/* SPDX-License-Identifier: BSD-3-Clause */
/* An attached process: the rings of its slot, its mbufs for the shared buffers, and its socket to
 * the owner. */
#ifndef CLIENT_H
#define CLIENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "base/meter.h"
#include "base/own.h"
#include "client_away.h"
#include "held.h"
#include "memif/doorbell.h"
#include "memif/socket.h"
#include "netdev/netdev.h"
#include "port/memif_caller.h"
#include "port/port.h"
#include "psock/psock.h"
#include "share/blocks.h"
#include "share/direct.h"
#include "share/layout.h"
#include "share/message.h"

/* Claims of ports of the connection manager that were given up. There are few, because each has
 * waited for 5 seconds. */
#define CLIENT_ABANDONED_MAX 16

/* A direct channel with another process. Only the engine's thread uses it, except the constant
 * members. */
struct client_direct {
	/* constant */
	struct share_offer offer;
	struct direct_memory *memory;
	int doorbell_fd;

	enum client_direct_state {
		DIRECT_UNREADY, /* the other process has not mapped it yet */
		/* Packets that were sent through the owner are still in flight. Packets in the
		 * channel must not overtake them, so the channel is not used yet. */
		DIRECT_SWITCHES,
		DIRECT_OPEN,
		DIRECT_CLOSED, /* the other process has ended: no packet goes there */
	} state;
	struct memif_mark sent; /* DIRECT_SWITCHES: these packets */
	/* The same for the packets that are received. */
	enum {
		DIRECT_HEARS_NOTHING, /* no packet has come yet */
		DIRECT_HEARS_OWNER,   /* packets that came through the owner come first */
		DIRECT_HEARS_PEER,
	} hears;
	struct memif_mark arrived; /* DIRECT_HEARS_OWNER: these packets */
	bool touched;		   /* packets were put into it in this burst */
	struct held held;
	uint32_t dropped; /* packets that the other process did not take in time */
	struct memif_doorbell_cost doorbell_cost;
	struct meter meter; /* of long packets that the other process takes */
	struct direct_tx tx;
	struct direct_rx rx;
	/* trusted: */
	struct rte_mempool *pool;	     /* of `mbufs`: only takes them back */
	struct rte_mbuf mbufs[DIRECT_SLOTS]; /* by index modulo: received packets */
};

/* An offer of a direct channel that waits for the engine's thread. The memory is mapped at once:
 * its descriptor cannot keep our mark (base/own.h), because the other process has the same one. */
struct client_offer {
	struct share_offer offer;
	struct direct_memory *memory;
	int doorbell_fd;
};

/* The memif connection that an isolated process asks the owner for. */
struct client_memif {
	bool asked;   /* the owner has not answered yet */
	bool renewed; /* it was asked for because the owner is another one */
	bool given;   /* `fds` are those of a connection that is not used yet */
	int fds[SHARE_MEMIF_FDS];
};

/* Notes about XRC domains to or from the owner. */
STAILQ_HEAD(client_notes, client_note);

struct share_client {
	/* constant once attached */
	struct sockaddr_un address; /* where the owner listens */
	int socket;
	uint16_t slot;
	uint32_t generation;		    /* of the slot */
	uint32_t engine;		    /* of the device: the one whose client this is */
	uint32_t engines;		    /* of the device, if each may have a slot; else 1 */
	SLIST_HEAD(, share_client) further; /* first engine: the clients of the others */
	SLIST_ENTRY(share_client) link;
	pid_t owner_pid; /* 0: it is in another PID namespace */
	int owner_fd;	 /* eventfd: wakes the owner */
	int process_fd;	 /* epoll set, edge-triggered: the owner and other processes wake us */
	int wake_fd;	 /* epoll set of process_fd and the packet socket; -1: there is no socket */
	uint8_t *arena;
	size_t arena_bytes;
	uint32_t buffers;
	uint32_t buffer_bytes;
	uint32_t buffer_stride;
	struct share_page *page;
	size_t page_bytes;
	struct rte_mbuf *mbufs; /* one for each buffer; valid for buffers that we hold */
	struct rte_mempool *pool;
	struct port *port;
	/* isolated: the ops_arg of the memif port to the owner, its operations without ours, and
	 * our addresses; attached: NULL */
	void *below;
	const struct port_ops *below_ops;
	struct port_ops ops; /* the port's */
	const struct link *net;
	struct psock *last_psock; /* stopped: other threads may look at it */
	struct psock *psock;	  /* NULL: packets to and from other hosts pass through the owner */
	uint8_t mac[6];
	bool spares_icrc; /* packets between processes need no ICRC */
	uint32_t id_mask; /* our communication ids have id_value in these bits */
	uint32_t id_value;

	/* engine's thread or lock */
	struct share_ring rings[SHARE_RINGS];
	uint32_t quota;	    /* buffers that the owner lets us hold, at least */
	uint32_t cache_max; /* empty buffers that are kept */
	uint32_t *cache;    /* empty buffers; the last one was used last */
	uint32_t cache_count;
	/* by block of queue pair numbers: 1 + the index of its direct channel, or of one of its
	 * channels, with ROUTE_ENGINES, if its process's device has several engines; 0: none */
	uint8_t routes[BLOCKS];
	uint32_t
		first_source; /* of the three of client_rx_burst, that the next burst begins with */
	uint32_t first_direct; /* index of the channel that the next burst receives from first */

	/* The engine's thread writes these with the lock held, and reads them without it. */
	pthread_mutex_t directs_lock;
	struct client_direct *directs[SHARE_DIRECTS_MAX];
	uint32_t directs_end; /* behind the last one that there has ever been */
	/* engine's thread: */
	/* that of the last packet sent; NULL: none, or packets to that process are held */
	struct client_direct *last_direct;
	/* 0, or a queue pair to which short packets are built in last_direct */
	uint32_t offer_qpn;
	struct client_direct *aimed;   /* that of the packet that is being built, or NULL */
	struct client_direct *placing; /* `aimed`, if the packet is in one of its buffers */
	bool places_below;  /* isolated: the memif to the owner has packets that were not pushed */
	bool expects_long;  /* the last packet sent was long */
	struct taker taker; /* of long packets from direct channels */

	pthread_mutex_t xrc_lock;    /* protects xrc_out; taken after `lock` */
	struct client_notes xrc_out; /* to be sent */

	pthread_mutex_t lock;	    /* protects the socket and all members below */
	struct client_notes xrc_in; /* for the engine's thread */
	uint32_t requests;
	struct client_away away;
	bool lost;    /* the owner has ended, or ended our slot; atomic */
	bool link_up; /* isolated: the owner's port is up; atomic */
	bool addresses_changed;
	uint32_t abandoned_count;
	uint32_t abandoned[CLIENT_ABANDONED_MAX]; /* claims that the owner did not answer in time */
	uint32_t offer_count;
	struct client_offer offers[SHARE_DIRECTS_MAX];
	struct addresses addresses;
	struct client_memif memif; /* isolated */
};

struct link;
struct share_facts;

/**
 * Ask for a slot.
 *
 * @param fds
 *   Room for the SHARE_FDS descriptors of the welcome.
 * @return
 *   0; -errno: there is no client.
 */
int attach_open(const char *path, uint32_t number, int report_fd, uint32_t engines,
		struct share_client **client, struct share_message *welcome, int *fds);

/**
 * Ask for one more slot, for a further engine, and map its memory.
 *
 * @param first
 *   The process's first engine.
 * @param port
 *   The engine's port, which gets the pool.
 * @return
 *   0 or -errno: there is no client.
 */
int attach_open_further(const struct share_client *first, uint32_t number, struct port *port,
			struct share_client **client);

/** Give the slot of a client that has no memory of the owner back, and free the client. */
void attach_end(struct share_client *client);

/** Connect a client, and ask for its slot by the hello in `message`, which the welcome then
 * replaces. 0 or -errno. */
int attach_begin(struct share_client *client, struct share_message *message, int report_fd,
		 int *fds);

/** Close the descriptors of a welcome, as far as they came (else -1), and forget them. */
void attach_close_fds(int *fds);

/** Return the arena's length. It is a whole number of pages, so it may be longer than all buffers
 * together. */
size_t attach_arena_bytes(const struct share_client *client, int fd);

/** Use the rings of the client's page, which are still empty. */
void attach_init_rings(struct share_client *client);

/** Take the device's properties from a welcome. */
void attach_learn(struct share_client *client, struct share_message *welcome,
		  struct share_facts *facts);

/** Ask the kernel to add the sender's process id to a socket's messages from now on, or no more. */
void attach_ask_sender(int fd, int ask);

/** Log why there is no slot. `welcome` is the owner's answer, if it has sent one. Returns `rc`. */
int attach_error(const char *path, int rc, const struct share_message *welcome);

/** Return the mbuf of a buffer that we hold. Engine's thread or lock. */
struct rte_mbuf *client_mbuf(struct share_client *client, uint32_t buffer);

/* Functions of one kind of pool; see struct rte_mempool_ops. */
struct client_pool_kind {
	rte_mempool_enqueue_t enqueue;
	rte_mempool_dequeue_t dequeue;
	rte_mempool_get_count get_count;
};

/** Make a pool of a kind, without objects. The caller frees it with free(3). NULL: no memory. Not
 * MT-safe. */
struct rte_mempool *client_new_pool(const struct client_pool_kind *kind, void *data, uint32_t size,
				    uint32_t room);

/** Register the operations that pools of all kinds have. Not MT-safe. 0 or -ENOSPC. */
int client_register_ops(void);

/** Make the pool of a client, after its rings and arena. 0 or -ENOMEM. */
int client_make_pool(struct share_client *client);

/** Make the pool of an isolated process's port (port_make_pool). Not MT-safe. 0 or -errno. */
int client_make_private_pool(struct port *port);

/** Fill in an mbuf that is used for the first time: until then it is all zero. */
static inline void client_prepare_mbuf(struct rte_mbuf *mbuf, struct rte_mempool *pool,
				       uint8_t *buffer, uint32_t bytes)
{
	if (likely(mbuf->pool))
		return;
	mbuf->buf_addr = buffer;
	mbuf->buf_iova = (rte_iova_t)(uintptr_t)buffer;
	mbuf->buf_len = (uint16_t)bytes;
	mbuf->nb_segs = 1;
	mbuf->port = RTE_MBUF_PORT_INVALID;
	rte_mbuf_refcnt_set(mbuf, 1);
	mbuf->pool = pool;
}

/** Handle the owner's unrequested messages, and notice if the owner has ended. MT-safe. */
void client_listen(struct share_client *client);

/** Return true if no owner answers now, but one may come back. Any thread. */
static inline bool client_is_away(const struct share_client *client)
{
	const enum client_presence presence =
		__atomic_load_n(&client->away.presence, __ATOMIC_RELAXED);

	return presence == CLIENT_AWAY || presence == CLIENT_GREETED;
}

/** Return true until an isolated process has its memif connection with the next owner. Any
 * thread. */
static inline bool client_is_between(const struct share_client *client)
{
	return __atomic_load_n(&client->away.presence, __ATOMIC_RELAXED) != CLIENT_HERE ||
	       __atomic_load_n(&client->memif.renewed, __ATOMIC_RELAXED);
}

/** Send a request to an owner that is there, and wait for the reply in `message`. The caller holds
 * client->lock. 0 or -errno. */
int client_exchange_locked(struct share_client *client, struct share_message *message);

/** Send a request to the owner, and wait for the reply in `message`. MT-safe. 0 or -errno. */
int client_ask(struct share_client *client, struct share_message *message);

/** Send the owner a message that has no reply. MT-safe. */
void client_tell(struct share_client *client, struct share_message *message);

/** Keep a note of the owner. The caller holds client->lock. */
void client_xrc_hear_locked(struct share_client *client, const struct share_message *message);

/** Send the notes that wait. The caller holds client->lock. */
void client_xrc_flush_locked(struct share_client *client);

/** Put one of our empty buffers back into the free-buffer cache. Engine's thread or lock. */
void client_keep(struct share_client *client, uint32_t buffer);

/** Return the description, for other processes, of a packet in a buffer of ours. */
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

/** Take the owner's answer to a request for a memif connection, and its descriptors (-1: none has
 * come). The caller holds client->lock. */
void client_isolated_answer(struct share_client *client, const struct share_message *message,
			    const int *fds);

/* client_direct.c; engine's thread */

/** Keep an offer for client_directs_look, and take over its descriptors. The caller holds
 * client->lock. */
void client_directs_offer(struct share_client *client, const struct share_message *message,
			  const int *fds);

/** Open the channels that were offered, and close those whose other process has ended. */
void client_directs_look(struct share_client *client);

/** Close offers of the last owner. The caller holds client->lock. */
void client_offers_drop_locked(struct share_client *client);

/** Close all channels at once: their processes attach to the next owner, or this process ends. No
 * packet of them is in use. */
void client_directs_drop(struct share_client *client);

/** Return the channel for packets to a queue pair; NULL: they go through the owner. */
struct client_direct *client_direct_of(struct share_client *client, uint32_t qpn);

/** Return true if the owner has put all earlier packets into the other process's ring, so that the
 * channel can be used. */
bool client_has_switched(const struct share_client *client, struct client_direct *direct);

/** Set client->last_direct. */
static inline void client_set_last(struct share_client *client, struct client_direct *direct)
{
	client->last_direct = direct;
	client->offer_qpn = 0;
}

/* client_packets.c; engine's thread, unless stated otherwise */

/** Drop all packets that a channel holds. */
void client_drop_held(struct share_client *client, struct client_direct *direct);

/** Return true if packets of a connection to a queue pair have to wait (port_ops.waits). */
bool client_waits(void *client, uint32_t qpn);

/** Send what is held (port_ops.send_held). */
void client_send_held(void *client);

/** Send packets through a channel, or hold them. Those for which there is no room are dropped. */
void client_direct_send(struct share_client *client, struct client_direct *direct,
			struct rte_mbuf **mbufs, uint16_t n);

/** Wake the sleeping processes that were sent packets. Call after a full fence. */
void client_directs_wake(struct share_client *client);

/** Receive up to `n` packets from the channels. */
uint16_t client_directs_take(struct share_client *client, struct rte_mbuf **mbufs, uint16_t n);

/** Tell how many packets of a channel were taken and dropped (port_ops.taken). Return false if it
 * is not in use: `dropped` is told nevertheless. */
bool client_direct_taken(const struct client_direct *direct, struct port_taken *taken, bool *known);

/** Tell the other processes whether they must wake us. MT-safe. */
void client_directs_say_asleep(struct share_client *client, bool asleep);

/** Return true if packets wait. Call after client_directs_say_asleep and a full fence. MT-safe. */
bool client_directs_wait(struct share_client *client);

/* client_place.c; engine's thread: operations of port_ops */
uint8_t *client_offer(void *client, uint32_t qpn);
bool client_aim(void *client, uint32_t qpn);
uint8_t *client_place(void *client, uint32_t len);
void client_placed(void *client, uint32_t len);
void client_expect(void *client, uint32_t ahead, uint32_t len);
void client_push(void *client);

/** Put the packets that were placed in a channel. */
void client_direct_show(struct share_client *client, struct client_direct *direct);

/** Look how many packets the other process has released, if there may be no room for `n`. */
void client_direct_make_room(struct client_direct *direct, uint32_t n);

/** Wake the owner if it sleeps. Call after a full fence, which orders the check of the sleep flag
 * behind the stores that the owner must see. Engine's thread or lock. */
static inline void client_wake_owner(const struct share_client *client)
{
	if (__atomic_load_n(&client->page->owner_sleeps, __ATOMIC_RELAXED) == 0 ||
	    __atomic_exchange_n(&client->page->owner_sleeps, 0, __ATOMIC_RELAXED) == 0)
		return;
	own_ring(client->owner_fd);
}

/* client_psock.c; engine's thread or lock, unless stated otherwise. Without a socket the functions
 * do nothing. */

/** Use the packet socket of a welcome (-1: there is none), and close it or tell the owner if that
 * is not possible. After client_make_pool. Not MT-safe. 0; -errno: no packet would reach us. */
int client_open_psock(struct share_client *client, const struct share_welcome *welcome, int fd);

/** Use the packet socket of a further engine's welcome, or close it. Not MT-safe. 0 or -errno: the
 * engine has no socket. */
int client_use_psock(struct share_client *client, const struct share_welcome *welcome, int fd);

/** Use the packet socket no more, and none of the further engines. No engine runs yet. 0; -errno:
 * no packet would reach us. */
int client_decline_psocks(struct share_client *client);

/** The same while the engines are stopped and the caller holds client->lock. */
int client_decline_psocks_locked(struct share_client *client);

/** Return true if a packet that is not for a direct channel leaves by the socket, not through the
 * owner. */
bool client_psock_sends(const struct share_client *client, const struct rte_mbuf *mbuf);

/** Send packets by the socket. Returns how many it took. */
uint16_t client_psock_put(struct share_client *client, struct rte_mbuf **mbufs, uint16_t n);

/** Receive up to `n` packets from the socket. */
uint16_t client_psock_take(struct share_client *client, struct rte_mbuf **mbufs, uint16_t n);

/** Return true if packets wait that the socket does not report. MT-safe. */
bool client_psock_waits(const struct share_client *client);

/** Close the socket. MT-safe functions may still be called. */
void client_stop_psock(struct share_client *client);

/** Send packets, each on its way (port_ops.tx_burst). */
uint16_t client_tx_burst(void *client, struct rte_mbuf **mbufs, uint16_t n);

/** Make an isolated process's port to the owner its port: put the direct channels in front of it.
 */
void client_isolated_take_over(struct share_client *client, struct link *link);

/** Use the memory of the next owner: see port_ops.renew (client_link.c). */
int client_renew(void *arg);

/** Empty the free-buffer cache: all buffers were the last owner's. */
void client_forget_buffers(struct share_client *client, uint32_t quota);

/** Free the packets that the socket holds back, and forget the last owner's descriptor beside it.
 */
void client_empty_psock(struct share_client *client);

/** Go on with the packet socket of the last owner, or stop it. Its wake-ups are the next owner's.
 * 0 or -errno. */
int client_renew_psock(struct share_client *client, bool keeps);

/** Return the interface of the packet socket; 0: there is none. */
uint32_t client_psock_ifindex(const struct share_client *client);

/** Open the queue of a further engine: see port_ops.open_queue. */
int client_open_queue(void *arg, uint32_t number, uint32_t count, struct port *queue);

extern const struct port_ops client_port_ops;
extern const struct link_remote client_link_remote;

#endif
