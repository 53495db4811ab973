"""Packet-level multipath network simulator: ``run(scenario, controller) -> flow tables``.

The state of a simulation is a tuple of flat numpy arrays (`data.netsim.state`); one compiled
kernel (`data.netsim.kernel.advance`) moves it to a time; Python acts only between two calls.
"""
