/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings that are read again while programs are attached. Another thread leaves them, and the
 * server's thread takes them between two polls. */
#include "change.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/settings.h"
#include "control.h"
#include "server.h"
#include "slot_prepare.h"

struct change {
	struct settings settings;
	struct serve_tenants tenants;
	struct serve_tenant users[];
};

int serve_change(struct server *server, const struct settings *settings,
		 const struct serve_tenants *tenants)
{
	struct change *change = malloc(sizeof(*change) + tenants->count * sizeof(change->users[0]));

	if (!change)
		return -ENOMEM;
	change->settings = *settings;
	change->tenants = *tenants;
	change->tenants.users = change->users;
	memcpy(change->users, tenants->users, tenants->count * sizeof(change->users[0]));
	/* Release and acquire: whoever takes the pointer sees what was written. An older change
	 * that was not taken is replaced. */
	free(__atomic_exchange_n(&server->changes.wanted, change, __ATOMIC_ACQ_REL));
	serve_wake(server);
	return 0;
}

/* Weights and rates hold at once. The number of queue pairs is given when a program begins. */
static void change_tenants(struct server *server)
{
	for (uint16_t i = 0; i < TENANTS_MAX; i++) {
		const struct tenant *tenant = &server->tenants.all[i];

		if (tenant->limits.weight > 0)
			tenants_change(&server->tenants, i, slot_limits_of(server, tenant->user));
	}
}

void change_take(struct server *server)
{
	struct change *change = NULL;

	if (likely(!__atomic_load_n(&server->changes.wanted, __ATOMIC_RELAXED)))
		return;
	change = __atomic_exchange_n(&server->changes.wanted, NULL, __ATOMIC_ACQ_REL);
	server->slots.max_qp = change->settings.max_qp;
	server->slots.max_memory = change->settings.max_memory;
	memcpy(server->slots.cc, change->settings.cc, sizeof(server->slots.cc));
	server->tenant_limits = &change->tenants;
	change_tenants(server);
	free(server->changes.made);
	server->changes.made = change;
	if (!link_change_addresses(&server->uplink.link, &change->settings, server->now_ns))
		return;
	for (uint16_t i = 0; i < server->slots.live_count; i++)
		control_send_addresses(server, server->slots.live[i]);
}

void change_fini(struct server *server)
{
	free(server->changes.wanted);
	free(server->changes.made);
}
