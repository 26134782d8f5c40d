/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control connection between the two sides of a test. The active side sends a request, and the
 * passive side answers each request with a message of the same kind. Each connection of a test has
 * one OPEN, one JOIN for each group of queue pairs, and one CLOSE. Between two processes the
 * messages go over TCP; within one process they are function calls. Both processes run the same
 * program on machines of the same byte order.
 */
#ifndef TESTROCE_CONTROL_CONN_H
#define TESTROCE_CONTROL_CONN_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "endpoint.h"
#include "plan.h"

#define CONTROL_MAGIC	UINT64_C(0x6f72747365740004) /* changes with any of these structs */
#define CONTROL_PORT	"19790"
#define CONTROL_QPS_MAX 128 /* queue pairs of one JOIN message */

enum control_kind { CONTROL_OPEN = 1, CONTROL_JOIN, CONTROL_CLOSE };

struct control_message {
	uint64_t magic;
	uint32_t kind;
	int32_t status; /* set in answers: 0, or -errno with an explanation in text */
	char text[128];
	union {
		struct {
			struct plan plan; /* set in the request */
			struct endpoint_facts facts;
		} open;
		struct {
			uint32_t first;
			uint32_t count;
			uint32_t qpns[CONTROL_QPS_MAX];
		} join;
		struct {
			uint64_t messages; /* request: sent; answer: received, if the mode can count
					    */
			uint64_t wrong; /* answer: messages whose bytes are not what they should be
					 */
		} close;
	} u;
};

struct nic;
struct passive;

/* The active side's end: either a TCP connection, or the passive side in this process. */
struct control {
	struct nic *nic;
	int fd;		       /* -1: none */
	const char *where;     /* the passive side's address; NULL: it is `local` */
	struct passive *local; /* unused with `where` */
};

/** Listen for active sides at "[ADDR:]PORT" or "PORT". Returns a descriptor, or -errno with
 * `error`. */
int control_listen(const char *where, char *error, size_t error_size);

/** Connect to a passive side at "ADDR[:PORT]"; retries for some seconds. `where` must outlive the
 * connection. Returns 0, or -errno with `error`. */
int control_connect(struct control *control, struct nic *nic, const char *where, char *error,
		    size_t error_size);

/**
 * Open one more connection to the passive side of `first`. If that is in this process, the new
 * connection gets a passive side of its own, `local`.
 *
 * @return
 *   0, or -errno with `error`.
 */
int control_connect_more(struct control *control, const struct control *first, struct nic *nic,
			 struct passive *local, char *error, size_t error_size);

void control_init(struct control_message *message, enum control_kind kind);

/** Connect again to the passive side if control_call has closed the connection. Returns 0, or
 * -errno with `error`. */
int control_renew(struct control *control, char *error, size_t error_size);

/** Send a request and wait for the answer, which overwrites the request. Returns 0, or -errno with
 * the answer's text. Closes a connection that has failed. */
int control_call(struct control *control, struct control_message *message);

/**
 * Send or receive one whole message. The calls give the engine polls while they wait. Not MT-safe.
 *
 * @param stop
 *   Atomic: ends the call when it becomes nonzero; or NULL.
 * @return
 *   0; -ECONNRESET: the other side closed the connection; -EPROTO: the message has a wrong magic
 *   number; -ETIMEDOUT: it has taken a minute; -ECANCELED: `stop`; or another -errno.
 */
int control_send(int fd, const struct control_message *message, struct nic *nic,
		 const volatile sig_atomic_t *stop);
int control_recv(int fd, struct control_message *message, struct nic *nic,
		 const volatile sig_atomic_t *stop);

/** Answer a connection that is not served with an error and its reason, and close it. The active
 * side finds the answer after its first request. MT-safe. */
void control_refuse(int fd, int rc, const char *reason);

void control_close(struct control *control);

#endif
