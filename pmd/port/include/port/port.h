/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port, of DPDK or our own, with one receive queue, one transmit queue and a pool of packet
 * buffers. A device of several engines has further queues of the same network, each of which is a
 * port to the engine that owns it (port_open_queue).
 */
#ifndef PORT_PORT_H
#define PORT_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "base/meter.h"
#include "config/devargs.h"
#include "impair/counts.h"

/* Kinds of a port's access to packet buffers. */
enum port_dma {
	PORT_COPIES,	   /* by CPU copies, from any memory */
	PORT_DMA_IOMMU,	   /* by DMA, at I/O addresses that we map (port/dma.h) */
	PORT_DMA_PHYSICAL, /* by DMA, at physical addresses */
};

#define PORT_MBUFS_SOFTWARE 2048 /* for ports that copy, and hold none of our buffers */

#define PORT_OFFER_BYTES 120 /* room for headers and most short messages */

/* In an mbuf's port: the packet's ICRC was verified when it was received. */
#define PORT_VERIFIED (UINT16_MAX - 2)

/* In an mbuf's port: the packet comes from a trusted process and never left this host's memory. */
#define PORT_HANDED_OVER (UINT16_MAX - 1)

/* In an mbuf's port: the packet has not come from the network directly. The port's owner, or a
 * program that the owner trusts, has passed it on. */
#define PORT_PASSED_ON (UINT16_MAX - 5)

/* In an mbuf's port: an engine's own queue has received the packet, but it is for a queue pair of
 * another engine (open_queue). */
#define PORT_STRAY (UINT16_MAX - 4)

/*
 * Note the destination queue pair of a packet if that queue pair is on this host; else 0. The
 * sender knows it, so a port of many processes need not parse the packet. (Drivers use the field
 * only in received packets.)
 */
static inline void port_set_local_qpn(struct rte_mbuf *mbuf, uint32_t qpn)
{
	mbuf->hash.usr = qpn;
}

static inline uint32_t port_local_qpn(const struct rte_mbuf *mbuf)
{
	return mbuf->hash.usr;
}

struct divide_blocks;
struct divide_part;
struct port;
struct port_eal;

/* Packets on one way through a port: given to it; taken by its other end, which may be hostile; and
 * dropped instead, because the other end has taken none for too long. All count from any number,
 * modulo 2^32. */
struct port_taken {
	uint32_t given;
	uint32_t taken;
	uint32_t dropped;
	bool unread; /* the other end has passed some on to the receiver, who takes none now */
};

/*
 * Operations of a kind of port: DPDK's ports (ethdev.h), packet sockets (port/interface.h), memif
 * (port/memif_caller.h), no network (local_port.h), an application's port (port/guest.h), a port
 * that another process has (attach/attach.h), any of these with a bad network in front
 * (port/impair.h). `arg` is the port's ops_arg. Engine's thread or lock, except open and destroy.
 */
struct port_ops {
	/* Open a prepared port (port_open). NULL: the port was opened when it got its table. */
	int (*open)(void *arg);
	/* Receive up to `n` packets. Set port.rx_cut if more packets wait. */
	uint16_t (*rx_burst)(void *arg, struct rte_mbuf **mbufs, uint16_t n);
	/* Send packets, and return how many the port took. If port.spares_icrc is set,
	 * port_set_local_qpn was called for each packet. A packet that the port drops counts as
	 * taken, and also in tx_too_long, tx_refused or tx_unconnected. */
	uint16_t (*tx_burst)(void *arg, struct rte_mbuf **mbufs, uint16_t n);
	/* Return the nanoseconds until rx_burst must be called even if no frame arrives, because
	 * the port itself holds packets back; UINT64_MAX: it holds none. NULL: it never does. */
	uint64_t (*due_ns)(void *arg);
	/* Prefetch for a packet of at least `len` bytes that will be sent soon, after `ahead`
	 * others. May be NULL. */
	void (*expect)(void *arg, uint32_t ahead, uint32_t len);
	/*
	 * Packets that are built in the port's own buffers; NULL: the port takes mbufs only.
	 * `has_room` tells if there is a free buffer; NULL: packets without a place take an mbuf.
	 * `place` returns that buffer, or NULL if it
	 * has less than `len` bytes. `placed` says that a packet of `len` bytes is in it. `push`
	 * sends all placed packets. The other end may read and change a buffer while it is written.
	 */
	bool (*has_room)(void *arg);
	uint8_t *(*place)(void *arg, uint32_t len);
	/*
	 * For a port whose own buffers lead to several places; NULL: they lead to other hosts.
	 * Choose the buffers for a packet to a queue pair of this host (0: to another host), which
	 * the next calls of `place` and `placed` are about. Return false if such a packet takes an
	 * mbuf.
	 */
	bool (*aim)(void *arg, uint32_t qpn);
	/* For a port whose buffers lead to several engines of another host: `aim` is called for
	 * packets to other hosts, with their queue pair. Packets to this host take an mbuf. */
	bool steers;
	/*
	 * For short packets to processes on this host, from a port that spares the ICRC; NULL:
	 * short packets are sent as all others. `offer` returns a buffer of PORT_OFFER_BYTES for
	 * the next packet, which is to a queue pair, or NULL.
	 */
	uint8_t *(*offer)(void *arg, uint32_t qpn);
	void (*placed)(void *arg, uint32_t len);
	void (*push)(void *arg);
	/* For a port whose other end takes packets from memory: tell how many of those on the way
	 * to a queue pair it has taken. `taken` is all zero before. `is_local`: the queue pair is
	 * on this host. Return false if that is not known. NULL: it never is. */
	bool (*taken)(void *arg, uint32_t qpn, bool is_local, struct port_taken *taken);
	/*
	 * For a port whose packets lead to several processes of this host; NULL: it holds none. A
	 * process may have had no CPU for long, and have no room. The port takes some packets to it
	 * all the same, and holds them (port.tx_held), so that packets to others need not wait.
	 * `send_held` sends those for which there is room now. `waits` tells if packets to a queue
	 * pair of this host would have to be held: then build none.
	 */
	bool (*waits)(void *arg, uint32_t qpn);
	void (*send_held)(void *arg);
	/* For a port with another end that may sleep: wake it, because a packet will follow at
	 * once. NULL: the port has no such end, or the packet alone wakes it. */
	void (*wake_other_end)(void *arg);
	/* Make the next frame wake wake_fd, once. Return true if frames wait already, or may
	 * (port.arms_once). MT-safe, also after close, unless port.interrupts is set. */
	bool (*arm)(void *arg);
	void (*disarm)(void *arg);		    /* undo `arm`, if port.interrupts is set */
	bool (*link_up)(void *arg, bool connected); /* NULL: as `connected` */
	bool (*connected)(void *arg);
	/* Return true if the port has gone for good, with all packets in it. NULL: it never does.
	 */
	bool (*lost)(void *arg);
	/*
	 * For a port whose owner may end, and be followed by another one; NULL: it may not.
	 * `returned` says that the next owner is there, and that the packets in the port are lost.
	 * Then all engines of the device are stopped, and give back all buffers of the port's
	 * pools; `renew` makes the port work again. It returns 0, or -errno: the port is lost.
	 */
	bool (*returned)(void *arg);
	int (*renew)(void *arg);
	/* Close what a child of a fork must not keep, in the child; NULL: nothing. */
	void (*disown)(void *arg);
	/*
	 * For a port that has a connection; NULL: the port has none. `conn_run` handles what has
	 * happened to the connection, and does not wait. `conn_fd` returns a descriptor that is
	 * readable when conn_run has work. `conn_ms` returns the time in ms after which conn_run
	 * must be called without that; -1: never.
	 */
	void (*conn_run)(void *arg);
	int (*conn_fd)(const void *arg);
	int (*conn_ms)(const void *arg);
	/* Give up a port that has gone; NULL: nothing to do. */
	void (*lose)(void *arg);
	/*
	 * For a kernel interface, on which other processes may have packet sockets of their own
	 * (netdev/divide.h); NULL: they may not. `lend` makes a socket for the RoCE packets to one
	 * part of the queue pair numbers, for a process without privilege. It
	 * returns the socket, -EOPNOTSUPP or another -errno. `leave_out` makes the port receive no
	 * packets to these blocks, until it is called with others. It returns 0, or -errno: nothing
	 * has changed.
	 */
	int (*lend)(void *arg, const struct divide_part *part);
	int (*leave_out)(void *arg, const struct divide_blocks *blocks);
	/*
	 * Open the queue of a further engine, `number` of `count`, as a port whose other members
	 * the caller has filled in: set its `ops`, `ops_arg` and `wake_fd`. The queue receives the
	 * packets to queue pairs of that engine (device_engine_of_qpn), and this port does not
	 * receive them any more, except single ones that the network's driver cannot tell from
	 * others. The queue may receive frames that are not its engine's, too: it marks them
	 * (PORT_STRAY). It sends packets of any kind. It may set `pool` to one that belongs to the
	 * engine's thread. Called before the engines run, in the order of their numbers, for all
	 * `count` of them (at most port.queues). 0 or -errno. NULL: the port has one queue.
	 */
	int (*open_queue)(void *arg, uint32_t number, uint32_t count, struct port *queue);
	void (*close)(void *arg);
	/* Free `arg` of a port that is closed or could not be opened. NULL: the caller owns it. */
	void (*destroy)(void *arg);
};

struct port_drops {
	uint64_t packets, bytes;
};

struct port {
	/* set once, by the function that prepares the port */
	const struct port_ops *ops;
	void *ops_arg;		    /* private data of this kind of port */
	const struct port_eal *eal; /* NULL: the port uses nothing of EAL (port/port_eal.h) */
	struct devargs devargs;
	uint32_t mtu_bytes;  /* largest IP packet; 0 until port_open if the port decides */
	uint32_t mbuf_bytes; /* room of one packet buffer, without headroom */
	uint32_t mbufs;
	bool link_needs_server; /* no packet arrives before another program has made the link */
	bool link_comes;	/* some time after the start, by itself: of a NIC, or of a bond */
	bool opens_files;	/* the connection's thread opens a socket by its name */
	bool through_kernel;	/* each packet costs a system call */
	/* none of the operations that send and receive (rx_burst to push) has a point at which a
	 * thread can be cancelled (pthreads(7)), or they disable cancellation there
	 * (base/cancel.h); set before the engine is made */
	bool no_cancel_points;
	bool kernel_beyond;	/* only each packet to another host does */
	bool lcores_are_others; /* the application runs DPDK itself and owns the lcores */
	bool passed_on;		/* every packet has been passed on, as with PORT_PASSED_ON */
	bool watched;		/* set before port_prepare: pdump must see the packets */
	/* set before port_prepare: tells its network from others of the same device's name (its
	 * socket's path); NULL: nothing does */
	const char *unique;
	uint32_t engines; /* set before port_open: that are wanted, and use its buffers; 0: one */

	/* Make the pool instead of port_open, in memory that suits `dma`. May be NULL. 0 or -errno
	 * (logged). A port that has its pool from another process makes a second one by this. */
	int (*make_pool)(struct port *port);
	void *make_pool_arg;

	uint64_t tsc_hz;  /* frequency of the time stamp counter; set by link_open and others */
	bool spares_icrc; /* packets to our own MAC stay on this host and need no ICRC */
	uint32_t own_qpn_first; /* queue pairs of this process; packets to others at our MAC are
				   sent too */
	uint32_t own_qpn_count;

	/* set by port_open, or before */
	uint32_t queues; /* engines for which it can have a queue (port_queues); 0: one */
	enum port_dma dma;
	int numa_node;
	struct rte_mempool *pool;
	uint8_t mac[6];
	bool mac_is_random; /* the driver makes a new one at each start */
	uint64_t link_mbps;
	bool checks_sums; /* the port verifies IPv4 and UDP checksums */
	bool sums_udp;	  /* the port computes UDP checksums of what it sends */
	bool gathers;	  /* the port does DMA, and sends packets of several segments */
	bool interrupts;  /* the port has receive interrupts, which wake_fd reports once armed;
			     atomic */
	bool arms_once;	  /* `arm` returns true when it arms: the caller polls once more, and the
			     port stays armed meanwhile */
	int wake_fd;	  /* readable when frames wait; -1: none, as in a lost port; atomic */

	/* engine's thread or lock */
	bool started;
	bool rx_cut;	/* the last rx_burst left packets that wait */
	bool rx_bodies; /* the whole of long packets should be prefetched before they are read */
	/* how the payload of the packet for which `place` was called last is to be stored, and how
	 * often the ways were compared */
	enum store_way place_way;
	uint32_t place_trials;
	uint32_t tx_held; /* packets that tx_burst took and has not sent (port_ops.send_held) */
	/* packets that the last rx_burst took and did not return: a bad network holds them, or has
	 * lost them (port/impair.h) */
	uint16_t rx_kept;
	/* how often a connection to the other end was made (memif); the engine may not have seen
	 * that there was none before */
	uint32_t connections;
	/* frames and packets lost since port_open, counted by port_ops */
	uint64_t rx_too_long;	       /* dropped by port_ops */
	uint64_t rx_refused;	       /* dropped: the sender on this host may not send them */
	uint64_t rx_missed;	       /* dropped before rx_burst could take them */
	struct port_drops tx_too_long; /* packets too long for the port */
	/* packets that a kernel interface, or another program for too long, did not take */
	struct port_drops tx_refused;
	struct port_drops tx_unconnected; /* packets dropped while the port had no connection */

	/* damage done on purpose (port/impair.h); NULL: the port is not impaired */
	const struct impair_counts *impaired;

	bool armed; /* the next frame interrupts; atomic */
};

/**
 * Parse the user's device arguments, choose the kind of port (`ops`), and add the arguments that
 * its driver needs. Before EAL starts. Not MT-safe.
 *
 * @param text
 *   DPDK device arguments.
 * @param mtu_bytes
 *   The MTU that the user has set, or 0.
 * @return
 *   0 or -errno (logged).
 */
int port_prepare(struct port *port, const char *text, uint32_t mtu_bytes);

/** Return the bytes of DPDK memory that the port will need. */
size_t port_memory_bytes(const struct port *port);

/** Make and start the port. After EAL's start. Not MT-safe. 0 or -errno (logged). */
int port_open(struct port *port);

/** Return the number of engines for which an open port can have a queue of its own. Not MT-safe. */
uint32_t port_queues(const struct port *port);

/** Fill in a queue of an open port: what its packets depend on. Not MT-safe. */
void port_fill_queue(const struct port *main, struct port *queue);

/** Open the queue of engine `number` of `count`, as port_ops.open_queue. Not MT-safe. 0 or
 * -errno. */
int port_open_queue(const struct port *main, uint32_t number, uint32_t count, struct port *queue);

/** Stop and close the port, with the driver's sockets and rings. Engine's lock. */
void port_close(struct port *port);

/** Free the private data of a port that is closed or was never opened. Not MT-safe. */
void port_destroy(struct port *port);

/** Start to prepare a port, which is zero except for members that the user sets first. Called by
 * the functions that prepare a kind of port. */
void port_init(struct port *port, uint32_t mtu_bytes);

/**
 * Set the size and the number of a port's packet buffers. Called by the functions that prepare a
 * port.
 *
 * @param frame_bytes
 *   The longest frame. Buffers always hold our own longest frame.
 */
void port_size_buffers(struct port *port, uint32_t frame_bytes, uint32_t mbufs);

/** Make the port's pool, with `make_pool` if that is set. Called by functions that open a port. 0
 * or -errno (logged). */
int port_make_pool(struct port *port, const char *name);

/** Return true if packets sent now can reach a receiver. Engine's lock. */
bool port_connected(const struct port *port);

/**
 * Return true if the link is up. `connected` is the last result of port_connected: a second query
 * could give another answer, and the two results would contradict each other. Engine's lock. A link
 * in memory counts as up until its first peer has come and gone: programs refuse a port that is
 * down, and the first of two programs to start cannot have a peer yet.
 */
bool port_link_up(struct port *port, bool connected);

/** Return true if the port has gone for good. Engine's lock. */
bool port_lost(const struct port *port);

/** Return true if the port's next owner is there (port_ops.returned). Engine's lock. */
static inline bool port_returned(const struct port *port)
{
	return port->ops->returned && port->ops->returned(port->ops_arg);
}

/** Give up a port that has gone. Engine's lock. */
void port_lose(struct port *port);

/** Return true if the port has a connection: port_conn_run must be called (port/conn_thread.h).
 * MT-safe. */
static inline bool port_has_conn(const struct port *port)
{
	return port->ops->conn_run != NULL;
}

/** Handle what has happened to the connection. Does not wait. Engine's lock. */
static inline void port_conn_run(const struct port *port)
{
	port->ops->conn_run(port->ops_arg);
}

/** Return a descriptor that is readable when port_conn_run has work. MT-safe. */
static inline int port_conn_fd(const struct port *port)
{
	return port->ops->conn_fd(port->ops_arg);
}

/** Return the time in ms after which port_conn_run must be called even if port_conn_fd is not
 * readable; -1: never. Engine's lock. */
static inline int port_conn_ms(const struct port *port)
{
	return port->ops->conn_ms(port->ops_arg);
}

/** Return true if the port has interrupts to arm. MT-safe. */
static inline bool port_interrupts(const struct port *port)
{
	return __atomic_load_n(&port->interrupts, __ATOMIC_RELAXED);
}

/** Return true if interrupts are armed. MT-safe. */
static inline bool port_is_armed(const struct port *port)
{
	return __atomic_load_n(&port->armed, __ATOMIC_RELAXED);
}

/** Return the descriptor to sleep on for frames, or -1. MT-safe. */
static inline int port_wake_fd(const struct port *port)
{
	return __atomic_load_n(&port->wake_fd, __ATOMIC_RELAXED);
}

/** Wake the port's other end if it sleeps: a packet follows, and is not ready yet. Engine's thread.
 */
static inline void port_wake_other_end(const struct port *port)
{
	if (port->ops->wake_other_end)
		port->ops->wake_other_end(port->ops_arg);
}

/** Call before sleeping on wake_fd. Return true if frames wait, or may. Engine's lock if the port
 * has interrupts; else MT-safe. */
static inline bool port_arm(struct port *port)
{
	return port->ops->arm(port->ops_arg);
}

/** Call after sleeping. Engine's lock. */
static inline void port_disarm(struct port *port)
{
	if (port_is_armed(port))
		port->ops->disarm(port->ops_arg);
}

/** Receive up to `n` packets. Engine's thread. */
static inline uint16_t port_rx_burst(const struct port *port, struct rte_mbuf **mbufs, uint16_t n)
{
	if (!port->started)
		return 0;
	return port->ops->rx_burst(port->ops_arg, mbufs, n);
}

/** Send packets. Returns how many the port took; the port owns those. Engine's thread. */
static inline uint16_t port_tx_burst(const struct port *port, struct rte_mbuf **mbufs, uint16_t n)
{
	if (!port->started)
		return 0;
	return port->ops->tx_burst(port->ops_arg, mbufs, n);
}

/** Free a burst of packets, some of which may be NULL. A single one is cheaper by DPDK's
 * rte_pktmbuf_free than by its rte_pktmbuf_free_bulk. MT-safe. */
static inline void port_free_burst(struct rte_mbuf **mbufs, uint16_t n)
{
	if (n == 1)
		rte_pktmbuf_free(mbufs[0]);
	else
		rte_pktmbuf_free_bulk(mbufs, n);
}

/** Return the nanoseconds until port_rx_burst must be called even if no frame arrives; UINT64_MAX:
 * never. Engine's lock. */
static inline uint64_t port_due_ns(const struct port *port)
{
	return likely(!port->ops->due_ns) || !port->started ? UINT64_MAX
							    : port->ops->due_ns(port->ops_arg);
}

/** Prefetch the buffer of a packet that is being made. Engine's thread. */
static inline void port_expect(const struct port *port, uint32_t ahead, uint32_t len)
{
	if (port->ops->expect)
		port->ops->expect(port->ops_arg, ahead, len);
}

#endif
