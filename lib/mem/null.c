/* SPDX-License-Identifier: BSD-3-Clause */
/* The null region: every address is in it, no byte of memory stands behind it. */
#include <errno.h>
#include <stdlib.h>

#include <infiniband/verbs.h>

#include "mem/key_table.h"
#include "mem/mr.h"
#include "mem/pd.h"

int mr_create_null(struct pd *pd, struct mr **mr)
{
	struct mr *m = calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return -ENOMEM;
	m->kind = MR_NULL;
	m->pd = pd;
	m->length = UINT64_MAX;
	/* No remote access: whoever guesses the key finds that it is not for him. */
	m->access = IBV_ACCESS_LOCAL_WRITE;
	rc = key_table_insert(pd->keys, m, &m->key);
	if (rc != 0) {
		free(m);
		return rc == -ENOSPC ? -ENOMEM : rc;
	}
	pd_get(pd);
	*mr = m;
	return 0;
}
