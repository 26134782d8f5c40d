/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of lib/qp and lib/device that the engine calls, for tests. */
#include "fake_device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "device/gsi.h"
#include "device/xrc_share.h"
#include "eal/runtime.h"
#include "helper.h"
#include "queue/cq.h"
#include "report/write.h"
#include "wire/build.h"

uint32_t fake_peer_qpn;
struct qp *fake_receiver;
struct cq *fake_cq;
unsigned int fake_looped;
enum ibv_event_type fake_last_event;
enum cc_kind fake_kind;

static struct link fake_link;
static struct device fake_device;
static struct device_engine fake_home;

/* Store a counter atomically: one thread runs the engine, and another one may read its counters. */
static void count_to(unsigned int *count, unsigned int value)
{
	__atomic_store_n(count, value, __ATOMIC_RELEASE);
}

void qp_prefetch_run(const struct qp *qp)
{
	(void)qp;
}

void qp_prefetch_work(const struct qp *qp)
{
	(void)qp;
}

void device_prefetch(const struct device *device, const uint8_t *frame, size_t len)
{
	(void)device;
	(void)frame;
	(void)len;
}

uint64_t qp_deadline_ns(const struct qp *qp)
{
	return qp->deadline_ns;
}

void qp_timeout(struct qp *qp, uint64_t now_ns, struct packet_sink *sink)
{
	(void)now_ns, (void)sink;
	qp->deadline_ns = UINT64_MAX;
	count_to(&qp->timeouts, qp->timeouts + 1);
}

void qp_hasten(struct qp *qp, uint64_t now_ns)
{
	(void)now_ns;
	qp->hastened++;
}

bool qp_owes_ack_only(const struct qp *qp)
{
	return qp->only_ack;
}

bool qp_sends_to(const struct qp *qp, const uint8_t mac[6])
{
	return memcmp(qp->dst_mac, mac, sizeof(qp->dst_mac)) == 0;
}

enum ibv_qp_state qp_state(const struct qp *qp)
{
	return qp->state;
}

uint32_t qp_peer_qpn(const struct qp *qp)
{
	(void)qp;
	return fake_peer_qpn;
}

static void fake_name_payload(struct packet_out *out, const struct qp *qp)
{
	out->l4_off = 34;
	out->hdr_len = FAKE_FRAME_LEN;
	out->ipv6 = false;
	out->again = qp->again;
	out->frame[out->l4_off + 8] = qp->opcode;
	out->payload_len = qp->payload_len;
	out->frags = 1;
	out->frag[0] = (struct packet_frag){
		.addr = qp->payload, .len = qp->payload_len, .kind = FRAG_COPY};
}

bool qp_run(struct qp *qp, uint64_t now_ns, struct packet_sink *sink, unsigned int budget)
{
	struct path path;

	memcpy(path.hdr, qp->dst_mac, sizeof(qp->dst_mac));
	(void)now_ns;
	count_to(&qp->runs, qp->runs + 1);
	qp->ran_untold = fake_cq && fake_cq->source.pending == 0;
	while (__atomic_load_n(&qp->to_send, __ATOMIC_ACQUIRE) > 0 && budget-- > 0) {
		struct packet_out *out =
			sink_begin(sink, &path, fake_peer_qpn, FAKE_FRAME_LEN + qp->payload_len);

		if (!out)
			return true;
		memset(out->frame, 0, FAKE_FRAME_LEN);
		memcpy(out->frame, qp->dst_mac, sizeof(qp->dst_mac));
		out->frame[FAKE_FRAME_LEN - 1] = 0x91;
		out->frags = 0;
		out->payload_len = 0;
		if (qp->payload)
			fake_name_payload(out, qp);
		if (sink_send(sink, out) != 0)
			count_to(&qp->faults, qp->faults + 1);
		count_to(&qp->to_send, qp->to_send - 1);
	}
	return __atomic_load_n(&qp->to_send, __ATOMIC_ACQUIRE) > 0;
}

int packet_seal(struct packet_out *out)
{
	/* Report a fault, as for unmapped memory. */
	if (out->frame[0] == FAKE_UNREADABLE)
		return -EFAULT;
	return FAKE_FRAME_LEN;
}

int packet_seal_in_place(struct packet_out *out, uint8_t *tail)
{
	if (out->frame[0] == FAKE_UNREADABLE)
		return -EFAULT;
	memset(tail, FAKE_TAIL, 4);
	return 4;
}

unsigned int fake_known_good;
unsigned int fake_source_good;
struct qp *fake_waiting;

bool device_receive_next(struct device_burst *burst, const uint8_t *frame, size_t len,
			 unsigned int known, struct qp **qp)
{
	struct device *device = burst->engine->device;

	*qp = NULL;
	if (len != FAKE_FRAME_LEN || frame[len - 1] != 0x91)
		return false;
	fake_looped += (known & FRAME_TRUSTED) != 0;
	fake_known_good += (known & FRAME_SUMS_GOOD) != 0;
	fake_source_good += (known & FRAME_SOURCE_GOOD) != 0;
	*qp = fake_receiver;
	if (*qp)
		count_to(&(*qp)->received, (*qp)->received + 1);
	if (fake_cq)
		cq_push(fake_cq, &(struct ibv_wc){.status = IBV_WC_SUCCESS}, false);
	if (device->gsi)
		device->gsi->receive(device->gsi_user, NULL, NULL, 0, burst->now_ns);
	return true;
}

void device_each_qp(const struct device *device, void (*each)(struct qp *qp, void *arg), void *arg)
{
	(void)device;
	if (fake_receiver)
		each(fake_receiver, arg);
}

void qp_wake_waiting(struct qp_waiting *waiting, void (*each)(struct qp *qp, void *arg), void *arg)
{
	(void)waiting;
	if (fake_waiting)
		each(fake_waiting, arg);
	fake_waiting = NULL;
}

int qp_modify(struct qp *qp, const struct ibv_qp_attr *attr, int mask, const struct path *path)
{
	(void)path;
	if (mask == IBV_QP_STATE && attr->qp_state == IBV_QPS_ERR)
		qp->failed = true;
	return 0;
}

struct device_engine *qp_home(const struct qp *qp)
{
	(void)qp;
	return &fake_home;
}

void (*fake_follow_xrc)(void);

bool xrc_share_is_due(struct device *device)
{
	(void)device;
	return fake_follow_xrc != NULL;
}

void xrc_share_follow(struct device *device)
{
	(void)device;
	fake_follow_xrc();
}

void device_raise(struct device *device, enum ibv_event_type type)
{
	(void)device;
	fake_last_event = type;
}

void fake_qp_init(struct qp *qp, const uint8_t dst_mac[6])
{
	memset(qp, 0, sizeof(*qp));
	memcpy(qp->dst_mac, dst_mac, sizeof(qp->dst_mac));
	qp->state = IBV_QPS_RTS;
	qp->deadline_ns = UINT64_MAX;
}

bool fake_start(void)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
	struct settings settings;
	struct runtime_config config = {.memory_bytes = 32 << 20};

	settings_init(&settings);
	/* A ring from its transmit side to its receive side. */
	strcpy(settings.port, "net_ring0");
	if (link_prepare(&fake_link, &settings) != 0 || runtime_start(&config) != 0)
		return false;
	if (link_open(&fake_link, &settings) != 0)
		return false;
	/* The driver's own is all zeros. */
	memcpy(fake_link.port.mac, mac, sizeof(mac));
	return true;
}

struct engine *fake_engine(enum settings_progress progress)
{
	struct engine *engine;

	memset(&fake_device, 0, sizeof(fake_device));
	fake_device.gids[0].vlan_id = -1;
	memset(&fake_home, 0, sizeof(fake_home));
	fake_home.device = &fake_device;
	fake_device.engines[0] = &fake_home;
	fake_device.engine_count = 1;
	moderator_init(&fake_home.moderator);
	fake_receiver = NULL;
	fake_cq = NULL;
	fake_looped = 0;
	fake_last_event = 0;
	if (engine_create(&fake_home, &fake_link, progress, &engine) != 0)
		return NULL;
	return engine;
}

void fake_engine_end(struct engine *engine)
{
	struct rte_mbuf *mbuf;

	helper_stop(engine);
	engine_disown(engine);
	while (port_rx_burst(&fake_link.port, &mbuf, 1) == 1)
		rte_pktmbuf_free(mbuf);
	free(engine);
}

void report_write_device(struct report *report, struct device *device)
{
	(void)device;
	report_begin(report);
	report_end(report);
}

int device_change_cc(struct device *device, uint32_t qpn, enum cc_kind kind,
		     void (*each)(struct qp *qp, void *arg), void *arg)
{
	(void)device;
	if (qpn != FAKE_QPN || kind >= CC_KINDS || !fake_receiver)
		return -ENOENT;
	fake_kind = kind;
	each(fake_receiver, arg);
	return 0;
}
