"""Commands on stores: data sets of logs that grow (``docs/fleet.md``)."""
