"""The audit: compares a ledger of acknowledged records with the log."""
