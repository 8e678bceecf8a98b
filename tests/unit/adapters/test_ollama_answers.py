"""What an Ollama server may answer: how much, for how long, of which model, in which words."""

from __future__ import annotations

import datetime as dt
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from concordance.adapters import answers
from concordance.adapters.answers import MOST_WORDS, provider_words
from concordance.adapters.embedding import TextFailure, Vector
from concordance.adapters.ollama import OllamaEmbedder
from concordance.errors import (
    ModelChanged,
    ModelMissing,
    ProviderError,
    ProviderRefused,
    ProviderTimeout,
    ProviderUnavailable,
)
from tests.fake_ollama import FakeModel, FakeOllama
from tests.fake_ollama_faults import Fault
from tests.planted import planted

LATEST = "nomic-embed-text:latest"
TEXTS = [f"passage {n} on backup" for n in range(3)]


def opened(url: str, timeout: float = 5.0) -> OllamaEmbedder:
    return OllamaEmbedder("nomic-embed-text", url=url, timeout_seconds=timeout)


def vectors(found: list[Vector | TextFailure]) -> list[list[float]]:
    assert not any(isinstance(one, TextFailure) for one in found)
    return [[float(x) for x in one] for one in found]  # type: ignore[union-attr]


# --- how much and how long -------------------------------------------------------------------


def test_an_answer_without_end_is_not_read_to_it(
    fake: FakeOllama, embedder: OllamaEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "MOST_BYTES", 1 << 22)
    embedder.space()
    fake.queue.append(Fault.without_end())
    with pytest.raises(ProviderUnavailable, match="longer than 4,194,304 bytes"):
        embedder.embed_documents(TEXTS)
    assert len(vectors(embedder.embed_documents(TEXTS))) == 3, "and the next call works"


def test_a_refusal_without_end_is_not_read_to_it(
    fake: FakeOllama, embedder: OllamaEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "MOST_BYTES", 100_000)
    embedder.space()
    fake.queue.append(Fault(code=500, body=b"no " * 100_000))
    with pytest.raises(ProviderUnavailable, match="longer than 100,000 bytes"):
        embedder.embed_documents(TEXTS)


def test_few_bytes_that_stand_for_many_are_not_unpacked(
    fake: FakeOllama, embedder: OllamaEmbedder
) -> None:
    embedder.space()
    bomb = Fault.compressed(64)
    assert bomb.body is not None
    assert len(bomb.body) < 100_000
    fake.queue.append(bomb)
    with pytest.raises(ProviderUnavailable, match="compressed"):
        embedder.embed_documents(TEXTS)
    sent = {name.lower(): value for name, value in fake.embeds[-1].headers.items()}
    assert sent["accept-encoding"] == "identity"


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "fault",
    [Fault.trickling(600), Fault.head_without_end(), Fault.without_end()],
    ids=["body", "head", "endless"],
)
def test_an_answer_that_comes_byte_by_byte_costs_its_time_out(
    fake: FakeOllama, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "MOST_BYTES", 1 << 40)
    embedder = opened(fake.url, timeout=0.3)
    embedder.space()
    fake.queue.append(fault)
    with pytest.raises(ProviderTimeout):
        embedder.embed_documents(TEXTS)
    embedder.close()


# --- of which model --------------------------------------------------------------------------


def test_an_answer_that_is_of_another_model_is_not_used(
    fake: FakeOllama, embedder: OllamaEmbedder
) -> None:
    embedder.space()
    fake.rule = lambda _: Fault.of_another_model("llama3")
    with pytest.raises(ProviderError, match="is of the model 'llama3'"):
        embedder.embed_documents(TEXTS)
    with pytest.raises(ProviderError, match="is of the model 'llama3'"):
        embedder.embed_query("where", deadline_seconds=5)
    for same in ("Nomic-Embed-Text", LATEST, ""):
        fake.rule = lambda _, name=same: Fault.of_another_model(name)
        assert len(vectors(embedder.embed_documents(TEXTS))) == 3


@pytest.mark.parametrize("width", [64, 32], ids=["same width", "another width"])
def test_a_name_that_comes_to_mean_another_model_gives_no_vector_of_it(
    fake: FakeOllama, embedder: OllamaEmbedder, width: int
) -> None:
    before = embedder.space()
    fake.models[LATEST] = FakeModel(dimensions=width, version="2")
    with pytest.raises(ModelChanged):
        embedder.embed_documents(TEXTS)
    after = embedder.space()
    assert (after.dimensions, after.digest != before.digest) == (width, True)
    assert len(vectors(embedder.embed_documents(TEXTS))[0]) == width


def test_a_question_is_never_compared_by_another_model_s_vector(
    fake: FakeOllama, embedder: OllamaEmbedder
) -> None:
    embedder.space()
    embedder.embed_query("where", deadline_seconds=5)
    fake.models[LATEST] = FakeModel(version="2")
    with pytest.raises(ModelChanged):
        embedder.embed_query("where", deadline_seconds=5)
    fake.models[LATEST] = FakeModel(dimensions=32, version="3")
    embedder.space()
    fake.models[LATEST] = FakeModel(dimensions=16, version="4")
    with pytest.raises(ModelChanged):
        embedder.embed_query("where", deadline_seconds=5)


def test_the_space_is_looked_at_anew_for_one_request(
    fake: FakeOllama, embedder: OllamaEmbedder
) -> None:
    before = embedder.space()
    fake.forget()
    assert embedder.space(anew=True) is before
    assert fake.paths == ["GET /api/tags"]
    fake.models[LATEST] = FakeModel(version="2")
    assert embedder.space(anew=True).digest != before.digest
    fake.models.clear()
    with pytest.raises(ModelMissing):
        embedder.space(anew=True)


def test_a_space_that_is_gone_is_not_remembered(fake: FakeOllama, embedder: OllamaEmbedder) -> None:
    embedder.space()
    fake.models[LATEST] = FakeModel(version="2")
    fake.queue.append(Fault.status(503))
    with pytest.raises(ProviderUnavailable):
        embedder.space(anew=True)
    assert embedder.space().digest == FakeModel(version="2").digest(LATEST)


# --- in which words --------------------------------------------------------------------------


def test_words_are_one_line_without_secrets_and_control_characters() -> None:
    token = planted()["github"][1]
    said = f"no\0 such\r\n\x1b[31mmodel\u202e \ud800 {token} \u2028 end"
    words = provider_words(said)
    assert words.startswith("no such [31mmodel [secret: ")
    assert words.endswith("] end")
    assert words.isprintable()
    assert token not in words


@pytest.mark.timeout(20)
def test_words_are_cut_between_words_and_quickly() -> None:
    token = planted()["github"][1]
    for before in range(MOST_WORDS - 60, MOST_WORDS + 10, 7):
        said = "x" * (before // 2) + " " + "y" * (before // 2) + f" {token} {token}"
        words = provider_words(said)
        assert len(words) <= MOST_WORDS
        assert token[:12] not in words
    assert len(provider_words("password=" * 10_000_000)) <= MOST_WORDS


def test_a_reason_is_kept_in_words_that_can_be_stored(
    fake: FakeOllama, embedder: OllamaEmbedder
) -> None:
    fake.rule = lambda asked: (
        Fault.status(500, "bad\0 \ud800\x1b[2J text " + "x" * 900)
        if any("bad" in text for text in asked.inputs)
        else None
    )
    _, failed = embedder.embed_documents(["good", "bad"])
    assert isinstance(failed, TextFailure)
    assert failed.reason == "bad [2J text …"


def test_a_key_that_a_server_repeats_is_not(
    fake: FakeOllama, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_API_KEY", "FAKE key of no known form")
    embedder = opened(fake.url)
    embedder.space()
    fake.rule = lambda asked: Fault.status(401, f"not valid: {dict(asked.headers)}")
    with pytest.raises(ProviderRefused) as caught:
        embedder.embed_documents(TEXTS)
    assert "FAKE key" not in str(caught.value)
    assert "'Bearer ***'" in str(caught.value)
    embedder.close()


def test_a_missing_model_has_the_server_s_words_too(
    fake: FakeOllama, embedder: OllamaEmbedder
) -> None:
    embedder.space()
    fake.queue.append(Fault.status(404, "page not found here"))
    with pytest.raises(ModelMissing, match="page not found here"):
        embedder.embed_documents(TEXTS)


# --- no connection ---------------------------------------------------------------------------


@contextmanager
def listening(said: bytes, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """A server that says the same to everybody, and its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                    with tls.wrap_socket(connection, server_side=True) if tls else connection as c:
                        c.recv(65_536)
                        c.sendall(said)
                except ssl.SSLError:
                    continue
                except OSError:
                    return

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield int(listener.getsockname()[1])
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.fixture(scope="module")
def untrusted(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """A certificate that nobody but itself has signed."""
    from cryptography import x509  # noqa: PLC0415 - here alone
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    file.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


def test_a_certificate_that_is_not_trusted_is_told_and_not_asked_again(
    untrusted: ssl.SSLContext, tmp_path: Path
) -> None:
    with listening(b"", untrusted) as port:
        embedder = opened(f"https://127.0.0.1:{port}")
        with pytest.raises(ProviderRefused, match="is not trusted: self") as raised:
            embedder.space()
        embedder.close()
    assert "SSL_CERT_FILE" in str(raised.value)


def test_a_server_without_tls_is_told_as_such() -> None:
    with listening(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        embedder = opened(f"https://127.0.0.1:{port}")
        with pytest.raises(ProviderRefused, match="does not speak TLS"):
            embedder.space()
        embedder.close()


@pytest.mark.parametrize("said", [b"", b"SSH-2.0-OpenSSH_9.2\r\n", b"\0" * 200_000])
def test_a_server_that_speaks_something_else_is_told_with_its_reason(said: bytes) -> None:
    with listening(said) as port:
        embedder = opened(f"http://127.0.0.1:{port}")
        with pytest.raises(ProviderUnavailable, match=r"can't be reached: \S+") as raised:
            embedder.space()
        embedder.close()
    assert raised.value.message.isprintable()


def test_why_there_is_no_connection_is_told() -> None:
    embedder = opened("http://127.0.0.1:1")
    with pytest.raises(ProviderUnavailable, match="can't be reached: Connection refused"):
        embedder.space()
    embedder.close()
