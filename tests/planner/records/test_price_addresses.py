"""Price lists from an https address: a server of the test's own, with a certificate that it made itself."""

from __future__ import annotations

import datetime
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from estimator.errors import PlanError
from planner.records import price_lists
from planner.records.price_lists import update_prices

SKY = b"""\
InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,Price,SpotPrice
p5.48xlarge,192,2048,H100,8,,us-east-1,us-east-1a,50.0,20.0
"""


class _Answers(BaseHTTPRequestHandler):
    ports: tuple[int, int] = (0, 0)

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        secure, plain = self.ports
        moved = {
            "/moved": f"https://localhost:{secure}/aws/vms.csv",
            "/downgraded": f"http://localhost:{plain}/aws/vms.csv",
            "/loop": f"https://localhost:{secure}/loop",
        }
        if self.path in moved:
            self.send_response(302)
            self.send_header("Location", moved[self.path])
            self.end_headers()
            return
        known = self.path.endswith("/vms.csv") or self.path in ("/cut", "/page", "/bytes", "/huge")
        self.send_response(200 if known else 404)
        body = {"/page": b"<html>Sign in</html>", "/bytes": bytes(range(256)), "/huge": SKY * 1_000}.get(self.path, SKY)
        self.send_header("Content-Length", str(len(body) + (1_000 if self.path == "/cut" else 0)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Of a server that is trusted as the authority of its own certificate is."""
    monkeypatch.setenv("SHARDWISE_CONFIG", str(tmp_path / "config"))
    certificate, key = _certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    secure, plain = (ThreadingHTTPServer(("127.0.0.1", 0), _Answers) for _ in range(2))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    secure.socket = context.wrap_socket(secure.socket, server_side=True)
    monkeypatch.setattr(_Answers, "ports", (secure.server_address[1], plain.server_address[1]))
    for server in (secure, plain):
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"https://localhost:{secure.server_address[1]}"
    for server in (secure, plain):
        server.shutdown()
        server.server_close()


def _certificate(folder: Path) -> tuple[Path, Path]:
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    day = datetime.timedelta(days=1)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now - day, now + day)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    plain, pkcs8 = serialization.NoEncryption(), serialization.PrivateFormat.PKCS8
    paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, pkcs8, plain))
    return paths


@pytest.mark.parametrize("path", ["/aws/vms.csv", "/moved"])
def test_a_list_is_taken_over_from_an_https_address_and_from_where_that_leads(address: str, path: str) -> None:
    updated = update_prices(f"{address}{path}", "AWS")
    assert (updated.rows, updated.replaced, updated.regions) == (1, 1, ["us-east-1"])
    assert Path(updated.path).read_text().startswith(f"# Prices read from {address}{path}")


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/downgraded", "fetched over https alone, and this is http:"),
        ("/loop", "cannot be fetched: .*loop"),
        ("/nowhere", "cannot be fetched: HTTP Error 404"),
        ("/cut", "broke off 1,000 bytes before its end"),
        ("/page", "is no price list that can be read"),
        ("/bytes", "is not UTF-8 text$"),
        ("/huge", "is larger than 0 MB"),
    ],
)
def test_what_is_no_whole_price_list_is_refused_and_writes_nothing(
    address: str, path: str, why: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(price_lists, "LARGEST_LIST_BYTES", 10_000)
    with pytest.raises(PlanError, match=why):
        update_prices(f"{address}{path}", "AWS")
    assert not [*tmp_path.glob("config/prices/*")]


def test_a_certificate_that_nobody_vouches_for_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(PlanError, match="CERTIFICATE_VERIFY_FAILED"):
        update_prices(f"{address}/aws/vms.csv")
