/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* One event, as the BPF side hands it to the writer. */
#ifndef PROBE_H
#define PROBE_H

enum event_kind { EVENT_PROBE, EVENT_STATE, EVENT_RETRANSMIT };

struct event {
	__u64 ts_ns; /* CLOCK_MONOTONIC */
	__u64 cookie;
	__u32 token, sfid; /* 0 on plain TCP */
	__u32 netns;
	__u32 ack_seq, snd_una, snd_nxt, data_len;
	__u32 cwnd, ssthresh, srtt_us, rtt_us, min_rtt_us;
	__u32 delivered, lost, retrans_out, sacked_out, packets_out, total_retrans;
	__u16 sport, dport;
	__u8 kind, ca_state, arg;
};

#endif
