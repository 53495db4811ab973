/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* MP-CDG's arithmetic (mp-cdg.txt sections 5 and 6; docs/deviations.md) in whole numbers: what
 * data/netsim/cc/mpcdg.py and cdg.py compute, but for rounding. It calls nothing, so a test compiles
 * it for user space. Define __u32 and its like first. */
#ifndef CCZOO_MPCDG_H
#define CCZOO_MPCDG_H

#define MPCDG_NONE 0xffffffffU /* no round-trip time yet */
/* Load over capacity, in hundredths: from FULL on a loss is the path's own doing, and from HELD on
 * its queue is held by others, whom backing off would only make room for. */
#define MPCDG_FULL 107
#define MPCDG_HELD 150
/* A window that backs off keeps 0.7071 of itself. */
#define MPCDG_BETA_Q16 46341
/* log2(e) / 3 ms, of gradients in eighths of a microsecond; Q32. */
#define MPCDG_PER_GRADIENT_Q32 258180
/* After so many back-offs in vain, as many again are left out. */
#define MPCDG_INEFFECTIVE 5
#define MPCDG_HOLD 5

struct mpcdg {
	__u32 end;      /* sequence number at which the round ends */
	__u32 least_us; /* round-trip times of this round, */
	__u32 most_us;
	__u32 old_least_us; /* and of the last one */
	__u32 old_most_us;
	__s32 least_smooth; /* their smoothed change per round, eighths of a microsecond */
	__s32 most_smooth;
	__u32 shadow;   /* the window that delays haven't made smaller */
	__u32 backoffs;
};

static inline void mpcdg_start(struct mpcdg *m, __u32 cwnd, __u32 end)
{
	m->end = end;
	m->least_us = m->old_least_us = MPCDG_NONE;
	m->most_us = m->old_most_us = 0;
	m->least_smooth = m->most_smooth = 0;
	m->shadow = cwnd;
	m->backoffs = 0;
}

static inline void mpcdg_measure(struct mpcdg *m, __s32 rtt_us)
{
	if (rtt_us <= 0)
		return;
	if ((__u32)rtt_us < m->least_us)
		m->least_us = rtt_us;
	if ((__u32)rtt_us > m->most_us)
		m->most_us = rtt_us;
}

/* Whether the load of the last round was at least so many hundredths of the path's capacity: a path
 * that delivers a window in a round-trip time holds window * base / rtt without a queue. */
static inline int mpcdg_loaded(const struct mpcdg *m, __u32 base_us, __u32 hundredths)
{
	if (m->old_least_us == MPCDG_NONE)
		return 0;
	return (__u64)m->old_least_us * 100 >= (__u64)base_us * hundredths;
}

/* exp(-gradient / 3 ms), Q16: a power of two, its fraction by a parabola (0.3 % off at most). */
static inline __u32 mpcdg_stays(__u32 gradient)
{
	__u64 power = ((__u64)gradient * MPCDG_PER_GRADIENT_Q32) >> 16;
	__u64 part = power & 0xffff;

	if (power >> 16 > 16)
		return 0;
	return (65536 - ((part * (44021 - ((part * 11253) >> 16))) >> 16)) >> (power >> 16);
}

static inline __s32 mpcdg_change(__u32 now_us, __u32 before_us)
{
	__s64 change = (__s64)now_us - before_us;

	/* A second in a round is as good as any more, and the sums stay in 32 bits. */
	return change > 1000000 ? 1000000 : change < -1000000 ? -1000000 : (__s32)change;
}

/* Ends a round; whether the window is to back off. chance: 16 random bits. */
static inline int mpcdg_round(struct mpcdg *m, __u32 base_us, __u32 end, __u32 chance)
{
	int first = m->old_least_us == MPCDG_NONE;
	__s32 gradient;

	if (!first) {
		m->least_smooth += mpcdg_change(m->least_us, m->old_least_us) - (m->least_smooth >> 3);
		m->most_smooth += mpcdg_change(m->most_us, m->old_most_us) - (m->most_smooth >> 3);
	}
	gradient = m->least_smooth > m->most_smooth ? m->least_smooth : m->most_smooth;
	m->old_least_us = m->least_us;
	m->old_most_us = m->most_us;
	m->least_us = MPCDG_NONE;
	m->most_us = 0;
	m->end = end;
	if (first || gradient <= 0 || !mpcdg_loaded(m, base_us, MPCDG_FULL) ||
	    mpcdg_loaded(m, base_us, MPCDG_HELD) || chance <= mpcdg_stays(gradient))
		return 0;
	if (++m->backoffs <= MPCDG_INEFFECTIVE)
		return 1;
	if (m->backoffs >= MPCDG_INEFFECTIVE + MPCDG_HOLD)
		m->backoffs = 0;
	return 0;
}

/* The window after backing off. */
static inline __u32 mpcdg_backed_off(struct mpcdg *m, __u32 cwnd)
{
	__u32 left = ((__u64)cwnd * MPCDG_BETA_Q16) >> 16;

	if (m->shadow < cwnd)
		m->shadow = cwnd;
	return left > 2 ? left : 2;
}

/* Half of the window that delays hadn't made smaller after a loss on a full path; else the window. */
static inline __u32 mpcdg_after_loss(struct mpcdg *m, __u32 base_us, __u32 cwnd)
{
	__u32 left = cwnd;

	if (mpcdg_loaded(m, base_us, MPCDG_FULL)) {
		m->shadow = (cwnd > m->shadow ? cwnd : m->shadow) >> 1;
		left = m->shadow < cwnd ? m->shadow : cwnd;
	}
	return left > 2 ? left : 2;
}

#endif
