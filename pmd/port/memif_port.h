/* SPDX-License-Identifier: BSD-3-Clause */
/* A memif port: its bursts, and the life of its connection. */
#ifndef MEMIF_PORT_H
#define MEMIF_PORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "memif/doorbell.h"
#include "memif/client_end.h"
#include "memif/server_end.h"
#include "port/memif_caller.h"
#include "port/port.h"

#define MEMIF_MTU	   9000 /* a frame may use several buffers of the ring */
#define MEMIF_BUFFER_BYTES 4608 /* holds the longest RoCE frame */
#define MEMIF_RING_LOG2	   9

#define MEMIF_PENDING_CLIENTS_MAX 8
#define MEMIF_SPARES		  32

/* Problems that are logged, once each. */
enum memif_complaint {
	MEMIF_ODD,
	MEMIF_WRONG_ID,
	MEMIF_WRONG_SECRET,
	MEMIF_SECOND,
	MEMIF_UNSEALED,
	MEMIF_NO_ROOM,
	MEMIF_FEW_RINGS,
	MEMIF_NO_RULE,
	MEMIF_COMPLAINTS
};

/* A client that has connected and has sent no message yet. */
struct memif_pending_client {
	int fd;		 /* or -1 */
	uint32_t number; /* its place in the order of arrival */
};

struct memif_port;

/* Functions of a role, server or client. All with the engine's lock. */
struct memif_role {
	/* Make the server's socket; NULL: none is needed. 0 or -errno (logged). */
	int (*open)(struct memif_port *memif);
	void (*close)(struct memif_port *memif);
	/* Handle the events of the connection; if there is none, try to connect. Never blocks. */
	void (*look)(struct memif_port *memif);
	/* Return true if `look` must be called again although no descriptor will tell. */
	bool (*retries)(const struct memif_port *memif);
	/* Handle a message of the other end, and take its descriptor. 0 or -errno. */
	int (*hear)(struct memif_port *memif, const struct memif_message *message, int fd);
	/* Take back memory before a connection ends that the other end has closed or broken; NULL:
	 * nothing to take back. */
	void (*take_back)(struct memif_port *memif);
	/* Forget a connection, and prepare for the next one. */
	void (*reset)(struct memif_port *memif);
	enum memif_complaint not_permitted; /* logged when `hear` returns -EPERM */
};

extern const struct memif_role memif_server_role, memif_client_role;

/* The part of a memif port that one engine uses. Engine's thread or lock. */
struct memif_queue {
	/* constant */
	struct memif_port *memif;
	struct port *port; /* the engine's */
	uint32_t number;   /* the engine's */
	memif_copy *copy;  /* from memif's buffers into a packet buffer */
	/* To sleep on: has the doorbells of the pairs while there is a connection. */
	int epoll_fd;

	uint32_t spares; /* packet buffers for the next received packets */
	struct rte_mbuf *spare[MEMIF_SPARES];
	/* The engine's ends of pairs of rings, while there is a connection; else none. Those that
	 * send are in the order of the peer's engines. */
	uint32_t rx_count, tx_count;
	struct memif_end *rx[MEMIF_PAIRS_MAX], *tx[MEMIF_PAIRS_MAX];
	uint32_t rx_next;		/* index in `rx` of the one that is received from first */
	struct memif_end *aimed;	/* to which the next placed packet goes; NULL: none */
	bool unpushed[MEMIF_PAIRS_MAX]; /* by index in `tx`: has packets that were not published */
	uint32_t aimed_at;		/* index in `tx` */
	/* The other end may send packets of other engines of ours. */
	bool checks_strays;
};

struct memif_port {
	/* The first engine's queue. First: functions for a queue find it from the port's ops_arg.
	 */
	struct memif_queue first;
	/* constant, when engines run */
	const struct memif_role *role;
	struct memif_end *end; /* the server's or the client's, of the first pair of rings */
	struct memif_queue *queues[MEMIF_QUEUES_MAX]; /* of all engines that have one */
	uint32_t queue_count;
	uint32_t engines; /* of the device */
	bool is_abstract;
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	struct memif_client_config config; /* of either role: the interface's number and secret */
	const struct memif_caller *caller; /* of a client that has no path; else NULL */
	void *caller_arg;
	uint16_t stand_in; /* if port.watched: the ethdev that captures see (stand_in.h) */
	int conn_epoll_fd; /* epoll descriptor: readable when memif_conn_look has work */
	int alarm_fd;	   /* eventfd: something is wrong with the connection */
	int listen_fd;	   /* of a server; or -1 */

	/* engine's thread or lock */
	int socket_fd; /* messages of the connection, or -1 */
	struct memif_pending_client pending_clients[MEMIF_PENDING_CLIENTS_MAX];
	uint32_t pending_next;
	bool pauses;	     /* a server that cannot accept clients for now */
	bool given_up;	     /* no connection is made any more */
	uint64_t taken_ms;   /* a server: when its client began to connect */
	uint32_t complaints; /* problems that were logged: bits of enum memif_complaint */
	bool refused;	     /* a client: its refusal was logged */
	bool had_peer;
	bool leaves; /* the other end has gone; its packets may still be in the rings */
	struct memif_server server;
	struct memif_client client;
	uint32_t open_queues; /* of further engines that have not ended; their thread */
};

/** Add the arguments that the user left out: the buffer size, and a MAC address that is the same
 * after a restart. 0 or -errno (logged). */
int memif_args_complete(struct devargs *devargs);

/** Check that no server has a socket's name, and remove a dead server's socket. Not when the port
 * is prepared: the server may be an owner that this process replaces. 0 or -errno (logged). */
int memif_make_room(const char *path, bool is_abstract);

/** Make `port` a memif port. Its device arguments have been parsed. Before EAL starts. Not MT-safe.
 * 0 or -errno (logged). */
int memif_port_prepare(struct port *port);

/** Make the private data of a memif port, with neither role nor settings. NULL: no memory. */
struct memif_port *memif_new(struct port *port);

/** Choose its role. */
void memif_choose(struct memif_port *memif, bool is_server);

/* The operations of a memif port. memif_open.c has the first and the last of them. */
extern const struct port_ops memif_port_ops;
int memif_port_open(void *memif);
void memif_port_destroy(void *memif);

/** Tables of operations: of the first engine's port if it has several pairs of rings, and of the
 * queues of other engines. */
extern const struct port_ops memif_pairs_ops, memif_queue_ops;

/** Operations that do not depend on the number of pairs (memif_port.c, for memif_pairs.c). */
bool memif_port_link_up(void *memif, bool connected);
bool memif_port_lost(void *memif);
void memif_port_lose(void *memif);
int memif_port_conn_fd(const void *memif);
void memif_port_close(void *memif);

/** Open the queue of a further engine (port_ops.open_queue). */
int memif_port_open_queue(void *memif, uint32_t number, uint32_t count, struct port *queue);

/** Return the number of pairs of rings of the connection, and the end of one. Engines' locks. */
uint32_t memif_port_pairs(const struct memif_port *memif);
struct memif_end *memif_port_pair(struct memif_port *memif, uint32_t pair);

/** Give each engine its pairs of rings of a new connection. Engines' locks. 0 or -errno. */
int memif_pairs_attach(struct memif_port *memif);

/** Take the pairs of rings from the engines: the connection ends. Engines' locks. */
void memif_pairs_detach(struct memif_port *memif);

/** Return true if there is a connection. Engine's lock. */
bool memif_port_is_connected(const struct memif_port *memif);

/** Return true if the other end has broken a rule in any pair of rings. Engines' locks. */
bool memif_port_is_broken(struct memif_port *memif);

/** Make the connection's thread run: the connection is broken. MT-safe. */
void memif_port_alarm(const struct memif_port *memif);

/** Write to an eventfd of the other end, if that does not block. MT-safe. */
void memif_port_ring_doorbell(int fd);

/** Arm the new connection for the engines that sleep already, so that packets wake them. Engines'
 * locks. */
void memif_pairs_arm_again(struct memif_port *memif);

/* memif_conn.c; all with the engine's lock */

/** Make the address of a socket. Returns its length. */
socklen_t memif_address(const char *path, bool is_abstract, struct sockaddr_un *addr);

/** Begin: a server makes its socket. 0 or -errno (logged). */
int memif_conn_open(struct memif_port *memif);

/** End the connection, and close the server's socket. */
void memif_conn_close(struct memif_port *memif);

/** Add a descriptor to conn_epoll_fd. 0 or -errno. */
int memif_conn_watch(const struct memif_port *memif, int fd);

/** Ignore a watched descriptor for a while (`on`), or watch it again. */
void memif_conn_ignore(const struct memif_port *memif, int fd, bool on);

/** Remove a socket from conn_epoll_fd and close it. Does nothing with -1. */
void memif_conn_drop(const struct memif_port *memif, int fd);

/** Handle what has happened to the connection (port_conn_run). */
void memif_conn_look(void *memif);

/** Return the time until memif_conn_look must be called again, in ms (port_conn_ms). */
int memif_conn_due_ms(const void *memif);

/** Return a new non-blocking socket, or -errno. */
int memif_conn_socket(void);

/** Log a problem and its remedy, once. */
void memif_conn_complain(struct memif_port *memif, enum memif_complaint complaint);

/** Receive a message and its descriptor. 1; 0: there is none; -errno: the other end has gone or
 * broke a rule. */
int memif_conn_read(int fd, struct memif_message *message, int *passed_fd);

/** Handle all messages of the other end. */
void memif_conn_hear(struct memif_port *memif);

/** Start to use a connection, after both ends have confirmed it. 0 or -errno. */
int memif_conn_established(struct memif_port *memif);

/** Send the other end the reason for a disconnection, if it still listens. */
void memif_conn_say_goodbye(int fd, const char *reason);

/** End the connection and unmap its memory. Its packets have been received. */
void memif_conn_hang_up(struct memif_port *memif, const char *reason);

#endif
