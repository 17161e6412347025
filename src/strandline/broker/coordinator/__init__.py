"""The coordinators of groups and transactions: the runtime that runs their machines on logs, and the services around
it."""
