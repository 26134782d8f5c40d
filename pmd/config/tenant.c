/* SPDX-License-Identifier: BSD-3-Clause */
/* The settings of a tenant, and the kind of each. */
#include "config/tenant.h"

#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "config/settings.h"
#include "value.h"

static int set_rate(const struct value *value, void *member, const char *text, struct text *why)
{
	uint64_t rate;
	int rc = value_bytes.set(value, &rate, text, why);

	if (rc != 0)
		return rc;
	if (rate < TENANT_RATE_MIN || rate > TENANT_RATE_MAX)
		return text_refuse(why,
				   "%s: '%s' is not a number of bytes a second from %lu to %lu",
				   value->name, text, (unsigned long)TENANT_RATE_MIN,
				   (unsigned long)TENANT_RATE_MAX);
	*(uint64_t *)member = rate;
	return 0;
}

static void get_rate(const struct value *value, const void *member, struct text *text)
{
	value_bytes.get(value, member, text);
}

static const struct value_kind value_rate = {set_rate, get_rate};

#define SETTING(text, what, member)                                                              \
	.name = text, .kind = &value_##what, .offset = offsetof(struct tenant_settings, member), \
	.size = sizeof(((struct tenant_settings *)0)->member), .unit = "number"

static const struct value values[] = {
	{SETTING("weight", count, weight), .min = 1, .max = TENANT_WEIGHT_MAX},
	{SETTING("rate", rate, rate)},
	{SETTING("max-qp", count, max_qp), .min = 1, .max = UINT32_MAX},
	{SETTING("connection-rate", count, connection_rate), .min = 1,
	 .max = TENANT_CONNECTION_RATE_MAX},
};

int tenant_set(struct tenant_settings *tenant, const char *name, const char *value, char *error,
	       size_t error_size)
{
	struct text why = {error, error_size, 0};

	for (size_t i = 0; i < RTE_DIM(values); i++) {
		const struct value *which = &values[i];

		if (strcmp(which->name, name) != 0)
			continue;
		/* Attached programs share all with each other, and most of their packets do not
		 * pass through uroced. */
		if (tenant->kind == TENANT_ATTACHED && which != &values[0])
			return text_refuse(&why, "%s: attached programs have a weight only", name);
		return which->kind->set(which, (char *)tenant + which->offset, value, &why);
	}
	text_add(&why, "a tenant has no setting '%s'", name);
	return -ENOENT;
}
