"""The simulated world: twins of the ports under the same file names, deterministic from one seed.

`world.World` puts it together: brokers, their disks, the network between them and their clients, all on one loop with
virtual time. A run is a function of its seed, and `Trace` proves it.
"""
