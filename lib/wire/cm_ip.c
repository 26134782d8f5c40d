/* SPDX-License-Identifier: BSD-3-Clause */
/* The IP header in the connection manager's private data. */
#include "wire/cm_ip.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <rte_byteorder.h>

#include "wire/gid.h"

/* A11. An IPv4 address is in the last four bytes of its field, behind zeros. */
struct mad_ip {
	uint8_t version;    /* of the header: major and minor, 0.0 */
	uint8_t ip_version; /* << 4 */
	rte_be16_t port;
	uint8_t src[16];
	uint8_t dst[16];
} __attribute__((packed));
static_assert(sizeof(struct mad_ip) == CM_IP_LEN, "the IP header is 36 bytes");

#define IP_VERSION_SHIFT 4

static void get_address(uint8_t version, const uint8_t from[16], uint8_t gid[16])
{
	if (version == 4)
		gid_from_ipv4(from + GID_IPV4_OFFSET, gid);
	else
		memcpy(gid, from, GID_LEN);
}

static bool is_of_version(const struct cm_ip *ip)
{
	return gid_is_ipv4(ip->src) == (ip->version == 4) &&
	       gid_is_ipv4(ip->dst) == (ip->version == 4);
}

int cm_ip_parse(const uint8_t *private_data, size_t len, struct cm_ip *ip)
{
	struct mad_ip from;

	if (len < sizeof(from))
		return -EBADMSG;
	memcpy(&from, private_data, sizeof(from));
	ip->version = from.ip_version >> IP_VERSION_SHIFT;
	if (from.version != 0 || (ip->version != 4 && ip->version != 6))
		return -EBADMSG;
	ip->port = rte_be_to_cpu_16(from.port);
	get_address(ip->version, from.src, ip->src);
	get_address(ip->version, from.dst, ip->dst);
	return is_of_version(ip) ? 0 : -EBADMSG;
}

bool cm_ip_fits(const struct cm_ip *ip, const uint8_t sgid[16], const uint8_t dgid[16])
{
	const bool own = memcmp(sgid, dgid, GID_LEN) == 0;

	return (memcmp(ip->src, sgid, GID_LEN) == 0 || (own && gid_is_loopback(ip->src))) &&
	       (memcmp(ip->dst, dgid, GID_LEN) == 0 || (own && gid_is_loopback(ip->dst)));
}

static void put_address(uint8_t version, const uint8_t gid[16], uint8_t to[16])
{
	const size_t skip = version == 4 ? GID_IPV4_OFFSET : 0;

	memcpy(to + skip, gid + skip, GID_LEN - skip);
}

int cm_ip_build(const struct cm_ip *ip, uint8_t *private_data)
{
	struct mad_ip to = {.ip_version = (uint8_t)(ip->version << IP_VERSION_SHIFT),
			    .port = rte_cpu_to_be_16(ip->port)};

	if ((ip->version != 4 && ip->version != 6) || !is_of_version(ip))
		return -EINVAL;
	put_address(ip->version, ip->src, to.src);
	put_address(ip->version, ip->dst, to.dst);
	memcpy(private_data, &to, sizeof(to));
	return 0;
}
