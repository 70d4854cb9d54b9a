"""The entry point of `ssvi` and of `python -m ssvi`.

The program takes seconds to load, because most commands import torch. A user who presses Ctrl-C meanwhile wants the prompt
back, and no traceback of an import: so the handlers of signals come first, and everything else is imported after them.
"""

from ssvi.signals import exit_at_once, set_handlers


def main() -> None:
    """Run the command that was typed."""
    set_handlers(exit_at_once)
    from ssvi.cli import main as run

    run()


if __name__ == "__main__":
    main()
