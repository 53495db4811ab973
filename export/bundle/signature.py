"""Signs a bundle, and finds who signed one, by an SSH signature over its manifest.

The manifest holds every other file's hash. The signature's format is OpenSSH's (``ssh-keygen -Y``,
PROTOCOL.sshsig), its namespace ``cczoo-bundle``; any SSH key signs, also one in an agent or on a
token.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from data.errors import UserError, one_line
from data.given import read_text
from data.place import scratch
from export.bundle.plain_files import Broken

SIGNATURE = "manifest.json.sig"
NAMESPACE = "cczoo-bundle"
MAX_BYTES = 1 << 16
MAX_SIGNERS_BYTES = 1 << 20
_KEY = re.compile(r"(?:sk-)?(?:ssh|ecdsa)-\S+ [A-Za-z0-9+/=]+")
_GOOD = re.compile(r'Good "[^"]*" signature for (?P<principal>.*) with \S+ key (?P<key>\S+)')
TIMEOUT_S = 120.0


def sign(manifest: bytes, key: Path) -> bytes:
    """Signature of a manifest by a private key (or a public one whose other half is in an agent).

    Raises
    ------
    UserError
        When the key can't sign.
    """
    if not key.is_file():
        raise UserError(f"{key}: no such key: make one with ssh-keygen -t ed25519 -f {key}")
    done = _ssh_keygen(["-Y", "sign", "-n", NAMESPACE, "-f", str(key)], manifest)
    if done.returncode:
        raise UserError(f"{key}: can't sign: {_reason(done)}: give a private SSH key")
    return done.stdout


def signer_of(manifest: bytes, signature: bytes | None, allowed: Path) -> dict[str, str]:
    """Who signed a manifest.

    Parameters
    ----------
    manifest : bytes
        Content of ``manifest.json``.
    signature : bytes or None
        Content of ``manifest.json.sig``.
    allowed : Path
        A public key (``.pub``), or a file of allowed signers (ssh-keygen(1)).

    Returns
    -------
    dict
        ``principal`` (its name among the allowed signers; of a public key its comment) and
        ``key`` (the fingerprint).

    Raises
    ------
    UserError
        When the file of signers can't be read or ssh-keygen is missing.
    Broken
        When there is no signature, or it isn't one of theirs over this very manifest.
    """
    signers = _allowed_signers(allowed)
    if signature is None:
        raise Broken(f"{SIGNATURE}: missing: the bundle isn't signed, and --signer demands it")
    with scratch("signer") as held:
        file, signers_file = held / "signature", held / "allowed"
        file.write_bytes(signature)
        signers_file.write_text(signers, encoding="utf-8")
        given = ["-s", str(file), "-f", str(signers_file)]
        done = None
        # A key may stand in several lines, of which one for another namespace says nothing of
        # ours; ssh-keygen stops at the first, so each line is asked by itself.
        for line in signers.splitlines():
            signers_file.write_text(f"{line}\n", encoding="utf-8")
            found = _ssh_keygen(["-Y", "find-principals", *given], manifest)
            names = found.stdout.decode(errors="replace").splitlines()
            if found.returncode or not names:
                continue
            verify = ["-Y", "verify", "-n", NAMESPACE, "-I", names[0], *given]
            done = _ssh_keygen(verify, manifest)
            if not done.returncode:
                break
    if done is None:
        raise Broken(f"{SIGNATURE}: isn't by a key of {allowed}")
    good = _GOOD.match(done.stdout.decode(errors="replace"))
    if done.returncode or good is None:
        raise Broken(f"{SIGNATURE}: doesn't sign this manifest: {_reason(done)}")
    return {part: one_line(text, 256) for part, text in good.groupdict().items()}


def _allowed_signers(path: Path) -> str:
    """The file as ssh-keygen takes it: public keys get a principal and our namespace."""
    text = read_text(path, "public key (.pub)", "a public key (.pub)", MAX_SIGNERS_BYTES)
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not lines or any("PRIVATE KEY" in line for line in lines):
        raise UserError(f"{path}: isn't a public key: give the .pub file")
    return "".join(f"{_principal(line)}{line}\n" for line in lines)


def _principal(line: str) -> str:
    if not _KEY.match(line):
        return ""
    comment = re.sub(r"[^\w.@+-]", "_", " ".join(line.split()[2:])) or "signer"
    return f'{comment} namespaces="{NAMESPACE}" '


def _ssh_keygen(arguments: list[str], given: bytes) -> subprocess.CompletedProcess[bytes]:
    command = ["ssh-keygen", *arguments]
    try:
        return subprocess.run(
            command, input=given, capture_output=True, timeout=TIMEOUT_S, check=False
        )
    except OSError:
        raise UserError(
            "ssh-keygen isn't there: install openssh-client (apt-get install openssh-client)"
        ) from None
    except subprocess.TimeoutExpired:
        raise UserError("ssh-keygen doesn't answer: is it waiting for a passphrase?") from None


def _reason(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
    return one_line(lines[-1], 200) if lines else f"status {done.returncode}"
