/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A report: a memory file in which a process describes its device. The process writes it, and other
 * processes read it.
 *
 * The thread that runs the engine writes it between two engine polls, and only after a reader has
 * asked. A reader trusts nothing in it: the process may have been killed while it wrote, or may be
 * a different program.
 *
 * A reader may also give a command, which the engine checks. Only those can open the report who may
 * debug the process, and they could change anything in it.
 */
#ifndef REPORT_LAYOUT_H
#define REPORT_LAYOUT_H

#include <stdint.h>

#include <rte_common.h>

#include "transport/cc_params.h"

#define REPORT_FILE	    "uroce-report" /* its name, as /proc shows it */
#define REPORT_VERSION	    7
#define REPORT_STATS_MAX    96
#define REPORT_RECORDS_MAX  16384
#define REPORT_ATTACHED_MAX 256

enum report_role {
	REPORT_STANDALONE, /* a program with a port of its own */
	REPORT_ATTACHED,   /* a program on another process's port */
	REPORT_OWNER,	   /* shares its port with other processes */
};

/* The device itself. */
struct report_facts {
	char device[64];
	char port[512]; /* the kernel's interface, or the device's name */
	uint64_t guid_be;
	uint64_t link_mbps;
	int32_t owner_pid;  /* REPORT_ATTACHED: the process that owns the port; else 0 */
	uint32_t role;	    /* enum report_role */
	uint32_t mtu_bytes; /* of the port */
	uint32_t path_mtu;  /* enum ibv_mtu, the largest */
	uint32_t link_up;
	uint32_t qpn_first; /* REPORT_ATTACHED */
	uint32_t qpn_count;
	uint8_t mac[6];
	uint8_t netdev; /* the port is a kernel interface */
	uint8_t cc;	/* enum cc_kind of new queue pairs */
	uint8_t udp;	/* the port is a UDP socket, with the addresses of that interface */
};

/* A counter and its name. */
struct report_stat {
	char name[40];
	uint64_t value;
};

enum report_kind {
	REPORT_QP,
	REPORT_CQ,
	REPORT_MR,
	REPORT_PD,
	REPORT_SRQ,
	REPORT_CTX,
	REPORT_CM_ID,
	REPORT_KINDS,
};

struct report_qp {
	uint32_t dest_qpn;
	uint32_t type;	   /* enum ibv_qp_type */
	uint32_t state;	   /* enum ibv_qp_state */
	uint32_t path_mtu; /* enum ibv_mtu, or 0 */
	uint32_t sq_psn, rq_psn;
	uint32_t sends, receives; /* work requests that are posted and not completed */
	uint32_t pd, send_cq, recv_cq;
	uint32_t cc;	/* enum cc_kind */
	uint32_t waits; /* enum qp_waits */
	uint8_t dgid[16];
};

struct report_cq {
	uint32_t cqe;
	uint32_t users;	  /* queue pairs that complete into it */
	uint32_t waiting; /* completions that nobody has polled */
};

struct report_mr {
	uint64_t length;
	uint64_t iova;
	uint32_t pd;
	uint32_t access; /* enum ibv_access_flags */
	uint32_t kind;	 /* enum mr_kind */
};

struct report_pd {
	uint32_t users;
};

struct report_srq {
	uint32_t is_xrc;
	uint32_t xrc_number; /* by which peers name it */
	uint32_t max_wr;
	uint32_t limit;	   /* armed; 0: none */
	uint32_t receives; /* work requests that are posted and not completed */
	uint32_t users;	   /* queue pairs that receive from it */
	uint32_t pd;
	uint32_t cq; /* XRC */
};

/* A connection or listener of the connection manager. */
struct report_cm_id {
	uint64_t service_id;
	uint32_t qpn; /* 0: none yet */
	uint32_t active;
	uint8_t local[16], remote[16]; /* GIDs, all zero: any */
	char state[16];
};

struct report_record {
	uint32_t kind;	 /* enum report_kind */
	uint32_t number; /* QPN, key, or the number of another object */
	union {
		struct report_qp qp;
		struct report_cq cq;
		struct report_mr mr;
		struct report_pd pd;
		struct report_srq srq;
		struct report_cm_id cm_id;
	};
};

/* In shared memory. All zero: nothing has been written yet. */
struct report {
	uint32_t version;		     /* set once, as are the members up to `wanted` */
	uint32_t bytes;			     /* of the whole struct */
	int32_t pid;			     /* the writing process, in its own PID namespace */
	uint32_t wanted __rte_cache_aligned; /* atomic; readers increment it */
	uint64_t command; /* atomic; a command of a reader: report/report_command.h */
	uint32_t sequence __rte_cache_aligned; /* atomic; odd while it is being written */
	uint32_t answered;		       /* atomic; value of `wanted` at the last write */
	uint64_t written_ns;		       /* CLOCK_MONOTONIC */
	struct report_facts facts;
	struct cc_params cc_params; /* not of REPORT_OWNER */
	uint32_t stat_count;
	uint32_t record_count;
	uint32_t attached_count;
	int32_t attached[REPORT_ATTACHED_MAX]; /* REPORT_OWNER: the processes that are attached */
	uint32_t totals[REPORT_KINDS]; /* number of objects of each kind; more than the records if
					  these did not fit */
	struct report_stat stats[REPORT_STATS_MAX];
	struct report_record records[REPORT_RECORDS_MAX];
};

#endif
