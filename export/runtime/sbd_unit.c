/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Around the exported feature computation, which export/feature_code/feed.py includes first. */
#include "sbd_unit.h"

#if SUBFLOWS > 2 && (!defined(SBD_SUBFLOWS) || SBD_SUBFLOWS != SUBFLOWS)
#error "the header is for another number of subflows"
#elif SUBFLOWS == 2 && defined(SBD_SUBFLOWS)
#error "the header is for more than two subflows"
#endif

size_t unit_bytes(void)
{
	return sizeof(struct sbd);
}

void unit_init(void *s, int wifi)
{
	sbd_init(s, wifi);
}

void unit_sample(void *s, int subflow, uint64_t time_us, uint32_t rtt_us, int ca_state)
{
	sbd_sample(s, subflow, time_us, rtt_us, ca_state);
}

void unit_ack(void *s, int subflow, uint64_t time_us, uint64_t acked_bytes)
{
#ifdef SBD_EWMA_Q16
	sbd_ack(s, subflow, time_us, acked_bytes);
#else /* the model asks for no throughput: there is no sbd_ack */
	(void)s;
	(void)subflow;
	(void)time_us;
	(void)acked_bytes;
#endif
}

int unit_ready(const void *s)
{
	return sbd_ready(s);
}

#if SUBFLOWS > 2
int unit_features(void *s, int a, int b, int32_t *x)
{
	return sbd_pair_features(s, a, b, x);
}

int unit_classify(void *s, int a, int b)
{
	return sbd_pair_classify(s, a, b);
}

int unit_partition(void *s, uint8_t *group)
{
	return sbd_partition(s, group);
}
#else
int unit_features(void *s, int32_t *x)
{
	return sbd_features(s, x);
}

int unit_classify(void *s)
{
	return sbd_classify(s);
}
#endif

int unit_verdict(void *s)
{
#ifdef SBD_NO_WINDOW
	return sbd_verdict(s);
#else
	(void)s;
	return -1;
#endif
}

int64_t unit_window(const void *s)
{
	const struct sbd *sbd = s;

	return (int64_t)sbd->grid[!sbd->filling].window;
}

void unit_again(void *s)
{
	((struct sbd *)s)->ready = 1;
}
