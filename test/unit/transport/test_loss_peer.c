/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/loss_peer.c: the kind of peer that a series of answers shows. */
#include <stddef.h>

#include <rte_common.h>

#include "transport/loss_peer.h"
#include "test.h"

#define LEAPS	LOSS_ANSWER_LEAPS
#define STOPS	LOSS_ANSWER_STOPS
#define FOLLOWS LOSS_NAK_FOLLOWS
#define ENDS	LOSS_REFUSAL_ENDS
#define COMES	LOSS_SACK_BEGINS
#define GOES	LOSS_SACK_ENDS
#define NO_MORE LOSS_EVIDENCES

TEST(loss_peer_after__series_of_answers)
{
	static const struct {
		enum loss_evidence answers[4];
		enum loss_peer peer;
	} series[] = {
		{{LEAPS, NO_MORE}, LOSS_PEER_KEEPS},
		{{STOPS, NO_MORE}, LOSS_PEER_DROPS},
		/* One such NAK may be caused by two losses. */
		{{FOLLOWS, NO_MORE}, LOSS_PEER_DOUBTED},
		{{FOLLOWS, FOLLOWS, NO_MORE}, LOSS_PEER_DROPS},
		{{FOLLOWS, LEAPS, FOLLOWS, NO_MORE}, LOSS_PEER_KEEPS},
		{{FOLLOWS, ENDS, NO_MORE}, LOSS_PEER_DROPS},
		{{ENDS, ENDS, NO_MORE}, LOSS_PEER_DROPS},
		/* The peer seemed to be go-back-N, but keeps packets. */
		{{STOPS, LEAPS, NO_MORE}, LOSS_PEER_KEEPS},
		{{STOPS, STOPS, FOLLOWS, ENDS}, LOSS_PEER_DROPS},
		/* The peer had no room for a packet. */
		{{LEAPS, STOPS, NO_MORE}, LOSS_PEER_UNKNOWN},
		{{LEAPS, STOPS, STOPS, NO_MORE}, LOSS_PEER_DROPS},
		/* The peer keeps packets behind a loss, and drops packets behind a refusal. */
		{{LEAPS, ENDS, NO_MORE}, LOSS_PEER_WAVERS},
		{{LEAPS, ENDS, ENDS, NO_MORE}, LOSS_PEER_KEEPS},
		{{LEAPS, ENDS, FOLLOWS, LEAPS}, LOSS_PEER_KEEPS},
		{{LEAPS, ENDS, STOPS, NO_MORE}, LOSS_PEER_DOUBTED},
		/* A uroce peer, whatever was seen before its capability bits. */
		{{COMES, NO_MORE}, LOSS_PEER_SACK},
		{{STOPS, COMES, NO_MORE}, LOSS_PEER_SACK},
		{{COMES, STOPS, FOLLOWS, ENDS}, LOSS_PEER_SACK},
		/* Its program switches that off. */
		{{COMES, GOES, NO_MORE}, LOSS_PEER_KEEPS},
		{{STOPS, GOES, NO_MORE}, LOSS_PEER_DROPS},
		{{GOES, NO_MORE}, LOSS_PEER_UNKNOWN},
	};

	for (size_t i = 0; i < RTE_DIM(series); i++) {
		enum loss_peer peer = LOSS_PEER_UNKNOWN;

		for (size_t j = 0; j < 4 && series[i].answers[j] != NO_MORE; j++)
			peer = loss_peer_after(peer, series[i].answers[j]);
		assert_int_equal(peer, series[i].peer);
	}
}

TEST(loss_peer_is_unknown__until_it_is_judged)
{
	assert_true(loss_peer_is_unknown(LOSS_PEER_UNKNOWN));
	assert_true(loss_peer_is_unknown(LOSS_PEER_DOUBTED));
	assert_false(loss_peer_is_unknown(LOSS_PEER_DROPS));
	assert_false(loss_peer_is_unknown(LOSS_PEER_KEEPS));
	assert_false(loss_peer_is_unknown(LOSS_PEER_WAVERS));
}
