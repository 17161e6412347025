"""An operator's work on a flow, from outside of its processes: status, pause, failover, verify, failback."""
