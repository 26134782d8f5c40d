/* SPDX-License-Identifier: BSD-3-Clause */
/* A reader of classic pcap files. */
#include "pcap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PCAP_MAGIC_US 0xa1b2c3d4u
#define PCAP_MAGIC_NS 0xa1b23c4du
#define PCAP_ETHERNET 1

struct pcap_file_header {
	uint32_t magic;
	uint16_t major;
	uint16_t minor;
	uint32_t zone;
	uint32_t sigfigs;
	uint32_t snaplen;
	uint32_t linktype;
};

struct pcap_record_header {
	uint32_t seconds;
	uint32_t fraction;
	uint32_t captured;
	uint32_t original;
};

static uint32_t host32(const struct pcap *pcap, uint32_t v)
{
	return pcap->swapped ? __builtin_bswap32(v) : v;
}

static int read_all(struct pcap *pcap, const char *path)
{
	FILE *file = fopen(path, "rb");
	int ret = 0;
	long size;

	if (!file)
		return -errno;
	if (fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) < 0 ||
	    fseek(file, 0, SEEK_SET) != 0) {
		ret = -errno;
		goto out;
	}
	pcap->len = (size_t)size;
	pcap->bytes = malloc(pcap->len + 1);
	if (!pcap->bytes)
		ret = -ENOMEM;
	else if (fread(pcap->bytes, 1, pcap->len, file) != pcap->len)
		ret = -EIO;
out:
	fclose(file);
	return ret;
}

static int check_file_header(struct pcap *pcap)
{
	struct pcap_file_header header;

	if (pcap->len < sizeof(header))
		return -EBADMSG;
	memcpy(&header, pcap->bytes, sizeof(header));
	pcap->swapped = header.magic == __builtin_bswap32(PCAP_MAGIC_US) ||
			header.magic == __builtin_bswap32(PCAP_MAGIC_NS);
	header.magic = host32(pcap, header.magic);
	pcap->nanoseconds = header.magic == PCAP_MAGIC_NS;
	if (header.magic != PCAP_MAGIC_US && header.magic != PCAP_MAGIC_NS)
		return -EBADMSG;
	if (host32(pcap, header.linktype) != PCAP_ETHERNET)
		return -EBADMSG;
	pcap->at = sizeof(header);
	return 0;
}

int pcap_open(struct pcap *pcap, const char *path)
{
	int ret;

	memset(pcap, 0, sizeof(*pcap));
	ret = read_all(pcap, path);
	if (ret == 0)
		ret = check_file_header(pcap);
	if (ret != 0)
		pcap_close(pcap);
	return ret;
}

int pcap_next(struct pcap *pcap, struct pcap_frame *frame)
{
	struct pcap_record_header header;
	uint64_t fraction;

	if (pcap->at == pcap->len)
		return 0;
	if (pcap->len - pcap->at < sizeof(header))
		return -EBADMSG;
	memcpy(&header, pcap->bytes + pcap->at, sizeof(header));
	pcap->at += sizeof(header);
	frame->len = host32(pcap, header.captured);
	if (frame->len > pcap->len - pcap->at)
		return -EBADMSG;
	fraction = host32(pcap, header.fraction);
	frame->time_ns = host32(pcap, header.seconds) * UINT64_C(1000000000) +
			 fraction * (pcap->nanoseconds ? 1 : 1000);
	frame->data = pcap->bytes + pcap->at;
	pcap->at += frame->len;
	return 1;
}

void pcap_close(struct pcap *pcap)
{
	free(pcap->bytes);
	memset(pcap, 0, sizeof(*pcap));
}
