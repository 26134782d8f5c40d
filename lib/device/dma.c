/* SPDX-License-Identifier: BSD-3-Clause */
/* Which regions an engine is told of, and that it is told of their end. */
#include "device/dma.h"

#include "device/device.h"
#include "mem/mr.h"

void device_map(struct device *device, struct mr *mr)
{
	/* Pages of an on-demand region come and go, and a port keeps those that it was shown. */
	if (mr->kind != MR_MEMORY || !(mr->access & IBV_ACCESS_HUGETLB) ||
	    (mr->access & IBV_ACCESS_ON_DEMAND) || !device->ops || !device->ops->map)
		return;
	mr->dma = device->ops->map(device->engine, mr->addr, mr->length);
}

void device_unmap(struct device *device, struct mr *mr)
{
	if (!mr->dma)
		return;
	device->ops->unmap(device->engine, mr->dma);
	mr->dma = NULL;
}
