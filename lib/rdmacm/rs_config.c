/* SPDX-License-Identifier: BSD-3-Clause */
/* Defaults of rsockets, which the administrator can configure: one number per file, as in
 * rsocket(7). */
#include <limits.h>
#include <stdio.h>

#include "rs.h"

#define FOLDER "/etc/rdma/rsocket/"

struct value {
	const char *file;
	unsigned int value; /* the default if the file does not exist */
	unsigned int min;
	unsigned int max;
};

enum {
	VALUE_SEND_BYTES,
	VALUE_RECV_BYTES,
	VALUE_SEND_REQUESTS,
	VALUE_RECV_REQUESTS,
	VALUE_INLINE,
	VALUE_IOMAPS,
	VALUE_SPIN,
	VALUES,
};

static struct value values[VALUES] = {
	[VALUE_SEND_BYTES] = {FOLDER "wmem_default", 1 << 17, 2 * RS_OUT_LOW, RS_BUFFER_MAX},
	[VALUE_RECV_BYTES] = {FOLDER "mem_default", 1 << 17, 2, RS_BUFFER_MAX},
	[VALUE_SEND_REQUESTS] = {FOLDER "sqsize_default", 384, RS_QUEUE_MIN, RS_QUEUE_MAX},
	[VALUE_RECV_REQUESTS] = {FOLDER "rqsize_default", 384, RS_QUEUE_MIN, RS_QUEUE_MAX},
	[VALUE_INLINE] = {FOLDER "inline_default", 64, 0, RS_QUEUE_MAX},
	[VALUE_IOMAPS] = {FOLDER "iomap_size", 0, 0, RS_QUEUE_MAX},
	[VALUE_SPIN] = {FOLDER "polling_time", 10, 0, INT_MAX},
};

static void read_value(struct value *value)
{
	FILE *file = fopen(value->file, "re");
	unsigned int number;

	if (!file)
		return;
	if (fscanf(file, "%u", &number) == 1)
		value->value = RTE_MAX(value->min, RTE_MIN(number, value->max));
	fclose(file);
}

static void read_all(void)
{
	for (size_t i = 0; i < VALUES; i++)
		read_value(&values[i]);
}

void rs_config_get(struct rs_options *options)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_all);
	*options = (struct rs_options){
		.send_bytes = values[VALUE_SEND_BYTES].value,
		.recv_bytes = values[VALUE_RECV_BYTES].value,
		.send_requests = (uint16_t)values[VALUE_SEND_REQUESTS].value,
		.recv_requests = (uint16_t)values[VALUE_RECV_REQUESTS].value,
		.inline_bytes = (uint16_t)values[VALUE_INLINE].value,
		.iomaps = rs_wire_unscale(rs_wire_scale((uint16_t)values[VALUE_IOMAPS].value)),
		.spin_us = values[VALUE_SPIN].value,
		.send_timeout_ms = -1,
		.recv_timeout_ms = -1,
	};
}
