"""Entry point: which verbs there are, and the one place where errors become messages and exit codes.

0 fine, 1 findings (check), 2 usage, 3 failure, 130 Ctrl-C. Nothing heavy is imported before the verb is
known.
"""

import io
import os
import sys
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

FINE, FINDINGS, USAGE, FAILURE, INTERRUPTED = 0, 1, 2, 3, 130

# Verb -> what its module in commands/ is called. In the order of the help.
VERBS = {
    "dedup": "dedup",
    "create": "create",
    "put": "put",
    "get": "get",
    "delete": "delete",
    "search": "search",
    "explain": "explain",
    "stats": "stats",
    "check": "check",
    "compact": "compact",
    "demo": "demo",
}


class Verbs(TyperGroup):
    """The verbs, each imported when it is asked for; and the frame around every call."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in VERBS:
            return None
        module = import_module(f"simindex.cli.commands.{VERBS[cmd_name]}")
        verb = typer.Typer(add_completion=False, rich_markup_mode=None)
        verb.command(cmd_name)(getattr(module, VERBS[cmd_name]))
        return typer.main.get_command(verb)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            say("interrupted")
            raise SystemExit(INTERRUPTED) from None
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(FAILURE) from None
        except Exception as error:
            if hasattr(error, "exit_code"):  # typer's own: usage errors, Exit, Abort
                raise
            code = exit_code(error)
            if code is None:  # a defect of ours: everything about it, but not the exit code of findings
                import traceback

                traceback.print_exc()
                raise SystemExit(FAILURE) from None
            say(f"error: {message(error)}")
            raise SystemExit(code) from None


app = typer.Typer(
    cls=Verbs,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def show_version(is_asked: bool) -> None:
    """Print the version and exit, if asked to."""
    if is_asked:
        from importlib.metadata import version

        print(f"simindex {version('simindex')}")
        raise typer.Exit()


@app.callback(epilog="Exit codes: 0 fine, 1 findings of check, 2 usage, 3 failure, 130 interrupted.")
def root(
    version: bool = typer.Option(
        False, "--version", help="Print the version and exit.", callback=show_version, is_eager=True
    ),
) -> None:
    """Find near-duplicates.

    Deduplicate corpora, and keep, search and check similarity indexes in one file.
    """


def exit_code(error: Exception) -> int | None:
    """Return the exit code that an error stands for.

    None for one that is a defect of ours (a traceback then).
    """
    from simindex import errors
    from simindex.workflows.io import BadRecord, UnknownColumn

    if isinstance(error, BadRecord):
        return FAILURE
    if isinstance(error, (errors.SchemaError, errors.QueryError, errors.FeatureError, UnknownColumn)):
        return USAGE
    if isinstance(error, (errors.SimindexError, OSError, MemoryError)):
        return FAILURE
    return None


def message(error: Exception) -> str:
    """Return an error's text; one of the system with the file that it is about."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def say(text: str) -> None:
    """Print one line for the user's eyes, on stderr."""
    print(f"simindex: {text}", file=sys.stderr)


def main() -> None:
    """Run the command line. What the terminal's encoding lacks is printed as escapes."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    app(prog_name="simindex")


if __name__ == "__main__":
    main()
