"""What a person types. Parsing is by argparse, so that `strandline up` loads nothing that a broker does not need."""


def main() -> int:
    """Runs the `strandline` command. A Ctrl-C while its modules are being loaded ends it without a traceback."""
    try:
        from strandline.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        return 130
