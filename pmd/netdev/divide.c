/* SPDX-License-Identifier: BSD-3-Clause */
/* Builds classic BPF filters that divide an interface's frames among packet sockets. */
#include "netdev/divide.h"

#include <assert.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include <rte_common.h>

#include "wire/headers.h"
#include "wire/mad.h"

#define TAKE_ALL 0xffffffffu
/* Offsets from the Ethernet header. The kernel has removed the VLAN tag. */
#define OFF_ETHERTYPE	 12
#define OFF_IPV4	 14
#define OFF_IPV4_FRAG	 20
#define OFF_IPV4_PROTO	 23
#define OFF_IPV4_QPN	 46 /* the BTH's word with the queue pair number, without IP options */
#define OFF_ARP_OPCODE	 20
#define OFF_IPV6_NEXT	 20
#define OFF_IPV6_L4	 54
#define OFF_IPV6_QPN	 66
#define UDP_DPORT	 2
#define IPV4_NO_OPTIONS	 0x45
#define QPN_BITS	 0xffffff
#define ICMPV6_ADVERT	 136
#define FRAGMENT	 0x3fff /* more fragments, or an offset */
#define ARP_OPCODE_REPLY 2

#define LOAD_WORD(off)	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, off)
#define LOAD_HALF(off)	BPF_STMT(BPF_LD | BPF_H | BPF_ABS, off)
#define LOAD_BYTE(off)	BPF_STMT(BPF_LD | BPF_B | BPF_ABS, off)
#define IF_EQ(k, t, f)	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, t, f)
#define IF_GT(k, t, f)	BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, k, t, f)
#define IF_ANY(k, t, f) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, k, t, f)
#define GO_TO(distance) BPF_JUMP(BPF_JMP | BPF_JA, distance, 0, 0)
#define RETURN(k)	BPF_STMT(BPF_RET | BPF_K, k)

/* Indices of instructions in a filter. From PARTS on there is a comparison for each part; ENDS
 * instructions follow these. */
enum { IPV4 = 6, IPV6 = 17, ARP = 23, ICMPV6 = 25, QPN = 28, PARTS = 33, ENDS = 6 };

/*
 * Parts of the queue pair numbers: those for which an operation has one of these results. The
 * numbers of the management queue pairs and of groups are in no part.
 */
struct parts {
	uint16_t operation; /* BPF_RSH or BPF_MOD */
	uint32_t operand;
	uint32_t count;
	uint32_t results[DIVIDE_BLOCKS_MAX];
	/* If `shares` is not 0: of these parts, the numbers that have the remainder `share` when
	 * divided by `shares`. */
	uint32_t share, shares;
};

struct filter {
	struct sock_filter code[PARTS + DIVIDE_BLOCKS_MAX + ENDS];
	unsigned short len;
};

static_assert(PARTS + DIVIDE_BLOCKS_MAX + ENDS <= UINT8_MAX, "each jump reaches the end");
static_assert(DIVIDE_SHARES_MAX <= DIVIDE_BLOCKS_MAX, "a filter has room for each share");

/*
 * Write a filter. If `only` is true, it takes RoCE to the parts and nothing else. Otherwise it
 * takes what mute_packet_socket does, except RoCE to the parts. A packet that ends before the
 * bytes that an instruction loads is dropped: it is too short for RoCE.
 */
static void filter_build(struct filter *filter, const struct parts *parts, bool only)
{
	const unsigned int neither = PARTS + parts->count; /* RoCE to none of the parts */
	const unsigned int match = neither + 1, drop = neither + 4, take = neither + 5;
	const unsigned int matches = only ? take : drop;
	/* where to go with answers to address resolution, and with RoCE over IPv4 with options */
	const unsigned int others = only ? drop : take;
	const bool any = parts->count == 0; /* the filter need not look at the queue pair */
	/* A jump's distance counts from the next instruction. */
#define TO(from, to) ((uint8_t)((to) - (from)-1))
	const struct sock_filter head[PARTS] = {
		[0] = LOAD_HALF((uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
		[1] = IF_EQ(PACKET_OUTGOING, TO(1, drop), 0),
		[2] = LOAD_HALF(OFF_ETHERTYPE),
		[3] = IF_EQ(0x0800, TO(3, IPV4), 0),
		[4] = IF_EQ(0x86dd, TO(4, IPV6), 0),
		[5] = IF_EQ(0x0806, TO(5, ARP), TO(5, drop)),
		[IPV4] = LOAD_BYTE(OFF_IPV4_PROTO),
		[7] = IF_EQ(IPPROTO_UDP, 0, TO(7, drop)),
		[8] = LOAD_HALF(OFF_IPV4_FRAG),
		[9] = IF_ANY(FRAGMENT, TO(9, drop), 0),
		[10] = BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, OFF_IPV4),
		[11] = BPF_STMT(BPF_LD | BPF_H | BPF_IND, OFF_IPV4 + UDP_DPORT),
		[12] = IF_EQ(WIRE_UDP_PORT, any ? TO(12, take) : 0, TO(12, drop)),
		[13] = LOAD_BYTE(OFF_IPV4),
		[14] = IF_EQ(IPV4_NO_OPTIONS, 0, TO(14, others)),
		[15] = LOAD_WORD(OFF_IPV4_QPN),
		[16] = GO_TO(TO(16, QPN)),
		[IPV6] = LOAD_BYTE(OFF_IPV6_NEXT),
		[18] = IF_EQ(IPPROTO_UDP, 0, TO(18, ICMPV6)),
		[19] = LOAD_HALF(OFF_IPV6_L4 + UDP_DPORT),
		[20] = IF_EQ(WIRE_UDP_PORT, any ? TO(20, take) : 0, TO(20, drop)),
		[21] = LOAD_WORD(OFF_IPV6_QPN),
		[22] = GO_TO(TO(22, QPN)),
		[ARP] = LOAD_HALF(OFF_ARP_OPCODE),
		[24] = IF_EQ(ARP_OPCODE_REPLY, TO(24, others), TO(24, drop)),
		[ICMPV6] = IF_EQ(IPPROTO_ICMPV6, 0, TO(25, drop)),
		[26] = LOAD_BYTE(OFF_IPV6_L4),
		[27] = IF_EQ(ICMPV6_ADVERT, TO(27, others), TO(27, drop)),
		[QPN] = BPF_STMT(BPF_ALU | BPF_AND | BPF_K, QPN_BITS),
		[29] = IF_EQ(WIRE_QPN_MULTICAST, TO(29, neither), 0),
		[30] = IF_GT(GSI_QPN, 0, TO(30, neither)),
		[31] = BPF_STMT(BPF_MISC | BPF_TAX, 0),
		[32] = BPF_STMT(BPF_ALU | BPF_K | parts->operation, parts->operand),
	};

	memcpy(filter->code, head, sizeof(head));
	for (uint32_t i = 0; i < parts->count; i++)
		filter->code[PARTS + i] =
			(struct sock_filter)IF_EQ(parts->results[i], TO(PARTS + i, match), 0);
	filter->code[neither] = (struct sock_filter)GO_TO(TO(neither, others));
	filter->code[match] = (struct sock_filter)BPF_STMT(BPF_MISC | BPF_TXA, 0);
	filter->code[match + 1] =
		(struct sock_filter)BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, RTE_MAX(parts->shares, 1u));
	filter->code[match + 2] = (struct sock_filter)IF_EQ(parts->share, TO(match + 2, matches),
							    TO(match + 2, others));
#undef TO
	filter->code[drop] = (struct sock_filter)RETURN(0);
	filter->code[take] = (struct sock_filter)RETURN(TAKE_ALL);
	filter->len = (unsigned short)(take + 1);
}

static int filter_attach(int fd, struct filter *filter)
{
	const struct sock_fprog program = {.len = filter->len, .filter = filter->code};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0 ? -errno
											   : 0;
}

static int filter_use(int fd, const struct parts *parts, bool only)
{
	struct filter filter;

	filter_build(&filter, parts, only);
	return filter_attach(fd, &filter);
}

static struct parts parts_of_blocks(const struct divide_blocks *blocks)
{
	struct parts parts = {
		.operation = BPF_RSH, .operand = blocks->shift, .count = blocks->count};

	for (uint32_t i = 0; i < blocks->count; i++)
		parts.results[i] = blocks->first[i] >> blocks->shift;
	return parts;
}

int divide_all_but(int fd, const struct divide_blocks *blocks)
{
	struct parts parts;

	if (blocks->count > DIVIDE_BLOCKS_MAX)
		return -ENOSPC;
	parts = parts_of_blocks(blocks);
	return filter_use(fd, &parts, false);
}

int divide_only(int fd, const struct divide_part *part)
{
	const struct divide_blocks blocks = {
		.shift = part->shift, .count = 1, .first = {part->first}};
	struct parts parts = parts_of_blocks(&blocks);
	const int on = 1;
	int rc;

	parts.share = part->share;
	parts.shares = part->count;
	rc = filter_use(fd, &parts, true);
	if (rc == 0 && setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &on, sizeof(on)) < 0)
		rc = -errno;
	return rc;
}

static struct parts parts_of_shares(uint32_t shares, uint32_t count)
{
	struct parts parts = {.operation = BPF_MOD, .operand = count};

	for (uint32_t i = 0; i < count; i++) {
		if (shares & 1u << i)
			parts.results[parts.count++] = i;
	}
	return parts;
}

int divide_all_but_shares(int fd, uint32_t shares, uint32_t count)
{
	struct parts parts;

	if (count == 0 || count > DIVIDE_SHARES_MAX)
		return -EINVAL;
	parts = parts_of_shares(shares, count);
	return filter_use(fd, &parts, false);
}

int divide_only_share(int fd, uint32_t share, uint32_t count)
{
	struct parts parts;

	if (share >= count || count > DIVIDE_SHARES_MAX)
		return -EINVAL;
	parts = parts_of_shares(1u << share, count);
	return filter_use(fd, &parts, true);
}
