"""Commands about brokers: lists of them, their directories, features and leaders."""
