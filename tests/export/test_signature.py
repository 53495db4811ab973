"""Signed bundles: who made them is checked before anything else."""

import json
import shutil
import subprocess

import pytest

from export.bundle.signature import SIGNATURE
from pipelines.cli import main
from pipelines.gates.certificate import Settings, signed

needs_ssh = pytest.mark.skipif(
    not shutil.which("ssh-keygen"), reason="no ssh-keygen: apt-get install openssh-client"
)
EXPORT = ["export", "nuwa-tanh", "-t", "json", "--set", "entries=257", "--set", "q=8"]


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """Two fresh keys: of the maker, and of somebody else."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("maker", "other"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"{name}@example.org"]
        subprocess.run([*command, "-f", str(folder / name)], check=True)
    return folder


@pytest.fixture
def bundle(keys, tmp_path):
    out = tmp_path / "signed"
    assert main([*EXPORT, "--sign", str(keys / "maker"), "--out", str(out)]) == 0
    return out


def verified(bundle, public, capsys):
    capsys.readouterr()
    status = main(["verify", str(bundle), "--random", "10", "--signer", str(public)])
    said = capsys.readouterr()
    return status, said.out + said.err


@needs_ssh
def test_the_makers_signature_is_reported_and_certified(bundle, keys, capsys):
    status, said = verified(bundle, keys / "maker.pub", capsys)
    assert status == 0, said
    assert "signed by maker@example.org, SHA256:" in said
    certificate = json.loads((bundle / "certificate.json").read_text())
    assert certificate["signer"]["principal"] == "maker@example.org"
    assert main(["verify", str(bundle), "--random", "10"]) == 0
    assert json.loads((bundle / "certificate.json").read_text())["signer"] is None


@needs_ssh
def test_a_file_of_allowed_signers_is_taken_as_it_is(bundle, keys, tmp_path, capsys):
    allowed = tmp_path / "allowed"
    kind, key, _ = (keys / "maker.pub").read_text().split()
    allowed.write_text(f'# ours\nteam@example.org namespaces="cczoo-bundle" {kind} {key}\n')
    assert verified(bundle, allowed, capsys)[0] == 0
    allowed.write_text(f'team@example.org namespaces="file" {kind} {key}\n')
    assert verified(bundle, allowed, capsys)[0] == 1
    ours = f'namespaces="cczoo-bundle" {kind} {key}\n'
    for other in ("mail@example.org", "team@example.org"):
        allowed.write_text(f'{other} namespaces="file" {kind} {key}\nteam@example.org {ours}')
        status, said = verified(bundle, allowed, capsys)
        assert (status, "signed by team@example.org" in said) == (0, True), said


@needs_ssh
def test_a_wrong_missing_or_altered_signature_fails_first(bundle, keys, capsys):
    status, said = verified(bundle, keys / "other.pub", capsys)
    assert (status, "isn't by a key of" in said) == (1, True), said
    manifest = bundle / "manifest.json"
    text = manifest.read_bytes()
    # Not even a manifest any more, and still the signature is what is complained of.
    manifest.write_bytes(b"{" + text)
    status, said = verified(bundle, keys / "maker.pub", capsys)
    assert (status, "manifest.json.sig: " in said) == (1, True), said
    manifest.write_bytes(text)
    signature = bundle / SIGNATURE
    content = signature.read_bytes()
    signature.write_bytes(content.replace(b"A", b"B"))
    assert verified(bundle, keys / "maker.pub", capsys)[0] == 1
    signature.write_bytes(b"")
    assert verified(bundle, keys / "maker.pub", capsys)[0] == 1
    signature.unlink()
    status, said = verified(bundle, keys / "maker.pub", capsys)
    assert (status, "isn't signed" in said) == (1, True), said


@needs_ssh
def test_a_resealed_manifest_loses_its_signature(bundle, keys, capsys):
    from test_export_verify import rewrite

    rewrite(bundle, lambda m: m.update(created_by="somebody else"))
    status, said = verified(bundle, keys / "maker.pub", capsys)
    assert status == 1
    assert "doesn't sign this manifest" in said
    assert main(["verify", str(bundle), "--random", "10"]) in (0, 1)


@needs_ssh
@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("maker", "isn't a public key"),
        ("nowhere.pub", "no such file"),
        ("empty", "isn't a public key"),
        ("binary", "not a public key (.pub)"),
        (".", "not a file"),
        ("/dev/zero", "not a file"),
    ],
)
def test_what_is_no_public_key_is_named(what, why, bundle, keys, capsys):
    (keys / "empty").write_text("")
    (keys / "binary").write_bytes(b"\x81\xff")
    status, said = verified(bundle, keys / what, capsys)
    assert status == 2
    assert len(said.strip().splitlines()) == 1
    assert why in said


def test_without_ssh_keygen_the_package_is_named(tmp_path, monkeypatch, capsys):
    key = tmp_path / "key"
    key.write_text("any")
    monkeypatch.setenv("PATH", "/nowhere")
    out = tmp_path / "out"
    assert main([*EXPORT, "--sign", str(key), "--out", str(out)]) == 2
    assert "apt-get install openssh-client" in capsys.readouterr().err
    assert not out.exists()
    assert main([*EXPORT, "--sign", str(tmp_path / "none"), "--out", str(out)]) == 2


@needs_ssh
def test_the_certificate_gate_can_demand_a_signature(keys, tmp_path, capsys):
    from models.store import load

    out = tmp_path / "smartsbd-dt"
    command = ["export", "smartsbd-dt", "-t", "json", "--out", str(out)]
    assert main([*command, "--sign", str(keys / "maker")]) == 0
    model = load("smartsbd-dt")
    settings = Settings(signer=str(keys / "maker.pub"), bundle=str(tmp_path / "{name}"))
    signer, problem = signed(model, settings)
    assert (signer["principal"], problem) == ("maker@example.org", "")
    wrong = settings.model_copy(update={"signer": str(keys / "other.pub")})
    assert "isn't by a key of" in signed(model, wrong)[1]
    assert "of another model" in signed(load("smartsbd-lr"), settings.model_copy(
        update={"bundle": str(out)}
    ))[1]  # fmt: skip
    assert main(command) == 0
    assert "isn't signed" in signed(model, settings)[1]
