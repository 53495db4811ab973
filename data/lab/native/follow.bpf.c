/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* cczoo_follow: the client in the kernel of an agent that sets windows (tcco.txt section III.C.1).
 *
 * A flow begins in slow start, without HyStart. From then on its window goes to a target ACK by ACK, never
 * above it; losses are repaired at the target's rate. The target comes from user space as an order
 * in the flow's place of `flows`, or from a policy compiled into this control (FOLLOW_POLICY, a
 * header with follow_action(), such as follow_tracking.h or follow_tree.h). Every ACK is told of in `events`. Now and then the window is
 * lowered to half of what the path holds, so that the base RTT shows (Probe).
 *
 * No agent can do worse than this: its target is cut to [min_cwnd, max_cwnd] and to a multiple of
 * what the path holds by the kernel's own measure; and when nothing has come from it for late_ns,
 * the flow is CUBIC's, by the kernel's own functions, until an order comes again. */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "follow.h"
#include "observe.h"
#ifndef FOLLOW_NAME
#define FOLLOW_NAME "cczoo_follow" /* 15 characters at most */
#endif

#define LEAST_TARGET 2
/* Empty intervals that are closed one by one after a pause; more would change no rate. */
#define MOST_PAUSED 8

char LICENSE[] SEC("license") = "GPL"; /* of the kernel's functions that are called */

extern void cubictcp_init(struct sock *sk) __ksym;
extern void cubictcp_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym;
extern void cubictcp_state(struct sock *sk, __u8 state) __ksym;
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

/* In a section of its own, which is a map: user space reads it there. */
const volatile struct follow_settings settings SEC(".rodata.settings") = {
#ifdef FOLLOW_SETTINGS
#include FOLLOW_SETTINGS
#else
	.interval_ns = 20000000, .late_ns = 100000000, .min_cwnd = 4, .max_cwnd = 65535,
	.start_cwnd = 32, .start_intervals = 100, .explore_after = 6, .life_intervals = 500,
	.span_intervals = 5, .orders = 1,
#endif
};

#ifdef FOLLOW_POLICY
#include FOLLOW_POLICY
#endif

__u64 lost_events = 0, refused_flows = 0;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, FOLLOW_FLOWS);
	__type(key, __u32);
	__type(value, struct follow_flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FOLLOW_FLOWS);
	__type(key, __u32);
	__type(value, struct observed);
} memories SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} events SEC(".maps");

/* In icsk_ca_priv, behind what CUBIC keeps there. */
struct place {
	__u32 slot; /* counted from 1; 0: none, CUBIC for good */
};
#define CUBIC_BYTES 64

static __always_inline struct place *place_of(struct sock *sk)
{
	return (struct place *)((char *)((struct inet_connection_sock *)sk)->icsk_ca_priv +
				CUBIC_BYTES);
}

static __always_inline struct follow_flow *flow_of(struct sock *sk, __u32 *slot)
{
	__u32 place = place_of(sk)->slot;

	if (!place)
		return NULL;
	*slot = place - 1;
	return bpf_map_lookup_elem(&flows, slot);
}

static __always_inline void tell(struct sock *sk, const struct follow_flow *flow, __u32 slot, __u8 kind,
				 __u32 rtt_us, __u32 sequence, __u32 took_ns, __u64 now_ns)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
	struct follow_event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event) {
		__sync_fetch_and_add(&lost_events, 1);
		return;
	}
	event->ts_ns = now_ns;
	event->slot = slot;
	event->generation = flow->generation;
	event->kind = kind;
	event->phase = flow->phase;
	event->ca_state = BPF_CORE_READ_BITFIELD(icsk, icsk_ca_state);
	event->pad = 0;
	event->rtt_us = rtt_us;
	event->cwnd = tp->snd_cwnd;
	event->delivered = tp->delivered;
	event->mss = tp->mss_cache;
	event->in_flight = tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
	event->sequence = sequence;
	event->took_ns = took_ns;
	/* The proxy looks at its own times. */
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

/* MPTCP's token is not yet known when a subflow begins. */
static __always_inline void learn_identity(struct sock *sk, struct follow_flow *flow)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct mptcp_subflow_context *context;

	flow->sport = sk->__sk_common.skc_num;
	flow->dport = bpf_ntohs(sk->__sk_common.skc_dport);
	flow->saddr = sk->__sk_common.skc_rcv_saddr;
	if (flow->token || !tp->is_mptcp)
		return;
	context = ((struct inet_connection_sock *)sk)->icsk_ulp_data;
	if (!context)
		return;
	flow->sfid = BPF_CORE_READ(context, subflow_id);
	flow->token = flow->sfid ? BPF_CORE_READ(context, token) : 0;
}

static __always_inline __u32 bounded(struct follow_flow *flow, __u32 target)
{
	__u32 most = flow->most ? flow->most : settings.max_cwnd;

	if (target >= settings.min_cwnd && target <= most)
		return target;
	flow->bounded++;
	return target < settings.min_cwnd ? settings.min_cwnd : most;
}

static __always_inline void enter(struct sock *sk, struct follow_flow *flow, __u32 slot, __u32 phase,
				  __u64 now_ns)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	flow->phase = phase;
	if (phase == FOLLOW_ALONE) {
		flow->fallbacks++;
		cubictcp_init(sk); /* a new epoch, from the window that there is */
		if (flow->was_driven)
			tp->snd_ssthresh = tp->snd_cwnd > LEAST_TARGET ? tp->snd_cwnd : LEAST_TARGET;
	} else if (phase == FOLLOW_DRIVEN) {
		flow->returns += flow->was_driven;
		flow->heard_ns = now_ns;
	}
	tell(sk, flow, slot, FOLLOW_PHASE, 0, 0, 0, now_ns);
}

/* What the path holds says how far an action goes, and where the bound lies. */
static __always_inline void limit(const struct sock *sk, struct follow_flow *flow, const struct observed *o)
{
	const struct tcp_sock *tp = (const struct tcp_sock *)sk;
	__u64 held = observe_held(o, tp->mss_cache), most = held * settings.held_milli / 1000;
	__u64 unit = held * settings.step_milli / 1000;

	flow->unit = unit > settings.step_segments ? unit : settings.step_segments;
	/* Until as many intervals have gone by as a rate is a mean of, slow start's own lower rates
	 * are among them. */
	if (!most || flow->decisions < settings.span_intervals) {
		flow->most = settings.max_cwnd;
		return;
	}
	if (most < settings.start_cwnd)
		most = settings.start_cwnd;
	flow->most = most < settings.max_cwnd ? most : settings.max_cwnd;
}

/* Takes a decision's target; now and then it begins a Probe phase. */
static __always_inline void take(struct sock *sk, struct follow_flow *flow, const struct observed *o,
				 __u32 target)
{
	__u32 probe = settings.probe_intervals, interval_us = settings.interval_ns / 1000;

	flow->target = bounded(flow, target);
	flow->was_driven = 1;
	if (probe && flow->decisions && flow->decisions % probe == 0)
		flow->draining = (2 * o->now[OBSERVE_RTT] + interval_us - 1) / interval_us + 1;
	flow->decisions++;
	flow->window = flow->target;
	if (flow->draining) {
		const struct tcp_sock *tp = (const struct tcp_sock *)sk;
		__u64 half = observe_held(o, tp->mss_cache) / 2;

		if (half < settings.min_cwnd)
			half = settings.min_cwnd;
		if (half < flow->window)
			flow->window = half;
		flow->draining--;
	}
}

/* A policy in the kernel moves the target by its action. */
static __always_inline void decide(struct sock *sk, struct follow_flow *flow, __u32 slot, struct observed *o,
				   __u64 now_ns)
{
#ifdef FOLLOW_POLICY
	const struct tcp_sock *tp = (const struct tcp_sock *)sk;
	__u64 begun_ns = bpf_ktime_get_ns();
	__s64 step = (__s64)follow_action(tp, o, flow, slot) - settings.reach;
	__s64 target = (__s64)flow->target + step * flow->unit;

	take(sk, flow, o, target < LEAST_TARGET ? 0 : (__u32)target);
	flow->heard_ns = now_ns;
	tell(sk, flow, slot, FOLLOW_DECIDED, 0, flow->decisions, bpf_ktime_get_ns() - begun_ns, now_ns);
#endif
}

static __always_inline void start_over(struct sock *sk, struct follow_flow *flow, __u32 slot, __u64 now_ns)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	flow->target = bounded(flow, tp->snd_cwnd);
	flow->window = flow->target;
	enter(sk, flow, slot, FOLLOW_DRIVEN, now_ns);
}

/* The intervals that ended before this ACK. */
static __always_inline void close_intervals(struct sock *sk, struct follow_flow *flow, __u32 slot,
					    struct observed *o, __u64 now_ns)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u32 interval_us = settings.interval_ns / 1000;

	for (int i = 0; i < MOST_PAUSED && now_ns >= flow->next_ns; i++) {
		observe_interval(o, interval_us, tp->mss_cache, settings.life_intervals,
				 settings.span_intervals, settings.explore_after);
		limit(sk, flow, o);
		flow->next_ns += settings.interval_ns;
		flow->begun++;
		if (!settings.orders && flow->phase == FOLLOW_DRIVEN)
			decide(sk, flow, slot, o, now_ns);
	}
	if (now_ns >= flow->next_ns)
		flow->next_ns = now_ns + settings.interval_ns;
}

static __always_inline void listen(struct sock *sk, struct follow_flow *flow, __u32 slot,
				   const struct observed *o, __u64 now_ns)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u64 order = flow->order;

	if (flow->phase == FOLLOW_START) {
		if (tp->snd_cwnd >= settings.start_cwnd || flow->begun >= settings.start_intervals ||
		    BPF_CORE_READ_BITFIELD(icsk, icsk_ca_state) != TCP_CA_Open)
			start_over(sk, flow, slot, now_ns);
	}
	if (!settings.orders || flow->phase == FOLLOW_START)
		return;
	if (order != flow->heard) {
		flow->heard = order;
		if ((order >> FOLLOW_TARGET_BITS & 0xffff) != (flow->generation & 0xffff)) {
			flow->stale++; /* meant for the socket that had this place before */
		} else {
			flow->heard_ns = now_ns;
			if (flow->phase == FOLLOW_ALONE)
				enter(sk, flow, slot, FOLLOW_DRIVEN, now_ns);
			take(sk, flow, o, order & ((1U << FOLLOW_TARGET_BITS) - 1));
			tell(sk, flow, slot, FOLLOW_APPLIED, 0,
			     order >> (FOLLOW_TARGET_BITS + FOLLOW_GENERATION_BITS), 0, now_ns);
		}
	}
	if (flow->phase == FOLLOW_DRIVEN && now_ns - flow->heard_ns > settings.late_ns)
		enter(sk, flow, slot, FOLLOW_ALONE, now_ns);
}

SEC("struct_ops/follow_init")
void BPF_PROG(follow_init, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u64 now_ns = bpf_ktime_get_ns();

	cubictcp_init(sk);
	place_of(sk)->slot = 0;
	for (__u32 i = 0; i < FOLLOW_FLOWS; i++) {
		__u32 slot = i;
		struct follow_flow *flow = bpf_map_lookup_elem(&flows, &slot);
		struct observed *o = bpf_map_lookup_elem(&memories, &slot);

		if (!flow || !o)
			return;
		if (flow->taken || __sync_val_compare_and_swap(&flow->taken, 0, 1))
			continue;
		flow->generation++;
		flow->order = flow->heard = 0;
		flow->heard_ns = now_ns;
		flow->next_ns = now_ns + settings.interval_ns;
		flow->inode = sk->__sk_common.skc_net.net->ns.inum;
		flow->token = flow->sfid = 0;
		flow->target = flow->window = flow->most = flow->unit = 0;
		flow->decisions = flow->draining = flow->begun = flow->was_driven = 0;
		flow->fallbacks = flow->returns = flow->bounded = flow->stale = 0;
		learn_identity(sk, flow);
		observe_begin(o, tp->delivered);
		o->acked = o->acked_before = tp->bytes_acked;
		flow->phase = FOLLOW_START;
		place_of(sk)->slot = slot + 1;
		return;
	}
	__sync_fetch_and_add(&refused_flows, 1);
}

SEC("struct_ops/follow_release")
void BPF_PROG(follow_release, struct sock *sk)
{
	__u32 slot;
	struct follow_flow *flow = flow_of(sk, &slot);

	if (!flow)
		return;
	flow->phase = FOLLOW_FREE;
	tell(sk, flow, slot, FOLLOW_PHASE, 0, 0, 0, bpf_ktime_get_ns());
	place_of(sk)->slot = 0;
	flow->taken = 0;
}

/* On every ACK, in every state, before the window is set. */
SEC("struct_ops/follow_acked")
void BPF_PROG(follow_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
	__u64 now_ns = bpf_ktime_get_ns();
	__u32 slot, rtt_us = sample->rtt_us > 0 ? sample->rtt_us : 0;
	struct follow_flow *flow = flow_of(sk, &slot);
	struct observed *o;

	if (!flow) {
		cubictcp_acked(sk, sample);
		return;
	}
	o = bpf_map_lookup_elem(&memories, &slot);
	if (!o)
		return;
	if (!flow->token)
		learn_identity(sk, flow);
	close_intervals(sk, flow, slot, o, now_ns);
	observe_ack(o, rtt_us, tp->delivered, tp->snd_cwnd);
	o->acked = tp->bytes_acked;
	tell(sk, flow, slot, FOLLOW_ACK, rtt_us, 0, 0, now_ns);
	listen(sk, flow, slot, o, now_ns);
	if (flow->phase != FOLLOW_DRIVEN) {
		/* The start doubles the window as in training, to start_cwnd at most. HyStart, which
		 * would end it at a first delay and leave CUBIC to climb the rest, hears of no ACK. */
		if (flow->phase == FOLLOW_ALONE)
			cubictcp_acked(sk, sample);
		return;
	}
	if (tp->snd_cwnd > flow->window)
		tp->snd_cwnd = flow->window;
	/* Where losses are being repaired, the kernel takes the window to ssthresh. */
	if (BPF_CORE_READ_BITFIELD(icsk, icsk_ca_state) != TCP_CA_Loss)
		tp->snd_ssthresh = flow->window;
}

SEC("struct_ops/follow_cong_avoid")
void BPF_PROG(follow_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u32 slot, window, clamp = tp->snd_cwnd_clamp;
	struct follow_flow *flow = flow_of(sk, &slot);

	if (!flow || flow->phase != FOLLOW_DRIVEN) {
		cubictcp_cong_avoid(sk, ack, acked);
		return;
	}
	window = flow->window;
	if (tp->snd_cwnd < window && tp->snd_cwnd + acked < window)
		window = tp->snd_cwnd + acked;
	tp->snd_cwnd = window < clamp ? window : clamp;
}

SEC("struct_ops/follow_ssthresh")
__u32 BPF_PROG(follow_ssthresh, struct sock *sk)
{
	__u32 slot;
	struct follow_flow *flow = flow_of(sk, &slot);

	if (!flow || flow->phase != FOLLOW_DRIVEN)
		return cubictcp_recalc_ssthresh(sk);
	return flow->window > LEAST_TARGET ? flow->window : LEAST_TARGET;
}

SEC("struct_ops/follow_undo_cwnd")
__u32 BPF_PROG(follow_undo_cwnd, struct sock *sk)
{
	__u32 slot;
	struct follow_flow *flow = flow_of(sk, &slot);

	if (!flow || flow->phase != FOLLOW_DRIVEN)
		return tcp_reno_undo_cwnd(sk);
	return flow->window > LEAST_TARGET ? flow->window : LEAST_TARGET;
}

SEC("struct_ops/follow_set_state")
void BPF_PROG(follow_set_state, struct sock *sk, __u8 state)
{
	__u32 slot;
	struct follow_flow *flow = flow_of(sk, &slot);

	if (!flow || flow->phase != FOLLOW_DRIVEN)
		cubictcp_state(sk, state);
}

SEC("struct_ops/follow_cwnd_event")
void BPF_PROG(follow_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	__u32 slot;
	struct follow_flow *flow = flow_of(sk, &slot);

	if (!flow || flow->phase != FOLLOW_DRIVEN)
		cubictcp_cwnd_event(sk, event);
}

SEC(".struct_ops")
struct tcp_congestion_ops cczoo_follow = {
	.init = (void *)follow_init,
	.release = (void *)follow_release,
	.pkts_acked = (void *)follow_acked,
	.cong_avoid = (void *)follow_cong_avoid,
	.ssthresh = (void *)follow_ssthresh,
	.undo_cwnd = (void *)follow_undo_cwnd,
	.set_state = (void *)follow_set_state,
	.cwnd_event = (void *)follow_cwnd_event,
	.name = FOLLOW_NAME,
};
