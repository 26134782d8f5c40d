/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of rdma(8), as far as it has a meaning for the devices of a view. uroce-ctl
 * takes it if it is started by the name "rdma". */
#ifndef RDMA_H
#define RDMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/read.h"

struct json_object;

#define RDMA_FILTERS_MAX 16

enum rdma_show {
	RDMA_DEV,
	RDMA_LINK,
	RDMA_SUMMARY, /* the number of objects of each kind */
	RDMA_OBJECTS,
	RDMA_STATISTIC,
	RDMA_HELP,
	RDMA_VERSION,
};

enum rdma_port {
	RDMA_PORT_ALL,
	RDMA_PORT_NONE, /* "DEV/-": objects that have no port yet */
	RDMA_PORT_ONE,
};

struct rdma_filter {
	const char *name, *value;
};

struct rdma_request {
	enum rdma_show show;
	enum report_kind kind; /* RDMA_OBJECTS */
	bool json, pretty, details;
	char device[64];     /* "": all */
	enum rdma_port port; /* RDMA_OBJECTS */
	struct rdma_filter filters[RDMA_FILTERS_MAX];
	uint32_t filter_count;
};

/** Parse the command line. Returns false with `error` if it is invalid. The request points to the
 * words. Not MT-safe (getopt). */
bool rdma_parse(int argc, char **argv, struct rdma_request *request, char *error,
		size_t error_size);

/** Return the names of the fields of a kind that rdma(8) shows, in its order; NULL is the last. A
 * filter has one of these names. MT-safe. */
const char *const *rdma_field_names(enum report_kind kind);

/** Return true if a number or word is one of a filter's value: "7", "1-5,9" or "rts,init". MT-safe.
 */
bool rdma_matches(const char *wanted, const char *value);

/** Answer a command line as rdma(8) does. Returns the exit status. */
int rdma_main(int argc, char **argv);

/**
 * Return an array with an item for each device, port or object that is asked for. The members of an
 * item have the names and the order of rdma(8). Devices, ports and counters are those of the view's
 * files; objects are those that the processes of the view report. NULL with `error` if there is no
 * such device, or no memory.
 */
struct json_object *rdma_items(const struct rdma_request *request, char *error, size_t error_size);

#endif
