/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A view: what a program finds in /sys/class/infiniband, /sys/class/infiniband_verbs,
 * /sys/class/infiniband_mad, /sys/class/misc/rdma_cm and /dev/infiniband.
 *
 * The table is a file in memory that all processes of a view share. They get it from the view's
 * server, and nobody can change its size. Each process that opens a
 * device takes a slot in it, and writes facts and counters of the device there. One process, the
 * view's server, reads the slots and writes the files that programs see. So a program that has a
 * device writes no files and needs no descriptor.
 *
 * Each slot has one writer, and nothing in the table is a lock: a process may be killed at any
 * instruction. The server checks what it reads, because any process of the view can write it.
 */
#ifndef VIEW_TABLE_H
#define VIEW_TABLE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include <rte_common.h>

#include "telemetry/counters.h"

#define VIEW_VARIABLE	 "UROCE_VIEW" /* environment: directory in front of the paths; "/" if none */
#define VIEW_CLASS	 "sys/class/infiniband"
#define VIEW_CLASS_VERBS "sys/class/infiniband_verbs"
#define VIEW_CLASS_MAD	 "sys/class/infiniband_mad"
#define VIEW_CLASS_CM	 "sys/class/misc/rdma_cm"
#define VIEW_DEV	 "dev/infiniband"
/* Ours beside the files that programs look for; a leading dot, as for what is not shown. */
#define VIEW_TABLE    VIEW_CLASS_CM "/.uroce"	   /* a socket: who connects gets the table */
#define VIEW_DOORBELL VIEW_CLASS_CM "/.uroce-bell" /* a FIFO: a byte wakes the server */

#define VIEW_MAGIC	 UINT64_C(0x75726f6365766901)
#define VIEW_PERIOD_MS	 100 /* longest age of a counter's file while it changes */
#define VIEW_ANSWER_S	 10  /* for so long a program waits for the server */
#define VIEW_SLOTS	 512 /* processes with a device at the same time, in one view */
#define VIEW_DEVICES_MAX 16
#define VIEW_GIDS_MAX	 128
#define VIEW_NAME_MAX	 64
#define VIEW_IFNAME_MAX	 16

struct view_gid {
	uint8_t raw[16]; /* all zero: the entry is free */
	char ndev[VIEW_IFNAME_MAX];
};

/* Facts of a device that change rarely. All zero: no device. */
struct view_facts {
	char name[VIEW_NAME_MAX];
	char netdev[VIEW_IFNAME_MAX]; /* the kernel's interface behind the port, or "" */
	char fw_ver[VIEW_NAME_MAX];
	uint32_t number; /* N of uverbsN */
	uint32_t vendor_id;
	uint32_t vendor_part_id;
	uint32_t hw_ver;
	uint64_t node_guid_be;
	uint64_t sys_image_guid_be;
	uint8_t state; /* enum ibv_port_state */
	uint8_t phys_state;
	uint8_t active_width; /* as in struct ibv_port_attr */
	uint8_t active_speed;
	uint16_t pkey;
	uint16_t spare;
	uint32_t port_cap_flags;
	struct view_gid gids[VIEW_GIDS_MAX];
};

#define VIEW_PID_LEFT (-1)

struct view_slot {
	/* Atomic. 0: the slot is free. VIEW_PID_LEFT: its process has executed another program. The
	 * server frees such slots, and those of processes that have ended. */
	int32_t pid;
	uint32_t sequence;	 /* atomic; odd while the facts are being written */
	uint32_t shown_sequence; /* atomic, a futex; the sequence number of the facts that files
				    show */
	uint32_t spare;
	struct view_facts facts;
	uint64_t counters[COUNTER_COUNT]; /* atomic */
} __rte_cache_aligned;

struct view_table {
	uint64_t magic;
	uint64_t bytes; /* of the whole struct */
	struct view_slot slots[VIEW_SLOTS];
};

/* The descriptors by which processes come into a view. */
struct view_entry {
	int memory; /* the table's file */
	int door;   /* the socket at VIEW_TABLE */
	int doorbell;
};

/** Create the table, its socket and the doorbell below a directory. Processes whose user the mode
 * allows to write may come in. Returns the table, mapped; NULL with errno. Changes the umask for a
 * moment: not for a process with threads. */
struct view_table *view_table_create(int root, mode_t mode, struct view_entry *entry);

/** Close the descriptors. */
void view_entry_close(const struct view_entry *entry);

/** Give the table to the processes that have asked for it. Does not wait. */
void view_table_admit(const struct view_entry *entry);

/** Map the table of the view that VIEW_VARIABLE names. NULL: there is no view, or its server does
 * not answer within VIEW_ANSWER_S. MT-safe. */
struct view_table *view_table_open(void);

/** Wake the server of this process's view. MT-safe. */
void view_table_ring(void);

/** Copy a slot's facts, checked and terminated. Returns the sequence number, or 0 if there are no
 * complete ones. MT-safe. */
uint32_t view_slot_read(const struct view_slot *slot, struct view_facts *facts);

#endif
