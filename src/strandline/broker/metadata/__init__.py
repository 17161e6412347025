"""The metadata quorum and the controller on this node, and the publishing of their decisions."""
