/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The time between two owners. If the owner has said that somebody takes its place (away_ms), the
 * end of its socket is not the end of the port: the process attaches to the next owner, with its
 * token, and gets the numbers that it had. Then it tells the next owner what it has: claims of
 * ports, groups, XRC domains.
 *
 *   HERE     the owner answers
 *   AWAY     nobody listens at the owner's socket: the process tries again and again
 *   GREETED  somebody listens, and has not answered the hello yet
 *   BACK     the owner answers, and the engine does not use its memory yet (client_renew)
 *
 * Any thread with the lock goes on from one state to the next, but only the engine's thread from
 * BACK to HERE. Packets in rings of the last owner are lost. Direct channels and packet
 * sockets work until BACK.
 */
#ifndef CLIENT_AWAY_H
#define CLIENT_AWAY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <unistd.h>

#include "device/xrc_share.h"
#include "share/message.h"

struct share_client;

enum client_presence {
	CLIENT_HERE,
	CLIENT_AWAY,
	CLIENT_GREETED,
	CLIENT_BACK,
};

/* A request that the next owner gets again. */
struct client_promise {
	TAILQ_ENTRY(client_promise) link;
	LIST_ENTRY(client_promise) same; /* claim: its bucket */
	enum share_message_type type;	 /* SHARE_CLAIM, SHARE_JOIN, SHARE_XRC */
	struct share_claim claim; /* its id is the owner's, which may be another one each time */
	uint32_t id;		  /* claim: as the process knows it */
	bool listens;		  /* claim */
	uint8_t gid[GID_LEN];
	struct xrc_note xrc;
};

/* Programs have thousands of claims: they are found by their ids. */
#define CLIENT_CLAIM_BUCKETS 1024u

TAILQ_HEAD(client_promises, client_promise);

/* Protected by share_client.lock, unless stated otherwise. */
struct client_away {
	enum client_presence presence; /* atomic */
	uint32_t ms;		       /* how long to wait for the next owner; 0: not at all */
	uint8_t token[SHARE_TOKEN_BYTES];
	uid_t owner;	   /* the user who listened when the process attached */
	pid_t pid;	   /* a child of fork(2) does not take its parent's place */
	int report_fd;	   /* of the process; it has it as long as it runs */
	uint64_t since_ns; /* when the last owner ended; atomic */
	uint64_t end_ns;
	uint64_t tried_ns;
	uint32_t ids;			 /* given to claims instead of the owner's */
	struct client_promises promises; /* oldest first */
	LIST_HEAD(, client_promise) claims[CLIENT_CLAIM_BUCKETS];
	struct share_message welcome; /* BACK */
	int fds[SHARE_FDS];	      /* BACK: of the welcome */
	uint32_t times;		      /* engine's thread: that packets in rings were lost */
};

/** Return the user who listens at the other end of a socket. */
uid_t client_peer_user(int fd);

/** The owner's socket has ended. Return false if no other owner is waited for. */
bool client_go_away_locked(struct share_client *client);

/** Look for the next owner, once. Does not wait, but for the answers of an owner that is there. */
void client_seek_locked(struct share_client *client);

/** Return in how many milliseconds an isolated process looks for the next owner, or for its
 * answers, again: a part of the time for which the owner has been away; -1: never, the device is
 * lost. Any thread. */
int client_away_ms(const struct share_client *client);

/** Wait for an owner. 0 or -errno. */
int client_await_locked(struct share_client *client);

/** Keep what the owner has granted, for the next one. `request` is what it was asked. */
void client_promise_locked(struct share_client *client, const struct share_message *request,
			   const struct share_message *reply);

/** Keep a claim, and return the id by which the process knows it. */
uint32_t client_promise_claim_locked(struct share_client *client, const struct share_claim *claim);

/** Forget what a message that has no reply gives back. */
void client_forget_locked(struct share_client *client, const struct share_message *message);

/** Replace a claim's id by the owner's. */
void client_translate_locked(struct share_client *client, struct share_message *message);

/** Go on with the next owner from now on. */
void client_be_here(struct share_client *client);

/** The engine's thread uses what the next owner has given from now on. */
void client_settle_locked(struct share_client *client);

/** See port_ops.returned. */
bool client_returned(const struct share_client *client);

#endif
