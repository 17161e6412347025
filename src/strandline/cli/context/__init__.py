"""`strandline context`: named settings of clusters."""
