"""Entry point of `python -m faithmeter`."""

from .cli import main

if __name__ == "__main__":
    main()
