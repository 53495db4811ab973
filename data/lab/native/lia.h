/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The Linked Increases Algorithm (RFC 6356) for MPTCP's subflows, shared by the congestion
 * controls that use it. The subflows of one connection find one another through the connection's
 * token. Include vmlinux.h and libbpf's headers first; struct lia lies in icsk_ca_priv. */
#ifndef CCZOO_LIA_H
#define CCZOO_LIA_H

#define MAX_SUBFLOWS 8 /* what MPTCP's path manager allows */

/* Bounds that keep the products below in 64 bits. */
#define MAX_CWND ((1U << 20) - 1)
#define MAX_RTT_US ((1U << 22) - 1) /* 4 s */

/* Binary places of a congestion window's fraction, and of the sum in coupled_increase(). */
#define CREDIT_SHIFT 20
#define SUM_SHIFT 10

extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) __ksym;
extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

struct subflow {
	__u32 id;   /* 0: this place is free */
	__u32 cwnd; /* packets */
	__u32 rtt_us;
};

struct connection {
	struct subflow subflows[MAX_SUBFLOWS];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32); /* token */
	__type(value, struct connection);
} connections SEC(".maps");

/* What a newcomer to the map is made from. */
static const struct connection empty_connection;

/* In icsk_ca_priv. */
struct lia {
	__u32 token; /* 0: not MPTCP, or not yet known */
	__u32 id;
	__u32 credit; /* fraction of a packet by which cwnd has grown, << CREDIT_SHIFT */
};

static __always_inline struct lia *lia_of(struct sock *sk)
{
	return (struct lia *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

static __always_inline void learn_identity(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct mptcp_subflow_context *context;
	struct lia *lia = lia_of(sk);

	if (lia->token || !tp->is_mptcp)
		return;
	context = ((struct inet_connection_sock *)sk)->icsk_ulp_data;
	if (!context)
		return;
	lia->id = BPF_CORE_READ(context, subflow_id);
	lia->token = lia->id ? BPF_CORE_READ(context, token) : 0;
}

/* Tells the other subflows of this one's window and round-trip time; returns the connection, or
 * NULL where there is none to couple with. */
static __always_inline struct connection *publish(struct sock *sk, __u32 cwnd)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u32 token, id, rtt_us = tp->srtt_us >> 3;
	struct connection *connection;
	struct subflow *mine;
	struct lia *lia = lia_of(sk);

	learn_identity(sk);
	token = lia->token;
	id = lia->id;
	if (!token || !rtt_us)
		return NULL;
	connection = bpf_map_lookup_elem(&connections, &token);
	if (!connection) {
		bpf_map_update_elem(&connections, &token, &empty_connection, BPF_NOEXIST);
		connection = bpf_map_lookup_elem(&connections, &token);
		if (!connection)
			return NULL;
	}
	mine = &connection->subflows[id % MAX_SUBFLOWS];
	if (mine->id != id && mine->id)
		return NULL; /* a ninth subflow goes its own way */
	mine->id = id;
	mine->cwnd = cwnd < MAX_CWND ? cwnd : MAX_CWND;
	mine->rtt_us = rtt_us < MAX_RTT_US ? rtt_us : MAX_RTT_US;
	return connection;
}

/* By how much of a packet, << CREDIT_SHIFT, the connection's windows together may grow for one
 * packet acknowledged: alpha / cwnd_total of RFC 6356, sections 3 and 4,
 *
 *     max_i(cwnd_i / rtt_i^2) / (sum_i cwnd_i / rtt_i)^2
 *   = cwnd_b / (sum_i cwnd_i rtt_b / rtt_i)^2     with b the i of the maximum.
 */
static __always_inline __u64 coupled_increase(const struct connection *connection)
{
	__u64 best_cwnd = 0, best_rtt_us = 1, sum = 0;

	for (int i = 0; i < MAX_SUBFLOWS; i++) {
		const struct subflow *subflow = &connection->subflows[i];
		__u64 cwnd = subflow->cwnd, rtt_us = subflow->rtt_us;

		if (!subflow->id || !rtt_us)
			continue;
		if (cwnd * best_rtt_us * best_rtt_us > best_cwnd * rtt_us * rtt_us) {
			best_cwnd = cwnd;
			best_rtt_us = rtt_us;
		}
	}
	for (int i = 0; i < MAX_SUBFLOWS; i++) {
		const struct subflow *subflow = &connection->subflows[i];
		__u64 rtt_us = subflow->rtt_us;

		if (subflow->id && rtt_us)
			sum += ((__u64)subflow->cwnd << SUM_SHIFT) * best_rtt_us / rtt_us;
	}
	if (!sum)
		return 1ULL << CREDIT_SHIFT;
	/* Dividing twice: the square of the sum might not fit. */
	return (best_cwnd << (CREDIT_SHIFT + 2 * SUM_SHIFT)) / sum / sum;
}

/* As the kernel's tcp_is_cwnd_limited(): a window that isn't used must not grow. */
static __always_inline bool cwnd_limited(const struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return true;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* For .init. */
static __always_inline void lia_start(struct sock *sk)
{
	struct lia *lia = lia_of(sk);

	lia->token = 0;
	lia->id = 0;
	lia->credit = 0;
}

/* For .release; returns the token of the connection whose last subflow this was, else 0. */
static __always_inline __u32 lia_leave(struct sock *sk)
{
	struct lia *lia = lia_of(sk);
	__u32 token = lia->token, id = lia->id;
	struct connection *connection;

	if (!token)
		return 0;
	connection = bpf_map_lookup_elem(&connections, &token);
	if (!connection)
		return 0;
	if (connection->subflows[id % MAX_SUBFLOWS].id == id)
		connection->subflows[id % MAX_SUBFLOWS].id = 0;
	for (int i = 0; i < MAX_SUBFLOWS; i++)
		if (connection->subflows[i].id)
			return 0;
	/* Should another subflow come just now, it finds no connection and makes a new one. */
	bpf_map_delete_elem(&connections, &token);
	return token;
}

/* For .set_state. */
static __always_inline void lia_enter(struct sock *sk, __u8 state)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u32 cwnd = tp->snd_cwnd;

	/* During recovery the window is on its way down to ssthresh: count it as there. */
	if (state == TCP_CA_Recovery && cwnd > tp->snd_ssthresh)
		cwnd = tp->snd_ssthresh;
	publish(sk, cwnd);
}

/* For .cong_avoid, after publish(): coupled with the connection's other subflows, or as Reno
 * where connection is NULL. */
static __always_inline void lia_grow(struct sock *sk, __u32 acked,
				     const struct connection *connection)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct lia *lia = lia_of(sk);
	__u64 increase, alone, credit;
	__u32 cwnd;

	if (!cwnd_limited(tp))
		return;
	if (tp->snd_cwnd < tp->snd_ssthresh) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	cwnd = tp->snd_cwnd;
	if (!cwnd)
		return;
	alone = (1ULL << CREDIT_SHIFT) / cwnd;
	increase = connection ? coupled_increase(connection) : alone;
	if (increase > alone) /* never more than TCP would take */
		increase = alone;
	credit = lia->credit + increase * acked;
	cwnd += credit >> CREDIT_SHIFT;
	lia->credit = credit & ((1U << CREDIT_SHIFT) - 1);
	tp->snd_cwnd = cwnd < tp->snd_cwnd_clamp ? cwnd : tp->snd_cwnd_clamp;
}

#endif
