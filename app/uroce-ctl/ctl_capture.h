/* SPDX-License-Identifier: BSD-3-Clause */
/* The command capture: choose the tool and the filter that capture the packets of a device or a
 * queue pair, and execute the tool. */
#ifndef CTL_CAPTURE_H
#define CTL_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "dpdk_ports.h"
#include "report/devices.h"

#define CAPTURE_FILTER_MAX 2048
#define CAPTURE_ARGS_MAX   16

struct capture_want {
	struct report_filter filter;
	uint32_t qpn;	  /* 0: all RoCE packets of the device's port */
	const char *file; /* to write */
	uint32_t packets; /* after which the capture ends; 0: none */
};

/* The device or queue pair whose packets are captured. */
struct capture_target {
	const struct report_device *device;
	const struct report_view *view;	    /* the process of the queue pair; NULL without qpn */
	const struct report_record *record; /* the queue pair; NULL without qpn */
	bool local;  /* the peer is a program of the same device, or there is no network: no packet
			leaves by the port */
	bool inside; /* the peer is in the same process */
};

/* Tools that are installed. */
struct capture_tools {
	bool dpdk_dumpcap, dumpcap, tcpdump;
};

struct capture_plan {
	pid_t netns_of; /* run the tool in the network namespace of this process; 0: here */
	char filter[CAPTURE_FILTER_MAX];
	char texts[4][128];
	const char *argv[CAPTURE_ARGS_MAX + 1];
	const char *note; /* what the user should know, or NULL */
};

/** Find the device, and the queue pair if one is wanted. Returns false with `error`. */
bool capture_find(const struct report_devices *devices, const struct capture_want *want,
		  struct capture_target *target, char *error, size_t error_size);

/** Write the filter of pcap-filter(7) for the target. Returns its length. */
int capture_filter(const struct capture_target *target, char filter[CAPTURE_FILTER_MAX]);

/** Choose the tool. `ports` are those of the process that owns the device's port. Returns false
 * with `error`. */
bool capture_choose(const struct capture_target *target, const struct capture_want *want,
		    const struct dpdk_ports *ports, const struct capture_tools *tools,
		    struct capture_plan *plan, char *error, size_t error_size);

/** Return the process that owns the port. */
pid_t capture_owner(const struct capture_target *target);

/** Execute the tool that captures. Returns only if it cannot, with `error`. */
void capture_run(const struct report_devices *devices, const struct capture_want *want, char *error,
		 size_t error_size);

#endif
