/* SPDX-License-Identifier: BSD-3-Clause */
/* Tell an engine about the begin and the end of each region that its port can send from without a
 * copy. */
#include "device/device_map.h"

#include "device/device.h"
#include "mem/mr.h"

bool device_may_map(const struct device *device, const struct mr *mr)
{
	/* Leave on-demand regions out: their pages come and go, but a port keeps the pages that it
	 * has mapped. */
	if (mr->kind != MR_MEMORY || (mr->access & IBV_ACCESS_ON_DEMAND))
		return false;
	return device->dma && mr_has_huge_pages(mr);
}

void device_map(struct device *device, struct mr *mr)
{
	mr->dma = device->dma->map(device->dma_user, mr->addr, mr->length);
}

void device_unmap(struct device *device, struct mr *mr)
{
	if (!mr->dma)
		return;
	device->dma->unmap(device->dma_user, mr->dma);
	mr->dma = NULL;
}
