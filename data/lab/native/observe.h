/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Observations of a subflow by intervals, in whole numbers: what features/tcco.py defines, for a
 * control that decides by itself. Include vmlinux.h and libbpf's headers first. */
#ifndef OBSERVE_H
#define OBSERVE_H

enum { OBSERVE_THROUGHPUT, OBSERVE_RTT, OBSERVE_CWND, OBSERVE_BOTTLENECK, OBSERVE_BASE_RTT,
       OBSERVE_EXPFLAG, OBSERVE_FEATURES };

#define OBSERVE_LIFE 512 /* at most so many intervals live; a power of two */
#define OBSERVE_SPAN 8   /* at most so many are averaged for a rate; a power of two */
#define OBSERVE_NEVER (~0U)

struct observed {
	__u64 now[OBSERVE_FEATURES];
	/* of the present interval */
	__u64 rtt_sum;
	__u32 rtt_count, rtt_least, window;
	__u32 delivered, delivered_before; /* segments */
	__u32 count, still, window_before;
	__u64 peak; /* largest and least of all that live */
	__u32 least;
	__u32 pad;
	__u64 acked, acked_before; /* bytes in sequence, for who observes those */
	__u64 acked_now;           /* in the last interval */
	__u64 rates[OBSERVE_SPAN];
	__u64 peaks[OBSERVE_LIFE];
	__u32 lows[OBSERVE_LIFE];
};

/* A map's memory is reached through an index that the verifier can see the bound of. */
#define OBSERVE_AT(index, size)                                                                    \
	({                                                                                         \
		__u32 _i = (index);                                                                \
		asm volatile("" : "+r"(_i));                                                       \
		_i & ((size) - 1);                                                                 \
	})

static __always_inline void observe_ack(struct observed *o, __u32 rtt_us, __u32 delivered, __u32 window)
{
	if (rtt_us) {
		o->rtt_sum += rtt_us;
		o->rtt_count++;
		if (rtt_us < o->rtt_least)
			o->rtt_least = rtt_us;
	}
	o->delivered = delivered;
	o->window = window;
}

struct observe_again {
	struct observed *o;
	__u64 peak;
	__u32 least;
};

static long observe_one(__u32 i, struct observe_again *found)
{
	struct observed *o = found->o;

	if (o->peaks[OBSERVE_AT(i, OBSERVE_LIFE)] > found->peak)
		found->peak = o->peaks[OBSERVE_AT(i, OBSERVE_LIFE)];
	if (o->lows[OBSERVE_AT(i, OBSERVE_LIFE)] < found->least)
		found->least = o->lows[OBSERVE_AT(i, OBSERVE_LIFE)];
	return 0;
}

/* All that live are looked through only when the largest or the least of them has just died. */
static __always_inline void observe_again(struct observed *o, __u32 living)
{
	struct observe_again found = {.o = o, .least = OBSERVE_NEVER};

	bpf_loop(living < OBSERVE_LIFE ? living : OBSERVE_LIFE, observe_one, &found, 0);
	o->peak = found.peak;
	o->least = found.least;
}

static __always_inline void observe_begin(struct observed *o, __u32 delivered)
{
	__builtin_memset(o, 0, __builtin_offsetof(struct observed, rates));
	for (__u32 i = 0; i < OBSERVE_SPAN; i++)
		o->rates[i] = 0;
	o->rtt_least = o->least = OBSERVE_NEVER;
	o->delivered = o->delivered_before = delivered;
}

/* Closes an interval of `interval_us`; segments carry `mss` bytes. What lives are `life` intervals,
 * a rate is the mean of `span`. */
static __always_inline void observe_interval(struct observed *o, __u32 interval_us, __u32 mss, __u32 life,
				    __u32 span, __u32 explore_after)
{
	__u64 rate = (__u64)(o->delivered - o->delivered_before) * mss * 8000000 / interval_us;
	__u64 total = 0, mean, died;
	__u32 low = o->rtt_count ? o->rtt_least : OBSERVE_NEVER, died_low, at, among;

	o->delivered_before = o->delivered;
	o->acked_now = o->acked - o->acked_before;
	o->acked_before = o->acked;
	o->rates[OBSERVE_AT(o->count % span, OBSERVE_SPAN)] = rate;
	for (__u32 i = 0; i < OBSERVE_SPAN; i++)
		total += o->rates[i]; /* those beyond the span stay 0 */
	among = o->count + 1 < span ? o->count + 1 : span;
	mean = total / among;
	at = OBSERVE_AT(o->count % life, OBSERVE_LIFE);
	/* What a former flow left there never lived in this one. */
	died = o->count < life ? 0 : o->peaks[at];
	died_low = o->count < life ? OBSERVE_NEVER : o->lows[at];
	o->peaks[at] = mean;
	o->lows[at] = low;
	o->count++;
	if (mean > o->peak)
		o->peak = mean;
	if (low < o->least)
		o->least = low;
	if ((died >= o->peak && died > mean) || (died_low <= o->least && died_low < low))
		observe_again(o, o->count < life ? o->count : life);
	if (o->least != OBSERVE_NEVER)
		o->now[OBSERVE_BASE_RTT] = o->least;
	if (o->rtt_count)
		o->now[OBSERVE_RTT] = o->rtt_sum / o->rtt_count;
	o->still = o->window > o->window_before ? 0 : o->still + 1;
	o->window_before = o->window;
	o->now[OBSERVE_THROUGHPUT] = rate;
	o->now[OBSERVE_CWND] = o->window;
	o->now[OBSERVE_BOTTLENECK] = o->peak;
	o->now[OBSERVE_EXPFLAG] = o->still >= explore_after;
	o->rtt_sum = 0;
	o->rtt_count = 0;
	o->rtt_least = OBSERVE_NEVER;
}

/* What the path holds by the observation, in segments: bottleneck times base RTT. */
static __always_inline __u64 observe_held(const struct observed *o, __u32 mss)
{
	if (!mss)
		return 0;
	return o->now[OBSERVE_BOTTLENECK] * o->now[OBSERVE_BASE_RTT] / 8000000 / mss;
}

#endif
