/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How an owner goes on where the last one ended. Processes keep their own state, and attach again
 * with the numbers that they had (share/message.h, token). Until all of them have told what they
 * have, or RESUME_GATHER_NS have passed, the owner gathers: packets for a process that is not back
 * yet wait, as they would be lost, and so do management datagrams, as a connection request would be
 * answered as if nobody listened, and packets to groups. Processes that are back exchange packets
 * meanwhile.
 */
#ifndef OWNER_RESUME_H
#define OWNER_RESUME_H

#include <stdbool.h>
#include <stdint.h>

#include "owner/resume_table.h"
#include "share/user.h"

#define RESUME_GATHER_NS UINT64_C(100000000)
#define RESUME_AWAY_MS	 10000 /* processes wait so long for the next owner */

struct serve_config;
struct server;
struct share_message;

struct resume_awaited {
	struct resume_entry entry;
	uint32_t index; /* in the table */
};

/* What is reserved for processes that are not back yet, until they are given up. */
struct resume_needs {
	uint32_t slots;		/* of all kinds */
	uint32_t isolated;	/* slots of untrusted processes */
	uint32_t of_user;	/* of these, slots of one user's */
	uint32_t further;	/* slots of further engines */
	uint32_t shares;	/* full shares of the buffers that trusted ones may have had */
	uint32_t engine_shares; /* of these, those that processes of several engines had */
};

struct resume {
	int fd;			    /* of the table; -1: there is none */
	struct resume_table *table; /* NULL: processes cannot attach to the next owner */
	uint32_t away_ms;	    /* 0: nobody keeps the table */
	uint32_t kept_ms;	    /* away_ms while no next owner is there */
	bool hands_over;	    /* this owner ends, and the processes go on with the next one */
	bool must_leave;	    /* the next owner waits for the port; atomic */
	/* The connection of the next owner, which waits for its end if must_leave is set; -1: there
	 * is none. */
	int next_fd;
	bool gathers; /* packets for processes that are not back wait */
	uint64_t begun_ns;
	uint32_t count;	   /* processes of the last owner */
	uint32_t returned; /* of these, those that are back */
	struct resume_awaited *awaited;
	uint32_t awaited_count; /* that have no slot yet */
};

/** Take the table of the last owner, if there is one and it is right, or make one. After the port
 * is open. */
void resume_open(struct server *server, const struct serve_config *config);

void resume_close(struct server *server);

/** The owner ends. Return true if its processes go on with the next one. */
bool resume_hand_over(struct server *server);

/** Find what is kept for the process that has a token. 0; -ESTALE: nothing is. */
int resume_find(struct server *server, const uint8_t token[SHARE_TOKEN_BYTES], bool isolated,
		user_t user, struct resume_awaited *kept);

/** The process is back: nothing is kept for it any more. */
void resume_taken(struct server *server, const struct resume_awaited *kept);

/** Release the slot of a process that could not come back. It may try again. */
void resume_put_back(struct server *server, uint16_t number, const struct resume_awaited *kept);

/** Return what is reserved for processes that are not back yet. */
struct resume_needs resume_needs(const struct server *server, user_t user);

/** Return true if a process that is not back yet has a queue pair number. */
bool resume_awaits(const struct server *server, uint32_t qpn);

/** Give a slot the numbers that its process had. 0 or -errno. */
int resume_give_numbers(struct server *server, uint16_t number, const struct resume_entry *entry);

/** Enter a slot into the table, and put its token into the welcome. A process that is back (`kept`)
 * has its entry. */
void resume_enter(struct server *server, uint16_t number, const struct resume_awaited *kept,
		  struct share_message *welcome);

/** Remove a slot from the table: its process has ended, or is not served any more. */
void resume_forget(struct server *server, uint16_t number);

/** Note that a process has told all that it has. */
void resume_note_returned(struct server *server, uint16_t number);

/** Do what is due: move packets from now on, give up processes that have not come. */
void resume_check(struct server *server);

/** Tell all processes that the port is lost for good, before they are dismissed. */
void resume_give_up(struct server *server);

/** Answer the next owner's request on its connection. 0, or -errno: the connection is closed. */
int resume_replace(struct server *server, int fd, const struct share_message *message);

/** A connection has ended. If it is the next owner's, this one goes on. */
void resume_next_ended(struct server *server, int fd);

#endif
