"""What a person types. Parsing is by argparse, so that `strandline up` loads nothing that a broker does not need."""
