/* SPDX-License-Identifier: BSD-3-Clause */
/* An isolated process of a user, attached to a server. */
#include "attach_rig.h"

#include <sys/socket.h>

#include "event.h"
#include "share/user.h"
#include "slot.h"
#include "test.h"

/* Let an attached process be one of another user. */
static void become(struct server *server, uint16_t number, user_t user)
{
	static const struct tenants_limits limits = {.weight = 1};
	struct slot *slot = &server->slots.all[number];

	tenants_leave(&server->tenants, slot->tenant);
	slot->user = user;
	slot->tenant = tenants_join(&server->tenants, user, &limits, server->now_ns);
}

int attach_rig(struct server *server, uid_t uid, struct share_message *welcome)
{
	const struct share_message hello = {.engine.count = 1};
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(event_watch(server, pair[0], EVENT_PENDING_CLIENT, 0), 0);
	assert_int_equal(slot_begin(server, pair[0], -1, SLOT_ISOLATED, &hello), 0);
	assert_int_equal(message_receive(pair[1], welcome, NULL), 0);
	become(server, welcome->welcome.slot, user_of_uid(uid));
	return pair[1];
}
