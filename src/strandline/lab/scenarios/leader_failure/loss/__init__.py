"""The five scenarios of data loss, with what prevents each."""
