/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages on the socket between the owner of a port and a process: the same struct in both
 * directions. */
#ifndef SHARE_MESSAGE_H
#define SHARE_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "net/link.h"
#include "device/xrc_share.h"
#include "netdev/netdev.h"

/* Both ends must be of one build. An end with another number is refused with a message. */
#define SHARE_VERSION 18

#define SHARE_UNIQUE_MAX  512
#define SHARE_STATUS_MAX  98304
#define SHARE_TOKEN_BYTES 16

enum share_message_type {
	/* process: request for a slot; for the first engine: with its report's descriptor */
	SHARE_HELLO = 0x75726f63,
	SHARE_WELCOME, /* owner: the slot, or why not (result); with descriptors */
	SHARE_STATUS, /* anybody: asks for the status. The answer is text, in messages, until EOF */
	SHARE_ADDRESSES, /* owner, unrequested: the port's addresses or link have changed */
	SHARE_ROUTE,	 /* process: link_route */
	SHARE_RESOLVE,	 /* process: link_resolve */
	SHARE_JOIN,	 /* process: link_join */
	SHARE_LEAVE,	 /* process: link_leave */
	/* owner: reply to these four, SHARE_CLAIM, SHARE_LISTEN, SHARE_CHANGE, SHARE_DECLINE, and
	 * some of SHARE_XRC */
	SHARE_REPLY,
	/* owner, unrequested: a direct channel with another process; with its descriptors */
	SHARE_DIRECT,
	/* isolated process: asks for a memif connection, in place of its last one. owner: the
	 * answer (result); with its descriptors */
	SHARE_MEMIF,
	SHARE_CLAIM,   /* process: cm_ports_ops.claim */
	SHARE_LISTEN,  /* process: cm_ports_ops.listen */
	SHARE_RELEASE, /* process: cm_ports_ops.release; no reply */
	SHARE_CHANGE,  /* process: cm_ports_ops.change */
	SHARE_DECLINE, /* process: it does not use the packet socket of the welcome */
	/* process: what it does with XRC domains; some have a reply. owner: what other processes do
	 * with them */
	SHARE_XRC,
	/* process: it has told the next owner all that it had; no reply */
	SHARE_RETURNED,
	/* The next owner asks for what it needs to go on here, and then that this one leaves
	 * (number: enum share_replace). owner: the answer to the first, with descriptors and the
	 * number of its ports (welcome.ports); the end of the connection is the answer to the
	 * others. */
	SHARE_REPLACE,
};

enum share_replace {
	SHARE_REPLACE_ASK,
	SHARE_REPLACE_LEAVE, /* processes wait for the next owner */
	SHARE_REPLACE_END,   /* the next owner does not have this port: processes lose it */
};

/* Descriptors that come with a welcome, in this order. */
enum share_fd {
	SHARE_FD_ARENA,	  /* memory */
	SHARE_FD_PAGE,	  /* memory */
	SHARE_FD_OWNER,	  /* eventfd: wakes the owner */
	SHARE_FD_PROCESS, /* epoll set: readable when the process is woken */
	SHARE_FD_PSOCK,	  /* packet socket, bound to the port's interface, or absent */
	SHARE_FDS,
};

/* Descriptors that come with a direct channel, in this order. */
enum share_direct_fd {
	SHARE_DIRECT_FD_MEMORY,
	/* Trusted: an eventfd that wakes the other process. Else our end of a pair of sockets
	 * (memif/doorbell.h), which is shut down when the channel ends. */
	SHARE_DIRECT_FD_DOORBELL,
	SHARE_DIRECT_FDS,
};

/* Descriptors that come with a memif connection, in this order: one end of each pair of sockets.
 * The owner makes the pairs, and keeps no copy of this end that it reads. So nobody else can read
 * an end, which would keep its holder from reading it (memif/doorbell.h). */
enum share_memif_fd {
	SHARE_MEMIF_FD_SOCKET,	 /* memif's messages */
	SHARE_MEMIF_FD_DOORBELL, /* doorbells (memif/doorbell.h) */
	SHARE_MEMIF_FDS,
};

/* A direct channel, as one of its two processes sees it. */
struct share_offer {
	uint32_t number;    /* never 0 */
	uint16_t peer;	    /* slot of the other process */
	uint16_t side;	    /* our side, 0 or 1 */
	uint32_t qpn_first; /* of the other process */
	uint32_t qpn_count;
	uint16_t engines; /* of the other process's device, at least 1 */
	/* Both processes are attached, and believe each other's packets. Else both are isolated. */
	bool trusted;
	/* those that receive from it, as bits. A queue pair's engine is the remainder of its
	 * number divided by `engines`. */
	uint32_t served;
};

/* The engine of a process that asks for a slot. */
struct share_engine {
	uint32_t number; /* 0: the first one */
	uint32_t count;	 /* engines of the device */
	/* a further engine: */
	uint32_t generation; /* of the slot of the first engine */
	uint16_t slot;	     /* of the first engine */
};

/* A struct cm_port_claim in a message; not trusted. */
struct share_claim {
	uint32_t space;
	uint32_t id; /* reply to SHARE_CLAIM; SHARE_LISTEN, SHARE_CHANGE, SHARE_RELEASE */
	int32_t vlan_id;
	uint16_t port; /* in the reply: the port that was given */
	uint8_t ip_version;
	uint8_t any_address;
	uint8_t reuse;
	uint8_t address[GID_LEN];
};

/* Properties of a process's slot and of the port. */
struct share_welcome {
	uint16_t slot;
	uint32_t generation; /* how often the slot has been given */
	uint32_t qpn_first;
	uint32_t qpn_count;
	uint32_t id_mask; /* its communication ids have id_value in these bits */
	uint32_t id_value;
	uint32_t buffers;
	uint32_t buffer_bytes;	/* in use */
	uint32_t buffer_stride; /* from one buffer to the next */
	uint32_t quota;		/* buffers that the process may hold now; it may become larger */
	uint8_t mac[6];
	bool mac_is_random;
	uint32_t mtu_bytes;
	uint64_t link_mbps;
	uint64_t tsc_hz;
	bool spares_icrc; /* packets between its processes need no ICRC */
	/* that the owner shares; the second port's socket name ends in ".1" */
	uint32_t ports;
	uint32_t engines;    /* of the process's device: each may have a slot; 1: the first only */
	char name[64];	     /* the device's; "": each program chooses */
	uint32_t max_qp;     /* of the process; 0: only its queue pair numbers limit it */
	uint64_t max_memory; /* bytes that it may register; 0: no limit */
	char cc[8];	     /* congestion control of programs that choose none; "": the default */
	char unique[SHARE_UNIQUE_MAX]; /* from which the port's GUID is made */
};

struct share_message {
	uint32_t type;
	uint32_t number; /* of a request, and of the reply to it */
	int32_t result;	 /* 0, -errno; SHARE_RESOLVE: 1 if the MAC is known, else 0 */
	uint32_t version;
	struct share_welcome welcome;
	struct addresses addresses; /* SHARE_WELCOME, SHARE_ADDRESSES */
	bool link_up;		    /* likewise */
	/* SHARE_HELLO: the process maps no memory of an earlier slot: it has not attached here
	 * since its last exec. */
	uint8_t holds_nothing;
	struct address from;  /* SHARE_ROUTE, SHARE_RESOLVE */
	uint8_t gid[GID_LEN]; /* SHARE_ROUTE, RESOLVE, JOIN, LEAVE */
	/* SHARE_WELCOME, SHARE_ADDRESSES: the time that the process waits for the next owner if
	 * this one ends; 0: the port is lost then */
	uint32_t away_ms;
	/* SHARE_WELCOME: for the next owner. SHARE_HELLO: of the last owner; zero: none. */
	uint8_t token[SHARE_TOKEN_BYTES];
	/* SHARE_HELLO: the interface of the packet socket that the process has from the last owner;
	 * 0: it has none. SHARE_WELCOME: the same if it may use it, else 0. */
	uint32_t psock_ifindex;
	struct share_offer offer;   /* SHARE_DIRECT */
	struct xrc_note xrc;	    /* SHARE_XRC */
	struct share_engine engine; /* SHARE_HELLO */
	struct link_hop hop;	    /* reply to SHARE_ROUTE */
	uint8_t mac[6];		    /* reply to SHARE_RESOLVE */
	/* SHARE_CLAIM and its reply, SHARE_LISTEN, SHARE_CHANGE, SHARE_RELEASE */
	struct share_claim claim;
};

/* Descriptors of the answer to SHARE_REPLACE, in this order. */
enum share_replace_fd {
	SHARE_REPLACE_FD_TABLE,	   /* owner/resume_table.h */
	SHARE_REPLACE_FD_TRUSTED,  /* the listening socket */
	SHARE_REPLACE_FD_ISOLATED, /* the same for untrusted programs, or absent */
	SHARE_REPLACE_FDS,
};

struct sockaddr_un;

/** Get the socket address of the owner's n-th port. 0 or -ENAMETOOLONG. */
int share_socket_path(const char *path, uint32_t number, struct sockaddr_un *address);

/** Send a message, with descriptors (count may be 0). MT-safe. Does not block. 0 or -errno. */
int message_send(int fd, const struct share_message *message, const int *fds, int count);

/**
 * Receive a message. MT-safe. Does not block.
 *
 * @param fds
 *   Room for SHARE_FDS descriptors (close-on-exec), or NULL. Set to -1 where none came.
 * @return
 *   0; -EAGAIN; -ECONNRESET: the other end has closed; -EPROTO: not a message; -EMFILE: a message,
 *   but this process has no room for its descriptors, or there are too many; -errno.
 */
int message_receive(int fd, struct share_message *message, int *fds);

/** Do the same, and set the process id of the sender if the socket asks for it (SO_PASSCRED): 0 if
 * it does not, or if the sender is in another PID namespace. */
int message_receive_from(int fd, struct share_message *message, int *fds, pid_t *sender);

#endif
