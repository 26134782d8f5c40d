/* SPDX-License-Identifier: BSD-3-Clause */
/* Seed inputs: the captures of a Linux peer, split into records. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "corpus.h"
#include "coverage.h"
#include "dialogue.h"
#include "pcap.h"
#include "record.h"
#include "wire/headers.h"
#include "wire/packet.h"
#include "world.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);

#define RECORDS_OF_A_SEED 24

/* Write a captured packet, but to one of our queue pairs and with the PSN that it expects. */
static void write_record(FILE *file, const struct packet *packet, unsigned int qp)
{
	const uint8_t *bth = packet->l3 + packet->l3_len + 8;
	const uint32_t len = (uint32_t)(packet->payload - bth) + packet->payload_len;
	const struct record record = {.kind = RECORD_PACKET,
				      .qp = (uint8_t)qp,
				      .select = REGION_OPEN,
				      .len = {(uint8_t)(len >> 8), (uint8_t)len}};

	fwrite(&record, sizeof(record), 1, file);
	fwrite(bth, len, 1, file);
}

static unsigned int qp_for(const struct packet *packet, unsigned int seed)
{
	switch (packet->opcode & OPCODE_SERVICE_MASK) {
	case OPCODE_UC:
		return 7;
	case OPCODE_UD:
		return 9;
	default:
		return 1 + seed % 5;
	}
}

static void write_seeds(const char *capture, const char *name)
{
	struct pcap_frame frame;
	struct pcap pcap;
	FILE *file = NULL;
	unsigned int seeds = 0, records = 0;
	char path[512];

	if (pcap_open(&pcap, capture) != 0)
		return;
	while (seeds < 8 && pcap_next(&pcap, &frame) == 1) {
		struct packet packet;

		if (packet_parse(frame.data, frame.len, false, &packet) != PACKET_OK)
			continue;
		if (file == NULL) {
			snprintf(path, sizeof(path), "%s-%u", name, seeds);
			file = corpus_file(path);
			if (file == NULL)
				break;
		}
		write_record(file, &packet, qp_for(&packet, seeds));
		if (++records == RECORDS_OF_A_SEED) {
			fclose(file);
			file = NULL;
			records = 0;
			seeds++;
		}
	}
	if (file != NULL)
		fclose(file);
	pcap_close(&pcap);
}

static void write_dialogues(void)
{
	for (unsigned int i = 0; i < DIALOGUES; i++) {
		char path[512];
		FILE *file;

		snprintf(path, sizeof(path), "dialogue-%u", i);
		file = corpus_file(path);
		if (file == NULL)
			return;
		dialogue_write(i, file);
		fclose(file);
	}
}

static void write_all(void)
{
	DIR *dir = opendir(TEST_DATA "/wire");
	struct dirent *entry;

	if (dir == NULL)
		fprintf(stderr, "fuzz: no seeds: cannot read %s/wire\n", TEST_DATA);
	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		char path[512];

		if (strstr(entry->d_name, ".pcap") == NULL)
			continue;
		snprintf(path, sizeof(path), TEST_DATA "/wire/%s", entry->d_name);
		write_seeds(path, entry->d_name);
	}
	if (dir != NULL)
		closedir(dir);
	write_dialogues();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	corpus_begin(argc, argv, write_all, coverage_report);
	return 0;
}
