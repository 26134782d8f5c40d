/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes and attaches the eBPF program that drops RoCE packets behind the packet sockets. */
#include "netdev/early_drop.h"

#include <assert.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rte_byteorder.h>
#include <rte_common.h>

#include "base/own.h"
#include "base/tuning.h"
#include "wire/headers.h"

/* Linux 6.6 defines these in linux/bpf.h. */
#define ATTACH_TCX_INGRESS 46
#define VERDICT_NEXT	   (-1) /* go on with other programs, and with the kernel */
#define VERDICT_DROP	   2

#define NAME "uroce_early"

/* Longer than the longest pause between two calls of early_drop_renew in a process that works. */
#define ACTS_NS UINT64_C(2000000000)

/* A child with the process's seccomp filter has called bpf() and lived. */
static bool filter_spares_us;

/* An address as two numbers; the first byte is the most significant one. */
struct early_drop_address {
	uint64_t high, low;
};

/* The value of the program's only map. The process writes it, the program reads it. A packet that
 * meets a change of the addresses is judged by a mixture of both lists, and may be lost. */
struct early_drop_memory {
	uint64_t until_ns; /* the time, by CLOCK_MONOTONIC, up to which the program acts */
	uint32_t count;
	uint32_t unused;
	struct early_drop_address addresses[ADDRESSES_MAX];
};

/* Offsets from the Ethernet header. The kernel has removed the VLAN tag. */
#define OFF_IPV4_VERSION 14
#define OFF_IPV4_FRAG	 20
#define OFF_IPV4_PROTO	 23
#define OFF_IPV4_DST	 30
#define OFF_IPV4_DPORT	 36
#define IPV4_UDP_BYTES	 42
#define OFF_IPV6_NEXT	 20
#define OFF_IPV6_DST	 38
#define OFF_IPV6_DPORT	 56
#define IPV6_UDP_BYTES	 62
#define IPV4_NO_OPTIONS	 0x45
#define FRAGMENT	 0x3fff /* more fragments, or an offset */
#define IPV4_MAPPED	 0xffff /* the upper half of the second number */

/* Registers. Those from 6 on survive calls; 0 gets results. */
enum { R0, R1, R2, R3, CONTEXT = 6, HIGH, LOW, MEMORY };

#define INSN(c, d, s, o, k) \
	((struct bpf_insn){ \
		.code = (c), .dst_reg = (d), .src_reg = (s), .off = (int16_t)(o), .imm = (k)})
#define MOVE(d, s)	  INSN(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define SET(d, k)	  INSN(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, k)
#define ADD(d, k)	  INSN(BPF_ALU64 | BPF_ADD | BPF_K, d, 0, 0, k)
#define SHIFT_LEFT(d, k)  INSN(BPF_ALU64 | BPF_LSH | BPF_K, d, 0, 0, k)
#define OR(d, s)	  INSN(BPF_ALU64 | BPF_OR | BPF_X, d, s, 0, 0)
#define GO_TO(o)	  INSN(BPF_JMP | BPF_JA, 0, 0, o, 0)
#define IF(op, d, k, o)	  INSN(BPF_JMP | (op) | BPF_K, d, 0, o, k)
#define IF_X(op, d, s, o) INSN(BPF_JMP | (op) | BPF_X, d, s, o, 0)
#define CALL(function)	  INSN(BPF_JMP | BPF_CALL, 0, 0, 0, function)
#define EXIT		  INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
/* Load a field of the packet's description. */
#define LOAD_FIELD(d, field) \
	INSN(BPF_LDX | BPF_MEM | BPF_W, d, CONTEXT, offsetof(struct __sk_buff, field), 0)
/* Load from the map's value, or from an address in it that register `s` advances. */
#define LOAD_WORD(d, s, field) \
	INSN(BPF_LDX | BPF_MEM | BPF_W, d, s, offsetof(struct early_drop_memory, field), 0)
#define LOAD_DOUBLE(d, s, field) \
	INSN(BPF_LDX | BPF_MEM | BPF_DW, d, s, offsetof(struct early_drop_memory, field), 0)
/* Load bytes of the packet into R0, in the host's order. Changes R1 to R5. */
#define PACKET_BYTE(off) INSN(BPF_LD | BPF_ABS | BPF_B, 0, 0, 0, off)
#define PACKET_HALF(off) INSN(BPF_LD | BPF_ABS | BPF_H, 0, 0, 0, off)
#define PACKET_WORD(off) INSN(BPF_LD | BPF_ABS | BPF_W, 0, 0, 0, off)

/* Indices of instructions. */
enum { IPV4 = 8, IPV6 = 23, JUDGE = 37, LOOP = 45, STEP = 51, NEXT = 54, DROP = 56, PROGRAM = 58 };

/*
 * Write the program. A packet that it does not drop goes on to other programs and to the kernel: in
 * a VLAN, whose interface may have the same addresses and other receivers; to another MAC address;
 * with IP options or extension headers; fragments; and whatever is too short to be RoCE, as loads
 * beyond a packet's end would end the program.
 */
static void early_drop_write(struct bpf_insn program[PROGRAM], int map_fd)
{
	/* A jump's distance counts from the next instruction. */
#define TO(from, to) ((to) - (from)-1)
	const struct bpf_insn insns[PROGRAM] = {
		[0] = MOVE(CONTEXT, R1),
		[1] = LOAD_FIELD(R1, pkt_type),
		[2] = IF(BPF_JNE, R1, PACKET_HOST, TO(2, NEXT)),
		[3] = LOAD_FIELD(R1, vlan_present),
		[4] = IF(BPF_JNE, R1, 0, TO(4, NEXT)),
		[5] = LOAD_FIELD(R1, protocol),
		[6] = LOAD_FIELD(R2, len),
		[7] = IF(BPF_JEQ, R1, rte_cpu_to_be_16(ETH_P_IPV6), TO(7, IPV6)),
		[IPV4] = IF(BPF_JNE, R1, rte_cpu_to_be_16(ETH_P_IP), TO(IPV4, NEXT)),
		[9] = IF(BPF_JLT, R2, IPV4_UDP_BYTES, TO(9, NEXT)),
		[10] = PACKET_BYTE(OFF_IPV4_VERSION),
		[11] = IF(BPF_JNE, R0, IPV4_NO_OPTIONS, TO(11, NEXT)),
		[12] = PACKET_BYTE(OFF_IPV4_PROTO),
		[13] = IF(BPF_JNE, R0, IPPROTO_UDP, TO(13, NEXT)),
		[14] = PACKET_HALF(OFF_IPV4_DPORT),
		[15] = IF(BPF_JNE, R0, WIRE_UDP_PORT, TO(15, NEXT)),
		[16] = PACKET_HALF(OFF_IPV4_FRAG),
		[17] = IF(BPF_JSET, R0, FRAGMENT, TO(17, NEXT)),
		[18] = PACKET_WORD(OFF_IPV4_DST),
		[19] = SET(LOW, IPV4_MAPPED),
		[20] = SHIFT_LEFT(LOW, 32),
		[21] = SET(HIGH, 0),
		[22] = GO_TO(TO(22, JUDGE)),
		[IPV6] = IF(BPF_JLT, R2, IPV6_UDP_BYTES, TO(IPV6, NEXT)),
		[24] = PACKET_BYTE(OFF_IPV6_NEXT),
		[25] = IF(BPF_JNE, R0, IPPROTO_UDP, TO(25, NEXT)),
		[26] = PACKET_HALF(OFF_IPV6_DPORT),
		[27] = IF(BPF_JNE, R0, WIRE_UDP_PORT, TO(27, NEXT)),
		[28] = PACKET_WORD(OFF_IPV6_DST),
		[29] = MOVE(HIGH, R0),
		[30] = SHIFT_LEFT(HIGH, 32),
		[31] = PACKET_WORD(OFF_IPV6_DST + 4),
		[32] = OR(HIGH, R0),
		[33] = PACKET_WORD(OFF_IPV6_DST + 8),
		[34] = MOVE(LOW, R0),
		[35] = SHIFT_LEFT(LOW, 32),
		[36] = PACKET_WORD(OFF_IPV6_DST + 12),
		[JUDGE] = OR(LOW, R0),
		[38] = CALL(BPF_FUNC_ktime_get_coarse_ns),
		[39] = INSN(BPF_LD | BPF_IMM | BPF_DW, MEMORY, BPF_PSEUDO_MAP_VALUE, 0, map_fd),
		[40] = INSN(0, 0, 0, 0, 0), /* the second half: the offset in the value */
		[41] = LOAD_DOUBLE(R1, MEMORY, until_ns),
		[42] = IF_X(BPF_JGE, R0, R1, TO(42, NEXT)),
		[43] = LOAD_WORD(R1, MEMORY, count),
		[44] = SET(R2, 0),
		[LOOP] = IF_X(BPF_JGE, R2, R1, TO(LOOP, NEXT)),
		[46] = IF(BPF_JGE, R2, ADDRESSES_MAX, TO(46, NEXT)), /* for the kernel's check */
		[47] = LOAD_DOUBLE(R3, MEMORY, addresses[0].high),
		[48] = IF_X(BPF_JNE, R3, HIGH, TO(48, STEP)),
		[49] = LOAD_DOUBLE(R3, MEMORY, addresses[0].low),
		[50] = IF_X(BPF_JEQ, R3, LOW, TO(50, DROP)),
		[STEP] = ADD(MEMORY, sizeof(struct early_drop_address)),
		[52] = ADD(R2, 1),
		[53] = GO_TO(TO(53, LOOP)),
		[NEXT] = SET(R0, VERDICT_NEXT),
		[55] = EXIT,
		[DROP] = SET(R0, VERDICT_DROP),
		[57] = EXIT,
	};
#undef TO

	memcpy(program, insns, sizeof(insns));
}

static int bpf(int command, union bpf_attr *attr)
{
	const long rc = syscall(SYS_bpf, command, attr, sizeof(*attr));

	return rc < 0 ? -errno : (int)rc;
}

static bool has_filter(void)
{
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 0;
}

/* Make the calls that attach a program, with arguments that the kernel refuses. A filter may judge
 * them one by one. */
static void try_calls(void)
{
	static const int commands[] = {BPF_MAP_CREATE, BPF_PROG_LOAD, BPF_LINK_CREATE};
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	for (size_t i = 0; i < RTE_DIM(commands); i++)
		bpf(commands[i], &attr);
}

void early_drop_try_filter(void)
{
	int status;
	pid_t child;

	if (!has_filter())
		return;
	child = fork();
	if (child == 0) {
		/* If the filter ends the child, it leaves no core file. */
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
		try_calls();
		_exit(EXIT_SUCCESS);
	}
	while (child > 0 && waitpid(child, &status, 0) != child) {
		if (errno != EINTR)
			return;
	}
	filter_spares_us = child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
}

/*
 * Return true if the kernel may let us attach the program. Where it does not, as in most
 * containers, the system call itself may be forbidden, and may end the process. So a process with a
 * seccomp filter does not try, privileged or not, unless early_drop_try_filter has found that the
 * call does not end it.
 */
static bool may_attach(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	if ((has_filter() && !filter_spares_us) || syscall(SYS_capget, &header, data) != 0)
		return false;
	return (data[0].effective & CAP_TO_MASK(CAP_NET_ADMIN)) != 0 &&
	       ((data[0].effective & CAP_TO_MASK(CAP_SYS_ADMIN)) != 0 ||
		(data[CAP_TO_INDEX(CAP_BPF)].effective & CAP_TO_MASK(CAP_BPF)) != 0);
}

static int make_map(void)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_ARRAY;
	attr.key_size = sizeof(uint32_t);
	attr.value_size = sizeof(struct early_drop_memory);
	attr.max_entries = 1;
	attr.map_flags = BPF_F_MMAPABLE;
	memcpy(attr.map_name, NAME, sizeof(NAME));
	return bpf(BPF_MAP_CREATE, &attr);
}

static int load_program(int map_fd)
{
	struct bpf_insn program[PROGRAM];
	union bpf_attr attr;

	early_drop_write(program, map_fd);
	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_SCHED_CLS;
	attr.insns = (uintptr_t)program;
	attr.insn_cnt = PROGRAM;
	attr.license = (uintptr_t) "BSD";
	memcpy(attr.prog_name, NAME, sizeof(NAME));
	return bpf(BPF_PROG_LOAD, &attr);
}

/* Attach the program behind those that others have attached. */
static int attach(int program_fd, unsigned int ifindex)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.link_create.prog_fd = (uint32_t)program_fd;
	attr.link_create.target_ifindex = ifindex;
	attr.link_create.attach_type = ATTACH_TCX_INGRESS;
	return bpf(BPF_LINK_CREATE, &attr);
}

/* Return the link, which keeps the program, as the program keeps the map. */
static int load_and_attach(int map_fd, unsigned int ifindex)
{
	const int program_fd = load_program(map_fd);
	int fd;

	if (program_fd < 0)
		return program_fd;
	fd = attach(program_fd, ifindex);
	close(program_fd);
	return fd;
}

int early_drop_start(struct early_drop *drop, unsigned int ifindex)
{
	struct early_drop_memory *memory;
	int map_fd, fd;

	*drop = EARLY_DROP_OFF;
	if (!may_attach())
		return -EPERM;
	map_fd = make_map();
	if (map_fd < 0)
		return map_fd;
	memory = mmap(NULL, sizeof(*memory), PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
	fd = memory == MAP_FAILED ? -errno : load_and_attach(map_fd, ifindex);
	close(map_fd);
	if (fd < 0) {
		if (memory != MAP_FAILED)
			munmap(memory, sizeof(*memory));
		return fd;
	}
	own_mark(fd);
	drop->memory = memory;
	drop->fd = fd;
	return 0;
}

void early_drop_set(struct early_drop *drop, unsigned int ifindex,
		    const struct addresses *addresses)
{
	struct early_drop_memory *memory = drop->memory;
	uint32_t count = 0;

	if (!memory)
		return;
	for (size_t i = 0; i < addresses->count; i++) {
		const struct address *address = &addresses->list[i];
		rte_be64_t halves[2];

		if (address->vlan != VLAN_NONE || address->ifindex != ifindex)
			continue;
		static_assert(sizeof(halves) == GID_LEN, "an address is two numbers");
		memcpy(halves, address->gid, sizeof(halves));
		memory->addresses[count++] = (struct early_drop_address){
			.high = rte_be_to_cpu_64(halves[0]), .low = rte_be_to_cpu_64(halves[1])};
	}
	__atomic_store_n(&memory->count, count, __ATOMIC_RELEASE);
	early_drop_renew(drop);
}

void early_drop_renew(struct early_drop *drop)
{
	struct timespec now;
	uint64_t until_ns = 0;

	if (!drop->memory)
		return;
	/* The program has closed our descriptors, also the one that tells of new addresses. */
	if (!own_is(drop->fd)) {
		early_drop_stop(drop);
		return;
	}
	if (tuning.early_drop && clock_gettime(CLOCK_MONOTONIC, &now) == 0)
		until_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec + ACTS_NS;
	__atomic_store_n(&drop->memory->until_ns, until_ns, __ATOMIC_RELAXED);
}

void early_drop_stop(struct early_drop *drop)
{
	if (!drop->memory)
		return;
	/* A child of fork() may keep the link. */
	__atomic_store_n(&drop->memory->until_ns, 0, __ATOMIC_RELAXED);
	munmap(drop->memory, sizeof(*drop->memory));
	/* The program may have closed the descriptor, and opened another file with the same
	 * number. */
	if (own_is(drop->fd))
		close(drop->fd);
	*drop = EARLY_DROP_OFF;
}
