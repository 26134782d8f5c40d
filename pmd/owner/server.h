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

#include "net/link.h"
#include "owner/arbiter.h"
#include "owner/budget.h"
#include "owner/patience.h"
#include "owner/serve.h"
#include "report/set.h"
#include "report/write.h"
#include "share/blocks.h"
#include "share/layout.h"
#include "share/ledger.h"
#include "share/steer.h"
#include "share/user.h"

#define SERVER_BURST		  32
#define SERVER_ISOLATED_MAX	  16 /* of the slots: those who are trusted always find some */
#define SERVER_ISOLATED_USER_MAX  8  /* of those; of one user, but for the superuser */
#define SERVER_STRANGERS_MAX	  32 /* who have not said yet what they want */
#define SERVER_STRANGERS_USER_MAX 8  /* of those; of one user, but for the superuser */

/*
 * A slot goes from one state to the next in this order, and may leave one out (slot_advance). What
 * happens to a process is only noted in its slot; in a turn the slot advances after packets were
 * taken from it, so nothing that a slot's end does can be in the middle of a burst of its packets.
 */
enum slot_state {
	SLOT_FREE,
	SLOT_LIVE,
	/* It hung up: nothing goes to it, and what it sent before is still taken, turn by turn, as
	 * far as SLOT_DRAIN_NS and its rings go. */
	SLOT_DRAINING,
	/* It is drained, or broke the rules: nothing goes to it or is taken from it. It may still
	 * write into the buffers it has, so they come back only when the process has ended. */
	SLOT_CONDEMNED,
};

struct isolated;
struct share_message;

struct slot {
	enum slot_state state;
	struct isolated *isolated; /* its wire; NULL: it shares memory with us, and has a page,
				      rings and lanes */
	bool hung_up;		   /* noted: its socket has no other end any more */
	bool broke_rule;	   /* noted */
	bool ended;		   /* noted: the process, or all there was of an isolated one */
	uint32_t drain_left;	   /* SLOT_DRAINING: packets that are still taken */
	uint64_t drain_end_ns;	   /* SLOT_DRAINING: until then */
	uint32_t generation;
	pid_t pid;
	uid_t uid;
	user_t user; /* isolated: whom limits of a user count it for */
	int socket;
	int pidfd;	       /* readable when the process has ended */
	struct report *report; /* what it shows of itself, in the set; or NULL */
	uint32_t qpn_first;
	uint32_t qpn_count;
	uint32_t id_value; /* of its communication ids */
	struct share_page *page;
	int process_fd; /* eventfd that wakes it */
	int bell_fd;	/* eventfd by which it wakes us: it can make no other's useless */
	struct share_ring rings[SHARE_RINGS];
	bool touched;		  /* in this turn something was put into its rings */
	bool addresses_due;	  /* it has not been told of them yet */
	struct patience patience; /* its rx ring had no room */
	struct budget budget;	  /* isolated: what its messages took */
	bool rests;		  /* isolated: its sockets are not watched (rest.c) */
	uint64_t tx_packets, rx_packets, rx_dropped;
};

/* A process is in a multicast group. */
struct server_group {
	LIST_ENTRY(server_group) link;
	uint16_t slot;
	uint8_t gid[GID_LEN];
};

/* A socket where processes come. */
struct listener {
	int fd; /* or -1 */
	char path[108];
	bool rests;	   /* it is not watched (rest.c) */
	uint64_t until_ns; /* at least */
};

/* An untrusted client that has connected and not yet said what it wants. */
struct stranger {
	int fd; /* or -1 */
	user_t user;
	uint32_t number; /* of all who came */
	bool rests;
};

struct server {
	struct link link;
	bool connected;	    /* the link, when it was last looked at */
	bool up;	    /* likewise */
	bool lost;	    /* atomic: the port has gone for good */
	uint64_t now_ns;    /* of the turn */
	uint64_t clock_ns;  /* of the last look at descriptors */
	uint64_t worked_ns; /* when there were packets last */
	uint64_t link_due_ns;
	uint64_t tend_due_ns; /* when the port's connection is looked at, unless there is news */

	int arena_fd;
	uint8_t *arena;
	size_t arena_bytes; /* whole pages of its kind */
	uint32_t buffer_stride;
	uint32_t held_max;	 /* buffers that a process may hold */
	struct rte_mbuf **mbufs; /* by number of the buffer */
	struct ledger ledger;

	struct blocks blocks;
	struct arbiter *arbiter; /* of QP 1 */
	struct psn gsi_psn;	 /* of the next MAD of our own */
	char netdev[64];	 /* the interface of the kernel's that the port is; "": none */
	int manager_fd;		 /* the right to be its connection manager, or -1 */
	struct slot slots[SERVE_SLOTS_MAX];
	uint16_t live[SERVE_SLOTS_MAX]; /* slots that are SLOT_LIVE or SLOT_DRAINING */
	uint16_t live_count;
	uint16_t first; /* of live: whose turn it is to be the first */
	LIST_HEAD(, server_group) groups;

	LIST_HEAD(, server_lane) lanes;
	uint32_t lane_number; /* the last that was given */
	bool spares_icrc;     /* between processes packets need none */
	bool passes_all;      /* no lanes: all packets pass here */
	/* packets from process to process, modulo */
	uint16_t handed[SERVE_SLOTS_MAX][SERVE_SLOTS_MAX];

	uint32_t pending_count; /* packets that the port has not taken yet */
	struct rte_mbuf *pending[SERVER_BURST];

	bool has_kernel; /* what is no RoCE goes to an interface of the kernel's, and what comes
			    from it out */
	struct port kernel;
	uint32_t kernel_count; /* frames for it */
	struct rte_mbuf *kernel_frames[SERVER_BURST];

	int epoll_fd;
	struct listener trusted;
	struct listener isolated; /* where those come who are not trusted */
	int wake_fd;		  /* eventfd, of serve_wake */
	int port_fd;		  /* the port's, as long as it is watched; or -1 */
	int spare_fd;		 /* given up where there are no descriptors, to tell who comes so */
	uint32_t resting;	 /* who are not listened to (rest.c) */
	uint16_t isolated_count; /* slots of those who are not trusted */
	uint32_t stranger_next;
	struct stranger strangers[SERVER_STRANGERS_MAX];
	struct budget newcomers; /* what letting them in took */
	char unique[512];
	char name[64];	 /* what programs call the device; "": as each likes */
	uint32_t ports;	 /* of this process */
	uint32_t number; /* of this one among them */
	struct serve_totals totals;

	bool captures;		/* what is handed over */
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
	EVENT_TEND, /* the connection of a port that port_tends */
	EVENT_LISTEN,
	EVENT_GREETING, /* number: the descriptor of who has not said what it wants */
	EVENT_SOCKET,	/* number: the slot */
	EVENT_PIDFD,	/* number: the slot */
	EVENT_LISTEN_ISOLATED,
	EVENT_STRANGER, /* number: the descriptor, as of a greeting */
	EVENT_WIRE,	/* number: the slot */
	EVENT_BELL,	/* number: the slot; edge-triggered */
};

/** CLOCK_MONOTONIC. */
uint64_t server_now_ns(void);

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

/* listen.c */

struct listen_config {
	const char *path;
	mode_t mode;
	uid_t owner;
	gid_t group;
};

/** Listen, with what nobody listens on any more taken away. What there is to be undone is noted in
 * the listener, whose descriptor was -1. 0 or -errno. */
int listen_open(struct server *server, const struct listen_config *config, enum server_event event,
		struct listener *listener);

/** Let somebody in. The socket, or -errno: there is nobody, or the listener rests. */
int listen_accept(struct server *server, struct listener *listener);

void listen_close(struct listener *listener);

/* rest.c */

/** Listen no more to an isolated process, to one that came, or for those who come, until they may
 * be heard. */
void rest_slot(struct server *server, uint16_t number);
void rest_stranger(struct server *server, struct stranger *stranger);
void rest_listener(struct server *server, struct listener *listener);

/** Forget a slot or client that rested. */
void rest_forget_slot(struct server *server, struct slot *slot);
void rest_forget_stranger(struct server *server, struct stranger *stranger);

/** Listen again to those who may be heard. */
void rest_look(struct server *server);

/* Return how long the owner may sleep, of `ms`, before it has to look at those that rest. */
int rest_longest_ms(const struct server *server, int ms);

/** Somebody was heard until now, and that took so long. */
void rest_charge_slot(struct server *server, uint16_t number, uint64_t took_ns);
void rest_charge_newcomers(struct server *server, uint64_t took_ns);

/* slot.c */

/**
 * Give a process a slot, and tell it so.
 *
 * @param report_fd
 *   What it shows of itself, or -1. Still the caller's.
 * @param isolated
 *   It is not trusted with shared memory.
 * @return
 *   0 or -errno: then it has been told, and the socket is still the caller's.
 */
int slot_begin(struct server *server, int socket, int report_fd, bool isolated);

/** The slot whose a queue pair's number is, or BLOCK_NONE. */
uint16_t slot_of(const struct server *server, uint32_t qpn);

/** Go on to the state that follows from what has been noted, and from what is left to be drained.
 * Not while packets are taken from the slot. */
void slot_advance(struct server *server, uint16_t number);

/** Have no more to do with a process that is still there. Not while packets are taken from it. */
void slot_condemn(struct server *server, uint16_t number);

/** The same of one that has hung up, once what it sent before has been taken. */
void slot_hang_up(struct server *server, uint16_t number);

/** The process has ended: the same, and then take everything back. */
void slot_end(struct server *server, uint16_t number);

/** The same at the owner's end, of a process that goes on. No buffer is used any more. */
void slot_abandon(struct server *server, uint16_t number);

/** Return true if packets are taken from a slot. */
static inline bool slot_is_served(const struct slot *slot)
{
	return slot->state == SLOT_LIVE || slot->state == SLOT_DRAINING;
}

/* forward.c */

/** Take in a frame from the port, in a buffer of the arena. */
void forward_input(struct server *server, struct rte_mbuf *mbuf);

/** Give a packet to a process. false, and the packet is still the caller's, where it takes no more.
 */
bool forward_give(struct server *server, uint16_t number, struct rte_mbuf *mbuf, uint8_t flags);

/** Take what a process has put into its rings, at most `most` packets. Returns how many. */
uint32_t forward_take(struct server *server, uint16_t number, uint32_t most);

/** Send on what came from a process, in a buffer that is the owner's. false, and the packet is
 * still the caller's: not now. */
bool forward_send_on(struct server *server, uint16_t number, struct rte_mbuf *mbuf);

/** Give a packet to a process, or drop it where that takes no more. */
void forward_give_or_drop(struct server *server, uint16_t number, struct rte_mbuf *mbuf,
			  uint8_t flags);

/**
 * Give a packet of one process to another. A process that takes nothing for a while loses packets,
 * and nobody waits for it; one that is only late has them wait in the ring of who sent them.
 *
 * @param makes_lane
 *   The two may get a lane, since they talk to each other.
 * @return
 *   False while the packet should wait; it is still the caller's.
 */
bool forward_hand_over(struct server *server, uint16_t from, uint16_t number, struct rte_mbuf *mbuf,
		       bool makes_lane);

/** Lay empty buffers ready for a process. */
void forward_restock(struct server *server, uint16_t number);

/** Send a frame of the owner's own. */
void forward_send_own(struct server *server, struct rte_mbuf *mbuf, size_t len);

/** Give the port what waits for it. */
void forward_flush(struct server *server);

/** A turn, as serve_turn. */
unsigned int forward_turn(struct server *server);

/** The same of one that is SLOT_DRAINING: some of what is left. */
uint32_t forward_drain(struct server *server, uint16_t number);

/** Return true if a process has sent what is not taken yet. */
bool forward_slot_waits(struct slot *slot);

/** Whether anything waits in the rings of processes. */
bool forward_waits(struct server *server);

/** Wake processes that sleep and have been given something. */
void forward_wake(struct server *server);

/* mads.c */

/** Take in a packet for QP 1 from the port. */
void mads_input(struct server *server, struct rte_mbuf *mbuf, uint8_t flags);

/** Send on a packet for QP 1 of this host, as forward_send_on. */
bool mads_send_on(struct server *server, uint16_t number, struct rte_mbuf *mbuf);

/* The lengths that a frame with a MAD may have: from IPv4 without a tag to IPv6 with one. */
#define MADS_FRAME_MIN 322
#define MADS_FRAME_MAX 346

/** Take note of a frame for a QP 1 that a process sends out of the port. */
void mads_note(struct server *server, uint16_t number, const uint8_t *frame, size_t len);

/** Tell peers of processes that have ended, where it is due. */
void mads_farewell(struct server *server);

/** Return true if an untrusted process may send a frame to a QP 1, or to another queue pair. */
bool mads_may_send(const struct server *server, uint16_t number, const uint8_t *frame, size_t len);

/** Be the connection manager of the interface that the port is, if nobody else is. Return false
 * while another process is: MADs are its. */
bool mads_manage(struct server *server);

/** Do what a process asks with SHARE_CLAIM, SHARE_LISTEN or SHARE_RELEASE. 0 or -errno. */
int mads_ports(struct server *server, uint16_t number, struct share_message *message);

/* stranger.c */

void stranger_init(struct server *server);

void stranger_accept(struct server *server);

/** Hear what one wants. */
void stranger_greeting(struct server *server, int fd);

/** As message_receive, with one descriptor, which may be anything. */
int stranger_receive(int fd, struct share_message *message, int *passed_fd);

void stranger_close_all(struct server *server);

/* isolated.c */

int isolated_create(struct slot *slot);

/** Nothing where it is none. */
void isolated_destroy(struct server *server, struct slot *slot);

/** Take a descriptor for its wire, in place of what it had. 0, or -errno: a rule was broken. */
int isolated_plug(struct server *server, uint16_t number, int fd);

/** The other end of its wire has gone, and what came over it is still taken. */
void isolated_hang_up(struct server *server, struct slot *slot);

/** Hear what comes over the wire's socket. 0, or -errno: a rule was broken. */
int isolated_hear(struct server *server, uint16_t number);

/** As forward_give. */
bool isolated_give(struct server *server, uint16_t number, struct rte_mbuf *mbuf, uint8_t flags);

/** As forward_take. */
uint32_t isolated_take(struct server *server, uint16_t number, uint32_t most);

/** The socket of its wire, or -1. */
int isolated_wire(const struct slot *slot);

bool isolated_is_broken(const struct slot *slot);

/** Whether there is something to be taken. */
bool isolated_waits(const struct slot *slot);

/** Ask to be told of what it sends from here on, or no more. */
void isolated_listen(const struct slot *slot, bool on);

/* serve.c */

/** Look at the link's state, and tell processes of it. */
void serve_check_link(struct server *server);

/** Look what has become of the connection of a port that has one. */
void serve_tend(struct server *server);

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
