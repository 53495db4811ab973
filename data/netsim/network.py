"""Build the arrays of a scenario, advance them, and read results out of them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from data.errors import unknown_name
from data.netsim import state as st
from data.netsim import traces
from data.netsim.cc import CONTROLS, fields
from data.netsim.elements import Flow, Link
from data.netsim.event_loop import RESERVE, advance
from data.netsim.rates import OPPORTUNITIES
from data.netsim.records import doubled, fill_subflow
from data.netsim.reference import PINNED_BYTES, pinned
from data.netsim.rings import ring_need
from data.netsim.rng import streams
from data.netsim.scenario import Scenario


class Network:
    """One simulation.

    Parameters
    ----------
    scenario : Scenario
        What is simulated.
    controller : str, optional
        Congestion control of the flows that don't name one.
    seed : int, optional
        Seed of all random streams and start times, and of generated traces that name none.
    log : bool, optional
        Keep the events of every ACK (`log_rows`).
    watch : bool, optional
        Sum them up per interval for an agent (`data.netsim.seen`).

    Raises
    ------
    UserError
        For an unknown controller or an unreadable trace.
    """

    def __init__(
        self,
        scenario: Scenario,
        controller: str = "cubic",
        seed: int = 0,
        log: bool = False,
        watch: bool = False,
    ) -> None:
        self.scenario = scenario
        self.link_names = list(scenario.links)
        self.flow_names: list[str] = []
        self.flow_of: list[Flow] = []
        self._series_t: list[np.ndarray[Any, Any]] = []
        self._series_v: list[np.ndarray[Any, Any]] = []
        self._series_n = 0
        self._routes: list[int] = []
        self._rng = np.random.default_rng(seed)
        self._logs: list[np.ndarray[Any, Any]] = []
        self._log_taken = 0
        self._memory = np.zeros(PINNED_BYTES // 8, np.int64)
        self.state: Any
        self._build(controller, seed, log)
        self.state.g["log_on"] = (st.LOGGED if log else 0) | (st.WATCHED if watch else 0)
        self.address = pinned(self.state, self._memory)

    @property
    def now_s(self) -> float:
        """Time the simulation has reached (s)."""
        return float(self.state.g["now"]) / 1e9

    def advance(self, until_s: float) -> None:
        """Process everything up to a time (s); arrays grow as needed."""
        self.advance_ns(round(until_s * 1e9))

    def advance_ns(self, until: int) -> None:
        """As `advance`, up to and including a time in ns."""
        while (status := advance(self.address, until)) != st.DONE:
            self.make_room(status)

    def make_room(self, status: int) -> None:
        """Give the event loop what it came back for, so that it can go on."""
        if status == st.NEED_LOG:
            self._drain_log()
            return
        if status == st.NEED_PACKETS:
            self._grow_packets()
        elif status == st.NEED_RING:
            self._grow_rings()
        else:
            self.state = self.state._replace(heap=doubled(self.state.heap))
        self.address = pinned(self.state, self._memory)

    def log_rows(self) -> np.ndarray[Any, Any]:
        """Logged observations so far: records of t (ns), sub, variable, value."""
        self._drain_log()
        return np.concatenate(self._logs) if self._logs else self.state.log[:0].copy()

    def take_log(self, keep: bool) -> np.ndarray[Any, Any]:
        """Observations logged since the last call; kept for `log_rows` if asked for."""
        self._drain_log()
        new = np.concatenate(self._logs[self._log_taken :])
        if keep:
            self._log_taken = len(self._logs)
        else:
            self._logs.clear()
        return new

    def link(self, name: str) -> Any:
        """Record of a link (a view: setting a field changes the simulation)."""
        return self.state.link[self.link_names.index(name)]

    def connection(self, index: int) -> Any:
        """Record of a connection (a view)."""
        return self.state.conn[index]

    def subflows(self, index: int) -> Any:
        """Records of a connection's subflows (a view)."""
        c = self.state.conn[index]
        return self.state.sub[int(c["sub0"]) : int(c["sub0"] + c["sub_n"])]

    def capacities(self, index: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """What the paths of a connection carry: of each the least mean rate of a link there.

        Returns
        -------
        float64 array [subflows]
            bit/s; 0 if no link has a rate. A rate that steps counts by the mean of its steps.
        """
        rates = np.zeros(len(self.subflows(index)))
        for k, first in enumerate(self.subflows(index)["forward"]):
            place, found = int(first), []
            while (link := int(self.state.route[place])) >= 0:
                found.append(int(self.state.link["rate"][link]))
                place += 1
            rates[k] = min((rate for rate in found if rate > 0), default=0)
        return rates

    def saved(self) -> dict[str, np.ndarray[Any, np.dtype[np.uint8]]]:
        """All that decides what comes next, as bytes; the scenario and a log aren't among it."""
        arrays = {name: np.atleast_1d(array) for name, array in self.state._asdict().items()}
        return {name: array.reshape(-1).view(np.uint8).copy() for name, array in arrays.items()}

    def restore(self, arrays: dict[str, np.ndarray[Any, np.dtype[np.uint8]]]) -> None:
        """Go on where another network of this scenario and seed was `saved`."""
        made = {}
        for name, old in self.state._asdict().items():
            old = np.atleast_1d(old)
            width = old.dtype.itemsize * math.prod(old.shape[1:])
            new = st.zeros(len(arrays[name]) // width * math.prod(old.shape[1:]), old.dtype)
            new.view(np.uint8)[...] = arrays[name]
            made[name] = new.reshape(-1, *old.shape[1:])
        self.state = st.State(**{**made, "g": made["g"][0]})
        self.address = pinned(self.state, self._memory)

    # Building.

    def _build(self, controller: str, seed: int, log: bool) -> None:
        scenario = self.scenario
        link = st.zeros(len(scenario.links), st.LINK)
        for record, spec in zip(link, scenario.links.values(), strict=True):
            self._fill_link(record, spec, seed)
        flows = [(flow, i) for flow in scenario.flows for i in range(flow.count)]
        conn = st.zeros(len(flows), st.CONNECTION)
        sub = st.zeros(sum(len(f.paths) for f, _ in flows), st.subflow_type(fields()))
        self.events: list[tuple[int, int, int]] = []
        at = ring = meta = inject = 0
        for index, (flow, copy) in enumerate(flows):
            self.flow_names.append(flow.name if flow.count == 1 else f"{flow.name}{copy}")
            self.flow_of.append(flow)
            c = conn[index]
            window = max(2, flow.window_bytes // flow.segment_bytes)
            size = 1 << (window - 1).bit_length()
            self._fill_connection(c, flow, copy, index, window)
            c["sub0"], c["sub_n"] = at, len(flow.paths)
            if len(flow.paths) > 1:
                c["meta_off"], c["meta_mask"] = meta, size - 1
                c["inject_off"], c["inject_mask"] = inject, 2 * size - 1
                meta += size
                inject += 2 * size
            for k, path in enumerate(flow.paths):
                name = flow.ccs[k] if flow.ccs else (flow.cc or controller)
                if name not in CONTROLS:
                    raise unknown_name("congestion control", name, CONTROLS)
                s = sub[at]
                first = min(size, st.FIRST_RING)
                s["conn"], s["ring"], s["mask"], s["mask_max"] = index, ring, first - 1, size - 1
                s["room"] = first - 1
                c["ring_need"] += ring_need(first)
                s["forward"] = self._route(path.forward, copy)
                s["back"] = self._route(path.back, copy)
                fill_subflow(s, flow, name, k == 0)
                s["random"] = int(self._rng.integers(1 << 31))
                ring += first
                at += 1
        src = st.zeros(len(scenario.sources), st.SOURCE)
        for index, source in enumerate(scenario.sources):
            a = src[index]
            a["route"] = self._route(source.path, 0)
            a["interval"] = round(source.packet_bytes * 8e9 / (source.rate_mbps * 1e6))
            a["wire"] = source.packet_bytes
            a["poisson"] = source.poisson
            a["on"] = round((source.on_s or 0.0) * 1e9)
            a["off"] = round(source.off_s * 1e9)
            a["random_on"] = source.random_on_off
            a["until"] = round((source.start_s + (source.on_s or 0.0)) * 1e9)
            a["stop"] = -1 if source.stop_s is None else round(source.stop_s * 1e9)
            self.events.append((round(source.start_s * 1e9), st.EV_SOURCE, index))
        g = st.zeros(1, st.GLOBAL)
        g[0]["free_head"] = -1
        g[0]["ring_end"] = ring
        g[0]["ring_need"] = conn["ring_need"].max(initial=0)
        rx = st.zeros(max(1, ring), st.ARRIVAL)
        rx["came"] = -1
        self.state = st.State(
            g=g[0],
            heap=st.zeros(4 * RESERVE, st.HEAP),
            pkt=st.zeros(0, st.PACKET),
            link=link,
            route=np.array(self._routes, np.int64),
            series_t=np.concatenate([*self._series_t, np.zeros(1, np.int64)]),
            series_v=np.concatenate([*self._series_v, np.zeros(1, np.int64)]),
            conn=conn,
            sub=sub,
            tx=st.zeros(max(1, ring), st.SEGMENT),
            rate=st.zeros(max(1, ring), st.RATE),
            rx=rx,
            meta=np.full(max(1, meta), -1, np.int64),
            inject=np.zeros(max(1, inject), np.int64),
            src=src,
            rng=streams(seed, len(link) + len(src) + len(sub)),
            log=st.zeros(8 * RESERVE if log else 2 * RESERVE, st.LOG),
            hist=np.zeros((max(1, len(sub)), st.HISTOGRAM_BINS), np.int64),
            seen=st.zeros((len(sub) + len(link)) * st.VARIABLES, st.SEEN),
        )
        self._grow_packets()
        # A sorted list is a heap.
        self.events.sort(key=lambda e: e[0])
        for sequence, (t, kind, index) in enumerate(self.events):
            self.state.heap[sequence] = (t, sequence, kind, index)
        g[0]["heap_n"] = g[0]["seq"] = len(self.events)

    def _fill_link(self, record: Any, spec: Link, seed: int) -> None:
        series: traces.Series | None = None
        if spec.steps is not None:
            series = traces.steps(spec.steps, spec.period_s)
        elif spec.trace is not None:
            series = traces.read(Path(spec.trace))
        elif spec.generate is not None:
            wanted = {"seed": seed, **spec.generate.model_dump(exclude_none=True)}
            series = traces.generate(**wanted)
        elif spec.rate_mbps is not None:
            record["rate"] = round(spec.rate_mbps * 1e6)
        if series is not None:
            kind, times, rates, period = series
            record["rate_mode"], record["rate_period"] = kind, period
            record["rate_off"], record["rate_n"] = self._series(times, rates)
            if kind == OPPORTUNITIES:
                record["rate"] = round(len(times) * 1500 * 8e9 / period)
                record["opportunity_t"] = -1
            else:
                record["rate"] = round(float(rates.mean()))
        record["delay"] = round(spec.delay_ms * 1e6)
        if spec.delay_steps is not None:
            times = np.array([round(t * 1e9) for t, _ in spec.delay_steps], np.int64)
            delays = np.array([round(d * 1e6) for _, d in spec.delay_steps], np.int64)
            record["delay_off"], record["delay_n"] = self._series(times, delays)
            record["delay_period"] = round((spec.delay_period_s or 0.0) * 1e9)
        record["jitter"], record["reorder"] = round(spec.jitter_ms * 1e6), spec.reorder
        if spec.lateness_us is not None:
            # P(late > x) = exp(-(x / scale)^(1 / power)), through both percentiles.
            median, late = spec.lateness_us
            power = math.log(late / median) / math.log(math.log(100.0) / math.log(2.0))
            record["late"] = 1e3 * median / math.log(2.0) ** power
            record["late_power"] = power
        record["limit_packets"] = st.UNLIMITED if spec.queue_packets is None else spec.queue_packets
        record["limit_bytes"] = st.UNLIMITED if spec.queue_bytes is None else spec.queue_bytes
        record["queue"] = st.QUEUES[spec.queue]
        record["ecn"] = spec.ecn or spec.mark_packets is not None
        record["mark_packets"] = st.UNLIMITED if spec.mark_packets is None else spec.mark_packets
        red = spec.red
        record["min_th"], record["max_th"] = red.min_packets, red.max_packets
        record["max_p"], record["weight"], record["gentle"] = red.max_p, red.weight, red.gentle
        target = spec.target_ms or (15.0 if spec.queue == "pie" else 5.0)
        record["target"], record["interval"] = round(target * 1e6), round(spec.interval_ms * 1e6)
        record["burst_left"] = 150_000_000
        record["loss_exit"] = spec.loss_at == "exit"
        if spec.gilbert is not None:
            record["loss_model"] = st.GILBERT
            for field in ("loss_good", "loss_bad", "to_bad", "to_good"):
                record[field] = getattr(spec.gilbert, field)
        elif spec.loss > 0:
            record["loss_model"], record["loss_good"] = st.BERNOULLI, spec.loss
        for field in ("head", "tail", "qhead", "wait_head", "wait_tail"):
            record[field] = -1

    def _series(self, times: Any, values: Any) -> tuple[int, int]:
        offset = self._series_n
        self._series_t.append(times)
        self._series_v.append(values)
        self._series_n += len(times)
        return offset, len(times)

    def _route(self, links: list[str], copy: int) -> int:
        offset = len(self._routes)
        for name in links:
            self._routes.append(self.link_names.index(name.replace("{i}", str(copy))))
        self._routes.append(-1)
        return offset

    def _fill_connection(self, c: Any, flow: Flow, copy: int, index: int, window: int) -> None:
        start = flow.start_s + copy * flow.start_gap_s
        if flow.start_spread_s:
            start += float(self._rng.uniform(0.0, flow.start_spread_s))
        c["start"] = round(start * 1e9)
        c["stop"] = -1 if flow.stop_s is None else round(flow.stop_s * 1e9)
        c["scheduler"] = st.SCHEDULERS[flow.scheduler]
        c["window"] = c["edge"] = window
        c["payload"] = flow.segment_bytes
        c["data_end"] = st.FAR
        c["done_t"] = -1
        if flow.size_bytes is not None:
            c["total"] = flow.size_bytes
            c["data_end"] = -(-flow.size_bytes // flow.segment_bytes)
        elif flow.rate_mbps is not None:
            c["data_end"] = 0
            c["app_interval"] = round(flow.segment_bytes * 8e9 / (flow.rate_mbps * 1e6))
            c["app_chunk"] = 1
            self.events.append((int(c["start"]), st.EV_APP, index))
        self.events.append((int(c["start"]), st.EV_START, index))
        if flow.stop_s is not None:
            self.events.append((int(c["stop"]), st.EV_STOP, index))

    # Growing.

    def _grow_packets(self) -> None:
        old = self.state.pkt
        count = max(2 * len(old), 2 * RESERVE)
        pkt = st.zeros(count, st.PACKET)
        pkt[: len(old)] = old
        g = self.state.g
        pkt["next"][len(old) : count - 1] = np.arange(len(old) + 1, count)
        pkt["next"][count - 1] = g["free_head"]
        g["free_head"] = len(old)
        g["free_n"] += count - len(old)
        self.state = self.state._replace(pkt=pkt)

    def _grow_rings(self) -> None:
        names = ("tx", "rate", "rx")
        longer = {name: doubled(getattr(self.state, name)) for name in names}
        self.state = self.state._replace(**longer)

    def _drain_log(self) -> None:
        g = self.state.g
        self._logs.append(self.state.log[: int(g["log_n"])].copy())
        g["log_n"] = 0
