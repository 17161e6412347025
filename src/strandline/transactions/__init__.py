"""The coordinator of transactions as a replicated machine over `__transaction_state`. Pure."""
