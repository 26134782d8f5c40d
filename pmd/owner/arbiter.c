/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the process that gets a management datagram, and decides which ones an untrusted process
 * may send. */
#include "owner/arbiter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/cm_ip.h"
#include "wire/gid.h"
#include "wire/vlan.h"

int arbiter_create(struct arbiter **arbiter)
{
	struct arbiter *made = calloc(1, sizeof(*made));
	int rc;

	if (!made)
		return -ENOMEM;
	ids_init(&made->ids);
	rc = repeats_init(&made->repeats);
	if (rc == 0)
		rc = connections_init(&made->connections);
	if (rc != 0) {
		free(made);
		return rc;
	}
	*arbiter = made;
	return 0;
}

void arbiter_destroy(struct arbiter *arbiter)
{
	if (!arbiter)
		return;
	for (uint16_t i = 0; i < SPACES_SLOTS; i++)
		spaces_end(&arbiter->spaces, i);
	connections_fini(&arbiter->connections);
	free(arbiter);
}

static void arbiter_add(struct arbiter *arbiter, uint16_t slot, user_t user, uint32_t id_value)
{
	struct arbiter_slot *begun = &arbiter->slots[slot];

	begun->live = true;
	begun->generation++;
	begun->user = user;
	begun->id_value = id_value;
}

int arbiter_begin(struct arbiter *arbiter, uint16_t slot, user_t user, uint64_t now_ns,
		  uint32_t *id_value)
{
	const int rc = ids_alloc(&arbiter->ids, slot, now_ns, user, id_value);

	if (rc == 0)
		arbiter_add(arbiter, slot, user, *id_value);
	return rc;
}

int arbiter_begin_again(struct arbiter *arbiter, uint16_t slot, user_t user, uint32_t id_value)
{
	const int rc = ids_take(&arbiter->ids, id_value, slot, user);

	if (rc == 0)
		arbiter_add(arbiter, slot, user, id_value);
	return rc;
}

void arbiter_end(struct arbiter *arbiter, uint16_t slot, uint64_t now_ns)
{
	if (!arbiter->slots[slot].live)
		return;
	arbiter->slots[slot].live = false;
	spaces_end(&arbiter->spaces, slot);
	connections_end(&arbiter->connections, slot, now_ns);
	ids_free(&arbiter->ids, arbiter->slots[slot].id_value, now_ns);
}

int arbiter_claim(struct arbiter *arbiter, uint16_t slot, struct cm_port_claim *claim, uint32_t *id)
{
	if (!arbiter->slots[slot].live)
		return -EINVAL;
	return spaces_claim(&arbiter->spaces, slot, arbiter->slots[slot].user, claim, id);
}

int arbiter_listen(struct arbiter *arbiter, uint16_t slot, uint32_t id)
{
	return spaces_listen(&arbiter->spaces, slot, id);
}

int arbiter_change(struct arbiter *arbiter, uint16_t slot, uint32_t id, uint8_t ip_version,
		   bool reuse)
{
	return spaces_change(&arbiter->spaces, slot, id, ip_version, reuse);
}

int arbiter_release(struct arbiter *arbiter, uint16_t slot, uint32_t id)
{
	return spaces_release(&arbiter->spaces, slot, id);
}

/* Build the answer to a message that is for no process. Linux, which has one connection manager
 * for a host, answers such a message likewise. */
static enum arbiter_verdict answer_with(const struct cm_mad *answer, uint8_t *bytes)
{
	return cm_mad_build(answer, bytes) == 0 ? ARBITER_ANSWER : ARBITER_DROP;
}

static enum arbiter_verdict reject(const struct cm_mad *mad, enum cm_about about,
				   enum cm_rej_reason reason, uint8_t *bytes)
{
	const struct cm_mad rej = {
		.message = CM_REJ,
		.tid = mad->tid,
		.local_id = mad->remote_id,
		.remote_id = mad->local_id,
		.rej = {.about = (uint8_t)about, .reason = (uint16_t)reason},
	};

	return answer_with(&rej, bytes);
}

static enum arbiter_verdict answer_for_nobody(const struct cm_mad *mad, uint8_t *bytes)
{
	const struct cm_mad drep = {
		.message = CM_DREP,
		.tid = mad->tid,
		.local_id = mad->remote_id,
		.remote_id = mad->local_id,
	};
	const struct cm_mad sidr_rep = {
		.message = CM_SIDR_REP,
		.tid = mad->tid,
		.local_id = mad->local_id,
		.sidr_rep = {.status = CM_SIDR_UNSUPPORTED_SERVICE,
			     .service_id = mad->sidr_req.service_id},
	};

	switch (mad->message) {
	case CM_REQ:
		return reject(mad, CM_ABOUT_REQ, CM_REJ_INVALID_SERVICE_ID, bytes);
	case CM_SIDR_REQ:
		return answer_with(&sidr_rep, bytes);
	case CM_REP:
		return reject(mad, CM_ABOUT_REP, CM_REJ_INVALID_COMM_ID, bytes);
	case CM_DREQ:
		return answer_with(&drep, bytes);
	default:
		return ARBITER_DROP;
	}
}

static struct repeats_peer peer_of(const struct arbiter_mad *mad, uint32_t id, bool sidr)
{
	struct repeats_peer peer = {.vlan_id = vlan_of_tci(mad->vlan_tci), .id = id, .sidr = sidr};

	memcpy(peer.gid, mad->sgid, sizeof(peer.gid));
	return peer;
}

/* Return the slot that a request went to, if its process is still the one that got the request. */
static uint16_t slot_of_repeat(const struct arbiter *arbiter, const struct repeat *repeat)
{
	const struct arbiter_slot *slot;

	if (!repeat)
		return ARBITER_NOBODY;
	slot = &arbiter->slots[repeat->slot];
	return slot->live && slot->generation == repeat->generation ? repeat->slot : ARBITER_NOBODY;
}

/* Return true if a request is for a loopback address. No packet goes to such an address. A
 * request from this host to itself names it in the IP header in its private data. */
static bool is_for_loopback(const struct arbiter_mad *mad, const struct cm_mad *parsed,
			    struct cm_ip *ip)
{
	return mad->local && cm_ip_parse(parsed->private_data, parsed->private_len, ip) == 0 &&
	       gid_is_loopback(ip->dst) && cm_ip_fits(ip, mad->sgid, mad->dgid);
}

static uint16_t find_listener(const struct arbiter *arbiter, const struct arbiter_mad *mad,
			      const struct cm_mad *parsed)
{
	const uint64_t service_id =
		parsed->message == CM_REQ ? parsed->req.service_id : parsed->sidr_req.service_id;
	struct cm_ip ip;

	if (is_for_loopback(mad, parsed, &ip))
		return spaces_find(&arbiter->spaces, service_id, ip.dst, -1);
	return spaces_find(&arbiter->spaces, service_id, mad->dgid, vlan_of_tci(mad->vlan_tci));
}

static void note_request(struct arbiter *arbiter, const struct repeats_peer *peer, uint64_t tid,
			 uint16_t slot, uint64_t now_ns)
{
	const struct arbiter_slot *listener = &arbiter->slots[slot];
	const struct repeat went = {.tid = tid,
				    .user = listener->user,
				    .generation = listener->generation,
				    .slot = slot};

	repeats_note(&arbiter->repeats, peer, &went, now_ns);
}

/* Return the path between us and the other side of a MAD that a process sent, or that it gets. */
static struct connections_path path_of(const struct arbiter_mad *mad, bool sent)
{
	struct connections_path path = {.vlan_tci = mad->vlan_tci};

	memcpy(path.mac, mad->mac, sizeof(path.mac));
	memcpy(path.ours, sent ? mad->sgid : mad->dgid, sizeof(path.ours));
	memcpy(path.theirs, sent ? mad->dgid : mad->sgid, sizeof(path.theirs));
	return path;
}

/* Return the slot of the process that rejects a REQ as stale, because it still has a connection
 * with the queue pair of the REQ. */
static uint16_t slot_of_stale(struct arbiter *arbiter, const struct arbiter_mad *mad,
			      const struct cm_mad *parsed)
{
	const struct connections_path path = path_of(mad, false);

	if (parsed->message != CM_REQ)
		return ARBITER_NOBODY;
	return connections_stale(&arbiter->connections, parsed, &path);
}

static uint16_t slot_of_request(struct arbiter *arbiter, const struct arbiter_mad *mad,
				const struct cm_mad *parsed, uint64_t now_ns)
{
	const struct repeats_peer peer =
		peer_of(mad, parsed->local_id, parsed->message == CM_SIDR_REQ);
	const struct repeat *repeat = repeats_find(&arbiter->repeats, &peer, now_ns);
	uint16_t slot = ARBITER_NOBODY;

	/* A REQ with another transaction id is another request, even if its communication id is
	 * the same. */
	if (repeat && repeat->tid == parsed->tid)
		slot = slot_of_repeat(arbiter, repeat);
	if (slot != ARBITER_NOBODY)
		return slot;
	slot = slot_of_stale(arbiter, mad, parsed);
	if (slot == ARBITER_NOBODY)
		slot = find_listener(arbiter, mad, parsed);
	if (slot != ARBITER_NOBODY)
		note_request(arbiter, &peer, parsed->tid, slot, now_ns);
	return slot;
}

/* Find the process for a timeout REJ. A peer that gives up before it knows our id names its own
 * id (12.6.7). */
static uint16_t slot_of_timeout(const struct arbiter *arbiter, const struct arbiter_mad *mad,
				const struct cm_mad *parsed, uint64_t now_ns)
{
	const struct repeats_peer peer = peer_of(mad, parsed->local_id, false);

	return slot_of_repeat(arbiter, repeats_find(&arbiter->repeats, &peer, now_ns));
}

static uint16_t slot_of_mad(struct arbiter *arbiter, const struct arbiter_mad *mad,
			    const struct cm_mad *parsed, uint64_t now_ns)
{
	switch (parsed->message) {
	case CM_REQ:
	case CM_SIDR_REQ:
		return slot_of_request(arbiter, mad, parsed, now_ns);
	case CM_SIDR_REP:
		return ids_find(&arbiter->ids, parsed->local_id);
	case CM_REJ:
		if (parsed->rej.reason == CM_REJ_TIMEOUT && parsed->remote_id == 0)
			return slot_of_timeout(arbiter, mad, parsed, now_ns);
		return ids_find(&arbiter->ids, parsed->remote_id);
	default:
		return ids_find(&arbiter->ids, parsed->remote_id);
	}
}

enum arbiter_verdict arbiter_route(struct arbiter *arbiter, const struct arbiter_mad *mad,
				   uint64_t now_ns, uint16_t *slot, uint8_t *answer)
{
	struct cm_mad parsed;
	const enum cm_mad_status status = cm_mad_parse(mad->bytes, mad->len, &parsed);
	const struct connections_path path = path_of(mad, false);

	if (status != CM_MAD_OK)
		return cm_mad_answer(mad->bytes, status, answer) ? ARBITER_ANSWER : ARBITER_DROP;
	*slot = slot_of_mad(arbiter, mad, &parsed, now_ns);
	if (*slot == ARBITER_NOBODY) {
		connections_heard(&arbiter->connections, &parsed, &path);
		return answer_for_nobody(&parsed, answer);
	}
	connections_given(&arbiter->connections, *slot, &parsed, &path);
	return ARBITER_GIVE;
}

void arbiter_sent(struct arbiter *arbiter, uint16_t slot, const struct arbiter_mad *mad)
{
	const struct connections_path path = path_of(mad, true);
	struct cm_mad parsed;

	if (arbiter->slots[slot].live && cm_mad_parse(mad->bytes, mad->len, &parsed) == CM_MAD_OK)
		connections_sent(&arbiter->connections, slot, &parsed, &path);
}

uint64_t arbiter_due_ns(const struct arbiter *arbiter)
{
	return connections_due_ns(&arbiter->connections);
}

bool arbiter_disconnect_orphan(struct arbiter *arbiter, uint64_t now_ns,
			       struct connections_path *path, uint8_t *bytes)
{
	struct cm_mad mad;

	return connections_disconnect_orphan(&arbiter->connections, now_ns, &mad, path) &&
	       cm_mad_build(&mad, bytes) == 0;
}

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
