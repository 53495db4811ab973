/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* bpf_lia: the Linked Increases Algorithm (RFC 6356) for MPTCP's subflows. The subflows of one
 * connection find one another through the connection's token; on plain TCP, and while no other
 * subflow has a round-trip time, this is Reno. */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "lia.h"

#define TCP_CONG_NON_RESTRICTED 1 /* a namespace may make it its default */

char LICENSE[] SEC("license") = "GPL";

SEC("struct_ops/lia_init")
void BPF_PROG(lia_init, struct sock *sk)
{
	lia_start(sk);
}

SEC("struct_ops/lia_release")
void BPF_PROG(lia_release, struct sock *sk)
{
	lia_leave(sk);
}

SEC("struct_ops/lia_ssthresh")
__u32 BPF_PROG(lia_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

SEC("struct_ops/lia_undo_cwnd")
__u32 BPF_PROG(lia_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC("struct_ops/lia_set_state")
void BPF_PROG(lia_set_state, struct sock *sk, __u8 state)
{
	lia_enter(sk, state);
}

SEC("struct_ops/lia_cong_avoid")
void BPF_PROG(lia_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	lia_grow(sk, acked, publish(sk, tp->snd_cwnd));
}

SEC(".struct_ops")
struct tcp_congestion_ops bpf_lia = {
	.init = (void *)lia_init,
	.release = (void *)lia_release,
	.ssthresh = (void *)lia_ssthresh,
	.undo_cwnd = (void *)lia_undo_cwnd,
	.set_state = (void *)lia_set_state,
	.cong_avoid = (void *)lia_cong_avoid,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "bpf_lia",
};
