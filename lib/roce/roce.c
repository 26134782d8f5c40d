/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of libroce: a device with one engine, which its caller runs. */
#include "roce/roce.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <rte_byteorder.h>
#include <rte_common.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "device/device.h"
#include "device/limits.h"
#include "mem/key_table.h"
#include "mem/mr.h"
#include "mem/pd.h"
#include "qp/qp.h"
#include "queue/cq.h"
#include "transport/cc.h"
#include "transport/pacer.h"
#include "transport/sink.h"
#include "wire/headers.h"
#include "wire/icrc.h"

struct cc_attr;
struct given_cc;
struct roce_cc_ops;

struct given_cc {
	const struct roce_cc_ops *ops;
	struct cc_ops called;  /* of the transport: those that `ops` has */
	struct roce_cc *state; /* ops->bytes */
};

static void obey(struct cc *cc, const struct roce_cc *state)
{
	cc->pacer->window = RTE_MAX(state->window_pkts, 1u);
	cc->rate_kbps = state->rate_kbps;
	cc->wait_ns = state->wait_ns;
	cc->timer_ns = state->timer_ns;
	cc_apply(cc);
}

static void start(struct cc *cc)
{
	struct given_cc *given = cc->given;

	memset(given->state, 0, given->ops->bytes);
	*given->state = (struct roce_cc){
		.link_kbps = cc->link_kbps, .window_pkts = UINT32_MAX, .timer_ns = UINT64_MAX};
	if (given->ops->start)
		given->ops->start(given->state);
	obey(cc, given->state);
}

static void poll(struct cc *cc, uint64_t now_ns)
{
	struct given_cc *given = cc->given;

	given->ops->poll(given->state, now_ns);
	obey(cc, given->state);
}

static void sent(struct cc *cc, uint32_t bytes, uint32_t psns, uint64_t now_ns)
{
	struct given_cc *given = cc->given;

	given->ops->sent(given->state, bytes, psns, now_ns);
	obey(cc, given->state);
}

/* The transport calls it for each algorithm that times. */
static void answered(struct cc *cc, uint64_t rtt_ns, uint32_t psns, uint64_t now_ns)
{
	struct given_cc *given = cc->given;

	if (given->ops->answered)
		given->ops->answered(given->state, rtt_ns, psns, now_ns);
	obey(cc, given->state);
}

static void lost(struct cc *cc, uint64_t now_ns)
{
	struct given_cc *given = cc->given;

	given->ops->lost(given->state, now_ns);
	obey(cc, given->state);
}

static bool notified(struct cc *cc, uint64_t now_ns)
{
	struct given_cc *given = cc->given;

	given->ops->notified(given->state, now_ns);
	obey(cc, given->state);
	return true;
}

/* Create the state of a queue pair, and write it and its functions into `attr`. given_cc_destroy
 * frees it after the queue pair. 0; -EINVAL if the algorithm's state has no room for struct
 * roce_cc; -ENOMEM. */
static int given_cc_create(const struct roce_cc_ops *ops, struct cc_attr *attr,
			   struct given_cc **created)
{
	struct given_cc *given;

	if (ops->bytes < sizeof(struct roce_cc))
		return -EINVAL;
	given = calloc(1, sizeof(*given));
	if (!given)
		return -ENOMEM;
	given->state = calloc(1, ops->bytes);
	if (!given->state) {
		free(given);
		return -ENOMEM;
	}
	given->ops = ops;
	given->called = (struct cc_ops){
		.marks = ops->marks,
		.times = ops->times,
		.start = start,
		.poll = ops->poll ? poll : NULL,
		.sent = ops->sent ? sent : NULL,
		.answered = answered,
		.lost = ops->lost ? lost : NULL,
		.notified = ops->notified ? notified : NULL,
	};
	attr->kind = CC_GIVEN;
	attr->given = &given->called;
	attr->given_state = given;
	*created = given;
	return 0;
}

static void given_cc_destroy(struct given_cc *given)
{
	if (!given)
		return;
	free(given->state);
	free(given);
}

#define HEADERS_LEN (sizeof(struct rte_ipv4_hdr) + sizeof(struct rte_udp_hdr) + sizeof(struct bth))

/* Return the bytes of the IPv4 packet in a frame; 0 if it is none that can be RoCE. */
static size_t packet_len(const uint8_t *frame, size_t len)
{
	const struct rte_ether_hdr *ether = (const struct rte_ether_hdr *)(const void *)frame;
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)(const void *)(ether + 1);
	size_t total;

	if (len < sizeof(*ether) + HEADERS_LEN + WIRE_ICRC_LEN ||
	    ether->ether_type != RTE_BE16(RTE_ETHER_TYPE_IPV4) ||
	    ip->version_ihl != RTE_IPV4_VHL_DEF || ip->next_proto_id != IPPROTO_UDP)
		return 0;
	total = rte_be_to_cpu_16(ip->total_length);
	return total < HEADERS_LEN + WIRE_ICRC_LEN || total > len - sizeof(*ether) ? 0 : total;
}

/*
 * Set the identification with which the ICRC of a frame is right. MT-safe.
 *
 * @return
 *   True: the ICRC is right now. False: no identification makes it right, or the frame is not an
 *   untagged one of IPv4.
 */
static bool frame_id_find(uint8_t *frame, size_t len)
{
	const size_t total = packet_len(frame, len), covered = total - WIRE_ICRC_LEN;
	uint8_t *const l3 = frame + sizeof(struct rte_ether_hdr);
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(void *)l3;
	uint32_t difference;

	if (total == 0)
		return false;
	difference = icrc_headers(l3, sizeof(*ip), HEADERS_LEN);
	difference = icrc_update(difference, l3 + HEADERS_LEN, covered - HEADERS_LEN) ^
		     icrc_load(l3 + covered);
	if (difference == 0)
		return true;
	difference = icrc_move(difference,
			       icrc_distance((int32_t)offsetof(struct rte_ipv4_hdr, packet_id) -
					     (int32_t)covered));
	if (difference > UINT16_MAX)
		return false;
	ip->packet_id ^= rte_cpu_to_le_16((uint16_t)difference);
	return true;
}

#define BUDGET_PKTS 64 /* packets of one queue pair before the next one's turn */

#define REGION_ACCESS                                                      \
	((unsigned int)(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC))

static_assert(ROCE_FRAME_MAX >= PACKET_FRAME_MAX, "a frame fits in the host's memory");

struct roce_qp {
	struct roce *roce;
	struct qp *qp;
	struct given_cc *cc; /* NULL: the device's */
	uint32_t qpn;
	bool is_ready; /* it needs qp_run */
	TAILQ_ENTRY(roce_qp) ready_link;
	LIST_ENTRY(roce_qp) link;
};

TAILQ_HEAD(roce_qp_list, roce_qp);

struct roce {
	struct packet_sink sink; /* first */
	struct packet_out out;
	const struct roce_host *host;
	void *user;
	struct device *device;
	struct pd *pd;
	struct cq *cq;
	uint64_t now_ns; /* of the last call that was told the time */
	/* No deadline of a queue pair is earlier: qp_run alone brings one forward. */
	uint64_t due_ns;
	struct roce_qp_list ready;
	LIST_HEAD(, roce_qp) qps;
	uint32_t regions;
};

static struct packet_out *sink_get(struct packet_sink *sink)
{
	struct roce *roce = container_of(sink, struct roce, sink);

	roce->out.frame = roce->host->frame(roce->user);
	return roce->out.frame ? &roce->out : NULL;
}

static int sink_put(struct packet_sink *sink, struct packet_out *out)
{
	struct roce *roce = container_of(sink, struct roce, sink);
	const int len = packet_seal(out);

	if (len < 0)
		return len;
	roce->host->send(roce->user, out->frame, (size_t)len);
	return 0;
}

static void tell(const struct roce *roce, struct roce_qp *qp, enum ibv_event_type type)
{
	if (roce->host->event)
		roce->host->event(roce->user, qp, type);
}

static void cq_lost(void *user)
{
	tell(user, NULL, IBV_EVENT_CQ_ERR);
}

static void qp_event(void *user, enum ibv_event_type type)
{
	struct roce_qp *qp = user;

	tell(qp->roce, qp, type);
}

static int make_device(struct roce *roce, const struct roce_config *config)
{
	struct device_config device = {
		.name = "roce",
		.port_mtu_bytes = config->mtu_bytes,
		.link_mbps = config->link_mbps,
		.cc = config->cc ? cc_find(config->cc) : CC_NONE,
	};
	union ibv_gid gid;
	int rc;

	if (device.cc == CC_KINDS)
		return -EINVAL;
	memcpy(device.mac, config->mac, sizeof(device.mac));
	rc = device_create(&device, &roce->device);
	if (rc != 0)
		return rc;
	device_first(roce->device)->now_ns = &roce->now_ns;
	memcpy(gid.raw, config->gid, sizeof(gid.raw));
	rc = device_add_gid(roce->device, &gid, -1, 0);
	return rc < 0 ? rc : 0;
}

static int make(struct roce *roce, const struct roce_config *config)
{
	const struct cq_attr cq = {
		.cqe = config->completions,
		.user = roce,
		.overrun = cq_lost,
	};
	int rc = make_device(roce, config);

	if (rc == 0)
		rc = pd_create(roce->device->keys, &roce->pd);
	if (rc == 0)
		rc = config->completions <= DEVICE_MAX_CQE ? cq_create_in(&cq, &roce->cq) : -EINVAL;
	return rc;
}

static void unmake(struct roce *roce)
{
	if (roce->cq)
		cq_destroy(roce->cq);
	if (roce->pd)
		pd_destroy(roce->pd);
	device_destroy(roce->device);
	free(roce);
}

int roce_create(const struct roce_config *config, const struct roce_host *host, void *user,
		struct roce **created)
{
	struct roce *roce = calloc(1, sizeof(*roce));
	int rc;

	if (!roce)
		return -ENOMEM;
	roce->sink = (struct packet_sink){.get = sink_get, .put = sink_put};
	roce->host = host;
	roce->user = user;
	roce->due_ns = UINT64_MAX;
	TAILQ_INIT(&roce->ready);
	LIST_INIT(&roce->qps);
	rc = make(roce, config);
	if (rc != 0) {
		unmake(roce);
		return rc;
	}
	*created = roce;
	return 0;
}

int roce_destroy(struct roce *roce)
{
	if (!LIST_EMPTY(&roce->qps) || roce->regions > 0)
		return -EBUSY;
	unmake(roce);
	return 0;
}

int roce_register(struct roce *roce, void *addr, size_t length, unsigned int access, uint32_t *key)
{
	struct mr *mr;
	int rc;

	if (access & ~REGION_ACCESS)
		return -EINVAL;
	rc = mr_register(roce->pd, addr, length, (uintptr_t)addr, access, &mr);
	if (rc != 0)
		return rc;
	roce->regions++;
	*key = mr->key;
	return 0;
}

int roce_deregister(struct roce *roce, uint32_t key)
{
	struct mr *mr = key_table_find(roce->device->keys, key);
	const int rc = mr ? mr_deregister(mr) : -EINVAL;

	roce->regions -= rc == 0;
	return rc;
}

static void want_run(struct roce_qp *qp)
{
	if (qp->is_ready)
		return;
	qp->is_ready = true;
	TAILQ_INSERT_TAIL(&qp->roce->ready, qp, ready_link);
}

/* Return true if the queues are within the limits of a device. */
static bool fits(const struct ibv_qp_cap *cap)
{
	return cap->max_send_wr <= DEVICE_MAX_QP_WR && cap->max_recv_wr <= DEVICE_MAX_QP_WR &&
	       cap->max_send_sge <= DEVICE_MAX_SGE && cap->max_recv_sge <= DEVICE_MAX_SGE &&
	       cap->max_inline_data <= DEVICE_MAX_INLINE;
}

static int make_qp(struct roce_qp *qp, const struct roce_qp_init *init)
{
	struct device_engine *engine = device_first(qp->roce->device);
	struct qp_init made = {
		.pd = qp->roce->pd,
		.send_cq = qp->roce->cq,
		.recv_cq = qp->roce->cq,
		.cap = init->cap,
		.type = init->type,
		.sig_all = init->signal_all,
		.qpn = qp->qpn,
		.home = engine,
		.counters = &engine->counters,
		.ooo = engine->ooo,
		.max_rd_atomic = DEVICE_MAX_RD_ATOMIC,
		.max_dest_rd_atomic = DEVICE_MAX_RD_ATOMIC,
		.max_rate_kbps = DEVICE_MAX_RATE_KBPS,
		.cc = device_engine_cc(engine),
		.port_mtu = qp->roce->device->mtu,
		.event = qp_event,
		.user = qp,
	};
	struct ibv_qp_cap granted;
	int rc = init->cc ? given_cc_create(init->cc, &made.cc, &qp->cc) : 0;

	if (rc == 0)
		rc = qp_create(&made, &granted, &qp->qp);
	if (rc != 0)
		given_cc_destroy(qp->cc);
	return rc;
}

int roce_qp_create(struct roce *roce, const struct roce_qp_init *init, struct roce_qp **created)
{
	struct roce_qp *qp;
	int rc;

	if (init->type != IBV_QPT_RC && (init->type != IBV_QPT_UC || (init->cc && init->cc->times)))
		return -EOPNOTSUPP;
	if (!fits(&init->cap))
		return -EINVAL;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	qp->roce = roce;
	rc = device_alloc_qpn(device_first(roce->device));
	if (rc < 0) {
		free(qp);
		return rc == -ENOSPC ? -ENOMEM : rc;
	}
	qp->qpn = (uint32_t)rc;
	rc = make_qp(qp, init);
	if (rc != 0) {
		device_free_qpn(roce->device, qp->qpn);
		free(qp);
		return rc;
	}
	device_set_qp(roce->device, qp->qpn, qp->qp);
	LIST_INSERT_HEAD(&roce->qps, qp, link);
	*created = qp;
	return 0;
}

void roce_qp_destroy(struct roce_qp *qp)
{
	struct device *device = qp->roce->device;

	if (qp->is_ready)
		TAILQ_REMOVE(&qp->roce->ready, qp, ready_link);
	LIST_REMOVE(qp, link);
	device_set_qp(device, qp->qpn, NULL);
	qp_retire(qp->qp);
	qp_destroy(qp->qp);
	given_cc_destroy(qp->cc);
	device_free_qpn(device, qp->qpn);
	free(qp);
}

uint32_t roce_qp_number(const struct roce_qp *qp)
{
	return qp->qpn;
}

int roce_qp_modify(struct roce_qp *qp, const struct ibv_qp_attr *attr, int mask,
		   const struct roce_hop *hop)
{
	struct path path;
	int rc = 0;

	if (mask & IBV_QP_AV)
		rc = device_make_path(qp->roce->device, &attr->ah_attr, hop->mac, hop->udp_sport,
				      &path);
	if (rc == 0)
		rc = qp_modify(qp->qp, attr, mask, &path);
	if (rc == 0)
		want_run(qp);
	return rc;
}

int roce_post_send(struct roce_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	const int rc = qp_post_send(qp->qp, wr, bad);

	want_run(qp);
	return rc;
}

int roce_post_recv(struct roce_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	const int rc = qp_post_recv(qp->qp, wr, bad);

	want_run(qp);
	return rc;
}

int roce_poll(struct roce *roce, int n, struct ibv_wc *wc)
{
	return cq_poll(roce->cq, n, wc);
}

bool roce_receive(struct roce *roce, uint8_t *frame, size_t len, unsigned int known,
		  uint64_t now_ns)
{
	unsigned int facts = known & ROCE_SUMS_GOOD ? FRAME_SUMS_GOOD : 0;
	struct qp *qp;

	if ((known & ROCE_ID_UNKNOWN) && frame_id_find(frame, len))
		facts |= FRAME_ICRC_GOOD;
	roce->now_ns = now_ns;
	if (!device_receive(device_first(roce->device), frame, len, facts, now_ns, &qp))
		return false;
	if (qp)
		want_run(qp_user(qp));
	return true;
}

/* Look at all queue pairs only if the deadline of one may have come. */
static void expire(struct roce *roce)
{
	struct roce_qp *qp;

	if (roce->now_ns < roce->due_ns)
		return;
	LIST_FOREACH (qp, &roce->qps, link) {
		if (qp_deadline_ns(qp->qp) > roce->now_ns)
			continue;
		qp_timeout(qp->qp, roce->now_ns, &roce->sink);
		want_run(qp);
	}
	roce->due_ns = roce_deadline_ns(roce);
}

bool roce_run(struct roce *roce, uint64_t now_ns)
{
	struct roce_qp *qp, *last;

	roce->now_ns = now_ns;
	expire(roce);
	/* Each queue pair runs once: one that stays ready waits for the next call. */
	last = TAILQ_LAST(&roce->ready, roce_qp_list);
	while ((qp = TAILQ_FIRST(&roce->ready)) != NULL) {
		TAILQ_REMOVE(&roce->ready, qp, ready_link);
		qp->is_ready = false;
		if (qp_run(qp->qp, now_ns, &roce->sink, BUDGET_PKTS))
			want_run(qp);
		roce->due_ns = RTE_MIN(roce->due_ns, qp_deadline_ns(qp->qp));
		if (qp == last)
			break;
	}
	return !TAILQ_EMPTY(&roce->ready);
}

uint64_t roce_deadline_ns(const struct roce *roce)
{
	uint64_t deadline_ns = UINT64_MAX;
	const struct roce_qp *qp;

	LIST_FOREACH (qp, &roce->qps, link)
		deadline_ns = RTE_MIN(deadline_ns, qp_deadline_ns(qp->qp));
	return deadline_ns;
}
