/* SPDX-License-Identifier: BSD-3-Clause */
/* A simulation: hosts, links, a program from a seed, and what fails when a promise is broken. */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "clock.h"
#include "forge.h"
#include "host.h"
#include "link.h"
#include "program.h"
#include "rng.h"
#include "variant.h"

/* With work outstanding, something must become complete within so long. */
#define SIM_PATIENCE_NS 120000000000ull

struct packet;

/* What a program is about. */
enum scenario {
	SCENARIO_SOUND,	 /* everything succeeds */
	SCENARIO_MISHAP, /* one work fails */
	SCENARIO_CUT,	 /* the wire between two hosts is cut */
	SCENARIO_KILL,	 /* an application moves a queue pair to ERR in the middle */
	SCENARIO_GONE,	 /* an application deregisters memory that its peers use */
	SCENARIO_LOST,	 /* memory is taken away under a region */
	SCENARIOS,
};

struct sim {
	uint64_t seed;
	bool verbose;
	int only; /* scenario asked for, -1 for any */
	struct variant variant;
	const char *breaks; /* SIM_BREAK: the fault that is faked, or NULL */
	struct rng rng;
	struct clock clock;

	enum scenario scenario;
	bool lossless; /* nothing is lost, damaged or reordered */
	bool tight;    /* timers run out though nothing is lost */
	bool twice;    /* in the middle all queue pairs are reset and connected again */
	bool abrupt;   /* then in the middle of everything, and what is outstanding is forgotten */
	bool halted;   /* the applications are stopped for that */
	bool holding;  /* they post no sends until their queue pairs have aged */
	uint64_t age_after; /* works closed before they age next */
	struct rng age_rng;
	bool second; /* the queue pairs are connected for the second time */
	struct forger forger;
	struct rng forge_rng;
	uint64_t est_ns; /* the longest that an answer takes without losses */
	unsigned int hosts;
	struct host host[SIM_HOSTS_MAX];
	struct link link[SIM_HOSTS_MAX][SIM_HOSTS_MAX];
	unsigned int pairs;
	struct end end[2 * SIM_PAIRS_MAX];   /* a pair is two neighbours */
	struct flow flow[2 * SIM_PAIRS_MAX]; /* flow i is what end i sends */
	union ibv_gid group;		     /* whom UD flows may send to */
	unsigned int words;
	struct word word[SIM_WORDS_MAX];
	struct region *word_region;
	struct end *victim;    /* SCENARIO_KILL, SCENARIO_CUT, SCENARIO_GONE */
	struct region *lost;   /* SCENARIO_LOST: what is to be taken away */
	struct region *gone;   /* what was deregistered or taken away */
	uint8_t *gone_bytes;   /* what it held then */
	uint32_t strike_after; /* works closed before it happens */
	uint64_t struck_ns;

	bool draining;	      /* all is done: nothing more may complete */
	bool flushing;	      /* but what the end of the queue pairs flushes */
	uint64_t progress_ns; /* of the newest completion */
	uint64_t works_closed;
	uint64_t packets;
	uint64_t stats_programs;
	uint64_t stats_works;
	uint64_t stats_delivered; /* messages that were not sure to be */
	uint64_t stats_copied;	  /* of them, to others of a group */
	uint64_t stats_bytes;
	uint64_t stats_forged;
	uint64_t stats_absent; /* pages that were asked for, and were not in memory */
};

/** Say what is wrong, dump the state, say how to repeat the run, and exit. */
void sim_fail(struct sim *sim, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));

#define sim_check(sim, condition, ...)                \
	do {                                          \
		if (!(condition))                     \
			sim_fail((sim), __VA_ARGS__); \
	} while (0)

/** Return the name of a scenario. */
const char *sim_scenario_name(int scenario);

/** Tell how to repeat a program that crashes; sim_watch: also one that does not end, from now on.
 */
void sim_catch_crashes(void);
void sim_watch(void);

/** Run the program of sim->seed and sim->variant. Returns when all its promises were kept. */
void sim_run(struct sim *sim);

/** Print everything that helps to see who waits for what. */
void sim_dump(const struct sim *sim);

/** Make the queue pairs of all ends. */
void connect_create_all(struct sim *sim);

/** Connect both ends of all pairs, some of them a little later. */
void connect_all(struct sim *sim);

/** Whether send requests may be posted. */
bool end_sends(const struct end *end);

/** Say in a send request where it goes, where its queue pair does not know. */
void connect_address(const struct end *end, struct ibv_send_wr *wr);

/** Move a queue pair to a state with the attributes that the transition needs. */
void connect_modify(struct end *end, enum ibv_qp_state state);

/** The headers of the way to the peer. */
void connect_path(const struct end *end, struct path *path);

/** Destroy a queue pair. */
void connect_destroy(struct end *end);

/** An entry of a list as the post calls take it. */
struct ibv_sge post_entry(const struct span *span);

/** Post a list by describing its requests call by call. 0 or a positive errno. */
int build_sends(struct flow *flow, const struct ibv_send_wr *wr);

/** Post what may be posted now. Whether anything was. */
bool post_sends(struct flow *flow);
bool post_due_receives(struct flow *flow);

/** Start the applications. */
void app_start(struct sim *sim);

/** A turn is over: look at the channel if the application sleeps on it. */
void app_wake(struct host *host);

/** Poll all completion queues of a host until they are empty. How many completions there were. */
unsigned int app_poll(struct host *host);

/** Whether everything that is posted, and will be, is complete. */
bool app_finished(const struct sim *sim);

/** The wr_id of a work or receive of a flow. */
uint64_t check_id(unsigned int flow, bool receives, uint32_t index);

/** A receive of a flow is complete. */
void check_receive(struct flow *flow, uint32_t index, const struct ibv_wc *wc);

/** A completion came out of a queue of this host. Whether it wakes who waits for solicited ones. */
bool check_completion(struct host *host, const struct ibv_wc *wc);

/** The program has ended: states and events after mishaps. */
void check_states(struct sim *sim);

/** Whatever works from `first` on may have done, or not, is right. */
void check_forgive(struct flow *flow, uint32_t first);

/** The queue pairs have ended: memory and shared words. */
void check_end(struct sim *sim);

/** Nothing moves any more, and no timer runs. */
void check_quiet(struct sim *sim);

/** Record an asynchronous event (user: struct end). */
void check_event(void *user, enum ibv_event_type type);

/** A queue pair that was moved to SQD has drained. */
void pause_drained(struct end *end);

/** The name of a completion status. */
const char *status_text(enum ibv_wc_status status);

/** Print one frame; for struct link. */
void trace_frame(const struct link *link, enum link_fate fate, const uint8_t *bytes, uint32_t len);

/** Reproducible "randomness" for the stack: keys, queue pair numbers. */
void entropy_seed(uint64_t seed);

/** A packet left a host: what another implementation sends behind it. */
void soft_sent(struct end *end, const struct packet *packet);

#endif
