/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What a TCP sender knows at each segment it receives, at each change of its congestion state and
 * at each retransmission; for MPTCP also which connection and subflow it is. */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "probe.h"

char LICENSE[] SEC("license") = "GPL";

/* Set by probe.c before loading. */
const volatile __u32 wanted_netns = 0; /* 0: any */
const volatile __u16 wanted_port = 0;
const volatile bool senders_only = false;

__u64 lost = 0;

/* 4 MB hold some 40 thousand events: seconds of the busiest connection, should the writer, which
 * has no real-time priority, be kept from running. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} events SEC(".maps");

/* Runs for every socket of the machine: the cheapest question comes first. */
static __always_inline bool wanted(const struct sock *sk)
{
	__u16 dport;

	if (wanted_netns && sk->__sk_common.skc_net.net->ns.inum != wanted_netns)
		return false;
	dport = bpf_ntohs(sk->__sk_common.skc_dport);
	return dport == wanted_port || (!senders_only && sk->__sk_common.skc_num == wanted_port);
}

static __always_inline struct event *begin(struct sock *sk, __u8 kind)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	const struct inet_connection_sock *icsk;
	struct event *event;

	if (!tp)
		return NULL;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		__sync_fetch_and_add(&lost, 1);
		return NULL;
	}
	icsk = &tp->inet_conn;
	event->ts_ns = bpf_ktime_get_ns();
	event->cookie = bpf_get_socket_cookie(sk);
	event->netns = sk->__sk_common.skc_net.net->ns.inum;
	event->sport = sk->__sk_common.skc_num;
	event->dport = bpf_ntohs(sk->__sk_common.skc_dport);
	event->kind = kind;
	event->ca_state = BPF_CORE_READ_BITFIELD(icsk, icsk_ca_state);
	event->arg = 0;
	event->ack_seq = 0;
	event->data_len = 0;
	event->snd_una = tp->snd_una;
	event->snd_nxt = tp->snd_nxt;
	event->cwnd = tp->snd_cwnd;
	event->ssthresh = tp->snd_ssthresh;
	event->srtt_us = tp->srtt_us >> 3; /* the kernel keeps eight times the mean */
	event->rtt_us = tp->rack.rtt_us;
	event->min_rtt_us = tp->rtt_min.s[0].v;
	event->delivered = tp->delivered;
	event->lost = tp->lost_out;
	event->retrans_out = tp->retrans_out;
	event->sacked_out = tp->sacked_out;
	event->packets_out = tp->packets_out;
	event->total_retrans = tp->total_retrans;
	event->token = 0;
	event->sfid = 0;
	if (tp->is_mptcp) {
		struct mptcp_subflow_context *subflow = icsk->icsk_ulp_data;

		if (subflow) {
			event->token = BPF_CORE_READ(subflow, token);
			event->sfid = BPF_CORE_READ(subflow, subflow_id);
		}
	}
	return event;
}

/* The writer looks by itself every few ms; waking it for each event would cost more than the
 * event. */
static __always_inline void commit(struct event *event)
{
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

SEC("tp_btf/tcp_probe")
int BPF_PROG(on_probe, struct sock *sk, struct sk_buff *skb)
{
	const struct tcphdr *th;
	struct event *event;

	if (!wanted(sk))
		return 0;
	event = begin(sk, EVENT_PROBE);
	if (!event)
		return 0;
	th = (const struct tcphdr *)skb->data; /* the IP header was pulled */
	event->ack_seq = bpf_ntohl(BPF_CORE_READ(th, ack_seq));
	event->data_len = skb->len - BPF_CORE_READ_BITFIELD_PROBED(th, doff) * 4;
	commit(event);
	return 0;
}

SEC("tp_btf/tcp_cong_state_set")
int BPF_PROG(on_state, struct sock *sk, const __u8 state)
{
	struct event *event;

	if (!wanted(sk))
		return 0;
	event = begin(sk, EVENT_STATE);
	if (!event)
		return 0;
	event->arg = state;
	commit(event);
	return 0;
}

SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(on_retransmit, struct sock *sk)
{
	struct event *event;

	if (!wanted(sk))
		return 0;
	event = begin(sk, EVENT_RETRANSMIT);
	if (event)
		commit(event);
	return 0;
}
