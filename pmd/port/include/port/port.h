/* SPDX-License-Identifier: BSD-3-Clause */
/* A port, DPDK's or of our own, with one receive and one transmit queue, and the pool its packets
 * live in. */
#ifndef PORT_PORT_H
#define PORT_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "config/devargs.h"

/* How a port comes to packet buffers. */
enum port_dma {
	PORT_COPIES,	   /* the CPU does it: any memory will do */
	PORT_DMA_IOMMU,	   /* by itself, at addresses that it was given for memory (port/dma.h) */
	PORT_DMA_PHYSICAL, /* by itself, at the addresses that memory has in the machine */
};

#define PORT_MBUFS_SOFTWARE 2048 /* of ports that copy, and hold no buffers of ours */

#define PORT_OFFER_BYTES 120 /* headers fit, and what most short messages have */

/* In an mbuf's port: the packet's ICRC was found to be right when it was received. */
#define PORT_VERIFIED (UINT16_MAX - 2)

/* In an mbuf's port: the packet never left the memory of this host, and comes from who is trusted.
 */
#define PORT_HANDED_OVER (UINT16_MAX - 1)

/*
 * Which queue pair a packet that is sent is for, where that one is on this host; 0: none is.
 * Whoever makes a packet knows it already, and a port of many processes need not look for it in the
 * packet. (The field is a driver's to fill in what it receives, and nobody's in what is sent.)
 */
static inline void port_set_local_qpn(struct rte_mbuf *mbuf, uint32_t qpn)
{
	mbuf->hash.usr = qpn;
}

static inline uint32_t port_local_qpn(const struct rte_mbuf *mbuf)
{
	return mbuf->hash.usr;
}

struct port;

/*
 * Operations of a kind of port: DPDK's ports (ethdev.h), packet sockets (port/interface.h), memif
 * (port/memif_caller.h), an application's port (port/guest.h), a port that another process has
 * (attach/attach.h). `arg` is the port's ops_arg. Engine's thread or lock, but for open and
 * destroy.
 */
struct port_ops {
	/* Make what was prepared: see port_open. NULL: the port was opened when it got its table.
	 */
	int (*open)(void *arg);
	/* Where it gives less than it might, it says so in port.rx_cut. */
	uint16_t (*rx_burst)(void *arg, struct rte_mbuf **mbufs, uint16_t n);
	/* Where port.spares_icrc is set, each packet has had port_set_local_qpn. What is dropped
	 * counts as sent, and in port.tx_too_long. */
	uint16_t (*tx_burst)(void *arg, struct rte_mbuf **mbufs, uint16_t n);
	/* A packet that is being made, of `len` bytes at least, will be sent in a moment, after
	 * `ahead` others. May be NULL. */
	void (*expect)(void *arg, uint32_t ahead, uint32_t len);
	/*
	 * Packets that are built where the port sends them from; NULL: it takes them in mbufs only.
	 * Whether there is a place; the place, or NULL where it has not that many bytes; a packet
	 * of so many bytes is there; what was placed is sent. Whoever is at the other end may see a
	 * place while it is written, and change it.
	 */
	bool (*has_room)(void *arg);
	uint8_t *(*place)(void *arg, uint32_t len);
	/*
	 * The same of short packets to others on this host, from a port that spares the ICRC; NULL:
	 * they go as all do. A place of PORT_OFFER_BYTES for the next one, or NULL; and, when that
	 * is known, whether a packet to a queue pair may go from there.
	 */
	uint8_t *(*offer)(void *arg);
	bool (*suits)(void *arg, uint32_t qpn);
	void (*placed)(void *arg, uint32_t len);
	void (*push)(void *arg);
	/* From here on wake_fd tells of frames, until it has told of one. Whether some wait
	 * already. MT-safe, also after close, but for where port.interrupts is set. */
	bool (*arm)(void *arg);
	void (*disarm)(void *arg); /* Where port.interrupts is set: no more. */
	bool (*link_up)(void *arg, bool connected);
	bool (*connected)(void *arg);
	/* Whether the port has gone for good, with all that was to come through it. */
	bool (*lost)(void *arg);
	/*
	 * For a port that has a connection; NULL: the port has none. `conn_run` handles what has
	 * happened to the connection, and does not wait. `conn_fd` returns a descriptor that is
	 * readable when conn_run has work. `conn_ms` returns the time in ms after which conn_run
	 * must be called without that; -1: never.
	 */
	void (*conn_run)(void *arg);
	int (*conn_fd)(const void *arg);
	int (*conn_ms)(const void *arg);
	/* Give up a port that has gone; NULL: there is nothing to give up. */
	void (*lose)(void *arg);
	void (*close)(void *arg);
	/* Free `arg`, of a port that is closed or could not be opened. NULL: it is the caller's. */
	void (*destroy)(void *arg);
};

struct port_drops {
	uint64_t packets, bytes;
};

struct port {
	/* set by whoever prepares the port, once */
	const struct port_ops *ops;
	void *ops_arg; /* what the kind of port keeps for itself */
	struct devargs devargs;
	uint32_t
		mtu_bytes; /* largest IP packet; 0 until port_open where the port itself must say */
	uint32_t mbuf_bytes; /* room of one packet buffer, without headroom */
	uint32_t mbufs;
	bool waits_for_server;	/* no packet arrives before another program has made the link */
	bool opens_files;	/* whoever looks after the connection opens a socket by its name */
	bool through_kernel;	/* each packet is a call of the kernel's */
	bool lcores_are_others; /* the application runs DPDK itself: its lcores are its own */
	bool watched;		/* set before: DPDK's pdump shall see the packets */

	/* Makes the pool in place of port_open, of memory that `dma` is for, or NULL; 0 or -errno
	 * (logged). */
	int (*make_pool)(struct port *port);
	void *make_pool_arg;

	uint64_t tsc_hz;	/* of the time stamp counter; 0: EAL knows */
	bool spares_icrc;	/* packets to our own MAC stay on this host, and need no ICRC */
	uint32_t own_qpn_first; /* packets to our MAC and other queue pairs than these go out too */
	uint32_t own_qpn_count;

	/* set by port_open */
	enum port_dma dma;
	int numa_node;
	struct rte_mempool *pool;
	uint8_t mac[6];
	bool mac_is_random; /* made up by the driver at each start */
	uint64_t link_mbps;
	bool checks_sums; /* the port verifies IPv4 and UDP checksums */
	bool sums_udp;	  /* the port computes UDP checksums of what it sends */
	bool gathers;	  /* the port does DMA, and sends a packet from several buffers */
	bool interrupts; /* the port has receive interrupts, and wake_fd tells of them once they are
			    armed; atomic */
	int wake_fd; /* readable when frames wait, or -1; atomic: a port that is lost has none */

	/* engine's thread or lock */
	bool started;
	bool rx_cut; /* of port_ops: the last burst ended before what waits did */
	/* Frames lost since the beginning, as port_ops know: */
	uint64_t rx_too_long;	       /* dropped by port_ops */
	uint64_t rx_missed;	       /* dropped before port_ops could take them */
	struct port_drops tx_too_long; /* and packets */
	struct port_drops tx_refused;  /* packets that an interface of the kernel's did not take */
	struct port_drops tx_unconnected; /* packets dropped while the port had no connection */

	bool armed; /* frames interrupt; atomic */
};

/**
 * Understand which port the user wants, choose the kind of port that it is (`ops`), and add what
 * its driver needs. Before EAL starts. Not MT-safe.
 *
 * @param text
 *   DPDK device arguments.
 * @param mtu_bytes
 *   What the user says the port carries, or 0.
 * @return
 *   0 or -errno (logged).
 */
int port_prepare(struct port *port, const char *text, uint32_t mtu_bytes);

/** Bytes of DPDK memory that the port will want. */
size_t port_memory_bytes(const struct port *port);

/** Make and start the port. After EAL's start. Not MT-safe. 0 or -errno (logged). */
int port_open(struct port *port);

/** Stop and close: driver's sockets and rings are gone afterwards. Engine's lock. */
void port_close(struct port *port);

/** Free what a port keeps for itself, which is closed or was never opened. Not MT-safe. */
void port_destroy(struct port *port);

/** Begin to prepare a port that is zeroed but for what its user sets first. For who prepares one.
 */
void port_init(struct port *port, uint32_t mtu_bytes);

/**
 * Set the size of a port's packet buffers, and how many there are. For who prepares a port.
 *
 * @param frame_bytes
 *   The longest frame; buffers hold our own longest one in any case.
 */
void port_size_buffers(struct port *port, uint32_t frame_bytes, uint32_t mbufs);

/** Make the port's pool, by `make_pool` where it is set. For who opens a port. 0 or -errno
 * (logged).
 */
int port_make_pool(struct port *port, const char *name);

/** Whether packets given to the port now reach somebody. Engine's lock. */
bool port_connected(const struct port *port);

/**
 * Return true if the link is up. `connected` is the last result of port_connected: a second query
 * could give another answer, and the two results would contradict each other. Engine's lock. A link
 * in memory counts as up until its first peer has come and gone: programs refuse a port that is
 * down, and the first of two programs to start cannot have a peer yet.
 */
bool port_link_up(struct port *port, bool connected);

/** Whether the port has gone for good. Engine's lock. */
bool port_lost(const struct port *port);

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

/** Whether the port has interrupts to arm. MT-safe. */
static inline bool port_interrupts(const struct port *port)
{
	return __atomic_load_n(&port->interrupts, __ATOMIC_RELAXED);
}

/** Whether interrupts are armed. MT-safe. */
static inline bool port_is_armed(const struct port *port)
{
	return __atomic_load_n(&port->armed, __ATOMIC_RELAXED);
}

/** What to sleep on for frames, or -1. MT-safe. */
static inline int port_wake_fd(const struct port *port)
{
	return __atomic_load_n(&port->wake_fd, __ATOMIC_RELAXED);
}

/** Before sleeping on wake_fd: whether frames wait already, or may. Engine's lock where there are
 * interrupts, else MT-safe. */
static inline bool port_arm(struct port *port)
{
	return port->ops->arm(port->ops_arg);
}

/** After sleeping. Engine's lock. */
static inline void port_disarm(struct port *port)
{
	if (port_is_armed(port))
		port->ops->disarm(port->ops_arg);
}

/** Up to `n` received packets. Engine's thread. */
static inline uint16_t port_rx_burst(const struct port *port, struct rte_mbuf **mbufs, uint16_t n)
{
	if (!port->started)
		return 0;
	return port->ops->rx_burst(port->ops_arg, mbufs, n);
}

/** Send; returns how many the port took, which are then its own. Engine's thread. */
static inline uint16_t port_tx_burst(const struct port *port, struct rte_mbuf **mbufs, uint16_t n)
{
	if (!port->started)
		return 0;
	return port->ops->tx_burst(port->ops_arg, mbufs, n);
}

/** Have the port fetch what it writes a packet to, while that is being made. Engine's thread. */
static inline void port_expect(const struct port *port, uint32_t ahead, uint32_t len)
{
	if (port->ops->expect)
		port->ops->expect(port->ops_arg, ahead, len);
}

#endif
