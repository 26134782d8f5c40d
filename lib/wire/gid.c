/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/gid.h"

#include <arpa/inet.h>
#include <assert.h>

void gid_text(const uint8_t gid[GID_LEN], char text[GID_TEXT_MAX])
{
	const bool is_ipv4 = gid_is_ipv4(gid);

	static_assert(GID_TEXT_MAX == INET6_ADDRSTRLEN, "there is room for every address");
	inet_ntop(is_ipv4 ? AF_INET : AF_INET6, is_ipv4 ? gid + GID_IPV4_OFFSET : gid, text,
		  GID_TEXT_MAX);
}
