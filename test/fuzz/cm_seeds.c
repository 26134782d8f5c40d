/* SPDX-License-Identifier: BSD-3-Clause */
/* Seed inputs for fuzz_cm: conversations that reach every message, and Linux's own MADs. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cm_record.h"
#include "corpus.h"
#include "pcap.h"
#include "wire/cm.h"
#include "wire/packet.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);

/* A step of a conversation: a message from the peer, a call, or the timer. */
struct step {
	bool there;
	uint8_t kind;
	uint8_t what;
};

#define MAD(message)                                                 \
	{                                                            \
		true, CM_RECORD_MAD, CM_##message - CM_FIRST_MESSAGE \
	}
#define CALL(call)                                   \
	{                                            \
		true, CM_RECORD_CALL, CM_CALL_##call \
	}
#define TIMER                            \
	{                                \
		true, CM_RECORD_TIMER, 0 \
	}
#define RETRIES	      (3 << 4) /* for the flags of a call */
#define CONVERSATIONS (sizeof(conversations) / sizeof(conversations[0]))
#define STEPS_MAX     16

static const struct step conversations[][STEPS_MAX] = {
	/* the active side */
	{CALL(CONNECT), MAD(MRA), MAD(REP), MAD(REP), MAD(REP), CALL(ESTABLISH), MAD(REP), MAD(LAP),
	 MAD(APR), MAD(DREQ), CALL(DISCONNECT), MAD(DREQ), TIMER, CALL(DESTROY)},
	{CALL(CONNECT), TIMER, MAD(REP), CALL(REJECT), MAD(REP), TIMER, CALL(DESTROY)},
	{CALL(CONNECT), MAD(REJ), CALL(DESTROY)},
	{CALL(CONNECT), MAD(REP), CALL(ESTABLISH), CALL(DISCONNECT), TIMER, MAD(DREP), TIMER},
	{CALL(CONNECT), MAD(REP), CALL(ESTABLISH), CALL(DISCONNECT), MAD(DREQ), MAD(DREQ)},
	{CALL(CONNECT), TIMER, TIMER, TIMER, TIMER, TIMER},
	/* the passive side */
	{MAD(REQ), MAD(REQ), MAD(REQ), CALL(ACCEPT), MAD(REQ), MAD(MRA), TIMER, MAD(RTU), MAD(DREQ),
	 CALL(DESTROY), MAD(DREQ), MAD(REQ), TIMER},
	{MAD(REQ), CALL(REJECT), MAD(REQ), MAD(RTU), CALL(DESTROY), TIMER},
	{MAD(REQ), CALL(ACCEPT), CALL(DATA), CALL(DESTROY), TIMER, MAD(DREP)},
	{MAD(REQ), CALL(ACCEPT), MAD(REJ), CALL(DESTROY)},
	{MAD(REQ), CALL(ACCEPT), TIMER, TIMER, TIMER, TIMER, MAD(RTU), TIMER},
	{MAD(REQ), CALL(LISTEN), MAD(REQ), CALL(DESTROY)},
	/* SIDR */
	{CALL(RESOLVE), TIMER, MAD(SIDR_REP), CALL(DESTROY)},
	{MAD(SIDR_REQ), MAD(SIDR_REQ), CALL(REPLY), MAD(SIDR_REQ), CALL(DESTROY), TIMER},
};

/* Write the bytes behind the header that make a message acceptable. */
static uint8_t fill(uint8_t message, uint8_t *data)
{
	struct cm_mad mad = {.message = (enum cm_message)(CM_FIRST_MESSAGE + message),
			     .local_id = 0x50};
	uint8_t bytes[MAD_LEN];

	if (mad.message == CM_REQ) {
		mad.req.qpn = 0x222;
		mad.req.max_cm_retries = 3;
		mad.req.local_response_timeout = 20;
		mad.req.remote_response_timeout = 20;
		mad.req.primary.ack_timeout = 17;
	}
	if (mad.message == CM_REP)
		mad.rep.qpn = 0x222;
	if (mad.message == CM_DREQ)
		mad.dreq_qpn = 0x111;
	if (mad.message == CM_LAP)
		mad.lap.remote_qpn = 0x111;
	if (mad.message == CM_SIDR_REP)
		mad.sidr_rep.qpn = 0x222;
	if (cm_mad_build(&mad, bytes) != 0)
		return 0;
	memcpy(data, bytes + sizeof(struct mad_header), MAD_LEN - sizeof(struct mad_header));
	return MAD_LEN - sizeof(struct mad_header);
}

static void write_step(const struct step *step, FILE *file)
{
	struct cm_record record = {.kind = step->kind,
				   .what = step->what,
				   .flags = step->kind == CM_RECORD_CALL ? RETRIES : 0,
				   .patch_at = 20,
				   .patch = 16};
	uint8_t data[MAD_LEN];

	if (step->kind == CM_RECORD_MAD)
		record.len = fill(step->what, data);
	fwrite(&record, sizeof(record), 1, file);
	fwrite(data, record.len, 1, file);
}

static void write_conversation(size_t index)
{
	char name[64];
	FILE *file;

	snprintf(name, sizeof(name), "conversation-%zu", index);
	file = corpus_file(name);
	if (file == NULL)
		return;
	for (int i = 0; i < STEPS_MAX && conversations[index][i].there; i++)
		write_step(&conversations[index][i], file);
	fclose(file);
}

/* Write Linux's MADs one after the other, unchanged except for the ids. */
static void write_capture(const char *capture)
{
	struct pcap_frame frame;
	struct pcap pcap;
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), TEST_DATA "/wire/%s.pcap", capture);
	file = corpus_file(capture);
	if (file == NULL || pcap_open(&pcap, path) != 0)
		return;
	while (pcap_next(&pcap, &frame) == 1) {
		struct cm_record record = {.kind = CM_RECORD_MAD};
		struct packet packet;

		if (packet_parse(frame.data, frame.len, false, &packet) != PACKET_OK ||
		    packet.dest_qpn != GSI_QPN)
			continue;
		record.what = (uint8_t)(packet.payload[17] - CM_FIRST_MESSAGE);
		record.len = MAD_LEN - sizeof(struct mad_header);
		fwrite(&record, sizeof(record), 1, file);
		fwrite(packet.payload + sizeof(struct mad_header), record.len, 1, file);
	}
	fclose(file);
	pcap_close(&pcap);
}

static void write_all(void)
{
	static const char *const captures[] = {"cm_rping", "cm_rej", "cm_sidr", "loss_cm"};

	for (size_t i = 0; i < CONVERSATIONS; i++)
		write_conversation(i);
	for (size_t i = 0; i < sizeof(captures) / sizeof(captures[0]); i++)
		write_capture(captures[i]);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	corpus_begin(argc, argv, write_all, cm_coverage_report);
	return 0;
}
