/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* A distilled tree that chooses k of Nuwa's receiver (nuwa.txt section V), inside the program that
 * sees the data come in. Whoever includes this has included the tree's two headers and defines
 * TREE(), TREE_O(), TREE_OBSERVED, TREE_FEATURES and TREE_SCHEMA as for follow_tree.h,
 * TREE_INTERVAL_US, and TREE_FACTOR(action), what k is multiplied by, in thousandths. */
#ifndef NUWA_TREE_H
#define NUWA_TREE_H

_Static_assert(!__builtin_strcmp(TREE_SCHEMA, NUWA_SCHEMA),
	       "the tree's schema hash differs from the receiver's");

#define TREE_LEAST_GAIN 1000 /* k stays within 1 to 9 (section V) */
#define TREE_MOST_GAIN 9000

/* Emptied at a flow's first decision, where a policy's episode begins in training. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct nuwa_key);
	__type(value, struct TREE(_memory));
} tree_memories SEC(".maps");

static const struct TREE(_memory) tree_empty = {0};

static __always_inline __s32 tree_whole(__u64 value)
{
	return value < 0x7fffffff ? (__s32)value : 0x7fffffff;
}

static __always_inline void tree_decide(const struct nuwa_key *key, struct nuwa_flow *f,
					const __s32 *seen)
{
	struct TREE(_memory) *memory;
	__s32 x[TREE_FEATURES];
	__u64 gain;

	if (!f->decisions)
		bpf_map_update_elem(&tree_memories, key, &tree_empty, BPF_ANY);
	memory = bpf_map_lookup_elem(&tree_memories, key);
	if (!memory)
		return;
	TREE(_observe)(memory, seen, x);
	gain = (__u64)f->gain_milli * TREE_FACTOR(TREE(_classify)(x)) / 1000;
	if (gain < TREE_LEAST_GAIN)
		gain = TREE_LEAST_GAIN;
	f->gain_milli = gain < TREE_MOST_GAIN ? gain : TREE_MOST_GAIN;
	f->decisions++;
}

/* Closes the interval that ended before this segment, and chooses k once the window is ours. */
static __always_inline void tune(const struct nuwa_key *key, struct nuwa_flow *f,
				 const struct nuwa_control *c, __u64 now_ns)
{
	__u32 counted = f->delays - f->delays_before;
	__s32 seen[TREE_OBSERVED];
	__u64 window;

	if (!f->next_ns)
		f->next_ns = now_ns + TREE_INTERVAL_US * 1000ULL;
	if (now_ns < f->next_ns)
		return;
	f->next_ns += TREE_INTERVAL_US * 1000ULL;
	if (f->next_ns < now_ns)
		f->next_ns = now_ns + TREE_INTERVAL_US * 1000ULL;
	if (counted)
		f->mean_us = (f->delay_sum_us - f->delay_sum_before) / counted;
	f->delay_sum_before = f->delay_sum_us;
	f->delays_before = f->delays;
	if (!f->gain_milli)
		f->gain_milli = c->gain_milli;
	/* The clocks' difference is unknown: half the least RTT stands for what lies below the least. */
	seen[TREE_O(owd_us)] = tree_whole(f->mean_us + f->least_rtt_us / 2);
	if (!f->least_mean_known || f->mean_us < f->least_mean_us)
		f->least_mean_us = f->mean_us;
	f->least_mean_known = 1;
	window = (f->window_q20 >> 20) * f->mss;
	if (!f->on || window > f->own_window)
		window = f->own_window;
	seen[TREE_O(queueing_us)] = tree_whole(f->mean_us - f->least_mean_us);
	seen[TREE_O(received_bytes)] = tree_whole(f->received_bytes - f->received_before);
	seen[TREE_O(rcv_wnd_bytes)] = tree_whole(window);
	seen[TREE_O(rcv_queue_bytes)] = tree_whole(f->held_bytes);
	seen[TREE_O(target_delay_us)] = tree_whole(c->target_us);
	seen[TREE_O(gain_milli)] = tree_whole(f->gain_milli);
	f->received_before = f->received_bytes;
	if (f->on)
		tree_decide(key, f, seen);
}

#endif
