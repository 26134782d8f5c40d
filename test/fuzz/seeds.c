/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inputs to begin with: the captures of a Linux peer, cut into records. They are written to a
 * folder of their own at start-up, which is given to the fuzzer beside what the user named, and
 * removed at the end.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coverage.h"
#include "dialogue.h"
#include "pcap.h"
#include "record.h"
#include "wire/headers.h"
#include "wire/packet.h"
#include "world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define RECORDS_OF_A_SEED 24

static char folder[] = "/tmp/fuzz-seeds-XXXXXX";

static void remove_folder(void)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	char path[512];

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		unlink(path);
	}
	if (dir != NULL)
		closedir(dir);
	rmdir(folder);
}

/* A packet as it was, but to a queue pair of ours, with the PSN that this expects. */
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
			snprintf(path, sizeof(path), "%s/%s-%u", folder, name, seeds);
			file = fopen(path, "wb");
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

		snprintf(path, sizeof(path), "%s/dialogue-%u", folder, i);
		file = fopen(path, "wb");
		if (file == NULL)
			return;
		dialogue_write(i, file);
		fclose(file);
	}
}

static void play_file(const char *path)
{
	static uint8_t bytes[1 << 20];
	FILE *file = fopen(path, "rb");

	if (file == NULL)
		return;
	LLVMFuzzerTestOneInput(bytes, fread(bytes, 1, sizeof(bytes), file));
	fclose(file);
}

/* Play all seeds, and say what they reach; it must be everything. */
static void play_seeds(void)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	char path[512];

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (entry->d_name[0] != '.')
			play_file(path);
	}
	if (dir != NULL)
		closedir(dir);
	if (coverage_report() > 0)
		exit(1);
}

static bool make_folder(void)
{
	DIR *dir = opendir(TEST_DATA "/wire");
	struct dirent *entry;

	if (dir == NULL || mkdtemp(folder) == NULL) {
		fprintf(stderr, "fuzz: no seeds: cannot read %s/wire\n", TEST_DATA);
		return false;
	}
	atexit(remove_folder);
	while ((entry = readdir(dir)) != NULL) {
		char path[512];

		if (strstr(entry->d_name, ".pcap") == NULL)
			continue;
		snprintf(path, sizeof(path), TEST_DATA "/wire/%s", entry->d_name);
		write_seeds(path, entry->d_name);
	}
	closedir(dir);
	write_dialogues();
	play_seeds();
	return true;
}

/* A single input to be played again, or a fork of the fuzzer's own. */
static bool plays_files(int argc, char **argv)
{
	struct stat st;

	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "-merge", 6) == 0 || strncmp(argv[i], "-help", 5) == 0)
			return true;
		if (argv[i][0] != '-' && stat(argv[i], &st) == 0 && S_ISREG(st.st_mode))
			return true;
	}
	return false;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static char *more[64];

	if (*argc > 60 || plays_files(*argc, *argv) || !make_folder())
		return 0;
	memcpy(more, *argv, (size_t)*argc * sizeof(more[0]));
	more[(*argc)++] = folder;
	*argv = more;
	return 0;
}
