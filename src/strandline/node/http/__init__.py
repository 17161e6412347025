"""HTTP on the node's loop: a small server for metrics and health, and requests to others."""
