"""The metrics of a node's parts, and their names: collectors read the parts when the page is requested."""
