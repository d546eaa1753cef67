"""Certificates that nobody vouches for."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple


class Certificate(NamedTuple):
    """A certificate of this machine, and its key: PEM files."""

    cert_file: Path
    key_file: Path


def self_signed(directory: Path) -> Certificate:
    """Makes one with openssl."""
    made = Certificate(directory / "cert.pem", directory / "key.pem")
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    files = ["-keyout", str(made.key_file), "-out", str(made.cert_file)]
    command = ["openssl", "req", "-x509", *curve, "-nodes", "-days", "2", *subject, *files]
    subprocess.run(command, check=True, capture_output=True)
    return made
