"""`strandline certs`: makes a certificate authority for development, and certificates of servers and clients that it
signs."""

from __future__ import annotations

import argparse


def add_arguments(certs: argparse.ArgumentParser) -> None:
    certs.description = (
        "Makes a certificate authority for development in DIRECTORY, unless there is one, and certificates that it "
        "signs, each with its private key in one PEM file. A broker reads a replaced file again."
    )
    certs.add_argument("directory", metavar="DIRECTORY")
    certs.add_argument(
        "--server",
        action="append",
        default=[],
        metavar="HOST",
        help="a name or address of the server; repeat it for several",
    )
    certs.add_argument(
        "--client",
        action="append",
        default=[],
        metavar="NAME",
        help="make a certificate for a client with this name; repeat it for several",
    )
    certs.add_argument(
        "--days", type=int, default=825, help="how long the certificates are valid (default: 825)"
    )


def call(options: argparse.Namespace) -> int:
    from pathlib import Path

    from strandline.cli.failures import fail
    from strandline.node.development_certificates import make_authority, make_certificate
    from strandline.ports.tls import TlsError

    directory = Path(options.directory)
    try:
        print(f"authority    {make_authority(directory, days=options.days)}")
        if options.server:
            made = make_certificate(directory, "server", options.server, days=options.days)
            print(f"server       {made.key_store}")
        for name in options.client:
            made = make_certificate(directory, name, days=options.days)
            print(f"client       {made.key_store}")
    except TlsError as error:
        return fail(str(error))
    except OSError as error:
        return fail(f"{error.filename or directory}: {error.strerror}")
    print(
        "Brokers: ssl.keystore.type=PEM ssl.keystore.location=<server> ssl.truststore.type=PEM "
        "ssl.truststore.location=<authority>"
    )
    return 0
