"""Values of a registry as Arrow columns. It needs the packages of the extras `columnar` and `registry`."""
