/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/qp/attr.c against the table of IBTA 11.2.5.2 (its required part is also in
 * ibv_modify_qp(3)): one row an attribute, one column a transition.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/reason.h"
#include "qp/attr.h"
#include "test.h"

#define STATES (IBV_QPS_ERR + 1)
#define ATTRS  21

static const struct {
	enum ibv_qp_state from, to;
} columns[] = {
	{IBV_QPS_RESET, IBV_QPS_INIT}, {IBV_QPS_INIT, IBV_QPS_INIT}, {IBV_QPS_INIT, IBV_QPS_RTR},
	{IBV_QPS_RTR, IBV_QPS_RTS},    {IBV_QPS_RTS, IBV_QPS_RTS},   {IBV_QPS_RTS, IBV_QPS_SQD},
	{IBV_QPS_SQD, IBV_QPS_RTS},    {IBV_QPS_SQD, IBV_QPS_SQD},   {IBV_QPS_SQE, IBV_QPS_RTS},
};
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

#define ATTR(attr)          \
	{                   \
		attr, #attr \
	}
static const struct {
	int bit;
	const char *name;
} attrs[ATTRS] = {
	ATTR(IBV_QP_CUR_STATE),
	ATTR(IBV_QP_EN_SQD_ASYNC_NOTIFY),
	ATTR(IBV_QP_ACCESS_FLAGS),
	ATTR(IBV_QP_PKEY_INDEX),
	ATTR(IBV_QP_PORT),
	ATTR(IBV_QP_QKEY),
	ATTR(IBV_QP_AV),
	ATTR(IBV_QP_PATH_MTU),
	ATTR(IBV_QP_TIMEOUT),
	ATTR(IBV_QP_RETRY_CNT),
	ATTR(IBV_QP_RNR_RETRY),
	ATTR(IBV_QP_RQ_PSN),
	ATTR(IBV_QP_MAX_QP_RD_ATOMIC),
	ATTR(IBV_QP_ALT_PATH),
	ATTR(IBV_QP_MIN_RNR_TIMER),
	ATTR(IBV_QP_SQ_PSN),
	ATTR(IBV_QP_MAX_DEST_RD_ATOMIC),
	ATTR(IBV_QP_PATH_MIG_STATE),
	ATTR(IBV_QP_CAP),
	ATTR(IBV_QP_DEST_QPN),
	ATTR(IBV_QP_RATE_LIMIT),
};

/* R: required, o: optional, -: not taken, x: the type has no such transition. Same order as attrs.
 */
struct table {
	enum ibv_qp_type type;
	const char *rows[ATTRS];
};

/* clang-format off */
static const struct table tables[] = {
	/*             RESET INIT INIT RTR RTS RTS SQD SQD SQE
	 *             INIT  INIT RTR  RTS RTS SQD RTS SQD RTS */
	{IBV_QPT_RC, {
		/* CUR_STATE */           "---oo-o-x",
		/* EN_SQD_ASYNC_NOTIFY */ "-----o--x",
		/* ACCESS_FLAGS */        "Roooo-oox",
		/* PKEY_INDEX */          "Roo----ox",
		/* PORT */                "Ro-----ox",
		/* QKEY */                "--------x",
		/* AV */                  "--R----ox",
		/* PATH_MTU */            "--R-----x",
		/* TIMEOUT */             "---R---ox",
		/* RETRY_CNT */           "---R---ox",
		/* RNR_RETRY */           "---R---ox",
		/* RQ_PSN */              "--R-----x",
		/* MAX_QP_RD_ATOMIC */    "---R---ox",
		/* ALT_PATH */            "--ooo-oox",
		/* MIN_RNR_TIMER */       "--Roo-oox",
		/* SQ_PSN */              "---R----x",
		/* MAX_DEST_RD_ATOMIC */  "--R----ox",
		/* PATH_MIG_STATE */      "---oo-oox",
		/* CAP */                 "--------x",
		/* DEST_QPN */            "--R-----x",
		/* RATE_LIMIT */          "---oo---x"}},
	{IBV_QPT_UC, {
		/* CUR_STATE */           "---oo-o-o",
		/* EN_SQD_ASYNC_NOTIFY */ "-----o---",
		/* ACCESS_FLAGS */        "Roooo-ooo",
		/* PKEY_INDEX */          "Roo----o-",
		/* PORT */                "Ro-------",
		/* QKEY */                "---------",
		/* AV */                  "--R----o-",
		/* PATH_MTU */            "--R------",
		/* TIMEOUT */             "---------",
		/* RETRY_CNT */           "---------",
		/* RNR_RETRY */           "---------",
		/* RQ_PSN */              "--R------",
		/* MAX_QP_RD_ATOMIC */    "---------",
		/* ALT_PATH */            "--ooo-oo-",
		/* MIN_RNR_TIMER */       "---------",
		/* SQ_PSN */              "---R-----",
		/* MAX_DEST_RD_ATOMIC */  "---------",
		/* PATH_MIG_STATE */      "---oo-oo-",
		/* CAP */                 "---------",
		/* DEST_QPN */            "--R------",
		/* RATE_LIMIT */          "---oo----"}},
	{IBV_QPT_UD, {
		/* CUR_STATE */           "---oo-o-o",
		/* EN_SQD_ASYNC_NOTIFY */ "-----o---",
		/* ACCESS_FLAGS */        "---------",
		/* PKEY_INDEX */          "Roo----o-",
		/* PORT */                "Ro-------",
		/* QKEY */                "Roooo-ooo",
		/* AV */                  "---------",
		/* PATH_MTU */            "---------",
		/* TIMEOUT */             "---------",
		/* RETRY_CNT */           "---------",
		/* RNR_RETRY */           "---------",
		/* RQ_PSN */              "---------",
		/* MAX_QP_RD_ATOMIC */    "---------",
		/* ALT_PATH */            "---------",
		/* MIN_RNR_TIMER */       "---------",
		/* SQ_PSN */              "---R-----",
		/* MAX_DEST_RD_ATOMIC */  "---------",
		/* PATH_MIG_STATE */      "---------",
		/* CAP */                 "---------",
		/* DEST_QPN */            "---------",
		/* RATE_LIMIT */          "---oo----"}},
	{IBV_QPT_XRC_SEND, {
		/* CUR_STATE */           "---oo-o-x",
		/* EN_SQD_ASYNC_NOTIFY */ "-----o--x",
		/* ACCESS_FLAGS */        "Roooo-oox",
		/* PKEY_INDEX */          "Roo----ox",
		/* PORT */                "Ro-----ox",
		/* QKEY */                "--------x",
		/* AV */                  "--R----ox",
		/* PATH_MTU */            "--R-----x",
		/* TIMEOUT */             "---R---ox",
		/* RETRY_CNT */           "---R---ox",
		/* RNR_RETRY */           "---R---ox",
		/* RQ_PSN */              "--R-----x",
		/* MAX_QP_RD_ATOMIC */    "---R---ox",
		/* ALT_PATH */            "--ooo-oox",
		/* MIN_RNR_TIMER */       "--------x",
		/* SQ_PSN */              "---R----x",
		/* MAX_DEST_RD_ATOMIC */  "--------x",
		/* PATH_MIG_STATE */      "---oo-oox",
		/* CAP */                 "--------x",
		/* DEST_QPN */            "--R-----x",
		/* RATE_LIMIT */          "---oo---x"}},
	{IBV_QPT_XRC_RECV, {
		/* CUR_STATE */           "---oo-o-x",
		/* EN_SQD_ASYNC_NOTIFY */ "-----o--x",
		/* ACCESS_FLAGS */        "Roooo-oox",
		/* PKEY_INDEX */          "Roo----ox",
		/* PORT */                "Ro-----ox",
		/* QKEY */                "--------x",
		/* AV */                  "--R----ox",
		/* PATH_MTU */            "--R-----x",
		/* TIMEOUT */             "---R---ox",
		/* RETRY_CNT */           "--------x",
		/* RNR_RETRY */           "--------x",
		/* RQ_PSN */              "--R-----x",
		/* MAX_QP_RD_ATOMIC */    "--------x",
		/* ALT_PATH */            "--ooo-oox",
		/* MIN_RNR_TIMER */       "--Roo-oox",
		/* SQ_PSN */              "---R----x",
		/* MAX_DEST_RD_ATOMIC */  "--R----ox",
		/* PATH_MIG_STATE */      "---oo-oox",
		/* CAP */                 "--------x",
		/* DEST_QPN */            "--R-----x",
		/* RATE_LIMIT */          "--------x"}},
};
/* clang-format on */
#define TABLES (sizeof(tables) / sizeof(tables[0]))

static int mask_of(const struct table *table, size_t column, char mark)
{
	int mask = 0;

	for (size_t i = 0; i < ATTRS; i++)
		if (table->rows[i][column] == mark)
			mask |= attrs[i].bit;
	return mask;
}

static int check(const struct table *table, size_t column, int mask)
{
	return attr_check_mask(table->type, columns[column].from, columns[column].to, mask);
}

static void check_column(const struct table *table, size_t column)
{
	const int required = mask_of(table, column, 'R');
	const int optional = mask_of(table, column, 'o');

	/* The state stays where it does without saying so. */
	if (columns[column].from == columns[column].to)
		assert_int_equal(check(table, column, required), 0);
	assert_int_equal(check(table, column, IBV_QP_STATE | required), 0);
	assert_int_equal(check(table, column, IBV_QP_STATE | required | optional), 0);
	for (size_t i = 0; i < ATTRS; i++) {
		const int with = IBV_QP_STATE | required | attrs[i].bit;
		const int without = (IBV_QP_STATE | required | optional) & ~attrs[i].bit;

		assert_int_equal(check(table, column, with),
				 table->rows[i][column] == '-' ? -EINVAL : 0);
		assert_int_equal(check(table, column, without),
				 table->rows[i][column] == 'R' ? -EINVAL : 0);
	}
}

TEST(attr_check_mask__each_attribute_of_each_transition)
{
	for (size_t t = 0; t < TABLES; t++)
		for (size_t column = 0; column < COLUMNS; column++)
			if (tables[t].rows[0][column] != 'x')
				check_column(&tables[t], column);
}

static bool in_table(const struct table *table, enum ibv_qp_state from, enum ibv_qp_state to)
{
	for (size_t column = 0; column < COLUMNS; column++)
		if (columns[column].from == from && columns[column].to == to)
			return table->rows[0][column] != 'x';
	return false;
}

TEST(attr_check_mask__there_are_no_other_transitions)
{
	for (size_t t = 0; t < TABLES; t++)
		for (int from = IBV_QPS_RESET; from < STATES; from++)
			for (int to = IBV_QPS_RESET; to < STATES + 2; to++) {
				if (to == IBV_QPS_RESET || to == IBV_QPS_ERR ||
				    in_table(&tables[t], (enum ibv_qp_state)from,
					     (enum ibv_qp_state)to))
					continue;
				for (size_t column = 0; column < COLUMNS; column++)
					assert_int_equal(
						attr_check_mask(
							tables[t].type, (enum ibv_qp_state)from,
							(enum ibv_qp_state)to,
							IBV_QP_STATE |
								mask_of(&tables[t], column, 'R')),
						-EINVAL);
			}
}

TEST(attr_check_mask__to_reset_and_error_from_everywhere_with_nothing_else)
{
	static const enum ibv_qp_state ends[] = {IBV_QPS_RESET, IBV_QPS_ERR};

	for (int from = IBV_QPS_RESET; from < STATES; from++)
		for (size_t end = 0; end < 2; end++) {
			assert_int_equal(attr_check_mask(IBV_QPT_RC, (enum ibv_qp_state)from,
							 ends[end], IBV_QP_STATE),
					 0);
			for (size_t i = 0; i < ATTRS; i++)
				assert_int_equal(attr_check_mask(IBV_QPT_RC,
								 (enum ibv_qp_state)from, ends[end],
								 IBV_QP_STATE | attrs[i].bit),
						 -EINVAL);
		}
}

/* A user reads which attribute it is. */
TEST(attr_check_mask__says_which_attribute_is_wrong)
{
	char text[128];

	reason_wanted = true;
	for (size_t i = 0; i < ATTRS; i++) {
		assert_int_equal(attr_check_mask(IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_ERR,
						 IBV_QP_STATE | attrs[i].bit),
				 -EINVAL);
		snprintf(text, sizeof(text),
			 "RTS -> ERR: %s is in the mask, and this transition does not take it "
			 "(IBTA 11.2.5.2)",
			 attrs[i].name);
		assert_string_equal(reason_take(EINVAL), text);
	}
	assert_int_equal(attr_check_mask(IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT,
					 IBV_QP_STATE | IBV_QP_PORT | IBV_QP_QKEY),
			 -EINVAL);
	assert_string_equal(reason_take(EINVAL), "RESET -> INIT: IBV_QP_PKEY_INDEX is missing from "
						 "the mask (IBTA 11.2.5.2)");
	assert_int_equal(attr_check_mask(IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_ERR, 1 << 30), -EINVAL);
	assert_non_null(strstr(reason_take(EINVAL), "an unknown bit"));
	reason_wanted = false;
}

TEST(attr_check_mask__types_that_are_not_built)
{
	assert_int_equal(attr_check_mask(IBV_QPT_RAW_PACKET, IBV_QPS_RESET, IBV_QPS_INIT,
					 IBV_QP_STATE | IBV_QP_PORT),
			 -EINVAL);
	assert_int_equal(attr_check_mask(IBV_QPT_DRIVER, IBV_QPS_RESET, IBV_QPS_INIT,
					 IBV_QP_STATE | IBV_QP_PORT),
			 -EINVAL);
	assert_int_equal(attr_check_mask((enum ibv_qp_type)1, IBV_QPS_RESET, IBV_QPS_INIT,
					 IBV_QP_STATE | IBV_QP_PORT),
			 -EINVAL);
}

TEST(attr_own__an_xrc_queue_pair_has_one_half)
{
	const int responder = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	const int requester = IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
	const int all = responder | requester | IBV_QP_TIMEOUT | IBV_QP_AV;

	assert_int_equal(attr_own(IBV_QPT_RC, all), all);
	assert_int_equal(attr_own(IBV_QPT_UD, all), all);
	assert_int_equal(attr_own(IBV_QPT_XRC_SEND, all), all & ~responder);
	assert_int_equal(attr_own(IBV_QPT_XRC_RECV, all), all & ~requester);
}

static const struct attr_limits limits = {.max_rd_atomic = 16,
					  .max_dest_rd_atomic = 32,
					  .max_rate_kbps = 5000,
					  .port_mtu = IBV_MTU_1024};

#define VALUE(flag, field, value) \
	attr_check_values(&(struct ibv_qp_attr){.field = (value)}, (flag), &limits)
/* The last value that is allowed, and the first that is not; the mask must name it. */
#define EXPECT_LAST(flag, field, last, wrong)                         \
	do {                                                          \
		assert_int_equal(VALUE(flag, field, last), 0);        \
		assert_int_equal(VALUE(flag, field, wrong), -EINVAL); \
		assert_int_equal(VALUE(0, field, wrong), 0);          \
	} while (0)

TEST(attr_check_values__each_has_its_range)
{
	EXPECT_LAST(IBV_QP_PKEY_INDEX, pkey_index, 0, 1);
	EXPECT_LAST(IBV_QP_PORT, port_num, 1, 2);
	EXPECT_LAST(IBV_QP_PORT, port_num, 1, 0);
	EXPECT_LAST(IBV_QP_PATH_MTU, path_mtu, IBV_MTU_1024, IBV_MTU_2048);
	EXPECT_LAST(IBV_QP_PATH_MTU, path_mtu, IBV_MTU_256, (enum ibv_mtu)0);
	EXPECT_LAST(IBV_QP_DEST_QPN, dest_qp_num, 0xffffff, 0x1000000);
	EXPECT_LAST(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic, 16, 17);
	EXPECT_LAST(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, 32, 33);
	EXPECT_LAST(IBV_QP_MIN_RNR_TIMER, min_rnr_timer, 31, 32);
	EXPECT_LAST(IBV_QP_TIMEOUT, timeout, 31, 32);
	EXPECT_LAST(IBV_QP_RETRY_CNT, retry_cnt, 7, 8);
	EXPECT_LAST(IBV_QP_RNR_RETRY, rnr_retry, 7, 8);
	EXPECT_LAST(IBV_QP_RATE_LIMIT, rate_limit, 5000, 5001);
	EXPECT_LAST(IBV_QP_PATH_MIG_STATE, path_mig_state, IBV_MIG_MIGRATED, IBV_MIG_REARM);
	/* The flags allowed are those of a region and all optional ones. */
	EXPECT_LAST(IBV_QP_ACCESS_FLAGS, qp_access_flags, 0x3ff | IBV_ACCESS_RELAXED_ORDERING,
		    1u << 10);
	EXPECT_LAST(IBV_QP_ACCESS_FLAGS, qp_access_flags, IBV_ACCESS_OPTIONAL_RANGE, 1u << 19);
	EXPECT_LAST(IBV_QP_ACCESS_FLAGS, qp_access_flags, 1u << 29, 1u << 30);
	/* The mask of 24 bits is the application's to forget, as everywhere. */
	assert_int_equal(VALUE(IBV_QP_RQ_PSN, rq_psn, UINT32_MAX), 0);
	assert_int_equal(VALUE(IBV_QP_SQ_PSN, sq_psn, UINT32_MAX), 0);
	/* Alternate paths are not supported. */
	assert_int_equal(VALUE(IBV_QP_ALT_PATH, alt_port_num, 1), -EINVAL);
}

TEST(attr_check_values__says_which_value_is_wrong)
{
	reason_wanted = true;
	assert_int_equal(
		VALUE(IBV_QP_ACCESS_FLAGS, qp_access_flags, IBV_ACCESS_LOCAL_WRITE | 1u << 30),
		-EINVAL);
	assert_string_equal(reason_take(EINVAL),
			    "qp_access_flags have 0x40000000, which uroce does not know");
	assert_int_equal(VALUE(IBV_QP_RETRY_CNT, retry_cnt, 8), -EINVAL);
	assert_string_equal(reason_take(EINVAL), "retry_cnt is 8; it must be at most 7");
	reason_wanted = false;
}

/* A structure of bytes that all differ from zero, then the attributes of `mask` taken over. */
static void applied(struct attr_kept *to, int mask)
{
	struct ibv_qp_attr from;

	memset(&from, 0x5a, sizeof(from));
	memset(to, 0, sizeof(*to));
	attr_apply(to, &from, mask);
}

TEST(attr_apply__takes_what_the_mask_names)
{
	struct attr_kept to;

	applied(&to, IBV_QP_EN_SQD_ASYNC_NOTIFY);
	assert_int_equal(to.en_sqd_async_notify, 0x5a);
	applied(&to, IBV_QP_ACCESS_FLAGS);
	assert_int_equal(to.qp_access_flags, 0x5a5a5a5a);
	applied(&to, IBV_QP_PKEY_INDEX);
	assert_int_equal(to.pkey_index, 0x5a5a);
	applied(&to, IBV_QP_PORT);
	assert_int_equal(to.port_num, 0x5a);
	applied(&to, IBV_QP_QKEY);
	assert_int_equal(to.qkey, 0x5a5a5a5a);
	applied(&to, IBV_QP_AV);
	assert_int_equal(to.ah_attr.sl, 0x5a);
	assert_int_equal(to.ah_attr.grh.dgid.raw[15], 0x5a);
	applied(&to, IBV_QP_PATH_MTU);
	assert_int_equal(to.path_mtu, 0x5a5a5a5a);
	applied(&to, IBV_QP_TIMEOUT);
	assert_int_equal(to.timeout, 0x5a);
	applied(&to, IBV_QP_RETRY_CNT);
	assert_int_equal(to.retry_cnt, 0x5a);
	applied(&to, IBV_QP_RNR_RETRY);
	assert_int_equal(to.rnr_retry, 0x5a);
	/* PSNs have 24 bits. */
	applied(&to, IBV_QP_RQ_PSN);
	assert_int_equal(to.rq_psn, 0x5a5a5a);
	applied(&to, IBV_QP_SQ_PSN);
	assert_int_equal(to.sq_psn, 0x5a5a5a);
	applied(&to, IBV_QP_MAX_QP_RD_ATOMIC);
	assert_int_equal(to.max_rd_atomic, 0x5a);
	applied(&to, IBV_QP_MAX_DEST_RD_ATOMIC);
	assert_int_equal(to.max_dest_rd_atomic, 0x5a);
	applied(&to, IBV_QP_MIN_RNR_TIMER);
	assert_int_equal(to.min_rnr_timer, 0x5a);
	applied(&to, IBV_QP_DEST_QPN);
	assert_int_equal(to.dest_qp_num, 0x5a5a5a5a);
	applied(&to, IBV_QP_RATE_LIMIT);
	assert_int_equal(to.rate_limit, 0x5a5a5a5a);
}

TEST(attr_apply__takes_nothing_else)
{
	struct attr_kept to, rest;
	int named = 0;

	memset(&rest, 0, sizeof(rest));
	applied(&to, IBV_QP_STATE);
	assert_memory_equal(&to, &rest, sizeof(to));
	/* Each attribute has bytes of its own: taken one after the other they make all of them. */
	for (size_t i = 0; i < ATTRS; i++) {
		struct attr_kept one, both;
		const uint8_t *a = (const uint8_t *)&one, *b = (const uint8_t *)&both;

		applied(&one, attrs[i].bit);
		applied(&both, named);
		for (size_t byte = 0; byte < sizeof(one); byte++)
			assert_false(a[byte] != 0 && b[byte] != 0);
		named |= attrs[i].bit;
	}
}

TEST(attr_tell__tells_all_that_is_kept)
{
	struct attr_kept kept, again = {0};
	struct ibv_qp_attr told;

	applied(&kept, INT_MAX);
	attr_tell(&kept, &told);
	attr_apply(&again, &told, INT_MAX);
	assert_memory_equal(&again, &kept, offsetof(struct attr_kept, rnr_retry) + 1);
	assert_int_equal(told.alt_port_num, 0);
}

TEST(attr_state_name__of_any_number)
{
	assert_string_equal(attr_state_name(IBV_QPS_RESET), "RESET");
	assert_string_equal(attr_state_name(IBV_QPS_ERR), "ERR");
	assert_string_equal(attr_state_name(IBV_QPS_ERR + 1), "UNKNOWN");
	assert_string_equal(attr_state_name(UINT32_MAX), "UNKNOWN");
}
