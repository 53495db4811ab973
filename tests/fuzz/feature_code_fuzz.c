/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * libFuzzer target of the exported feature computation: any sequence of calls leaves its memory
 * alone, loops for a bounded time, and gives features within their ranges.
 *
 * An input is a byte for sbd_init() and then calls of CALL_BYTES bytes.
 */
#include <stdlib.h>

#include "watched_sbd.h"
#include "ranges.h"

enum { CALL_BYTES = 6 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A mantissa of 8 bits and an exponent: from 0 to the largest in one byte each. */
static uint64_t large(uint8_t mantissa, unsigned int exponent)
{
	return (uint64_t)mantissa << exponent % 64;
}

static void check_window(struct sbd *s)
{
	int32_t x[WATCHED_FEATURES];
	int ready = sbd_ready(s), class = 0;

	if (ready != sbd_features(s, x))
		abort();
	if (!ready)
		return;
	for (int i = 0; i < WATCHED_FEATURES; i++)
		if (x[i] < lowest[i] || x[i] > highest[i])
			abort();
	s->ready = 1;
	class = sbd_classify(s);
	if (class != watched_classify(x) || sbd_classify(s) != -1)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sbd s;
	uint64_t time_us = 0, acked = 0;

	if (!size)
		return 0;
	sbd_init(&s, (int)data[0] - 1);
	for (data++, size--; size >= CALL_BYTES; data += CALL_BYTES, size -= CALL_BYTES) {
		/* Usual subflows, seldom others; time goes back where the top bit is set. */
		int subflow = data[0] & 8 ? (int8_t)data[0] : data[0] & 1;
		uint64_t step = large(data[1], data[2] & 63);

		time_us = data[2] & 64 ? time_us - step : time_us + step;
		if (data[0] & 2) {
			acked += large(data[3], data[4]);
			sbd_ack(&s, subflow, time_us, acked);
		} else {
			sbd_sample(&s, subflow, time_us, (uint32_t)large(data[3], data[4] % 32),
				   (int8_t)data[5]);
		}
		if (data[0] & 4)
			check_window(&s);
	}
	check_window(&s);
	return 0;
}
