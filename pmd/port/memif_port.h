/* SPDX-License-Identifier: BSD-3-Clause */
/* A memif port: its bursts, and the life of its connection. */
#ifndef MEMIF_PORT_H
#define MEMIF_PORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#include "memif/client_end.h"
#include "memif/server_end.h"
#include "port/memif_caller.h"
#include "port/port.h"

#define MEMIF_NEWCOMERS_MAX 8
#define MEMIF_SPARES	    32

/* What the user is told of, once each. */
enum memif_complaint {
	MEMIF_ODD,
	MEMIF_WRONG_ID,
	MEMIF_WRONG_SECRET,
	MEMIF_SECOND,
	MEMIF_UNSEALED,
	MEMIF_NO_ROOM,
	MEMIF_NO_RULE,
	MEMIF_COMPLAINTS
};

/* A client that has connected, and has not said what it wants. */
struct memif_newcomer {
	int fd;		 /* or -1 */
	uint32_t number; /* of all who came */
};

struct memif_port;

/* What the two roles of a port do differently. All with the engine's lock. */
struct memif_role {
	/* Make what the other end comes to; NULL: nothing. 0 or -errno (logged). */
	int (*open)(struct memif_port *memif);
	void (*close)(struct memif_port *memif);
	/* Look once what has become of the connection, and for another one where there is none;
	 * does not wait. */
	void (*look)(struct memif_port *memif);
	/* Return true if nothing wakes whoever has to look next. */
	bool (*retries)(const struct memif_port *memif);
	/* A message of the other end's, with its descriptor, which is taken. 0 or -errno. */
	int (*hear)(struct memif_port *memif, const struct memif_message *message, int fd);
	/* Before a connection is ended for what the other end did; NULL: nothing. */
	void (*take_back)(struct memif_port *memif);
	/* Forget a connection, and be ready for the next one. */
	void (*reset)(struct memif_port *memif);
	enum memif_complaint not_permitted; /* what -EPERM of `hear` is told as */
};

extern const struct memif_role memif_server_role, memif_client_role;

struct memif_port {
	/* constant */
	struct port *port;
	const struct memif_role *role;
	struct memif_end *end; /* the server's or the client's */
	bool is_abstract;
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	struct memif_client_config config; /* of either role: the interface's number and secret */
	const struct memif_caller *caller; /* of a client that has no path; else NULL */
	void *caller_arg;
	memif_copy *copy;  /* from memif's buffers into a packet buffer */
	uint16_t stand_in; /* where port.watched is set: DPDK's number of the port that is shown all
			    */
	int epoll_fd; /* to sleep on: has the connection's eventfd while there is a connection */
	int conn_epoll_fd; /* epoll descriptor: readable when memif_conn_look has work */
	int alarm_fd;	   /* eventfd: something is wrong with the connection */
	int listen_fd;	   /* of a server; or -1 */

	/* engine's thread or lock */
	int socket_fd; /* messages of the connection, or -1 */
	struct memif_newcomer newcomers[MEMIF_NEWCOMERS_MAX];
	uint32_t newcomer_next;
	bool pauses;	     /* a server that cannot let anybody in for the moment */
	bool given_up;	     /* nobody connects any more */
	uint64_t taken_ms;   /* when its client began to connect */
	uint32_t complaints; /* that the user knows of: bits of enum memif_complaint */
	bool refused;	     /* a client, and the user was told so */
	bool had_peer;
	bool leaves; /* the other end has gone; what it sent may not be received yet */
	struct memif_server server;
	struct memif_client client;
	uint32_t spares; /* buffers that what comes next is copied to */
	struct rte_mbuf *spare[MEMIF_SPARES];
};

/** Make `port` a memif port. Its device arguments have been parsed. Before EAL starts. Not MT-safe.
 * 0 or -errno (logged). */
int memif_port_prepare(struct port *port);

/** Whether packets get to somebody. Engine's lock. */
bool memif_port_is_connected(const struct memif_port *memif);

/** Whether the other end has broken a rule. Engine's lock. */
bool memif_port_is_broken(const struct memif_port *memif);

/** Have whoever looks after the connection look at it: it is broken. MT-safe. */
void memif_port_alarm(const struct memif_port *memif);

/** There is a connection. Where the engine sleeps already, it is to be woken by what comes there.
 * Engine's lock. */
void memif_port_arm_again(struct memif_port *memif);

/* memif_conn.c; all with the engine's lock */

/** Get the socket's name; a server also makes the socket. 0 or -errno (logged). */
int memif_conn_open(struct memif_port *memif);

/** At the end: say goodbye, and have nobody come any more. */
void memif_conn_close(struct memif_port *memif);

/** Have the connection looked after when a descriptor has something to read. 0 or -errno. */
int memif_conn_watch(const struct memif_port *memif, int fd);

/** Have what waits at a descriptor that is watched go unnoticed for a while, or no more. */
void memif_conn_hush(const struct memif_port *memif, int fd, bool on);

/** No more, and have nothing more to do with the socket. Nothing with -1. */
void memif_conn_drop(const struct memif_port *memif, int fd);

/** Look once what has become of the connection; does not wait. */
void memif_conn_look(void *memif);

/** How long until somebody has to look whom nothing wakes, in ms; -1: for ever. */
int memif_conn_due_ms(const void *memif);

/** A socket that does not wait, or -errno. */
int memif_conn_socket(void);

/** Tell the user what is wrong, and what to do, where that was not told yet. */
void memif_conn_complain(struct memif_port *memif, enum memif_complaint complaint);

/** A message, with its descriptor: 1; 0: there is none; -errno: the other end has gone, or broke a
 * rule. */
int memif_conn_read(int fd, struct memif_message *message, int *passed_fd);

/** Take all that the other end has said. */
void memif_conn_hear(struct memif_port *memif);

/** Both ends have said that they are connected. 0 or -errno. */
int memif_conn_established(struct memif_port *memif);

/** Tell why, as far as anybody listens. */
void memif_conn_say_goodbye(int fd, const char *reason);

/** End the connection. Its memory goes; what was in it has been received. */
void memif_conn_hang_up(struct memif_port *memif, const char *reason);

#endif
