"""Packet-level multipath network simulator: ``run(scenario, controller) -> flow tables``.

The state of a simulation is a tuple of flat numpy arrays (`data.netsim.state`); one compiled
event loop (`data.netsim.event_loop.advance`) moves it on to a given time; Python acts only between
two calls.
"""
