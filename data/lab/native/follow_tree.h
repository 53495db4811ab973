/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* A distilled tree inside cczoo_follow: its observation is made in whole numbers of what the control
 * knows of a flow, its derived features by the header that was exported with it, and its action
 * becomes a step of the window's target.
 *
 * Whoever includes this has included the tree's two headers and defines
 *   TREE(part)           the name of one of its functions or structs
 *   TREE_O(column)       the index of an observed column
 *   TREE_OBSERVED, TREE_FEATURES   how many there are
 *   TREE_SCHEMA          the schema hash that its headers were written for
 *   TREE_STEP(action)    by how many units an action moves the target
 * and TREE_OF_PATHS if it observes what TCCO's does, TREE_OF_SENDER if what MA-CC's senders do. */
#ifndef FOLLOW_TREE_H
#define FOLLOW_TREE_H

_Static_assert(!__builtin_strcmp(TREE_SCHEMA, FOLLOW_SCHEMA),
	       "the tree's schema hash differs from the control's");

/* Emptied at a flow's first decision, where a policy's episode begins in training. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FOLLOW_FLOWS);
	__type(key, __u32);
	__type(value, struct TREE(_memory));
} tree_memories SEC(".maps");

static __always_inline __s32 tree_whole(__u64 value)
{
	return value < 0x7fffffff ? (__s32)value : 0x7fffffff;
}

static __always_inline void tree_observe(const struct tcp_sock *tp, const struct observed *o, __s32 *seen)
{
#ifdef TREE_OF_PATHS
	(void)tp;
	seen[TREE_O(throughput_kbps)] = tree_whole((o->now[OBSERVE_THROUGHPUT] + 500) / 1000);
	seen[TREE_O(rtt_us)] = tree_whole(o->now[OBSERVE_RTT]);
	seen[TREE_O(snd_cwnd)] = tree_whole(o->now[OBSERVE_CWND]);
	seen[TREE_O(bottleneck_kbps)] = tree_whole((o->now[OBSERVE_BOTTLENECK] + 500) / 1000);
	seen[TREE_O(base_rtt_us)] = tree_whole(o->now[OBSERVE_BASE_RTT]);
	seen[TREE_O(expflag)] = tree_whole(o->now[OBSERVE_EXPFLAG]);
#endif
#ifdef TREE_OF_SENDER
	__u32 flight = tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;

	seen[TREE_O(acked_bytes)] = tree_whole(o->acked_now);
	seen[TREE_O(in_flight_bytes)] = tree_whole((__u64)flight * tp->mss_cache);
	seen[TREE_O(rtt_us)] = tree_whole(o->now[OBSERVE_RTT]);
#endif
}

static __always_inline __u32 follow_action(const struct tcp_sock *tp, const struct observed *o,
					   const struct follow_flow *flow, __u32 slot)
{
	struct TREE(_memory) *memory = bpf_map_lookup_elem(&tree_memories, &slot);
	__s32 seen[TREE_OBSERVED], x[TREE_FEATURES];

	if (!memory)
		return settings.reach;
	if (!flow->decisions)
		TREE(_begin)(memory);
	tree_observe(tp, o, seen);
	TREE(_observe)(memory, seen, x);
	return (__u32)((__s32)settings.reach + TREE_STEP(TREE(_classify)(x)));
}

#endif
