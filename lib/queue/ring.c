/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of rings: allocated where the application wants it, and freed there. */
#include "queue/ring.h"

#include <errno.h>
#include <stdint.h>

#include <rte_common.h>

#include "base/cachelines.h"

static int alloc_foreign(const struct ring_allocator *allocator, size_t bytes, enum ring_kind kind,
			 struct ring_memory *memory)
{
	void *base = NULL;
	int rc = allocator->alloc(allocator->user, bytes, RTE_CACHE_LINE_SIZE, kind, &base);

	if (rc != 0 || !base)
		return rc;
	if ((uintptr_t)base % RTE_CACHE_LINE_SIZE != 0) {
		allocator->free(allocator->user, base, kind);
		return -ENOMEM;
	}
	*memory = (struct ring_memory){.base = base, .from = allocator, .kind = kind};
	return 0;
}

int ring_alloc(const struct queue_domain *domain, size_t bytes, enum ring_kind kind,
	       struct ring_memory *memory)
{
	*memory = (struct ring_memory){.kind = kind};
	if (domain && domain->allocator) {
		int rc = alloc_foreign(domain->allocator, bytes, kind, memory);

		if (rc != 0 || memory->base)
			return rc;
	}
	/* Do not clear it: pages of a large ring should not be touched before their first use. */
	memory->base = cachelines_alloc(bytes);
	memory->bytes = (uint32_t)RTE_MIN(bytes, (size_t)UINT32_MAX);
	return memory->base ? 0 : -ENOMEM;
}

void ring_free(struct ring_memory *memory)
{
	if (memory->base && memory->from)
		memory->from->free(memory->from->user, memory->base, memory->kind);
	else
		cachelines_free(memory->base, memory->bytes);
	memory->base = NULL;
}
