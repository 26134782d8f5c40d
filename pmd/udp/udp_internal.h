/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of a UDP socket, for the files that receive and send. */
#ifndef UDP_INTERNAL_H
#define UDP_INTERNAL_H

#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include <rte_ip.h>

#include "base/own.h"
#include "psock/packet_run.h"
#include "udp/udp_socket.h"
#include "wire/headers.h"

#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif
#ifndef UDP_GRO
#define UDP_SEGMENT 103
#define UDP_GRO	    104
#endif

#define MESSAGE_BYTES	 65536 /* longer than any datagram, or run that the kernel has joined */
#define RECEIVE_MESSAGES 16
#define SEND_BURST	 64
#define IOVS_PER_PACKET	 2 /* all but the ICRC, and the ICRC */
#define CONTROL_BYTES	 256
/* So long a check of the descriptor's mark holds: less than it takes a program to close the
 * descriptor and to open its number again. The check is a system call, half of a look. */
#define CHECK_NS 5000
/* Of an IPv4 packet: bytes from the identification to the UDP header. */
#define ID_TO_UDP (sizeof(struct rte_ipv4_hdr) - offsetof(struct rte_ipv4_hdr, packet_id))

/* A received message, which may be a run. */
struct udp_message {
	const uint8_t *payload; /* of the next packet */
	uint32_t left;		/* bytes of this packet and those behind it */
	uint32_t segment_len;	/* payload of each packet but the last */
	uint16_t id;		/* IPv4 identification that the next packet is expected to have */
	struct udp_frame layout;
	uint8_t header[HEADERS_MAX]; /* of each packet, but for lengths and identification */
};

struct udp_receive {
	uint8_t *memory;	    /* RECEIVE_MESSAGES of MESSAGE_BYTES */
	struct udp_message message; /* the one that is being taken */
	uint32_t next, count; /* of the messages that the last call received; atomic: udp_holds */
	struct mmsghdr headers[RECEIVE_MESSAGES];
	struct iovec iovs[RECEIVE_MESSAGES];
	struct sockaddr_in6 sources[RECEIVE_MESSAGES];
	uint8_t controls[RECEIVE_MESSAGES][CONTROL_BYTES] __attribute__((aligned(8)));
	uint32_t kernel_missed; /* the kernel's last count, modulo 2^32 */
	/* the last icrc_distance back over so many bytes */
	uint32_t back_of, back;
};

/* How an ICRC differs by a change of the headers that is so many bytes before its end. */
struct udp_move {
	uint32_t change; /* of the source port, above that of the identification */
	uint32_t bytes;
	uint32_t moved;
};

struct udp_send {
	uint32_t messages;
	uint16_t packets[SEND_BURST]; /* of each message */
	struct mmsghdr headers[SEND_BURST];
	struct iovec iovs[SEND_BURST * IOVS_PER_PACKET];
	uint8_t icrcs[SEND_BURST][WIRE_ICRC_LEN]; /* of each packet */
	struct sockaddr_in6 targets[SEND_BURST];
	uint8_t controls[SEND_BURST][CONTROL_BYTES] __attribute__((aligned(8)));
	bool runs; /* until the kernel refuses one */
	bool told; /* that the kernel refuses packets */
	bool told_of_size;
	uint32_t id_to_udp; /* distance from the IPv4 identification to the UDP header */
	uint32_t distance_of, distance; /* the last one, of so many bytes */
	struct udp_move moves[256];	/* what move has returned; of 0 bytes: nothing */
};

struct udp_socket {
	int fd;
	uint64_t checked_ns; /* when the descriptor last had our mark */
	bool ipv6;	     /* the socket's family; it has IPv4 packets, too */
	uint32_t room;	     /* of a buffer, for one packet */
	unsigned int ifindex;
	uint8_t mac[6], gateway[6];
	struct rte_mempool *pool;
	struct udp_counts counts;
	struct udp_receive receive;
	struct udp_send send;
};

/** Return true if the descriptor is still ours. */
static inline bool udp_is_ours(struct udp_socket *udp)
{
	struct timespec now;
	uint64_t now_ns;

	clock_gettime(CLOCK_MONOTONIC, &now);
	now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	if (udp->fd >= 0 && now_ns - udp->checked_ns < CHECK_NS)
		return true;
	udp->checked_ns = own_is(udp->fd) ? now_ns : 0;
	return udp->checked_ns != 0;
}

/** Make udp_receive's messages empty. */
void udp_receive_init(struct udp_socket *udp);

#endif
