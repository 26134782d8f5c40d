/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of queue pair numbers, which lives as long as its device. Private to the room. */
#ifndef DEVICE_QPN_H
#define DEVICE_QPN_H

struct device;

/** Initialise the table as empty, with a random first number. Not MT-safe. 0, -ENOMEM, or -errno of
 * getrandom(2). */
int qpn_init(struct device *device);

/** Free the table. Not MT-safe. */
void qpn_fini(struct device *device);

#endif
