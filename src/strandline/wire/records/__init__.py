"""Records of internal logs and files."""
