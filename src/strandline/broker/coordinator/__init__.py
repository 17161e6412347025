"""The coordinators of groups and transactions: the runtime that gives their machines a log, and what is around it."""
