"""The command `speech-to-speech`. Each subcommand imports what it needs only when it runs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from speech_to_speech import __version__
from speech_to_speech.arguments_classes.parsing import StrictParser, add_options, configuration_from
from speech_to_speech.errors import ConfigurationError, SpeechToSpeechError

Backends: TypeAlias = Mapping[str, Sequence[str]]
"""The installed backends by stage, as help shows them."""

COMMANDS = ("serve", "talk", "demo", "download", "models", "voices", "doctor", "bench")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0 done, 1 failed, 2 wrong usage."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        namespace = parse(arguments)
    except SpeechToSpeechError as error:
        print(f"speech-to-speech: {error}", file=sys.stderr)
        return 2
    run: Callable[[argparse.Namespace], int] = namespace.run
    try:
        return run(namespace)
    except SpeechToSpeechError as error:
        print(f"speech-to-speech: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `… | head`: nobody reads on; the interpreter would complain when it flushes at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line as a namespace whose `run` carries it out. Raises `ConfigurationError`; exits after `-h`."""
    backends = _installed_backends() if {"-h", "--help"} & set(arguments) else {}
    namespace: argparse.Namespace = _parser(backends).parse_args(_with_command(list(arguments)))
    return namespace


def _installed_backends() -> Backends:
    from speech_to_speech.runtime.installed_backends import installed_backends

    return installed_backends()


def _with_command(arguments: list[str]) -> list[str]:
    """Without a subcommand the server is meant."""
    if arguments and (arguments[0] in COMMANDS or arguments[0] in ("-h", "--help", "--version")):
        return arguments
    if arguments and not arguments[0].startswith("-"):
        return arguments
    return ["serve", *arguments]


def _parser(backends: Backends) -> StrictParser:
    parser = StrictParser(
        prog="speech-to-speech",
        description="Self-hosted spoken conversation behind the OpenAI Realtime API.",
        epilog="Without a command, 'serve' is run. 'speech-to-speech COMMAND -h' shows a command's options.",
    )
    parser.add_argument("--version", action="version", version=f"speech-to-speech {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_serve(commands, backends)
    _add_talk(commands, backends)
    _add_demo(commands, backends)
    _add_download(commands)
    _add_models(commands)
    _add_voices(commands)
    _add_doctor(commands, backends)
    _add_bench(commands, backends)
    return parser


def _add_serve(commands: argparse._SubParsersAction[StrictParser], backends: Backends) -> None:
    parser = commands.add_parser("serve", help="run the server", description="Run the server.")
    add_options(parser, backends)
    parser.set_defaults(run=_serve)


def _add_talk(commands: argparse._SubParsersAction[StrictParser], backends: Backends) -> None:
    parser = commands.add_parser(
        "talk",
        help="hold a spoken conversation",
        description="Talk through microphone and speaker, or play a WAV file in and record the answer.",
    )
    parser.add_argument("--url", help="server to talk to, such as ws://127.0.0.1:8765; else one is started here")
    parser.add_argument("--input", metavar="WAV", help="play this file, in real time, instead of the microphone")
    parser.add_argument("--output", metavar="WAV", help="write the answer's audio here instead of playing it")
    parser.add_argument("--events", metavar="JSONL", help="write every event of the connection here")
    parser.add_argument(
        "--headphones", action="store_true", help="no echo cancellation: the speaker cannot reach the microphone"
    )
    parser.add_argument("--instructions", help="what the assistant is told to be")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds to wait for the answer (default: 60)")
    add_options(parser, backends)
    parser.set_defaults(run=_talk)


def _add_demo(commands: argparse._SubParsersAction[StrictParser], backends: Backends) -> None:
    parser = commands.add_parser(
        "demo",
        help="play a packaged question to the server and show the turn",
        description="Start a server, play a packaged spoken question to it, show answer and timeline.",
    )
    parser.add_argument("--output", metavar="WAV", default="answer.wav", help="the answer (default: answer.wav)")
    add_options(parser, backends)
    parser.set_defaults(run=_demo)


def _add_download(commands: argparse._SubParsersAction[StrictParser]) -> None:
    parser = commands.add_parser("download", help="fetch model files", description="Fetch model files.")
    parser.add_argument(
        "names",
        nargs="*",
        metavar="what",
        help="names from 'models', a kind, or 'all' (default: those used without flags)",
    )
    parser.set_defaults(run=_download)


def _add_models(commands: argparse._SubParsersAction[StrictParser]) -> None:
    parser = commands.add_parser(
        "models", help="list the model files", description="Every model file: source, size, licence, present or not."
    )
    parser.set_defaults(run=_models)


def _add_voices(commands: argparse._SubParsersAction[StrictParser]) -> None:
    parser = commands.add_parser(
        "voices", help="list the voices", description="The voices of every installed speech-synthesis backend."
    )
    parser.set_defaults(run=_voices)


def _add_doctor(commands: argparse._SubParsersAction[StrictParser], backends: Backends) -> None:
    parser = commands.add_parser(
        "doctor",
        help="say what works on this machine",
        description="What works on this machine, what does not, why, and the line that mends it.",
    )
    parser.add_argument("--json", action="store_true", help="for programs")
    add_options(parser, backends)
    parser.set_defaults(run=_doctor)


def _add_bench(commands: argparse._SubParsersAction[StrictParser], backends: Backends) -> None:
    parser = commands.add_parser("bench", help="measure this machine", description="Measure this machine.")
    benches = parser.add_subparsers(title="benchmarks", metavar="BENCHMARK", required=True)
    turn = benches.add_parser("turn", help="last word → first sound, from recordings of whole turns")
    turn.add_argument("--json", metavar="FILE", help="write every measurement here")
    turn.add_argument("--sessions", type=int, default=1, help="conversations at the same time (default: 1)")
    turn.add_argument("--repeat", type=int, help="times each is played (default: 2 for questions, 1 for scenes)")
    scenes = turn.add_argument_group("scenes of conversation")
    scenes.add_argument("--scenes", metavar="DIR", help="play the scenes that scripts/make_scenes.py made there")
    scenes.add_argument("--kinds", metavar="A,B", default="", help="only scenes of these kinds")
    scenes.add_argument("--split", metavar="NAME", default="", help="only scenes of this split: train or heldout")
    scenes.add_argument("--limit", type=int, metavar="N", help="only so many scenes, kinds taking turns")
    scenes.add_argument("--record", metavar="DIR", help="write stereo recordings (user left) and events here")
    scenes.add_argument("--png", metavar="FILE", help="draw wait against cut-offs here (extra 'bench')")
    scenes.add_argument("--replay_only", action="store_true", help="only wait against cut-offs, nothing in real time")
    add_options(turn, backends)
    turn.set_defaults(run=_bench_turn)
    overhead = benches.add_parser("overhead", help="the server itself, with stages that cost nothing")
    overhead.add_argument("--json", metavar="FILE", help="write every measurement here")
    overhead.add_argument(
        "--sessions",
        type=_counts,
        default=[1, 10, 100, 400],
        metavar="N,N,…",
        help="active sessions, one measurement each (default: 1,10,100,400)",
    )
    overhead.add_argument("--idle", type=int, default=1000, help="connected idle sessions; 0: none (default: 1000)")
    overhead.add_argument("--seconds", type=float, default=10.0, help="length of each measurement (default: 10)")
    overhead.set_defaults(run=_bench_overhead)


def _counts(text: str) -> list[int]:
    """Numbers of sessions, comma-separated."""
    try:
        counts = [int(part) for part in text.split(",")]
    except ValueError:
        counts = [0]
    if min(counts) < 1:
        raise argparse.ArgumentTypeError(f"expected whole numbers from 1, such as 1,10,100; got {text!r}")
    return counts


def _serve(namespace: argparse.Namespace) -> int:
    from speech_to_speech.server.command import serve

    return serve(configuration_from(namespace))


def _talk(namespace: argparse.Namespace) -> int:
    from speech_to_speech.client.talk import talk

    return talk(namespace, configuration_from(namespace))


def _demo(namespace: argparse.Namespace) -> int:
    from speech_to_speech.client.demo import demo

    return demo(configuration_from(namespace), namespace.output)


def _download(namespace: argparse.Namespace) -> int:
    from speech_to_speech.models.catalogue import download

    download(namespace.names)
    return 0


def _models(_namespace: argparse.Namespace) -> int:
    from speech_to_speech.models.catalogue import describe, print_models

    print_models(describe())
    return 0


def _voices(_namespace: argparse.Namespace) -> int:
    from speech_to_speech.doctor.voices import print_voices

    print_voices()
    return 0


def _doctor(namespace: argparse.Namespace) -> int:
    from speech_to_speech.doctor.report import doctor

    return doctor(configuration_from(namespace), as_json=namespace.json)


def _bench_turn(namespace: argparse.Namespace) -> int:
    if namespace.scenes is not None:
        return _bench_scenes(namespace)
    for name in ("kinds", "split", "limit", "record", "png", "replay_only"):
        if getattr(namespace, name) not in (None, "", False):
            raise ConfigurationError(f"--{name}: only with --scenes DIR")
    from speech_to_speech.bench.turn import bench_turn

    return bench_turn(
        configuration_from(namespace),
        repeat=2 if namespace.repeat is None else namespace.repeat,
        sessions=namespace.sessions,
        json_path=namespace.json,
    )


def _bench_scenes(namespace: argparse.Namespace) -> int:
    from speech_to_speech.bench.scene_bench import SceneOptions, bench_scenes

    options = SceneOptions(
        folder=Path(namespace.scenes),
        kinds=tuple(kind.strip() for kind in namespace.kinds.split(",") if kind.strip()),
        split=namespace.split,
        limit=namespace.limit,
        repeat=namespace.repeat or 1,
        json_path=Path(namespace.json) if namespace.json else None,
        record=Path(namespace.record) if namespace.record else None,
        png=Path(namespace.png) if namespace.png else None,
        replay_only=namespace.replay_only,
    )
    return bench_scenes(configuration_from(namespace), options)


def _bench_overhead(namespace: argparse.Namespace) -> int:
    from speech_to_speech.bench.overhead import bench_overhead

    return bench_overhead(
        sessions=namespace.sessions, idle=namespace.idle, seconds=namespace.seconds, json_path=namespace.json
    )


if __name__ == "__main__":
    sys.exit(main())
