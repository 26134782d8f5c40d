/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers to MADs that are not messages of a connection. */
#include <stddef.h>
#include <string.h>

#include "wire/cm.h"

#define RESPONSE_EXPONENT 20 /* the longest time until an answer: Linux's value */

/* Write the ClassPortInfo of the manager (16.7); ComMgt attributes follow the header. */
static void put_class_port_info(uint8_t *answer)
{
	const struct mad_class_port_info info = {
		.base_version = MAD_BASE_VERSION,
		.class_version = CM_CLASS_VERSION,
		.capabilities = rte_cpu_to_be_16(CM_CAP_RC | CM_CAP_SIDR),
		.response_time = rte_cpu_to_be_32(RESPONSE_EXPONENT),
	};

	memcpy(answer + sizeof(struct mad_header), &info, sizeof(info));
}

static bool is_class_port_info(const struct mad_header *header)
{
	return header->method == MAD_GET && header->attr == RTE_BE16(MAD_ATTR_CLASS_PORT_INFO);
}

/* Reject a REQ of another class version with the REJ reason for it (12.6.7). */
static bool reject_version(const uint8_t *bytes, uint8_t *answer)
{
	uint8_t copy[MAD_LEN];
	struct cm_mad mad, rej;

	memcpy(copy, bytes, sizeof(copy));
	copy[offsetof(struct mad_header, class_version)] = CM_CLASS_VERSION;
	if (cm_mad_parse(copy, sizeof(copy), &mad) != CM_MAD_OK || mad.message != CM_REQ)
		return false;
	rej = (struct cm_mad){
		.message = CM_REJ,
		.tid = mad.tid,
		.remote_id = mad.local_id,
		.rej = {.about = CM_ABOUT_REQ, .reason = CM_REJ_INVALID_CLASS_VERSION},
	};
	return cm_mad_build(&rej, answer) == 0;
}

bool cm_mad_answer(const uint8_t *mad, enum cm_mad_status status, uint8_t *answer)
{
	struct mad_header header;
	uint16_t code = MAD_CODE_BAD_VERSION;

	if (status == CM_MAD_OK || status == CM_MAD_BAD_LENGTH || status == CM_MAD_BAD_FIELD)
		return false;
	if (status == CM_MAD_BAD_CLASS_VERSION && reject_version(mad, answer))
		return true;
	memcpy(&header, mad, sizeof(header));
	if (status == CM_MAD_BAD_METHOD)
		code = is_class_port_info(&header) ? 0 : MAD_CODE_BAD_ATTRIBUTE;
	if (!mad_respond(mad, code, answer))
		return false;
	if (code == 0)
		put_class_port_info(answer);
	return true;
}
