/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* A policy by hand inside cczoo_follow: what the path holds by the observation, and a quarter
 * more. It is the pattern of what an exported policy defines: follow_action(), 0 to 2 x reach,
 * where reach leaves the target as it is. */
#ifndef FOLLOW_TRACKING_H
#define FOLLOW_TRACKING_H

static __always_inline __u32 follow_action(const struct tcp_sock *tp, const struct observed *o,
					   const struct follow_flow *flow, __u32 slot)
{
	__s64 reach = settings.reach, unit = flow->unit ? flow->unit : 1;
	__s64 wanted = (__s64)(observe_held(o, tp->mss_cache) * 5 / 4), missing = wanted - flow->target;
	__s64 step = (__s64)((__u64)(missing < 0 ? -missing : missing) + unit / 2);

	(void)slot;
	step = (__s64)((__u64)step / (__u64)unit);
	if (step > reach)
		step = reach;
	if (missing < 0)
		step = -step;
	if (o->now[OBSERVE_EXPFLAG] && flow->target < flow->most && step < 1)
		step = 1;
	return (__u32)(reach + step);
}

#endif
