/* SPDX-License-Identifier: BSD-3-Clause */
/* What a device needs for congestion control of its queue pairs. */
#ifndef DEVICE_CC_H
#define DEVICE_CC_H

#include "transport/cc.h"

struct device;
struct device_engine;

/* Allocate what this algorithm needs, if it is not there yet. 0 or -ENOMEM. Device's lock, or
 * before the device is used. */
int device_prepare_cc(struct device *device, enum cc_kind kind);

/* Return the attributes of an engine's queue pair with this algorithm. MT-safe. */
struct cc_attr device_cc_of(const struct device_engine *engine, enum cc_kind kind);

#endif
