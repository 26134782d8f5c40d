/* SPDX-License-Identifier: BSD-3-Clause */
/* Responses to MADs. */
#include "wire/mad.h"

#include <string.h>

bool mad_respond(const uint8_t *mad, uint16_t status, uint8_t *response)
{
	struct mad_header header;

	memcpy(&header, mad, sizeof(header));
	if (header.method != MAD_GET && header.method != MAD_SET)
		return false;
	header.base_version = MAD_BASE_VERSION;
	header.method = MAD_GET_RESPONSE;
	header.status = rte_cpu_to_be_16(status);
	memset(response, 0, MAD_LEN);
	memcpy(response, &header, sizeof(header));
	return true;
}
