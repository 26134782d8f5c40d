/* SPDX-License-Identifier: BSD-3-Clause */
/* Which management datagrams an untrusted process may send. */
#include <string.h>

#include "owner/arbiter.h"
#include "wire/cm_ip.h"
#include "wire/gid.h"

static bool is_own_id(const struct arbiter *arbiter, const struct arbiter_sender *sender,
		      uint32_t id)
{
	const struct arbiter_slot *slot = &arbiter->slots[sender->slot];

	return slot->live && id != 0 && (id & IDS_MASK) == slot->id_value;
}

static bool is_own_qpn(const struct arbiter_sender *sender, uint32_t qpn)
{
	return qpn - sender->qpn_first < sender->qpn_count;
}

/* Check the IP header that private data begins with: it must name the address that the packet comes
 * from. A service id of another kind has no such header. */
static bool is_own_address(const struct arbiter_mad *mad, const struct cm_mad *parsed,
			   uint64_t service_id)
{
	struct cm_ip ip;

	if (service_id >> 32 != 0 ||
	    cm_ip_parse(parsed->private_data, parsed->private_len, &ip) != 0)
		return true;
	return memcmp(ip.src, mad->sgid, GID_LEN) == 0;
}

/*
 * Return true if the request that a message answers did not go to another process. All processes
 * have the same addresses, so the peer could not tell. One that is not remembered may be answered:
 * its id would have to be guessed.
 */
static bool is_not_anothers(const struct arbiter *arbiter, const struct arbiter_sender *sender,
			    const struct arbiter_mad *mad, uint32_t id, bool sidr, uint64_t now_ns)
{
	struct repeats_peer peer = {.vlan_id = mad->vlan_id, .id = id, .sidr = sidr};
	const struct repeat *repeat;

	memcpy(peer.gid, mad->dgid, GID_LEN);
	repeat = repeats_find(&arbiter->repeats, &peer, now_ns);
	return !repeat || (repeat->slot == sender->slot &&
			   repeat->generation == arbiter->slots[sender->slot].generation);
}

static bool may_send(const struct arbiter *arbiter, const struct arbiter_sender *sender,
		     const struct arbiter_mad *mad, const struct cm_mad *parsed, uint64_t now_ns)
{
	bool own_id = is_own_id(arbiter, sender, parsed->local_id);

	switch (parsed->message) {
	case CM_REQ:
		return own_id && is_own_qpn(sender, parsed->req.qpn) &&
		       memcmp(parsed->req.primary.local_gid, mad->sgid, GID_LEN) == 0 &&
		       is_own_address(mad, parsed, parsed->req.service_id);
	case CM_SIDR_REQ:
		return own_id && is_own_address(mad, parsed, parsed->sidr_req.service_id);
	case CM_REP:
		return own_id && is_own_qpn(sender, parsed->rep.qpn) &&
		       is_not_anothers(arbiter, sender, mad, parsed->remote_id, false, now_ns);
	case CM_REJ:
		/* A request is refused without an id of one's own, too. */
		own_id |= parsed->local_id == 0 && parsed->rej.about == CM_ABOUT_REQ;
		return own_id &&
		       is_not_anothers(arbiter, sender, mad, parsed->remote_id, false, now_ns);
	case CM_MRA:
		return own_id &&
		       is_not_anothers(arbiter, sender, mad, parsed->remote_id, false, now_ns);
	case CM_SIDR_REP:
		/* The id is the one of who asked. */
		return (parsed->sidr_rep.status != CM_SIDR_VALID ||
			is_own_qpn(sender, parsed->sidr_rep.qpn)) &&
		       is_not_anothers(arbiter, sender, mad, parsed->local_id, true, now_ns);
	case CM_RTU:
	case CM_DREQ:
	case CM_DREP:
		return own_id;
	case CM_LAP:
	case CM_APR:
		/* There are no alternate paths: nobody of ours sends them. */
		return false;
	}
	return false;
}

bool arbiter_may_send(const struct arbiter *arbiter, const struct arbiter_sender *sender,
		      const struct arbiter_mad *mad, uint64_t now_ns)
{
	struct cm_mad parsed;

	return cm_mad_parse(mad->bytes, mad->len, &parsed) == CM_MAD_OK &&
	       may_send(arbiter, sender, mad, &parsed, now_ns);
}
