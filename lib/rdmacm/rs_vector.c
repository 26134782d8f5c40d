/* SPDX-License-Identifier: BSD-3-Clause */
/* I/O vectors of the program. */
#include <limits.h>
#include <string.h>

#include "rs.h"

ssize_t rs_vector_len(const struct iovec *iov, size_t count)
{
	size_t len = 0;

	if (count > IOV_MAX)
		return -EMSGSIZE;
	if (count > 0 && !iov)
		return -EFAULT;
	for (size_t i = 0; i < count; i++) {
		if (iov[i].iov_len > (size_t)SSIZE_MAX - len)
			return -EINVAL;
		len += iov[i].iov_len;
	}
	return (ssize_t)len;
}

void rs_vector_gather(struct rs_cursor *from, void *data, size_t len)
{
	uint8_t *to = data;

	while (len > 0) {
		const size_t left = from->iov->iov_len - from->offset;
		const size_t piece = RTE_MIN(left, len);

		memcpy(to, (const uint8_t *)from->iov->iov_base + from->offset, piece);
		to += piece;
		len -= piece;
		from->offset += piece;
		if (from->offset == from->iov->iov_len) {
			from->iov++;
			from->offset = 0;
		}
	}
}

size_t rs_vector_scatter(const struct iovec *iov, size_t count, const void *data, size_t len)
{
	const uint8_t *from = data;
	size_t done = 0;

	for (size_t i = 0; i < count && done < len; i++) {
		const size_t piece = RTE_MIN(iov[i].iov_len, len - done);

		memcpy(iov[i].iov_base, from + done, piece);
		done += piece;
	}
	return done;
}
