"""The journal of a flow: its entries, the map of offsets that they add up to, and who follows it."""
