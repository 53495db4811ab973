/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* bpf_mpcdg: MP-CDG (mp-cdg.txt sections 5 and 6) for MPTCP's subflows. It grows as LIA does, backs
 * off by chance while round-trip times keep rising, and a loss counts only where the path was full;
 * the arithmetic is mpcdg.h's. On plain TCP it grows as Reno does. */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "lia.h"
#include "mpcdg.h"

#define TCP_CONG_NON_RESTRICTED 1 /* a namespace may make it its default */

char LICENSE[] SEC("license") = "GPL";

/* In icsk_ca_priv, of 104 bytes; lia.h takes what lies there for its own. */
struct both {
	struct lia lia;
	struct mpcdg mpcdg;
};

static __always_inline struct mpcdg *mpcdg_of(struct sock *sk)
{
	return &((struct both *)((struct inet_connection_sock *)sk)->icsk_ca_priv)->mpcdg;
}

/* Smallest round-trip time of the connection (tcp_min_rtt). */
static __always_inline __u32 base_us(const struct tcp_sock *tp)
{
	return tp->rtt_min.s[0].v;
}

SEC("struct_ops/mpcdg_init")
void BPF_PROG(mpcdg_init, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	lia_start(sk);
	mpcdg_start(mpcdg_of(sk), tp->snd_cwnd, tp->snd_nxt);
}

SEC("struct_ops/mpcdg_release")
void BPF_PROG(mpcdg_release, struct sock *sk)
{
	lia_leave(sk);
}

SEC("struct_ops/mpcdg_ssthresh")
__u32 BPF_PROG(mpcdg_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	return mpcdg_after_loss(mpcdg_of(sk), base_us(tp), tp->snd_cwnd);
}

SEC("struct_ops/mpcdg_undo_cwnd")
__u32 BPF_PROG(mpcdg_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC("struct_ops/mpcdg_set_state")
void BPF_PROG(mpcdg_set_state, struct sock *sk, __u8 state)
{
	lia_enter(sk, state);
}

SEC("struct_ops/mpcdg_pkts_acked")
void BPF_PROG(mpcdg_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	mpcdg_measure(mpcdg_of(sk), sample->rtt_us);
}

SEC("struct_ops/mpcdg_cong_avoid")
void BPF_PROG(mpcdg_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct mpcdg *m = mpcdg_of(sk);
	struct connection *connection = publish(sk, tp->snd_cwnd);
	__u32 before = tp->snd_cwnd;

	if ((__s32)(tp->snd_una - m->end) > 0 && m->least_us != MPCDG_NONE &&
	    mpcdg_round(m, base_us(tp), tp->snd_nxt, bpf_get_prandom_u32() >> 16)) {
		tp->snd_cwnd = mpcdg_backed_off(m, before);
		tp->snd_ssthresh = tp->snd_cwnd;
		return;
	}
	if (!cwnd_limited(tp)) {
		if (m->shadow > before)
			m->shadow = before;
		return;
	}
	lia_grow(sk, acked, connection);
	m->shadow += tp->snd_cwnd - before;
}

SEC(".struct_ops")
struct tcp_congestion_ops bpf_mpcdg = {
	.init = (void *)mpcdg_init,
	.release = (void *)mpcdg_release,
	.ssthresh = (void *)mpcdg_ssthresh,
	.undo_cwnd = (void *)mpcdg_undo_cwnd,
	.set_state = (void *)mpcdg_set_state,
	.pkts_acked = (void *)mpcdg_pkts_acked,
	.cong_avoid = (void *)mpcdg_cong_avoid,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "bpf_mpcdg",
};
