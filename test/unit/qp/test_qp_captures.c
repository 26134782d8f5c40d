/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requests that a Linux peer sent, answered by our queue pairs and compared with the answers of
 * Linux, one by one: kind, PSN, syndrome, MSN, data. An engine poll follows each packet, so that
 * nothing is coalesced. Where the standard leaves a choice and ours is another, it says so below.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fixture.h"
#include "pcap.h"
#include "qp/qp.h"
#include "wire/headers.h"
#include "test.h"
#include "queues.h"

#define PAGE	      4096u
#define FRAMES_MAX    256
#define KEYS_MAX      4
#define RECEIVE_BYTES 8192u
#define REMOTE	      (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define NONE	      (-1)

struct capture {
	const char *name;
	enum ibv_mtu mtu;
	/* Given to the responder's memory before a READ or an atomic: what Linux's had held. */
	bool fill;
	unsigned int access; /* of the region, beside local write */
	bool unknown_key;    /* the requests' key is nobody's */
	int lost[4];	     /* requests that did not arrive, counted from 0; NONE ends */
	int unseen[6];	     /* answers that are not in the file, likewise */
	int receives[3];     /* frames before which a receive request is posted; NONE: enough */
};

#define ALL_ARRIVE .lost = {NONE}, .unseen = {NONE}, .receives = {NONE}
#define PLAIN	   .mtu = IBV_MTU_1024, .access = REMOTE, ALL_ARRIVE

static const struct capture rc_send = {.name = "rc_send", PLAIN};
static const struct capture rc_send_256 = {
	.name = "rc_send_256", .mtu = IBV_MTU_256, .access = REMOTE, ALL_ARRIVE};
static const struct capture rc_write = {.name = "rc_write", PLAIN};
static const struct capture rc_read = {.name = "rc_read", .fill = true, PLAIN};
static const struct capture rc_atomic = {.name = "rc_atomic", .fill = true, PLAIN};
static const struct capture rc_mix = {.name = "rc_mix", PLAIN};
static const struct capture rc_ipv6 = {.name = "rc_ipv6", PLAIN};
static const struct capture vlan5 = {.name = "vlan5", PLAIN};
static const struct capture rc_nak_rkey = {.name = "rc_nak_rkey", .unknown_key = true, PLAIN};
static const struct capture rc_nak_perm = {
	.name = "rc_nak_perm", .mtu = IBV_MTU_1024, .access = IBV_ACCESS_REMOTE_READ, ALL_ARRIVE};
static const struct capture rc_rnr = {.name = "rc_rnr",
				      .mtu = IBV_MTU_1024,
				      .access = REMOTE,
				      .lost = {NONE},
				      .unseen = {NONE},
				      .receives = {114, 144, NONE}};
static const struct capture loss_req = {.name = "loss_req",
					.mtu = IBV_MTU_1024,
					.access = REMOTE,
					.lost = {4, 60, 61, NONE},
					.unseen = {NONE},
					.receives = {NONE}};
static const struct capture loss_resp = {.name = "loss_resp",
					 .mtu = IBV_MTU_1024,
					 .access = REMOTE,
					 .lost = {NONE},
					 .unseen = {3, 9, 15, 16, 30, NONE},
					 .receives = {NONE}};
static const struct capture loss_write = {.name = "loss_write",
					  .mtu = IBV_MTU_1024,
					  .access = REMOTE,
					  .lost = {1, 3, 12, NONE},
					  .unseen = {NONE},
					  .receives = {NONE}};
static const struct capture loss_read_req = {.name = "loss_read_req",
					     .mtu = IBV_MTU_1024,
					     .fill = true,
					     .access = REMOTE,
					     .lost = {0, 2, NONE},
					     .unseen = {NONE},
					     .receives = {NONE}};
static const struct capture loss_atomic = {.name = "loss_atomic",
					   .mtu = IBV_MTU_1024,
					   .fill = true,
					   .access = REMOTE,
					   .lost = {NONE},
					   .unseen = {0, 2, 3, NONE},
					   .receives = {NONE}};
static const struct capture loss_cm = {.name = "loss_cm", .fill = true, PLAIN};
static const struct capture loss_cm_rep = {.name = "loss_cm_rep", .fill = true, PLAIN};
static const struct capture cm_rping = {.name = "cm_rping", .fill = true, PLAIN};

/* A key of the capture, and the region that stands for its memory under the same addresses. */
struct key {
	uint32_t rkey;
	uint64_t first, end; /* addresses that requests name */
	uint8_t *block;
	size_t block_bytes;
	struct mr *mr; /* NULL where the key is nobody's */
};

static struct {
	struct fixture fixture;
	struct cq *recv_cq;
	struct region inbox;
	struct pcap pcap;
	unsigned int frames;
	struct packet packets[FRAMES_MAX];
	uint8_t gid[16]; /* the responder's that is played */
	struct key keys[KEYS_MAX];
	unsigned int key_count;
	uint64_t atomics[8]; /* addresses that have their first value */
	unsigned int atomic_count;
	struct qp *qp;
} play;

static bool is_rc(const struct packet *packet)
{
	return (packet->opcode & OPCODE_SERVICE_MASK) == OPCODE_RC;
}

static bool is_request(const struct packet *packet)
{
	return is_rc(packet) && (packet->op->flags & OPCODE_REQUEST) &&
	       memcmp(packet->dgid, play.gid, 16) == 0;
}

static bool is_answer(const struct packet *packet)
{
	return is_rc(packet) && !(packet->op->flags & OPCODE_REQUEST) &&
	       memcmp(packet->sgid, play.gid, 16) == 0;
}

static bool listed(const int *list, int number)
{
	for (; *list != NONE; list++)
		if (*list == number)
			return true;
	return false;
}

static void open_capture(const struct capture *capture)
{
	struct pcap_frame frame;
	char path[512];

	snprintf(path, sizeof(path), "%s/wire/%s.pcap", TEST_DATA, capture->name);
	assert_int_equal(pcap_open(&play.pcap, path), 0);
	while (pcap_next(&play.pcap, &frame) > 0) {
		assert_true(play.frames < FRAMES_MAX);
		assert_int_equal(
			packet_parse(frame.data, frame.len, false, &play.packets[play.frames++]),
			PACKET_OK);
	}
}

/* Memory and keys. */

static uint32_t touched_bytes(const struct packet *packet)
{
	return packet->op->flags & OPCODE_HAS_ATOMICETH ? 8 : packet->dma_length;
}

static struct key *find_key(uint32_t rkey)
{
	for (unsigned int i = 0; i < play.key_count; i++)
		if (play.keys[i].rkey == rkey)
			return &play.keys[i];
	return NULL;
}

static void note_key(const struct packet *packet)
{
	const uint64_t end = packet->iova + touched_bytes(packet);
	struct key *key = find_key(packet->rkey);

	if (key == NULL) {
		assert_true(play.key_count < KEYS_MAX);
		key = &play.keys[play.key_count++];
		*key = (struct key){.rkey = packet->rkey, .first = packet->iova, .end = end};
	}
	if (packet->iova < key->first)
		key->first = packet->iova;
	if (end > key->end)
		key->end = end;
}

static void make_region(const struct capture *capture, struct key *key)
{
	const uint64_t in_page = key->first % PAGE;
	const size_t length = (size_t)(key->end - key->first);

	key->block_bytes = (size_t)((in_page + length + PAGE) / PAGE) * PAGE;
	key->block = mmap(NULL, key->block_bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(key->block != MAP_FAILED);
	if (!capture->unknown_key)
		assert_int_equal(mr_register(play.fixture.pd, key->block + in_page, length,
					     key->first, capture->access | IBV_ACCESS_LOCAL_WRITE,
					     &key->mr),
				 0);
}

static uint8_t *memory_at(uint32_t rkey, uint64_t iova)
{
	const struct key *key = find_key(rkey);

	return key->block + key->first % PAGE + (iova - key->first);
}

/* The first answer of Linux from this PSN on, or NULL. */
static const struct packet *linux_answer(struct psn psn)
{
	for (unsigned int i = 0; i < play.frames; i++)
		if (is_answer(&play.packets[i]) && psn_eq(play.packets[i].psn, psn))
			return &play.packets[i];
	return NULL;
}

static void fill_read(const struct packet *request, uint32_t mtu)
{
	uint8_t *at = memory_at(request->rkey, request->iova);

	for (uint32_t i = 0; i * mtu < request->dma_length; i++) {
		const struct packet *answer = linux_answer(psn_add(request->psn, (int32_t)i));

		assert_non_null(answer);
		memcpy(at + (size_t)i * mtu, answer->payload, answer->payload_len);
	}
}

static void fill_atomic(const struct packet *request)
{
	for (unsigned int i = 0; i < play.atomic_count; i++)
		if (play.atomics[i] == request->iova)
			return;
	assert_true(play.atomic_count < 8);
	play.atomics[play.atomic_count++] = request->iova;
	memcpy(memory_at(request->rkey, request->iova),
	       &linux_answer(request->psn)->atomic_original, 8);
}

/* The queue pair. */

static void post_receive(void)
{
	struct ibv_sge sge = region_sge(&play.inbox, 0, RECEIVE_BYTES);
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(qp_post_recv(play.qp, &wr, &bad), 0);
}

static void make_qp(const struct capture *capture, const struct packet *first)
{
	struct qp_init init = {.pd = play.fixture.pd,
			       .send_cq = play.fixture.cq,
			       .recv_cq = play.recv_cq,
			       .cap = {.max_recv_wr = FRAMES_MAX, .max_recv_sge = 1},
			       .type = IBV_QPT_RC,
			       .qpn = first->dest_qpn,
			       .counters = &play.fixture.counters,
			       .max_dest_rd_atomic = 16,
			       .port_mtu = IBV_MTU_4096};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = REMOTE,
		.path_mtu = capture->mtu,
		.dest_qp_num = FIXTURE_PEER_QPN,
		.rq_psn = first->psn.v,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 12,
	};
	struct path_attr path_attr = {
		.vlan_tci = first->vlan_tci, .hop_limit = 64, .udp_sport = 0xc000};
	struct ibv_qp_cap cap;
	struct path path;

	memcpy(path_attr.sgid, first->dgid, 16);
	memcpy(path_attr.dgid, first->sgid, 16);
	assert_int_equal(path_init(&path, &path_attr), 0);
	memcpy(attr.ah_attr.grh.dgid.raw, first->sgid, 16);
	assert_int_equal(qp_create(&init, &cap, &play.qp), 0);
	assert_int_equal(
		qp_modify(play.qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
			  NULL),
		0);
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(qp_modify(play.qp, &attr,
				   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					   IBV_QP_MIN_RNR_TIMER,
				   &path),
			 0);
	for (int i = 0; capture->receives[0] == NONE && i < 64; i++)
		post_receive();
}

/* The play. */

static void answer_request(const struct capture *capture, unsigned int frame)
{
	struct packet packet = play.packets[frame];
	const struct key *key = find_key(packet.rkey);

	if (listed(capture->receives, (int)frame))
		post_receive();
	if (packet.op->flags & (OPCODE_HAS_RETH | OPCODE_HAS_ATOMICETH)) {
		if (capture->fill && (packet.opcode & OPCODE_OPERATION_MASK) == OPCODE_READ_REQUEST)
			fill_read(&packet, 128u << capture->mtu);
		else if (capture->fill && (packet.op->flags & OPCODE_IS_ATOMIC))
			fill_atomic(&packet);
		packet.rkey = key->mr == NULL ? FIXTURE_NOBODY : key->mr->key;
	}
	qp_receive(play.qp, &packet, 0);
	assert_false(qp_run(play.qp, 0, &play.fixture.catcher.sink, 1000));
}

/* Return true if a READ response answers a request that was retransmitted from its middle on. Linux
 * continues with MIDDLE or LAST there; ours begins with FIRST or ONLY, as for any request. */
static bool begins_in_the_middle(const struct packet *ours, const struct packet *theirs)
{
	const uint32_t kind = OPCODE_IS_READ_RESPONSE | OPCODE_LAST;

	return (ours->op->flags & kind) == (theirs->op->flags & kind) &&
	       (ours->op->flags & OPCODE_IS_READ_RESPONSE) && (ours->op->flags & OPCODE_FIRST) &&
	       !(theirs->op->flags & OPCODE_FIRST);
}

static void expect_same(const struct packet *ours, const struct packet *theirs)
{
	if (!begins_in_the_middle(ours, theirs))
		assert_int_equal(ours->opcode, theirs->opcode);
	assert_int_equal(ours->psn.v, theirs->psn.v);
	if (ours->op->flags & theirs->op->flags & OPCODE_HAS_AETH) {
		assert_int_equal(ours->syndrome, theirs->syndrome);
		assert_int_equal(ours->msn, theirs->msn);
	}
	if (ours->op->flags & OPCODE_HAS_ATOMICACKETH)
		assert_int_equal(ours->atomic_original, theirs->atomic_original);
	assert_int_equal(ours->payload_len, theirs->payload_len);
	assert_memory_equal(ours->payload, theirs->payload, theirs->payload_len);
}

/* Linux also says that what came behind a packet that found no receive request is out of sequence;
 * C9-112 asks for one NAK only. */
static bool is_second_nak(const struct packet *before, const struct packet *packet)
{
	return before != NULL && psn_eq(before->psn, packet->psn) &&
	       (packet->opcode & OPCODE_OPERATION_MASK) == OPCODE_ACKNOWLEDGE &&
	       packet->syndrome == (AETH_NAK | NAK_PSN_SEQUENCE) &&
	       (before->syndrome & AETH_KIND_MASK) == AETH_RNR_NAK;
}

/* Returns how many answers were compared. */
static unsigned int compare(const struct capture *capture)
{
	const struct packet *before = NULL;
	unsigned int ours = 0, compared = 0;

	for (unsigned int i = 0; i < play.frames; i++) {
		const struct packet *theirs = &play.packets[i];

		if (!is_answer(theirs) || is_second_nak(before, theirs))
			continue;
		while (listed(capture->unseen, (int)ours))
			ours++;
		expect_same(catcher_at(&play.fixture.catcher, ours++), theirs);
		before = theirs;
		compared++;
	}
	while (listed(capture->unseen, (int)ours))
		ours++;
	/* Linux said all that we say. */
	assert_int_equal(ours, play.fixture.catcher.count);
	return compared;
}

static void set_up_responder(const struct capture *capture)
{
	const struct packet *first = NULL;

	fixture_set_up(&play.fixture, 1024, FRAMES_MAX);
	assert_int_equal(cq_create(FRAMES_MAX, NULL, NULL, NULL, &play.recv_cq), 0);
	region_set_up(&play.inbox, play.fixture.pd, RECEIVE_BYTES, IBV_ACCESS_LOCAL_WRITE, 1);
	play.key_count = 0;
	play.atomic_count = 0;
	for (unsigned int i = 0; i < play.frames; i++) {
		if (!is_request(&play.packets[i]))
			continue;
		if (first == NULL)
			first = &play.packets[i];
		if (play.packets[i].op->flags & (OPCODE_HAS_RETH | OPCODE_HAS_ATOMICETH))
			note_key(&play.packets[i]);
	}
	for (unsigned int i = 0; i < play.key_count; i++)
		make_region(capture, &play.keys[i]);
	assert_non_null(first);
	make_qp(capture, first);
}

static void tear_down_responder(void)
{
	qp_destroy(play.qp);
	for (unsigned int i = 0; i < play.key_count; i++) {
		if (play.keys[i].mr != NULL)
			mr_deregister(play.keys[i].mr);
		munmap(play.keys[i].block, play.keys[i].block_bytes);
	}
	region_tear_down(&play.inbox);
	assert_int_equal(cq_destroy(play.recv_cq), 0);
	fixture_tear_down(&play.fixture);
}

/* Each end that was asked something answers again; returns how many answers were compared. */
static unsigned int play_requests(const struct capture *capture)
{
	int request = 0;

	for (unsigned int i = 0; i < play.frames; i++)
		if (is_request(&play.packets[i]) && !listed(capture->lost, request++))
			answer_request(capture, i);
	return compare(capture);
}

static void expect_answers(const struct capture *capture, unsigned int count)
{
	uint8_t done[2][16] = {{0}};
	unsigned int compared = 0, ends = 0;

	memset(&play, 0, sizeof(play));
	open_capture(capture);
	for (unsigned int i = 0; i < play.frames; i++) {
		memcpy(play.gid, play.packets[i].dgid, 16);
		if (!is_request(&play.packets[i]) ||
		    (ends > 0 && memcmp(done[0], play.gid, 16) == 0) ||
		    (ends > 1 && memcmp(done[1], play.gid, 16) == 0))
			continue;
		memcpy(done[ends++], play.gid, 16);
		set_up_responder(capture);
		compared += play_requests(capture);
		tear_down_responder();
	}
	pcap_close(&play.pcap);
	/* The number of packets agrees with another program's count. */
	assert_int_equal(compared, count);
}

#define PLAY(name, count)                     \
	TEST(captures__##name)                \
	{                                     \
		expect_answers(&name, count); \
	}
PLAY(rc_send, 6)
PLAY(rc_send_256, 6)
PLAY(rc_write, 6)
PLAY(rc_read, 9)
PLAY(rc_atomic, 4)
PLAY(rc_mix, 40)
PLAY(rc_ipv6, 8)
PLAY(vlan5, 10)
PLAY(rc_nak_rkey, 1)
PLAY(rc_nak_perm, 1)
PLAY(rc_rnr, 34)
PLAY(loss_req, 42)
PLAY(loss_resp, 96)
PLAY(loss_write, 8)
PLAY(loss_read_req, 9)
PLAY(loss_atomic, 4)
PLAY(loss_cm, 13)
PLAY(loss_cm_rep, 12)
PLAY(cm_rping, 12)
