/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the items that rdma(8) shows of the devices in this process's view. */
#ifndef RDMA_ITEMS_H
#define RDMA_ITEMS_H

#include <stddef.h>

#include "rdma.h"

struct json_object;

/**
 * Return an array with an item for each device, port or object that is asked for. The members of an
 * item have the names and the order of rdma(8). Devices, ports and counters are those of the view's
 * files; objects are those that the processes of the view report. NULL with `error` if there is no
 * such device, or no memory.
 */
struct json_object *rdma_items(const struct rdma_request *request, char *error, size_t error_size);

#endif
