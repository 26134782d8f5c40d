/* SPDX-License-Identifier: BSD-3-Clause */
/* A simulation: hosts, links, a program from a seed, and the reports of broken promises. */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "clock.h"
#include "forge.h"
#include "sim_host.h"
#include "sim_link.h"
#include "program.h"
#include "rng.h"
#include "variant.h"

/* With work outstanding, a request must complete within this time. */
#define SIM_PATIENCE_NS 120000000000ull

struct packet;

/* The scenario of a program. */
enum scenario {
	SCENARIO_SOUND,	 /* everything succeeds */
	SCENARIO_MISHAP, /* one work fails */
	SCENARIO_CUT,	 /* the wire between two hosts is cut */
	SCENARIO_KILL,	 /* an application moves a queue pair to ERR in the middle */
	SCENARIO_GONE,	 /* an application deregisters memory that its peers use */
	SCENARIO_LOST,	 /* the memory under a region is taken away */
	SCENARIOS,
};

struct sim {
	uint64_t seed;
	bool verbose;
	int only; /* the requested scenario; -1: any */
	struct variant variant;
	const char *breaks; /* SIM_BREAK: the simulated fault, or NULL */
	struct rng rng;
	struct clock clock;

	enum scenario scenario;
	bool lossless; /* nothing is lost, damaged or reordered */
	bool tight;    /* timers may expire although nothing is lost */
	bool twice;    /* in the middle all queue pairs are reset and connected again */
	bool abrupt;   /* the reset may come at any moment, and outstanding requests are lost */
	bool halted;   /* the applications pause for aging */
	bool holding;  /* they post no sends until their queue pairs have aged */
	uint64_t age_after; /* closed requests before they age next */
	struct rng age_rng;
	bool second; /* the queue pairs are connected for the second time */
	struct forger forger;
	struct rng forge_rng;
	uint64_t est_ns; /* the longest time until an answer without losses */
	unsigned int hosts;
	struct host host[SIM_HOSTS_MAX];
	struct link link[SIM_HOSTS_MAX][SIM_HOSTS_MAX];
	unsigned int pairs;
	struct end end[2 * SIM_PAIRS_MAX];   /* ends 2n and 2n + 1 are a pair */
	struct flow flow[2 * SIM_PAIRS_MAX]; /* flow i is what end i sends */
	union ibv_gid group;		     /* UD flows may send to it */
	unsigned int words;
	struct word word[SIM_WORDS_MAX];
	struct region *word_region;
	struct end *victim;    /* SCENARIO_KILL, SCENARIO_CUT, SCENARIO_GONE */
	struct region *lost;   /* SCENARIO_LOST: the memory that will be taken away */
	struct region *gone;   /* the memory that was deregistered or taken away */
	uint8_t *gone_bytes;   /* its contents at that time */
	uint32_t strike_after; /* closed requests before it happens */
	uint64_t struck_ns;

	bool draining;	      /* all is done: no more completions may come */
	bool flushing;	      /* except flushes at the end of the queue pairs */
	uint64_t progress_ns; /* time of the newest completion */
	uint64_t works_closed;
	uint64_t packets;
	uint64_t stats_programs;
	uint64_t stats_works;
	uint64_t stats_delivered; /* messages that might have been lost */
	uint64_t stats_copied;	  /* those of them to other members of a group */
	uint64_t stats_bytes;
	uint64_t stats_forged;
	uint64_t stats_crossed; /* frames that one engine gave another */
	uint64_t stats_absent;	/* absent pages that were asked for */
};

/** Report a failure, dump the state, print how to repeat the run, and exit. */
void sim_fail(struct sim *sim, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));

#define sim_check(sim, condition, ...)                \
	do {                                          \
		if (!(condition))                     \
			sim_fail((sim), __VA_ARGS__); \
	} while (0)

/** Return the name of a scenario. */
const char *sim_scenario_name(int scenario);

/** Print how to repeat a program that crashes; after sim_watch, also one that does not end. */
void sim_catch_crashes(void);
void sim_watch(void);

/** Run the program of sim->seed and sim->variant. Returns when all its promises were kept. */
void sim_run(struct sim *sim);

/** Print all state that explains what waits for what. */
void sim_dump(const struct sim *sim);

/** Create the queue pairs of all ends. */
void connect_create_all(struct sim *sim);

/** Connect both ends of all pairs, some of them a little later. */
void connect_all(struct sim *sim);

/** Return true if send requests may be posted. */
bool end_sends(const struct end *end);

/** Set the destination in a send request, if its queue pair does not have one. */
void connect_address(const struct end *end, struct ibv_send_wr *wr);

/** Move a queue pair to a state with the attributes that the transition needs. */
void connect_modify(struct end *end, enum ibv_qp_state state);

/** Return the headers of the path to the peer. */
void connect_path(const struct end *end, struct path *path);

/** Destroy a queue pair. */
void connect_destroy(struct end *end);

/** Return an entry of a list as the post calls take it. */
struct ibv_sge post_entry(const struct span *span);

/** Post a list call by call. Return 0 or a positive errno. */
int build_sends(struct flow *flow, const struct ibv_send_wr *wr);

/** Post all that may be posted now. Return true if there was any. */
bool post_sends(struct flow *flow);
bool post_due_receives(struct flow *flow);

/** Start the applications. */
void app_start(struct sim *sim);

/** An engine poll is over: check the channel if the application sleeps on it. */
void app_wake(struct host *host);

/** Poll all completion queues of a host until they are empty. Return the number of completions. */
unsigned int app_poll(struct host *host);

/** Return true if all requests, posted and to be posted, are complete. */
bool app_finished(const struct sim *sim);

/** Return the wr_id of a request or receive of a flow. */
uint64_t check_id(unsigned int flow, bool receives, uint32_t index);

/** Record that a receive of a flow is complete. */
void check_receive(struct flow *flow, uint32_t index, const struct ibv_wc *wc);

/**
 * Check a completion from a queue of this host. Return true if it wakes a waiter for solicited
 * ones.
 */
bool check_completion(struct host *host, const struct ibv_wc *wc);

/** The program has ended: check states and events after mishaps. */
void check_states(struct sim *sim);

/** Accept either result of the requests from `first` on. */
void check_forgive(struct flow *flow, uint32_t first);

/** The queue pairs have ended: check memory and shared words. */
void check_end(struct sim *sim);

/** Check that nothing is in flight, and no timer runs. */
void check_quiet(struct sim *sim);

/** Record an asynchronous event (user: struct end). */
void check_event(void *user, enum ibv_event_type type);

/** A queue pair that was moved to SQD has drained. */
void pause_drained(struct end *end);

/** Return the name of a completion status. */
const char *status_text(enum ibv_wc_status status);

/** Print one frame; for struct link. */
void trace_frame(const struct link *link, enum link_fate fate, const uint8_t *bytes, uint32_t len);

/** A packet left a host: send what another implementation sends behind it. */
void soft_sent(struct end *end, const struct packet *packet);

#endif
