/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides which management datagrams an untrusted process may send. */
#include <string.h>

#include "owner/arbiter.h"
#include "wire/cm_ip.h"
#include "wire/gid.h"
#include "wire/vlan.h"

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

/* Check the IP header at the start of the private data: it must have the addresses of the packet.
 * Requests to service ids of other kinds have no such header. */
static bool is_own_address(const struct arbiter_mad *mad, const struct cm_mad *parsed,
			   uint64_t service_id)
{
	struct cm_ip ip;

	if (service_id >> 32 != 0 ||
	    cm_ip_parse(parsed->private_data, parsed->private_len, &ip) != 0)
		return true;
	return cm_ip_fits(&ip, mad->sgid, mad->dgid);
}

static const struct repeat *find_request(const struct arbiter *arbiter,
					 const struct arbiter_mad *mad, uint32_t id, bool sidr)
{
	struct repeats_peer peer = {.vlan_id = vlan_of_tci(mad->vlan_tci), .id = id, .sidr = sidr};

	memcpy(peer.gid, mad->dgid, GID_LEN);
	return repeats_last(&arbiter->repeats, &peer);
}

static bool went_to(const struct repeat *repeat, const struct arbiter *arbiter,
		    const struct arbiter_sender *sender)
{
	return repeat->slot == sender->slot &&
	       repeat->generation == arbiter->slots[sender->slot].generation;
}

/*
 * Return true if the request that a message answers went to the sender of the message. All
 * processes have the same addresses, so the peer could not tell which process answers. Return false
 * for an unknown request: it may still be in flight to another process. Its id can be guessed if
 * the ids of a peer follow each other, as Linux's do.
 */
static bool is_own_answer(const struct arbiter *arbiter, const struct arbiter_sender *sender,
			  const struct arbiter_mad *mad, uint32_t id, bool sidr)
{
	const struct repeat *repeat = find_request(arbiter, mad, id, sidr);

	return repeat && went_to(repeat, arbiter, sender);
}

/* Check a REJ or MRA of the active side: it must not name the id of a request that went to
 * another process. */
static bool is_not_anothers(const struct arbiter *arbiter, const struct arbiter_sender *sender,
			    const struct arbiter_mad *mad, uint32_t id)
{
	const struct repeat *repeat = find_request(arbiter, mad, id, false);

	return !repeat || went_to(repeat, arbiter, sender);
}

/* Check a REJ or MRA, which either side sends. */
static bool may_interrupt(const struct arbiter *arbiter, const struct arbiter_sender *sender,
			  const struct arbiter_mad *mad, uint32_t id, enum cm_about about)
{
	return about == CM_ABOUT_REQ ? is_own_answer(arbiter, sender, mad, id, false)
				     : is_not_anothers(arbiter, sender, mad, id);
}

static bool may_send(const struct arbiter *arbiter, const struct arbiter_sender *sender,
		     const struct arbiter_mad *mad, const struct cm_mad *parsed)
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
		return own_id && is_own_qpn(sender, cm_rep_qpn(&parsed->rep)) &&
		       is_own_answer(arbiter, sender, mad, parsed->remote_id, false);
	case CM_REJ:
		/* A process may also reject a request without an id of its own. */
		own_id |= parsed->local_id == 0 && parsed->rej.about == CM_ABOUT_REQ;
		return own_id && may_interrupt(arbiter, sender, mad, parsed->remote_id,
					       (enum cm_about)parsed->rej.about);
	case CM_MRA:
		return own_id && may_interrupt(arbiter, sender, mad, parsed->remote_id,
					       (enum cm_about)parsed->mra.about);
	case CM_SIDR_REP:
		/* The id is that of the peer that sent the SIDR_REQ. */
		return (parsed->sidr_rep.status != CM_SIDR_VALID ||
			is_own_qpn(sender, parsed->sidr_rep.qpn)) &&
		       is_own_answer(arbiter, sender, mad, parsed->local_id, true);
	case CM_RTU:
	case CM_DREQ:
	case CM_DREP:
		return own_id;
	case CM_LAP:
	case CM_APR:
		/* There are no alternate paths, so no process of ours sends these messages. */
		return false;
	}
	return false;
}

bool arbiter_asks(const struct arbiter_mad *mad)
{
	struct cm_mad parsed;

	return cm_mad_parse(mad->bytes, mad->len, &parsed) == CM_MAD_OK &&
	       (parsed.message == CM_REQ || parsed.message == CM_SIDR_REQ);
}

bool arbiter_may_send(const struct arbiter *arbiter, const struct arbiter_sender *sender,
		      const struct arbiter_mad *mad)
{
	struct cm_mad parsed;

	return cm_mad_parse(mad->bytes, mad->len, &parsed) == CM_MAD_OK &&
	       may_send(arbiter, sender, mad, &parsed);
}
