/* SPDX-License-Identifier: BSD-3-Clause */
/* The owner of a port, inside. Everything is its one thread's, but for what stands in shared
 * memory. */
#ifndef SERVER_H
#define SERVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include <rte_mbuf.h>

#include "link/link.h"
#include "link/reconnect.h"
#include "report/set.h"
#include "report/write.h"
#include "share/blocks.h"
#include "share/layout.h"
#include "share/ledger.h"
#include "share/serve.h"
#include "share/steer.h"

#define SERVER_BURST 32

enum slot_state {
	SLOT_FREE,
	SLOT_LIVE,
	/* It hung up or broke the rules: nothing goes to it or is taken from it. It may still write
	 * into the buffers it has, so they come back only when the process has ended. */
	SLOT_CONDEMNED,
};

struct slot {
	enum slot_state state;
	uint32_t generation;
	pid_t pid;
	uid_t uid;
	int socket;
	int pidfd;	/* readable when the process has ended */
	int process_fd; /* eventfd that wakes it */
	struct share_page *page;
	struct report *report; /* what it shows of itself, in the set; or NULL */
	struct share_ring rings[SHARE_RINGS];
	uint32_t qpn_first;
	uint32_t qpn_count;
	bool touched;		/* in this turn something was put into its rings */
	bool addresses_due;	/* it has not been told of them yet */
	uint64_t full_since_ns; /* its rx ring had no room; 0: it has */
	uint64_t tx_packets, rx_packets, rx_dropped;
};

/* A process is in a multicast group. */
struct server_group {
	LIST_ENTRY(server_group) link;
	uint16_t slot;
	uint8_t gid[GID_LEN];
};

struct server {
	struct link link;
	bool connected; /* the link, when it was last looked at */
	bool lost; /* atomic: the port has gone for good */
	uint64_t now_ns;
	uint64_t link_due_ns;

	int arena_fd;
	uint8_t *arena;
	size_t arena_bytes; /* whole pages of its kind */
	uint32_t buffer_stride;
	uint32_t held_max; /* buffers that a process may hold */
	struct rte_mbuf **mbufs; /* by number of the buffer */
	struct ledger ledger;

	struct blocks blocks;
	struct slot slots[SERVE_SLOTS_MAX];
	uint16_t live[SERVE_SLOTS_MAX]; /* slots that are SLOT_LIVE */
	uint16_t live_count;
	uint16_t first; /* of live: whose turn it is to be the first */
	LIST_HEAD(, server_group) groups;

	LIST_HEAD(, server_lane) lanes;
	uint32_t lane_number; /* the last that was given */
	bool spares_icrc; /* between processes packets need none */
	bool passes_all;	 /* no lanes: all packets pass here */
	uint16_t handed[SERVE_SLOTS_MAX][SERVE_SLOTS_MAX]; /* packets from process to process, modulo */

	uint32_t pending_count; /* packets that the port has not taken yet */
	struct rte_mbuf *pending[SERVER_BURST];

	bool has_kernel; /* what is no RoCE goes to an interface of the kernel's, and what comes
			    from it out */
	struct port kernel;
	uint32_t kernel_count; /* frames for it */
	struct rte_mbuf *kernel_frames[SERVER_BURST];

	int epoll_fd;
	int listen_fd;
	int wake_fd; /* eventfd */
	char socket_path[108];
	char unique[512];
	char name[64];	/* what programs call the device; "": as each likes */
	uint32_t ports; /* of this process */
	uint32_t number; /* of this one among them */
	struct serve_totals totals;

	bool gated; /* the port is a memif wire */
	bool gate_wanted; /* atomic: the interrupt thread waits for gate_lock */
	bool gate_ended;  /* atomic */
	pthread_mutex_t gate_lock; /* of everything here; the owner's thread has it but for its sleep */
	struct reconnect reconnect; /* interrupt thread, under gate_lock */

	bool captures; /* what is handed over */
	char shared_prefix[32]; /* of files that DPDK's memory is in; "": in none */
	uint16_t capture_port;
	uint32_t max_qp;     /* of a process; 0: no limit but that of its numbers */
	uint64_t max_memory; /* bytes that it registers; 0: no limit */

	struct report_set *reports;
	struct report *report; /* our own, in the set; or NULL */
	int report_fd;
};

/* What a descriptor in the epoll set is. */
enum server_event {
	EVENT_WAKE,
	EVENT_PORT, /* or the kernel's interface */
	EVENT_LISTEN,
	EVENT_GREETING, /* number: the descriptor of who has not said what it wants */
	EVENT_SOCKET,	/* number: the slot */
	EVENT_PIDFD,	/* number: the slot */
};

/** Watch a descriptor. 0 or -errno. */
int server_watch(struct server *server, int fd, enum server_event event, uint32_t number);

/** The same of one that is watched already. */
int server_rewatch(struct server *server, int fd, enum server_event event, uint32_t number);

/* arena.c */
/** How many buffers there will be. */
uint32_t arena_buffers(const struct server *server);
/** Makes it, and the port's pool of it: port.make_pool. */
int arena_make_pool(struct port *port);
void arena_destroy(struct server *server);

static inline uint32_t arena_buffer(const struct server *server, const struct rte_mbuf *mbuf)
{
	return (uint32_t)(((uintptr_t)mbuf->buf_addr - (uintptr_t)server->arena) /
			  server->buffer_stride);
}

/* slot.c */

/**
 * Give a process a slot, and tell it so.
 *
 * @param report_fd
 *   What it shows of itself, or -1. Still the caller's.
 * @return
 *   0 or -errno: then it has been told, and the socket is still the caller's.
 */
int slot_begin(struct server *server, int socket, int report_fd);

/** The slot whose a queue pair's number is, or BLOCK_NONE. */
uint16_t slot_of(const struct server *server, uint32_t qpn);

/** Have no more to do with a process that is still there. */
void slot_condemn(struct server *server, uint16_t number);

/** The same of one that has hung up; what it sent before still goes. */
void slot_hang_up(struct server *server, uint16_t number);

/** Take everything back from a process that has ended. */
void slot_end(struct server *server, uint16_t number);

/* forward.c */

/** Take in a frame from the port, in a buffer of the arena. */
void forward_input(struct server *server, struct rte_mbuf *mbuf);

/** Give a packet to a process. false, and the packet is still the caller's, where it takes no more.
 */
bool forward_give(struct server *server, uint16_t number, struct rte_mbuf *mbuf, uint8_t flags);

/** Take what a process has put into its rings, at most `most` packets. Returns how many. */
uint32_t forward_take(struct server *server, uint16_t number, uint32_t most);

/** Lay empty buffers ready for a process. */
void forward_restock(struct server *server, uint16_t number);

/** Send a frame of the owner's own. */
void forward_send_own(struct server *server, struct rte_mbuf *mbuf, size_t len);

/** Give the port what waits for it. */
void forward_flush(struct server *server);

/** A turn, as serve_turn. */
unsigned int forward_turn(struct server *server);

/** Whether anything waits in the rings of processes. */
bool forward_waits(struct server *server);

/** Wake processes that sleep and have been given something. */
void forward_wake(struct server *server);

/* serve.c */

/** Look at the link's state, and tell processes of it. */
void serve_check_link(struct server *server);

/* gated.c: what follows does nothing where the port is no memif wire. */

/** Before the port is made. 0 or -errno (logged). */
int gated_prepare(struct server *server);

/** From here on the interrupt thread has its rounds. */
void gated_open(struct server *server);

/** Around everything that the owner's thread does but sleep. */
void gated_lock(struct server *server);
void gated_unlock(struct server *server);

/** For good: the interrupt thread does nothing any more. */
void gated_end(struct server *server);

/* kernel.c: what follows does nothing where the port is not the kernel's as well. */

/** Make the kernel's interface, and use its addresses; the port is open. 0 or -errno (logged). */
int kernel_open(struct server *server, const struct settings *settings);

/** Give the kernel a frame from the port, which is no more the caller's. Only where there is such
 * an interface. */
void kernel_give(struct server *server, struct rte_mbuf *mbuf);

/** Frames in both directions; before processes take the room in the port. Returns how many came
 * from the kernel. */
unsigned int kernel_turn(struct server *server);

void kernel_close(struct server *server);

/* capture.c */

/** Make ready what settings want captured; the port is open. 0 or -errno (logged). */
int capture_open(struct server *server, const struct settings *settings);

/** A copy of a packet that is to be handed over; NULL where nothing captures it. */
struct rte_mbuf *capture_copy(const struct server *server, const struct rte_mbuf *mbuf);

/** It was handed over: show the copy, which is no more the caller's. Nothing with NULL. */
void capture_send(const struct server *server, struct rte_mbuf *copy);

/* status.c */

/** Make the report of the whole, for who watches. 0 or -errno. */
int status_open_report(struct server *server, const struct settings *settings);

/** Write it anew where somebody has asked for it. */
void status_answer_report(struct server *server);

/* lanes.c */

/** A packet goes from a process to another: make a lane between them, where there is none. */
void lanes_note(struct server *server, uint16_t from, uint16_t to);

/** A process is not talked to any more: others shall not, either. */
void lanes_close(struct server *server, uint16_t number);

/** A process has ended. Before the ledger is told. */
void lanes_end(struct server *server, uint16_t number);

/** Take back what processes that have ended had lent, where it is done with. */
void lanes_look(struct server *server);

/** Packets that have gone through the lanes of now; what their processes write is believed. */
uint64_t lanes_packets(const struct server *server);

void lanes_destroy(struct server *server);

/* control.c */

/** Do what a descriptor asks for. */
void control_event(struct server *server, enum server_event event, uint32_t number);

/** Tell a process of the port's addresses, as far as its socket takes it. */
void control_send_addresses(struct server *server, uint16_t number);

/** Leave all groups of a slot. */
void control_leave_all(struct server *server, uint16_t number);

#endif
