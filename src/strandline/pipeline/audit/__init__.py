"""The audit: a ledger of acknowledged records against the log."""
